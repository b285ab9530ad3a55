"""What people give `bayplan simulate` first: each gets the answer, or one line that says what is wrong."""

import gzip
import json

import pytest
from tests.cli.simulate_inputs import CUSTOM, FORBIDDEN, NODE, POD, SPEC, WEB, asking, lists, pod

from bayplan.simulate.report import Report

ANSWERED = {
    "one node": (lists(NODE), "Pods:  0: 0 scheduled"),
    "YAML documents": (
        f"kind: Node\nmetadata: {{name: n1}}\n---\nkind: Pod\nmetadata: {{name: p}}\nspec: {json.dumps(SPEC)}\n",
        "Pods:  1:",
    ),
    "a Deployment": (lists(NODE, WEB), "Pods:  2: 2 scheduled"),
    "a byte order mark": (b"\xef\xbb\xbf" + lists(NODE, POD).encode(), "Pods:  1: 1 scheduled"),
    "a value a line": (f"{json.dumps(NODE)}\n{json.dumps(POD)}\n", "Pods:  1: 1 scheduled"),
    "a value a line, as Windows ends them": (f"{json.dumps(NODE)}\r\n\r\n{json.dumps(POD)}\r\n", "1 scheduled"),
    "values over several lines": (json.dumps(NODE, indent=1) + json.dumps(POD, indent=1), "Pods:  1: 1 scheduled"),
    "lists one after the other": (lists(NODE) + "\n" + lists(POD), "Pods:  1: 1 scheduled"),
    "compressed": (gzip.compress(lists(NODE, POD).encode()), "Pods:  1: 1 scheduled"),
    "compressed in two parts": (
        gzip.compress(b'{"kind": "Node", ') + gzip.compress(b'"metadata": {"name": "x"}}'),
        "of 1 in",
    ),
    "custom resources": (lists(NODE, CUSTOM, CUSTOM, POD), "Ignored: 2 Spaceship"),
    "custom resources only": (lists(CUSTOM), "Ignored: 1 Spaceship"),
    "JSON documents in YAML": (f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}\n", "Pods:  1: 1 scheduled"),
    "no request": (lists(NODE, pod(containers=[{"name": "c"}])), "Pods:  1: 1 scheduled"),
    "more than there is": (lists(NODE, asking("cpu", "1e18")), "1 Insufficient cpu"),
    "another kind of node": (lists(NODE, asking("example.com/x", 1)), "1 Insufficient example.com/x"),
    "quantities of every form": (
        lists(NODE, asking("cpu", "15e-1"), {**POD, "metadata": {"name": "q"}}),
        "2 scheduled",
    ),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_an_odd_input_gets_its_answer(simulate, case):
    content, answer = ANSWERED[case]
    code, out, err = simulate({"in": content}, "--cluster", "in")
    assert (code, err) == (0, "")
    assert answer in out


REFUSED = {
    "empty": ("", "in: is empty"),
    "blank": ("\n\n", "in: is empty"),
    "comments only": ("# nothing\n", "in: holds no objects"),
    "an empty list": (lists(), "--cluster: the files hold no objects"),
    "a list with a typing error": ("kind: List\nitms: []\n", "in: document 1: items: Required value"),
    "an answer of the API server": (
        json.dumps(FORBIDDEN),
        'in: is no cluster but an answer of the API server: "pods is forbidden"',
    ),
    "an answer after a list": (
        lists(NODE) + json.dumps(FORBIDDEN),
        'in: object 2: is no cluster but an answer of the API server: "pods is forbidden"',
    ),
    "an answer that is none": (
        json.dumps({**FORBIDDEN, "message": 7}),
        "in: is no cluster but an answer of the API server: it cannot be read",
    ),
    "a program": (b"\x7fELF\0", "in: is not a text file"),
    "not UTF-8": (b"kind: \xff\n", "in: is not UTF-8 text: line 1"),
    "half a value": ('{"kind": "Node"', "in: is not valid JSON: Input data was truncated"),
    "half of gzip": (gzip.compress(lists(NODE).encode())[:-9], "in: is cut off"),
    "wrong gzip": (b"\x1f\x8b nothing", "in: is not what gzip writes"),
    "gzip of a program": (gzip.compress(b"\x7fELF\0"), "in: is not a text file"),
    "text": (
        "Error from server (Forbidden)\n",
        "in: document 1: Invalid value: string: must be an object with apiVersion and kind",
    ),
    "a node's quantity": (
        lists({**NODE, "status": {"allocatable": {"cpu": "many"}}}),
        "in: items[0]: Node \"n1\": status.allocatable[cpu]: not a quantity: 'many'",
    ),
    "a Deployment's replicas": (
        lists(NODE, {**WEB, "spec": {**WEB["spec"], "replicas": 10**12}}),
        'in: items[1]: Deployment "web": spec.replicas: 1000000000000 pods more are more than the 1000000',
    ),
    "a class of users that is too high": (
        lists(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "x"},
                "value": 2 * 10**9,
            }
        ),
        'in: items[0]: PriorityClass "x": value: 2000000000 is above 1000000000',
    ),
    "two global defaults": (
        lists(
            *(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": 1,
                    "globalDefault": True,
                }
                for name in "ab"
            )
        ),
        'in: items[1]: PriorityClass "b": globalDefault: PriorityClass a is the global default',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_odd_input_is_refused_with_one_line(simulate, case):
    content, message = REFUSED[case]
    code, out, err = simulate({"in": content}, "--cluster", "in", "--validate", "ignore")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(message)


