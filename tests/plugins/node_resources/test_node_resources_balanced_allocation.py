import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.node_resources.no_devices import NO_DEVICES
from tests.plugins.scenes import Scene, sign

from bayplan.config.types import NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.framework.status import SKIP, SUCCESS
from bayplan.plugins.node_resources.node_resources_balanced_allocation import NodeResourcesBalancedAllocation

GPU = "example.com/gpu"


def balanced(*names: str) -> NodeResourcesBalancedAllocation:
    resources = tuple(ResourceSpec(name) for name in names or ("cpu", "memory"))
    return NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(resources), NO_DEVICES)


# kube-scheduler 1.36.3 gave these scores.


@pytest.mark.parametrize(("cpu", "memory", "score"), [("2", "1Gi", 63), ("1", "8Gi", 75)])
def test_an_empty_node_scores_as_kube_scheduler_did(cpu, memory, score):
    assert Scene(make_node(cpu="4", memory="32Gi")).score(balanced(), make_pod(cpu=cpu, memory=memory)) == score


def test_a_pod_that_evens_out_the_node_scores_above_75():
    scene = Scene(make_node("n", cpu="4", memory="4Gi"), make_pod(node="n", cpu="2"))
    assert scene.score(balanced(), make_pod(memory="2Gi")) == 87
    assert scene.score(balanced(), make_pod(cpu="2")) == 62


def test_a_pod_that_requests_none_of_the_resources_is_left_out():
    nodes = Scene(make_node()).cache.nodes
    assert balanced().pre_score({}, make_pod_info(), nodes, nodes.rows()) is SKIP
    assert balanced().pre_score({}, make_pod_info(requests={GPU: 1}), nodes, nodes.rows()) is SKIP
    assert balanced().pre_score({}, make_pod_info(cpu="1"), nodes, nodes.rows()) is SUCCESS
    assert Scene(make_node()).score(balanced(), make_pod()) == 0


def test_three_resources_use_the_population_standard_deviation():
    scene = Scene(make_node("n", cpu="4", memory="4Gi", allocatable={GPU: 4}))
    # Fractions 1, 0 and 0.5 deviate by sqrt(1/6) = 0.408: 59 with the pod, 100 without.
    assert (
        scene.score(balanced("cpu", "memory", GPU), make_pod(requests={"cpu": "4", GPU: 2}))
        == 50 + (50 + 59 - 100) // 2
    )


def test_resources_the_node_lacks_and_extended_ones_not_asked_for_do_not_count():
    plugin, pod = balanced("cpu", "memory", GPU), make_pod(cpu="2", memory="1Gi")
    assert Scene(make_node(cpu="4", memory="32Gi", allocatable={GPU: 8})).score(plugin, pod) == 63
    assert Scene(make_node(cpu="4", memory="0")).score(plugin, pod) == 75


def test_nodes_that_lack_a_resource_stand_beside_others():
    scene = Scene(make_node("both", cpu="4", memory="32Gi"), make_node("lacking", cpu="4", memory="0"))
    assert scene.scores(balanced(), make_pod(cpu="2", memory="1Gi")) == {"both": 63, "lacking": 75}


def test_true_requests_count_and_pod_level_ones_with_them():
    scene = Scene(make_node(cpu="4", memory="32Gi"))
    assert scene.score(balanced(), make_pod(pod_level={"cpu": "2", "memory": "1Gi"})) == 63


def test_requests_of_the_configured_resources_make_the_shape():
    assert sign(balanced(), cpu="1") == sign(balanced(), cpu="1", requests={GPU: 1})
    assert sign(balanced(), cpu="1") != sign(balanced(), cpu="2")
