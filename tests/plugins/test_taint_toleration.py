import pytest
from tests.builders import make_node, make_pod
from tests.plugins.scenes import Scene, hint, sign

from bayplan.framework.cluster_event import NODE_ADD, NODE_TAINT, TARGET_POD_TOLERATION
from bayplan.plugins.taint_toleration import TaintToleration

REJECTION = (2, ["node(s) had untolerated taint(s)"])


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_hard_taint_without_toleration_rejects_the_node(effect):
    scene = Scene(make_node("a", taints=[f"gpu=yes:{effect}"]), make_node("b"))
    plugin = TaintToleration(scene.index)
    assert scene.rejections(plugin, make_pod()) == {"a": REJECTION}
    assert scene.rejections(plugin, make_pod(tolerations=["gpu=no:"])) == {"a": REJECTION}
    assert scene.rejections(plugin, make_pod(tolerations=["gpu=yes:"])) == {}


def test_every_hard_taint_must_be_tolerated():
    scene = Scene(make_node("a", taints=["x:NoSchedule", "y:NoExecute"]))
    plugin = TaintToleration(scene.index)
    assert scene.rejections(plugin, make_pod(tolerations=["x"])) == {"a": REJECTION}
    assert scene.rejections(plugin, make_pod(tolerations=["x", "y"])) == {}


def test_soft_and_unknown_effects_reject_nothing():
    scene = Scene(make_node("a", taints=["x:PreferNoSchedule", "y:Sometimes"]))
    assert scene.rejections(TaintToleration(scene.index), make_pod()) == {}


def test_the_raw_score_counts_soft_taints_that_are_not_tolerated():
    soft = ["x:PreferNoSchedule", "y:PreferNoSchedule"]
    scene = Scene(
        make_node("none"), make_node("one", taints=soft[:1]), make_node("two", taints=[*soft, "z:NoSchedule"])
    )
    plugin = TaintToleration(scene.index)
    assert scene.scores(plugin, make_pod()) == {"none": 0, "one": 1, "two": 2}
    assert scene.scores(plugin, make_pod(tolerations=["x"])) == {"none": 0, "one": 0, "two": 1}


def test_a_toleration_of_hard_effects_does_not_help_the_score():
    scene = Scene(make_node("a", taints=["x:PreferNoSchedule"]))
    assert scene.score(TaintToleration(scene.index), make_pod(tolerations=["x:NoSchedule"])) == 1


def test_pods_with_different_tolerations_share_nothing():
    plugin = TaintToleration(Scene().index)
    assert sign(plugin) == ()
    assert sign(plugin, tolerations=["x"]) != sign(plugin, tolerations=["x:NoSchedule"])


TAINTED = make_node(taints=["x:NoSchedule"])


@pytest.mark.parametrize(
    ("event", "old", "new", "verdict"),
    [
        (NODE_ADD, None, make_node(), "Queue"),
        (NODE_ADD, None, TAINTED, "QueueSkip"),
        (NODE_TAINT, TAINTED, make_node(), "Queue"),
        (NODE_TAINT, make_node(), make_node(taints=["y:PreferNoSchedule"]), "QueueSkip"),
        (NODE_TAINT, make_node(), TAINTED, "QueueSkip"),
    ],
)
def test_only_nodes_that_become_tolerable_bring_the_pod_back(event, old, new, verdict):
    assert hint(TaintToleration(Scene().index), event, make_pod(), old, new) == verdict


def test_the_pods_own_new_tolerations_bring_it_back():
    plugin, pod = TaintToleration(Scene().index), make_pod(uid="u")
    assert hint(plugin, TARGET_POD_TOLERATION, pod, pod, make_pod(uid="u", tolerations=["x"])) == "Queue"
