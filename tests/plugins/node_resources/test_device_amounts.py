"""Scores by extended resources that a DeviceClass provides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.builders import make_container, make_node, make_pod_info
from tests.devices.device_builders import DRIVER, device, make_class, make_gpus, make_slice
from tests.plugins.dynamic_resources.device_scene import claim

from bayplan.api.claim_objects import ResourceClaim
from bayplan.cache.cache import Cache
from bayplan.cache.node_index import NodeIndex
from bayplan.config.types import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts
from bayplan.plugins.node_resources.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit

GPU = "nvidia.com/gpu"
LARGE = f'device.attributes["{DRIVER}"].large == true'


def providing(*expressions):
    made = make_class("gpu", *expressions)
    return replace(made, spec=replace(made.spec, extended_resource_name=GPU))


PROVIDING = providing()


class Amounts:
    """Nodes and devices, and what is counted of these."""

    def __init__(self, *objects, nodes=(), classes=(PROVIDING,)):
        self.cache = Cache()
        for node in nodes or [make_node(name) for name in ("n1", "n2")]:
            self.cache.set_node(node)
        self.nodes = self.cache.nodes
        self.devices = DeviceAmounts(self.cache.listers, self.nodes, NodeIndex(self.nodes))
        for each in (*classes, *objects):
            self.cache.listers.of(type(each)).set(each)

    def of(self, name="n1"):
        """What is taken of a node's devices, and how many it has."""
        taken, there = self.devices.columns(GPU)
        row = self.nodes.row(name)
        return int(taken[row]), int(there[row])

    def score(self, plugin, pod, name="n1"):
        rows = self.nodes.rows()
        scores = plugin.score({}, pod, self.nodes, rows)
        assert scores.tolist() == plugin.score_few({}, pod, self.nodes, rows.tolist())
        return int(scores[rows.tolist().index(self.nodes.row(name))])


def asking(count, name=GPU):
    return make_pod_info(containers=[make_container(requests={"cpu": 1, name: count})])


def most_allocated(devices):
    strategy = ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED, (ResourceSpec(GPU),))
    return NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy), devices)


def test_devices_of_the_class_count_and_those_that_claims_have_are_taken():
    mixed = make_slice("n1-a", [device("a", attributes={"large": True}), device("b", attributes={"large": False})])
    amounts = Amounts(mixed, make_gpus("n2", 3, attributes={"large": True}), classes=[providing(LARGE)])
    assert (amounts.of("n1"), amounts.of("n2")) == ((0, 1), (0, 3))
    amounts.cache.listers.of(ResourceClaim).set(claim("c", devices=["gpu-0", "gpu-2"], node="n2"))
    assert (amounts.of("n1"), amounts.of("n2")) == ((0, 1), (2, 3))
    amounts.cache.listers.of(ResourceClaim).delete("ns/c")
    assert amounts.of("n2") == (0, 3)


def test_old_generations_and_missing_slices_make_no_difference():
    old = make_slice("old", [device("a")], generation=1, count=4)
    new = make_slice("new", [device("a"), device("b")], generation=2, count=4)
    assert Amounts(old, new).of() == (0, 3)


def test_devices_count_on_all_nodes_that_reach_them():
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r"]}]}
    selector = {"nodeSelectorTerms": [term]}
    devices = [device("x", nodeName="n2"), device("y", allNodes=True), device("z", nodeSelector=selector)]
    slices = [
        make_slice("everywhere", [device("a")], node=None, pool="p", allNodes=True),
        make_slice("in-rack", [device("b")], node=None, pool="q", nodeSelector=selector),
        make_slice("each", devices, node=None, pool="r", perDeviceNodeSelection=True),
    ]
    amounts = Amounts(*slices, nodes=[make_node("n1", labels={"rack": "r"}), make_node("n2")])
    assert (amounts.of("n1"), amounts.of("n2")) == ((0, 4), (0, 3))
    amounts.cache.set_node(make_node("n2", labels={"rack": "r"}))
    assert amounts.of("n2") == (0, 5)


def test_a_node_for_whose_devices_a_selector_fails_has_none():
    amounts = Amounts(make_gpus("n1", 2), make_gpus("n2", 2, attributes={"large": True}), classes=[providing(LARGE)])
    amounts.cache.listers.of(ResourceClaim).set(claim("c", devices=["gpu-0"], node="n1"))
    assert (amounts.of("n1"), amounts.of("n2")) == ((0, 0), (0, 2))


def test_what_a_device_plugin_offers_goes_before_devices():
    amounts = Amounts(make_gpus("n1", 5), nodes=[make_node("n1", allocatable={GPU: 2})])
    amounts.cache.set_pod(make_pod_info(node="n1", containers=[make_container(requests={GPU: 1})]))
    assert amounts.of() == (1, 2)


@pytest.mark.parametrize(("asked", "taken", "there", "score"), [(2, 0, 2, 100), (2, 1, 4, 75), (1, 0, 3, 33)])
def test_most_allocated_scores_devices_as_kube_scheduler_does(asked, taken, there, score):
    amounts = Amounts(make_gpus("n1", there), claim("c", devices=[f"gpu-{each}" for each in range(taken)], node="n1"))
    assert amounts.score(most_allocated(amounts.devices), asking(asked)) == score
    assert amounts.score(most_allocated(amounts.devices), asking(asked), "n2") == 0


def test_balanced_allocation_counts_them_as_well():
    amounts = Amounts(make_gpus("n1", 2), nodes=[make_node("n1", cpu="4")])
    args = NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu"), ResourceSpec(GPU)))
    plugin = NodeResourcesBalancedAllocation(args, amounts.devices)
    # A quarter of the CPU and half of the devices, after none of either: 50 + (50 + 87 - 100) // 2.
    assert amounts.score(plugin, asking(1)) == 68


@pytest.mark.parametrize(("name", "is_alone"), [(GPU, True), ("example.com/other", False)])
def test_a_pod_whose_score_devices_decide_shares_no_scores(name, is_alone):
    amounts = Amounts(make_gpus("n1", 2))
    balanced = NodeResourcesBalancedAllocation(
        NodeResourcesBalancedAllocationArgs((ResourceSpec(GPU),)), amounts.devices
    )
    for plugin in (most_allocated(amounts.devices), balanced):
        assert (plugin.sign_pod(asking(1, name)) is None) == is_alone


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12))
def test_claims_that_come_and_go_leave_the_same_counts_as_those_that_are_there(changes):
    amounts = Amounts(make_gpus("n1", 3), make_gpus("n2", 3))
    claims = amounts.cache.listers.of(ResourceClaim)
    for which, count in changes:
        devices = [f"gpu-{each}" for each in range(count)]
        claims.set(claim(f"c{which}", devices=devices or None, node="n1" if which else "n2"))
        held = {"n1": set(), "n2": set()}
        for each in claims.objects.values():
            for result in each.status.allocation.devices.results if each.status.allocation else ():
                held[result.pool].add(result.device)
        assert {name: amounts.of(name) for name in held} == {name: (len(has), 3) for name, has in held.items()}
