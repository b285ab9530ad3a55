from typing import Any

import pytest
from tests.builders import make_container, make_node, make_pod, make_pod_info
from tests.plugins.node_resources.no_devices import NO_DEVICES
from tests.plugins.scenes import Scene, hint, sign

from bayplan.config.types import (
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    WeightedStrategy,
)
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_SCALE_DOWN,
    NODE_ADD,
    NODE_ALLOCATABLE,
    TARGET_POD_SCALE_DOWN,
)
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_resources.resource_scoring import shape_table

LEAST = ScoringStrategyType.LEAST_ALLOCATED
MOST = ScoringStrategyType.MOST_ALLOCATED
RATIO = ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO

GPU = "example.com/gpu"
FOO = "intel.com/foo"
RISING = ((0, 0), (100, 10))
FALLING = ((0, 10), (100, 0))


def fit(kind: ScoringStrategyType = LEAST, shape: Any = (), **weights: int) -> NodeResourcesFit:
    names = {"gpu": GPU, "foo": FOO, "pages": "hugepages-2Mi", "storage": "ephemeral-storage"}
    resources = tuple(ResourceSpec(names.get(name, name), weight) for name, weight in weights.items())
    points = tuple(UtilizationShapePoint(*point) for point in shape)
    strategy = ScoringStrategy(kind, resources or (ResourceSpec("cpu"), ResourceSpec("memory")), points)
    return NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), NO_DEVICES)


def filtered(pod, node, *placed, args=NodeResourcesFitArgs()):  # noqa: B008  # immutable
    found = Scene(node, *placed).rejections(NodeResourcesFit(args, NO_DEVICES), pod)
    return found.get(node.metadata.name)


def test_a_pod_that_fits_exactly_passes():
    node, placed = make_node("n", cpu="4", memory="4Gi", pods=2), make_pod(node="n", cpu="3", memory="1Gi")
    assert filtered(make_pod(cpu="1", memory="3Gi"), node, placed) is None


