"""NodeResourcesBalancedAllocation with the measure of Kubernetes 1.16."""

import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.scenes import Scene, sign

from bayplan.config.types import BalanceMeasure, NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.framework.status import SUCCESS
from bayplan.plugins.node_resources.node_resources_balanced_allocation import ResultingBalance

GPU = "example.com/gpu"


def balance(*names: str) -> ResultingBalance:
    resources = tuple(ResourceSpec(name) for name in names or ("cpu", "memory"))
    return ResultingBalance(NodeResourcesBalancedAllocationArgs(resources, BalanceMeasure.RESULT))


@pytest.mark.parametrize(
    ("cpu", "memory", "score"), [("2", "2Gi", 100), ("3", "1Gi", 50), ("3999m", "1Mi", 0), ("1", "3Gi", 50)]
)
def test_the_score_is_what_cpu_and_memory_do_not_differ_by(cpu, memory, score):
    scene = Scene(make_node(cpu="4", memory="4Gi"))
    assert scene.score(balance(), make_pod(cpu=cpu, memory=memory)) == score


def test_only_how_the_node_is_with_the_pod_counts():
    even = make_pod(cpu="1", memory="1Gi")
    scene = Scene(
        make_node("uneven", cpu="4", memory="4Gi"),
        make_node("even", cpu="4", memory="4Gi"),
        make_pod("a", node="uneven", cpu="2", memory="1Gi"),
        make_pod("b", node="even", cpu="1", memory="1Gi"),
    )
    assert scene.scores(balance(), even) == {"uneven": 75, "even": 100}


def test_a_node_that_the_pod_would_fill_scores_nothing():
    scene = Scene(make_node("n", cpu="4", memory="4Gi"), make_pod(node="n", cpu="2", memory="2Gi"))
    assert scene.score(balance(), make_pod(cpu="2", memory="2Gi")) == 0
    assert scene.score(balance(), make_pod(cpu="1", memory="2Gi")) == 0


def test_a_node_that_lacks_a_native_resource_scores_nothing():
    scene = Scene(make_node("both", cpu="4", memory="4Gi"), make_node("lacking", cpu="4", memory="0"))
    assert scene.scores(balance(), make_pod(cpu="2", memory="2Gi")) == {"both": 100, "lacking": 0}


def test_containers_that_request_nothing_count_with_what_scores_take_for_them():
    scene = Scene(make_node("n", cpu="1", memory="2000Mi"))
    assert scene.score(balance(), make_pod()) == 100
    nodes = scene.cache.nodes
    assert balance().pre_score({}, make_pod_info(), nodes, nodes.rows()) is SUCCESS


def test_extended_resources_count_for_pods_that_want_them():
    scene = Scene(make_node("n", cpu="4", memory="4Gi", allocatable={GPU: 4}))
    plugin = balance("cpu", "memory", GPU)
    assert scene.score(plugin, make_pod(cpu="2", memory="2Gi")) == 100
    assert scene.score(plugin, make_pod(cpu="2", memory="2Gi", requests={GPU: 1})) == 75
    assert Scene(make_node(cpu="4", memory="4Gi")).score(plugin, make_pod(cpu="2", memory="2Gi")) == 100


def test_what_the_pod_wants_of_the_resources_makes_the_shape():
    assert sign(balance(), cpu="1") == sign(balance(), cpu="1", requests={GPU: 1})
    assert sign(balance(), cpu="1") != sign(balance(), cpu="2")
    assert sign(balance("cpu", GPU), cpu="1") != sign(balance("cpu", GPU), cpu="1", requests={GPU: 1})
