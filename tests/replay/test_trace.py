import gzip
import json

import pytest
from tests.replay.traces import make_pool, make_template, read_trace

from bayplan.config.errors import InputError
from bayplan.replay.generators import generate
from bayplan.replay.trace import trace_lines

HEADER = {
    "pools": [{"name": "pool", "capacity": {"cpu": 4}}],
    "templates": [{"name": "web", "requests": {"cpu": 1}}],
    "seconds": 60,
}
POD = {"arrivalSeconds": 1, "durationSeconds": 2, "template": "web"}


@pytest.fixture
def read(tmp_path):
    """Read a trace of these lines, each an object or text."""

    def read(*lines, pack=bytes):
        text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
        path = tmp_path / "trace"
        path.write_bytes(pack(text.encode()))
        return read_trace(path)

    return read


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_trace_is_read_whether_it_is_compressed_or_not(read, pack):
    trace = read(HEADER, POD, {**POD, "priority": 7, "owner": "web"}, pack=pack)
    assert [each.priority for each in trace.pods] == [None, 7]
    assert trace.template_of(trace.pods[0]).requests == {"cpu": 1}


def test_requests_may_stand_in_the_line_of_the_pod(read):
    inline = {"arrivalSeconds": 1, "durationSeconds": 2, "requests": {"cpu": "500m"}}
    trace = read(HEADER, inline, inline)
    first, second = map(trace.template_of, trace.pods)
    assert first is second
    assert first.requests == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "1: is empty: a trace begins with its header, a line with pools, templates and seconds"),
        (["", HEADER], "1: is empty: a trace begins with its header"),
        ([POD, POD], "1: the first line is of a pod: a trace begins with its header"),
        (["{"], "1: Input data was truncated"),
        ([{**HEADER, "pools": []}], "1: pools: Required value"),
        ([{**HEADER, "extra": 1}], "1: Object contains unknown field extra"),
        ([{**HEADER, "pools": [{"name": "a", "capacity": {}}]}], "1: pools[0].capacity.cpu: Required value"),
        ([{**HEADER, "pools": HEADER["pools"] * 2}], '1: pools[1].name: Duplicate value: "pool"'),
        ([{**HEADER, "templates": [{"name": "", "requests": {}}]}], "1: templates[0].name: Required value"),
        (
            [{**HEADER, "pools": [{"name": "a", "capacity": {"cpu": "x"}}]}],
            "1: pools[0].capacity.cpu: not a quantity: 'x'",
        ),
        ([{**HEADER, "templates": [{"name": "a", "requests": {"cpu": "x"}}]}], "1: templates[0].requests.cpu: "),
        (
            [
                {
                    **HEADER,
                    "templates": [{"name": "a", "requests": {}, "nodeSelector": {"kubernetes.io/hostname": "a-1"}}],
                }
            ],
            '1: templates[0].nodeSelector: "kubernetes.io/hostname" is the name of one node',
        ),
        ([{**HEADER, "templates": [{"name": "a", "requests": {"cpu": -1}}]}], "1: templates[0].requests.cpu: "),
        (
            [{**HEADER, "pools": [{**HEADER["pools"][0], "taints": [{"key": "a", "effect": "NoSchedul"}]}]}],
            '1: pools[0].taints[0].effect: Unsupported value: "NoSchedul"',
        ),
        ([HEADER, {**POD, "durationSeconds": "2"}], "2: durationSeconds: Invalid value: string: must be a number"),
        ([HEADER, {**POD, "arrivalSeconds": -1}], "2: arrivalSeconds: must be greater than or equal to 0"),
        ([HEADER, {**POD, "priority": 2 * 10**9}], "2: priority: must be less than or equal to 1000000000"),
        ([HEADER, POD, {**POD, "arrivalSeconds": 0}], "3: arrivalSeconds: 0 is before the line above, 1"),
        ([HEADER, {**POD, "template": "no"}], '2: template: the header has none that is named "no"'),
        ([HEADER, {**POD, "requests": {}}], "2: template: give it or requests, one of the two"),
        ([HEADER, {"arrivalSeconds": 1, "durationSeconds": 2}], "2: template: give it or requests, one of the two"),
        ([HEADER, {**POD, "template": "", "requests": {"cpu": "x"}}], "2: requests.cpu: "),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(read, lines, problem):
    with pytest.raises(InputError) as raised:
        read(*lines)
    assert f":{problem}" in str(raised.value)


def test_a_trace_that_was_made_up_is_read_as_it_was_written(tmp_path):
    made = generate("openb", seed=3, hours=1.0, scale=0.05)
    path = tmp_path / "trace"
    path.write_bytes(b"".join(trace_lines(made)))
    assert read_trace(path) == made


def test_nodes_of_a_pool_have_its_labels_and_taints_and_110_pods_unless_it_says_otherwise():
    node = make_pool(labels={"zone": "a"}, allocatable={"cpu": 3}).node("n")
    assert node.metadata.labels == {"kubernetes.io/hostname": "n", "zone": "a"}
    assert node.status.allocatable == {"pods": 110, "cpu": 3}
    assert node.status.capacity["cpu"] == 4


def test_the_priority_of_a_pod_goes_before_that_of_its_template():
    template = make_template(priority=3)
    assert (template.spec("s").priority, template.spec("s", 0).priority) == (3, 0)