def test_every_resource_that_is_short_is_named():
    node = make_node("n", cpu="1", memory="1Gi", pods=1, allocatable={"ephemeral-storage": "1Gi", GPU: 4})
    placed = make_pod(node="n", requests={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", GPU: 4})
    wanted = {GPU: 1, "ephemeral-storage": 1, "memory": 1, "cpu": "1m"}
    assert filtered(make_pod(requests=wanted), node, placed) == (
        1,
        [
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            "Insufficient ephemeral-storage",
            f"Insufficient {GPU}",
        ],
    )


def test_a_request_beyond_the_whole_node_is_beyond_preemption():
    node = make_node("n", cpu="4", memory="4Gi")
    assert filtered(make_pod(cpu="5"), node) == (2, ["Insufficient cpu"])
    assert filtered(make_pod(cpu="4"), node, make_pod(node="n", cpu="1")) == (1, ["Insufficient cpu"])
    assert filtered(make_pod(requests={GPU: 1}), node) == (2, [f"Insufficient {GPU}"])


def test_too_many_pods_is_never_beyond_preemption():
    assert filtered(make_pod(), make_node("n", pods=0)) == (1, ["Too many pods"])
    assert filtered(make_pod(), make_node("n", pods=None)) == (1, ["Too many pods"])


def test_zero_requests_fit_a_node_that_is_overcommitted():
    node, placed = make_node("n", cpu="1"), make_pod(node="n", cpu="2")
    assert filtered(make_pod(memory="1Gi"), node, placed) is None
    assert filtered(make_pod(cpu="0"), node, placed) is None


def test_ignored_resources_and_groups_are_extended_ones_only():
    node = make_node("n")
    by_name = NodeResourcesFitArgs(ignored_resources=(GPU, "cpu", "hugepages-2Mi"))
    by_group = NodeResourcesFitArgs(ignored_resource_groups=("example.com",))
    assert filtered(make_pod(requests={GPU: 1}), node, args=by_name) is None
    assert filtered(make_pod(requests={GPU: 1}), node, args=by_group) is None
    assert filtered(make_pod(requests={FOO: 1}), node, args=by_group) == (2, [f"Insufficient {FOO}"])
    assert filtered(make_pod(cpu="99"), node, args=by_name) == (2, ["Insufficient cpu"])
    assert filtered(make_pod(requests={"hugepages-2Mi": "2Mi"}), node, args=by_name) is not None


def test_an_absurd_request_is_rejected_and_not_wrapped_around():
    placed = [make_pod(node="n", cpu="9e18", memory="9e18") for _ in range(3)]
    code, reasons = filtered(make_pod(cpu="9e18", memory="9e18"), make_node("n", cpu="9e18", memory="9e18"), *placed)
    assert (code, reasons) == (2, ["Insufficient cpu", "Insufficient memory"])


# kube-scheduler 1.36.3 gave these scores.


@pytest.mark.parametrize(
    ("requests", "shape", "score"),
    [
        ({"cpu": "2", "memory": "8Gi"}, RISING, 38),
        ({"cpu": "2", "memory": "8Gi", GPU: 1}, RISING, 22),
        ({GPU: 8}, RISING, 76),
        ({GPU: 8}, FALLING, 99),
    ],
)
def test_requested_to_capacity_ratio_scores_as_kube_scheduler_did(requests, shape, score):
    scene = Scene(make_node(cpu="4", memory="32Gi", allocatable={GPU: 8}))
    assert scene.score(fit(RATIO, shape, cpu=1, memory=1, gpu=3), make_pod(requests=requests)) == score


def test_least_allocated_of_a_pod_without_requests_counts_defaults():
    scene = Scene(make_node(cpu="4", memory="32Gi"))
    assert scene.score(fit(LEAST), make_pod()) == 98
    assert scene.score(fit(LEAST), make_pod(cpu="0")) == 99


def test_most_allocated_ignores_pod_level_requests_of_the_incoming_pod():
    scene = Scene(make_node(cpu="4", memory="32Gi"))
    assert scene.score(fit(MOST), make_pod(pod_level={"cpu": "2", "memory": "16Gi"})) == 1
    assert scene.score(fit(MOST), make_pod(cpu="2", memory="16Gi")) == 50


def test_most_allocated_counts_pod_level_requests_of_placed_pods():
    placed = make_pod(node="n", pod_level={"cpu": "2", "memory": "16Gi"})
    scene = Scene(make_node("n", cpu="4", memory="32Gi"), placed)
    assert scene.score(fit(MOST), make_pod(cpu="0", memory="0")) == 50


def test_pod_level_huge_pages_are_not_scored_for_the_incoming_pod():
    scene = Scene(make_node(cpu="4", memory="32Gi", allocatable={"hugepages-2Mi": "64Mi"}))
    plugin = fit(MOST, pages=1)
    assert scene.score(plugin, make_pod(pod_level={"hugepages-2Mi": "32Mi"})) == 0
    assert scene.score(plugin, make_pod(requests={"hugepages-2Mi": "32Mi"})) == 50
    assert sign(plugin, pod_level={"hugepages-2Mi": "32Mi"}, requests={"cpu": 1, "memory": 1}) != sign(
        plugin, requests={"cpu": 1, "memory": 1, "hugepages-2Mi": "32Mi"}
    )


# The worked example of the Kubernetes documentation on bin packing; today's rounding gives 60 and 69 of 100.
NODE_1 = ({FOO: 4, "memory": "1Gi", "cpu": "8"}, {FOO: 1, "memory": "256Mi", "cpu": "1"})
NODE_2 = ({FOO: 8, "memory": "1Gi", "cpu": "8"}, {FOO: 2, "memory": "512Mi", "cpu": "6"})


@pytest.mark.parametrize(("capacity", "used", "score"), [(*NODE_1, 60), (*NODE_2, 69)])
def test_the_documented_bin_packing_example(capacity, used, score):
    scene = Scene(make_node("n", allocatable=capacity), make_pod(node="n", requests=used))
    pod = make_pod(requests={FOO: 2, "memory": "256Mi", "cpu": "2"})
    assert scene.score(fit(RATIO, RISING, foo=5, cpu=3, memory=1), pod) == score


@pytest.mark.parametrize(("capacity", "used", "points"), [(*NODE_1, 5), (*NODE_2, 7)])
def test_the_documented_example_has_the_documented_points_of_ten(capacity, used, points):
    scene = Scene(make_node("n", allocatable=capacity), make_pod(node="n", requests=used))
    pod = make_pod_info(requests={FOO: 2, "memory": "256Mi", "cpu": "2"})
    plugin = fit(RATIO, RISING, foo=5, cpu=3, memory=1)
    nodes = scene.cache.nodes
    assert plugin.points_of_ten(pod, nodes, nodes.rows().tolist()) == [points]
    assert fit(LEAST).points_of_ten(pod, nodes, nodes.rows().tolist()) == []


def test_several_strategies_add_up_by_their_weights():
    strategies = (
        WeightedStrategy(3, ScoringStrategy(MOST, (ResourceSpec("cpu"),))),
        WeightedStrategy(2, ScoringStrategy(LEAST, (ResourceSpec("memory"),))),
    )
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategies=strategies), NO_DEVICES)
    scene = Scene(make_node("n", cpu="4", memory="4Gi"), make_node("m", cpu="8", memory="4Gi"))
    pod = make_pod(cpu="2", memory="1Gi")
    assert scene.scores(plugin, pod) == {"n": 3 * 50 + 2 * 75, "m": 3 * 25 + 2 * 75}


def test_a_falling_shape_truncates_toward_zero():
    table = shape_table([UtilizationShapePoint(0, 10), UtilizationShapePoint(30, 0)])
    # 100 - 100/30 is 96.67: the slope is cut to -3, not rounded down to -4.
    assert table[1] == 97
    assert (table[0], table[30], table[100]) == (100, 0, 0)


