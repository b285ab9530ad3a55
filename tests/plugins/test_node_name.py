from tests.builders import make_node, make_pod
from tests.plugins.scenes import Scene, hint, sign

from bayplan.framework.cluster_event import NODE_ADD
from bayplan.plugins.node_name import NodeName

REJECTION = (2, ["node(s) didn't match the requested node name"])


def test_a_pod_that_names_no_node_may_run_anywhere():
    assert Scene(make_node("a"), make_node("b")).rejections(NodeName(), make_pod()) == {}


def test_a_pod_that_names_a_node_runs_there_or_nowhere():
    scene = Scene(make_node("a"), make_node("b"))
    assert scene.rejections(NodeName(), make_pod(node="a")) == {"b": REJECTION}
    assert scene.rejections(NodeName(), make_pod(node="gone")) == {"a": REJECTION, "b": REJECTION}


def test_pods_that_name_different_nodes_share_nothing():
    assert sign(NodeName(), node="a") != sign(NodeName(), node="b")


def test_new_nodes_bring_the_pod_back():
    assert hint(NodeName(), NODE_ADD, make_pod(node="a"), None, make_node("b")) == "Queue"
