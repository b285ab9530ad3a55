"""What is recorded of a live cluster, and the trace that it makes."""

import msgspec
import pytest
from tests.builders import make_node, make_pod
from tests.replay.traces import read_trace, replayed

from bayplan.replay.recording import Recording, RecordingError
from bayplan.replay.trace import trace_lines

TYPE = "node.kubernetes.io/instance-type"


class Scene:
    """A recording of a cluster whose time moves by hand; it begins with a node of four cores."""

    def __init__(self):
        self.now = 1000.0
        self.recording = Recording(lambda: self.now)
        self.recording.node_seen(make_node("n1"))

    def begin(self):
        self.recording.begin()
        return self

    def pod(self, name, node="", **fields):
        made = make_pod(name, node=node, uid=name, **fields)
        self.recording.pod_seen(made)
        return made

    def after(self, seconds):
        self.now += seconds
        return self

    def pods(self):
        return [(each.arrival_seconds, each.duration_seconds) for each in self.recording.trace().pods]


@pytest.fixture
def scene():
    return Scene()


def test_a_pod_runs_from_its_bind_to_its_end(scene):
    scene.begin().after(10)
    scene.pod("web", cpu="500m")
    scene.after(5)
    web = scene.pod("web", "n1", cpu="500m")
    scene.after(60)
    scene.recording.pod_gone(web)
    scene.after(100)
    trace = scene.recording.trace()
    assert scene.pods() == [(10.0, 60.0)]
    assert trace.header.seconds == 175.0
    assert trace.template_of(trace.pods[0]).requests == {"cpu": "500m"}


def test_what_runs_at_the_start_comes_at_once_and_what_runs_at_the_end_ends_with_it(scene):
    scene.pod("old", "n1")
    scene.after(30).begin()
    scene.after(40)
    scene.pod("new", "n1")
    scene.pod("waits")
    scene.after(20)
    assert scene.pods() == [(0.0, 60.0), (40.0, 20.0), (40.0, 20.0)]


def test_a_pod_that_never_ran_is_left_out_and_counted(scene):
    scene.begin()
    scene.recording.pod_gone(scene.pod("given-up"))
    assert scene.after(10).pods() == []
    assert scene.recording.left_out["never ran"] == 1


def test_pods_that_are_alike_share_a_template_and_those_of_one_owner_its_number(scene):
    for name, owner in (("a", "ReplicaSet/web"), ("b", "ReplicaSet/web"), ("c", "Job/once")):
        scene.pod(name, "n1", cpu="1", owner=owner, priority=2_000_000_000)
    trace = scene.begin().after(10).recording.trace()
    assert [each.owner for each in trace.pods] == ["owner-1", "owner-1", "owner-2"]
    (template,) = trace.header.templates
    assert template.priority == 10**9


def test_nodes_of_one_type_are_a_pool_of_as_many_as_there_were_at_once(scene):
    for name, memory in (("m1", "16000Mi"), ("m2", "15990Mi")):
        scene.recording.node_seen(make_node(name, memory=memory, labels={TYPE: "m5", "kubernetes.io/hostname": name}))
    scene.begin().after(10)
    scene.recording.node_gone(make_node("m1"))
    scene.recording.node_seen(make_node("m3", memory="15999Mi", labels={TYPE: "m5"}))
    pools = {each.name: each for each in scene.after(10).recording.trace().header.pools}
    assert {name: each.count for name, each in pools.items()} == {"pool-1": 1, "m5-2": 2}
    assert pools["m5-2"].labels == {TYPE: "m5"}
    assert pools["m5-2"].allocatable["memory"] == "15990Mi"


def test_pools_have_the_labels_that_pods_select_by_and_the_taints_that_stay(scene):
    labels = {"team": "ci", "secret": "name"}
    taints = ["only=ci:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
    scene.recording.node_seen(make_node("n2", labels=labels, taints=taints))
    scene.pod("job", "n2", node_selector={"team": "ci", "kubernetes.io/hostname": "n2"}, tolerations=["only"])
    trace = scene.begin().after(10).recording.trace()
    pool = trace.header.pools[1]
    assert (pool.labels, [each.key for each in pool.taints]) == ({"team": "ci"}, ["only"])
    assert trace.header.templates[0].node_selector == {"team": "ci"}
    assert scene.recording.left_out["a node's name as selector"] == 1


def test_pods_of_daemon_sets_are_what_a_node_of_the_pool_has_less(scene):
    for name, owner in (("a", "DaemonSet/logs"), ("b", "DaemonSet/net"), ("a-again", "DaemonSet/logs")):
        scene.pod(name, "n1", cpu="200m", owner=owner)
    trace = scene.begin().after(10).recording.trace()
    assert trace.header.pools[0].daemons == {"cpu": "400m"}
    assert trace.pods == []


def test_no_name_is_in_the_file(scene):
    scene.pod("secret-pod", "n1", namespace="secret-space", owner="Job/secret-owner", cpu="1")
    text = b"".join(trace_lines(scene.begin().after(10).recording.trace())).decode()
    assert "secret" not in text
    assert "n1" not in text


def test_it_is_read_and_replayed_as_any_trace(scene, tmp_path):
    scene.pod("first", "n1", cpu="1", memory="1Gi", tolerations=["gpu"], node_selector={"a": "b"})
    scene.pod("second", "n1", cpu="2")
    scene.begin().after(3600)
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"".join(trace_lines(scene.recording.trace())))
    trace = read_trace(file)
    assert msgspec.to_builtins(trace.pods) == msgspec.to_builtins(scene.recording.trace().pods)
    assert replayed(trace, provision=0.0).bound >= 1


def test_what_cannot_be_read_or_has_no_cpu_is_left_out():
    recording = Recording()
    for node in (make_node("odd", cpu="much"), make_node("none", cpu="0")):
        recording.node_seen(node)
    recording.pod_seen(make_pod("odd", node="odd", cpu="much"))
    with pytest.raises(RecordingError, match="no node was seen"):
        recording.trace()
