import pytest
from tests.builders import make_node, make_pod
from tests.plugins.scenes import Scene, hint, sign

from bayplan.framework.cluster_event import NODE_ADD, NODE_TAINT, TARGET_POD_TOLERATION
from bayplan.plugins.node_unschedulable import NodeUnschedulable

CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


@pytest.fixture
def scene():
    return Scene(make_node("open"), make_node("cordoned", unschedulable=True))


def test_a_cordoned_node_takes_no_pods(scene):
    plugin = NodeUnschedulable(scene.index)
    assert scene.rejections(plugin, make_pod()) == {"cordoned": (2, ["node(s) were unschedulable"])}


@pytest.mark.parametrize(
    ("toleration", "rejected"),
    [
        (CORDON, []),
        (":", []),
        (":NoSchedule", []),
        ("node.kubernetes.io/unschedulable", []),
        ("other:NoSchedule", ["cordoned"]),
        ("node.kubernetes.io/unschedulable:NoExecute", ["cordoned"]),
    ],
)
def test_a_pod_that_tolerates_the_cordon_may_run_there(scene, toleration, rejected):
    assert list(scene.rejections(NodeUnschedulable(scene.index), make_pod(tolerations=[toleration]))) == rejected


def test_only_whether_the_cordon_is_tolerated_makes_a_shape(scene):
    plugin = NodeUnschedulable(scene.index)
    assert sign(plugin) == sign(plugin, tolerations=["other"])
    assert sign(plugin) != sign(plugin, tolerations=[CORDON])


@pytest.mark.parametrize(
    ("event", "old", "new", "verdict"),
    [
        (NODE_ADD, None, make_node(), "Queue"),
        (NODE_ADD, None, make_node(unschedulable=True), "QueueSkip"),
        (NODE_TAINT, make_node(unschedulable=True), make_node(), "Queue"),
        (NODE_TAINT, make_node(), make_node(), "QueueSkip"),
        (NODE_TAINT, make_node(), make_node(unschedulable=True), "QueueSkip"),
    ],
)
def test_only_nodes_that_open_up_bring_the_pod_back(scene, event, old, new, verdict):
    assert hint(NodeUnschedulable(scene.index), event, make_pod(), old, new) == verdict


def test_the_pod_comes_back_when_it_tolerates_the_cordon_itself(scene):
    plugin, event = NodeUnschedulable(scene.index), TARGET_POD_TOLERATION
    pod = make_pod(uid="u")
    assert hint(plugin, event, pod, pod, make_pod(uid="u", tolerations=[CORDON])) == "Queue"
    assert hint(plugin, event, pod, pod, make_pod(uid="u", tolerations=["other"])) == "QueueSkip"
