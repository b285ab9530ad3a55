"""Nodes, budgets, namespaces and volumes that nobody sane would make: pods are scheduled among them all the same."""

import pytest
from tests.cache_checks import assert_adds_up
from tests.hostile.world import (
    HOST,
    ZONE,
    World,
    claims,
    decoded,
    expression,
    metadata,
    near_pods,
    node,
    pod,
    requests,
    term,
)

from bayplan.api.objects import Node
from bayplan.api.storage_objects import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.api.workload_objects import Namespace, PodDisruptionBudget, Service

MANY = 2000
HARD = [{"key": f"k{index}", "effect": "NoSchedule"} for index in range(MANY)]
SOFT = [{"key": f"k{index}", "effect": "PreferNoSchedule"} for index in range(MANY)]
IMAGES = [{"names": [f"image-{index}", ""], "sizeBytes": 2**63 - 1} for index in range(MANY)]
SIZES = [{"names": ["pause:latest"], "sizeBytes": size} for size in (-1, 0, 10**30)]

NODES = {
    "hard taints": node("odd", taints=HARD),
    "soft taints": node("odd", taints=SOFT),
    "taints of any text": node("odd", taints=[{"key": "\0", "value": "é" * 999, "effect": "<b>"}]),
    "labels": node("odd", labels={f"k{index}": "v" for index in range(MANY)}),
    "labels of any text": node("odd", labels={"": "", "\u202e": "\0", "a" * 9999: "b" * 9999}),
    "images": node("odd", images=IMAGES),
    "images of any size": node("odd", images=SIZES),
    "a name of any text": node("../<script>\0"),
    "very much of all": node("odd", cpu="1e100", memory="1e1000000", pods="9" * 30),
    "less than nothing": node("odd", cpu="-1", memory="-1e100", pods="-5"),
    "resources": node("odd", **{f"example.com/r{index}": "1" for index in range(MANY)}),
}


@pytest.mark.parametrize("kind", NODES)
def test_an_odd_node_does_not_keep_pods_from_the_others(world, kind):
    world.add_node(NODES[kind])
    assert world.schedule(pod(containers=[{"name": "c", "image": "pause"}])).startswith("-> ")
    world.assert_unharmed()
    world.nodes.on_delete(decoded(Node, NODES[kind]))
    world.assert_unharmed()


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "../../x y", "\0", "é" * 999])
def test_pods_that_an_older_api_server_bound_to_a_node_that_cannot_be_harm_nobody(world, name):
    """Before 1.37 a Binding took any name."""
    stray = pod("stray", **requests(cpu="1e100"))
    world.place(stray, name)
    assert world.schedule(pod()).startswith("-> n")
    world.assert_unharmed()
    assert world.schedule(pod(nodeSelector={HOST: name})).startswith("0/")
    world.assert_unharmed()


@pytest.mark.parametrize("amount", ["", "x", "1e", "NaN"])
def test_a_node_whose_capacity_cannot_be_read_is_left_out_and_named(world, amount, caplog):
    world.add_node(node("odd", cpu=amount))
    assert world.metrics.left_out == ["Node"]
    assert "odd" in caplog.text
    assert "status.allocatable[cpu]" in caplog.text
    world.assert_unharmed()


def full_of_lesser_pods():
    world = World(nodes=3, pods=0)
    for index in range(9):
        spec = {**requests(cpu="21"), "priority": 0}
        world.place(pod(f"lesser-{index}", labels={"app": f"a{index % 3}"}, **spec), f"n{index % 3}")
    return world


@pytest.mark.parametrize(
    "selector",
    [
        None,
        {},
        {"matchLabels": {"": "\0"}},
        {"matchExpressions": [expression("app", "Regex", "(a+)+$")]},
        {"matchExpressions": [expression("app", "In")]},
        {"matchExpressions": [expression(f"k{index}", "DoesNotExist") for index in range(MANY)]},
        {"matchExpressions": [expression("app", "In", *map(str, range(20_000)))]},
    ],
)
@pytest.mark.parametrize("allowed", [0, -5, 2**31, 10**30])
def test_preemption_gets_along_with_any_budget(selector, allowed):
    world = full_of_lesser_pods()
    status = {"disruptionsAllowed": allowed, "disruptedPods": {"lesser-0": None, "\0": "never"}}
    for index in range(3):
        budget = {"metadata": metadata(f"b{index}", namespace="default"), "spec": {"selector": selector}}
        world.add(PodDisruptionBudget, {**budget, "status": status})
    assert world.schedule(pod(priority=2**31 - 1, **requests(cpu="60"))).startswith("-> ")
    assert_adds_up(world.cache)


def test_a_preemptor_with_thousands_of_rules_makes_room_like_any_other():
    world = full_of_lesser_pods()
    far = [term(HOST, expression("app", "In", f"b{index}")) for index in range(MANY)]
    spec = {**near_pods("podAntiAffinity", far), **requests(cpu="60"), "priority": 1000}
    tolerations = [{"key": taint["key"], "operator": "Exists"} for taint in HARD]
    assert world.schedule(pod(tolerations=tolerations, **spec)).startswith("-> ")
    assert_adds_up(world.cache)


def test_namespaces_and_services_of_any_kind_only_add_to_what_is_counted(world):
    world.add(Namespace, {"metadata": metadata("default")})
    for index, labels in enumerate([None, {}, {"": ""}, {f"k{i}": "v" for i in range(MANY)}]):
        world.add(Namespace, {"metadata": metadata(f"ns{index}", labels=labels)})
    for index, selector in enumerate([None, {}, {"\0": "é"}, {f"k{i}": "v" for i in range(MANY)}]):
        world.add(Service, {"metadata": metadata(f"s{index}", namespace="default"), "spec": {"selector": selector}})
    selects = {"matchExpressions": [expression(f"k{index}", "DoesNotExist") for index in range(MANY)]}
    spec = near_pods("podAntiAffinity", [term(ZONE, expression("app", "Exists"), namespaceSelector=selects)])
    assert "pod anti-affinity rules" in world.schedule(pod(labels={f"k{i}": "v" for i in range(MANY)}, **spec))
    world.assert_unharmed()


@pytest.mark.parametrize("amount", ["1e100", "0.1n", "-1", "9" * 20, "10Ei", None, 1e100])
@pytest.mark.parametrize("terms", [[], [{}], [{"matchExpressions": [expression("size", "Gt", "abc")]}]])
def test_volumes_claims_and_capacities_of_any_size_are_found_or_not(world, amount, terms):
    waits = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    world.add(StorageClass, {"metadata": metadata("class"), **waits})
    world.add(CSIDriver, {"metadata": metadata("csi.example.com"), "spec": {"storageCapacity": True}})
    capacity = {"storageClassName": "class", "nodeTopology": {}, "capacity": amount}
    world.add(CSIStorageCapacity, {"metadata": metadata("capacity", namespace="default"), **capacity})
    spec = {"storageClassName": "class", "resources": {"requests": {"storage": amount}}}
    world.add(PersistentVolumeClaim, {"metadata": metadata("claim", namespace="default"), "spec": spec})
    reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    volume = {"storageClassName": "class", "capacity": {"storage": amount}, **reach}
    world.add(PersistentVolume, {"metadata": metadata("v"), "spec": volume, "status": {"phase": "Available"}})
    outcome = world.schedule(pod(**claims("claim")))
    assert outcome.startswith(("-> ", "0/4 nodes are available: 4 node(s) did"))
    world.assert_unharmed()