TOLD = {
    "a pod's quantity": (
        lists(NODE, asking("cpu", "1x")),
        "in: items[1]: pod default/p skipped: spec.containers[0].resources.requests[cpu]: not a quantity",
    ),
    "a template's quantity": (
        lists(
            NODE,
            {
                **WEB,
                "spec": {**WEB["spec"], "template": {**WEB["spec"]["template"], "spec": asking("cpu", "x")["spec"]}},
            },
        ),
        "in: items[1]: 2 pods of Deployment default/web skipped: spec.template.spec.containers[0].resources.requests[",
    ),
    "pods of another scheduler": (
        lists(NODE, pod(schedulerName=""), pod(schedulerName="")),
        "in: items[2]: pod default/p skipped: metadata.name",
    ),
    "no nodes": (lists(POD), "no pod can be placed: the files hold no nodes, which `kubectl get nodes -o json` gives"),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_is_left_out_is_told_in_one_line_each(simulate, case):
    content, line = TOLD[case]
    code, out, err = simulate({"in": content}, "--cluster", "in", "--validate", "ignore")
    assert code == 0
    assert out
    assert err.startswith(line)


def test_where_all_nodes_are_removed_that_is_what_is_told(simulate):
    code, _, err = simulate({"in": lists(NODE, POD)}, "--cluster", "in", "--remove", f"node/{NODE['metadata']['name']}")
    assert (code, err) == (0, "no pod can be placed: all nodes are removed\n")


def test_a_file_without_a_name_is_told_in_quotes(simulate):
    code, _, err = simulate({}, "--cluster", "")
    assert (code, err) == (2, '"": cannot be read: No such file or directory\n')


def test_pods_of_another_scheduler_say_which_name_to_give(simulate):
    files = {"in": lists(NODE, pod(schedulerName=""))}
    code, _, err = simulate(files, "--cluster", "in")
    assert code == 0
    assert err == (
        "no pod is tried: 1 pod that waits names the scheduler default-scheduler; "
        "to try it give --scheduler-name default-scheduler\n"
    )
    code, out, err = simulate(files, "--cluster", "in", "--scheduler-name", "default-scheduler")
    assert (code, err) == (0, "")
    assert "1 scheduled" in out


def test_a_directory_stands_for_its_files_and_those_below(simulate):
    files = {
        "all/nodes.yaml": json.dumps(NODE),
        "all/apps/web.yml.gz": gzip.compress(json.dumps(WEB).encode()),
        "all/apps/empty.yaml": "",
        "all/.git/pod.yaml": json.dumps(POD),
        "all/readme.md": "not for us",
    }
    code, out, err = simulate(files, "--cluster", "all")
    assert (code, err) == (0, "")
    assert "Pods:  2: 2 scheduled" in out


def test_a_file_of_a_directory_that_is_wrong_is_named(simulate):
    code, _, err = simulate({"all/a/x.yaml": "kind: 7\n"}, "--cluster", "all")
    assert (code, err) == (2, "all/a/x.yaml: document 1: kind: Invalid value: integer: must be a string\n")


def test_standard_input_may_be_compressed_and_stands_beside_files(simulate):
    arguments = ("--cluster", "-", "--cluster", "web.json")
    code, out, _ = simulate({"web.json": json.dumps(WEB)}, *arguments, stdin=gzip.compress(json.dumps(NODE).encode()))
    assert (code, "2 scheduled" in out) == (0, True)
    assert simulate({}, "--cluster", "-", stdin=b"{}")[2] == "-: kind: Required value\n"


@pytest.mark.parametrize("name", ["a\nb.yaml", "a\x1b[31m.yaml", "a\udcff.yaml", "ä b.yaml"])
def test_a_file_of_any_name_is_called_by_it_in_one_line(simulate, name):
    code, _, err = simulate({name: "kind: 7\n"}, "--cluster", name)
    assert (code, err.count("\n")) == (2, 1)
    assert err.isascii() or "ä" in err
    assert "\x1b" not in err


def test_with_fail_on_unschedulable_the_exit_code_tells(simulate):
    big = lists(NODE, asking("cpu", 99))
    assert simulate({"in": big}, "--cluster", "in")[0] == 0
    assert simulate({"in": big}, "--cluster", "in", "--fail-on-unschedulable")[0] == 3
    unreadable = lists(NODE, asking("cpu", "x"))
    lenient = ("--cluster", "in", "--fail-on-unschedulable", "--validate", "ignore")
    assert simulate({"in": unreadable}, *lenient)[0] == 3
    assert simulate({"in": lists(NODE, POD)}, "--cluster", "in", "--fail-on-unschedulable")[0] == 0


@pytest.mark.parametrize("arguments", [(), ("--explain",), ("--drain", "n1"), ("--add", "pod.json", "--count", "max")])
def test_what_is_written_for_programs_is_as_the_schema_says(simulate, arguments):
    import msgspec

    files = {"in": lists(NODE, WEB), "pod.json": json.dumps(POD)}
    code, out, _ = simulate(files, "--cluster", "in", "-o", "json", *arguments)
    assert code == 0
    report = msgspec.json.decode(out, type=Report)
    summary = report.summary
    placed = summary.scheduled + summary.unschedulable + summary.gated
    left = summary.running + summary.finished + summary.other_schedulers + sum(each.pods for each in summary.skipped)
    assert summary.pods == placed + left == len(report.pods)


CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_configuration_may_come_by_standard_input(simulate):
    given = CONFIGURATION + "profiles: [{schedulerName: packer}]\n"
    files = {"in": lists(NODE, pod(schedulerName="packer"))}
    code, out, err = simulate(files, "--cluster", "in", "--config", "-", stdin=given.encode())
    assert (code, err) == (0, "")
    assert "1 scheduled" in out
    code, _, err = simulate(files, "--cluster", "in", "--config", "-", stdin=b"kind: 5\n")
    assert (code, err) == (
        2,
        '-:1:1: kind: Unsupported value: 5: supported values: "KubeSchedulerConfiguration", "Policy"\n',
    )


@pytest.mark.parametrize(
    ("flags", "first", "second"),
    [
        (("--cluster", "-", "--cluster", "-"), "cluster", "cluster"),
        (("--cluster", "-", "--config", "-"), "cluster", "config"),
        (("--cluster", "-", "--add", "-"), "cluster", "add"),
        (("--cluster", "in", "--config", "-", "--config", "-"), "config", "config"),
        (("--cluster", "in", "--add", "-", "--remove", "-"), "add", "remove"),
    ],
)
def test_standard_input_is_read_for_one_flag_only(simulate, flags, first, second):
    code, out, err = simulate({"in": lists(NODE)}, *flags, stdin=lists(NODE).encode())
    assert (code, out) == (2, "")
    assert err == f"--{second}: Forbidden: standard input is what --{first} reads\n"