def test_utilization_outside_the_points_takes_the_nearest():
    table = shape_table([UtilizationShapePoint(20, 3), UtilizationShapePoint(80, 7)])
    assert (table[0], table[20], table[50], table[80], table[100]) == (30, 30, 50, 70, 70)


def test_resources_the_node_lacks_or_nobody_asks_for_do_not_count():
    scene = Scene(make_node(cpu="4", memory="0", allocatable={GPU: 8, "ephemeral-storage": "10Gi"}))
    pod = make_pod(cpu="1")
    assert scene.score(fit(MOST, cpu=1, memory=9, gpu=9), pod) == 25
    # Storage counts whether asked for or not.
    assert scene.score(fit(MOST, cpu=1, storage=1), pod) == 12
    assert scene.score(fit(MOST, foo=1), pod) == 0


def test_overcommitted_nodes_score_as_full():
    scene = Scene(make_node("n", cpu="1", memory="1Gi"), make_pod(node="n", cpu="2", memory="2Gi"))
    assert scene.score(fit(LEAST), make_pod(cpu="1", memory="1")) == 0
    assert scene.score(fit(MOST), make_pod(cpu="1", memory="1")) == 100
    assert scene.score(fit(RATIO, RISING, cpu=1, memory=1), make_pod(cpu="1", memory="1")) == 100


def test_a_resource_listed_twice_counts_twice():
    scene = Scene(make_node(cpu="4", memory="4Gi"))
    strategy = ScoringStrategy(MOST, (ResourceSpec("cpu"), ResourceSpec("cpu"), ResourceSpec("memory")))
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), NO_DEVICES)
    assert scene.score(plugin, make_pod(cpu="4", memory="0")) == 66


def test_a_node_scored_beside_one_that_lacks_the_resource_is_scored_as_alone():
    full, lacking = make_node("full", cpu="4", memory="4Gi"), make_node("lacking", cpu="4", memory="0")
    pod = make_pod(cpu="1", memory="3Gi")
    for plugin in (fit(LEAST), fit(MOST), fit(RATIO, RISING, cpu=1, memory=1)):
        assert Scene(full, lacking).scores(plugin, pod)["full"] == Scene(full).score(plugin, pod)


def test_defaults_are_per_container():
    scene = Scene(make_node(cpu="1", memory="10Gi"))
    assert scene.score(fit(MOST, cpu=1), make_pod(containers=[make_container("a"), make_container("b")])) == 20


def test_requests_make_the_shape():
    plugin = fit()
    assert sign(plugin, requests={"cpu": "1", "memory": 5}) == sign(plugin, requests={"memory": "5", "cpu": "1000m"})
    # Both ask for nothing, but only one is scored with the default.
    assert sign(plugin, requests={"memory": 5}) != sign(plugin, requests={"memory": 5, "cpu": "0"})


SMALL = make_node(cpu="2", memory="4Gi")


@pytest.mark.parametrize(
    ("event", "old", "new", "verdict"),
    [
        (NODE_ADD, None, make_node(cpu="4"), "Queue"),
        (NODE_ADD, None, SMALL, "QueueSkip"),
        (NODE_ADD, None, make_node(cpu="4", pods=0), "QueueSkip"),
        (NODE_ALLOCATABLE, SMALL, make_node(cpu="4"), "Queue"),
        (NODE_ALLOCATABLE, make_node(cpu="4", pods=1), make_node(cpu="4", pods=2), "Queue"),
        (NODE_ALLOCATABLE, make_node(cpu="4"), make_node(cpu="4", allocatable={GPU: 1}), "QueueSkip"),
        (NODE_ALLOCATABLE, make_node(cpu="4"), SMALL, "QueueSkip"),
        (ASSIGNED_POD_DELETE, None, None, "Queue"),
        (ASSIGNED_POD_SCALE_DOWN, make_pod(cpu="2"), make_pod(cpu="1"), "Queue"),
        (ASSIGNED_POD_SCALE_DOWN, make_pod(memory="2Gi"), make_pod(memory="1Gi"), "QueueSkip"),
        (ASSIGNED_POD_SCALE_DOWN, make_pod(cpu="1", memory="2Gi"), make_pod(cpu="2", memory="1Gi"), "QueueSkip"),
        (TARGET_POD_SCALE_DOWN, make_pod(cpu="3"), make_pod(cpu="2"), "Queue"),
    ],
)
def test_events_that_make_room_bring_the_pod_back(event, old, new, verdict):
    assert hint(fit(), event, make_pod(cpu="3"), old, new) == verdict


def test_the_pre_filter_is_not_needed_by_the_filter():
    scene = Scene(make_node("n", cpu="1"))
    assert scene.rejections(fit(), make_pod(cpu="2"), with_pre_filter=False) == {"n": (2, ["Insufficient cpu"])}


def test_pre_score_can_be_listed_as_upstream_lists_it():
    scene = Scene(make_node())
    assert fit().pre_score({}, make_pod_info(), scene.cache.nodes, scene.cache.nodes.rows()).ok
