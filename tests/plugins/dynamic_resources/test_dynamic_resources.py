"""Where a pod with claims can run, and what it is told otherwise."""

from datetime import timedelta
from itertools import count

import pytest
from msgspec.structs import replace
from tests.builders import make_node
from tests.devices.device_builders import DRIVER, alternative, device, exactly, make_class, make_gpus, make_slice
from tests.plugins.dynamic_resources.device_scene import NOT_HELPFUL, PLUGIN, DeviceWorld, claim, claiming, refused

from bayplan.api.claim_objects import AllocatedDeviceStatus, ResourceClaim
from bayplan.api.device_objects import DeviceClass
from bayplan.api.meta_objects import OwnerReference
from bayplan.api.objects import Condition, PodResourceClaim
from bayplan.cache.node_index import NodeIndex
from bayplan.config.load import default_configuration
from bayplan.config.types import DynamicResourcesArgs
from bayplan.devices.allocator import Allocator
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import LessOfResource
from bayplan.explain.trace import trace_of
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import Code
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.dynamic_resources import DynamicResources
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.scheduler.decision import Placement
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator


def owned(name, uid):
    made = claim(name)
    owner = OwnerReference(kind="Pod", name="p", uid=uid, controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=[owner]))


def without_field(pod):
    pod.pod = replace(pod.pod, spec=replace(pod.pod.spec, resource_claims=[PodResourceClaim(name="e")]))
    return pod


def unmade(pod):
    pod.pod = replace(pod.pod, status=replace(pod.pod.status, resource_claim_statuses=None))
    return pod


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (claiming("missing"), 'could not find ResourceClaim "ns/missing"'),
        (claiming("ends"), 'resourceclaim "ends" is being deleted'),
        (claiming(made=["other"]), "ResourceClaim ns/other was not created for Pod ns/p (Pod is not owner)"),
        (unmade(claiming(made=["own"])), 'pod "ns/p": ResourceClaim not created yet'),
        (without_field(claiming()), 'pod "ns/p", spec.resourceClaim "e": none of the supported fields are set'),
    ],
)
def test_a_pod_whose_claims_are_not_there_is_held_and_told_so(pod, text):
    world = DeviceWorld(claim("ends", deletionTimestamp="2026-01-01T00:00:00Z"), owned("other", "another"))
    status = world.framework.run_pre_enqueue(pod)
    assert (status.ok, status.plugin, status.message) == (False, PLUGIN, text)
    assert refused(world, pod).message.startswith(f"0/2 nodes are available: {text}. ")


def test_a_pod_with_its_claims_is_let_in_and_runs_where_the_devices_are():
    world = DeviceWorld(claim(), owned("own", "p"))
    pod = claiming("c", made=["own"])
    assert world.framework.run_pre_enqueue(pod).ok
    assert world.outcome(pod) == "n2"


def test_entries_for_which_no_claim_was_needed_count_for_nothing():
    pod = claiming(made=["own"])
    statuses = [replace(each, resource_claim_name=None) for each in pod.pod.status.resource_claim_statuses]
    pod.pod = replace(pod.pod, status=replace(pod.pod.status, resource_claim_statuses=statuses))
    assert DeviceWorld().outcome(pod) in {"n1", "n2"}


def test_too_few_devices_are_told_and_preempt_nobody():
    world = DeviceWorld(claim("c", exactly("r", 3)))
    assert world.outcome(claiming("c")) == f"0/2 nodes are available: 2 cannot allocate all claims. {NOT_HELPFUL}"
    assert refused(world, claiming("c")).diagnosis.rejector_plugins == {PLUGIN}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (exactly("r", of="gone"), "request r: device class gone does not exist"),
        (
            {"name": "r", "firstAvailable": [alternative("a", of="gone")]},
            "request r/a: device class gone does not exist",
        ),
        ({"name": "r"}, "resource claim ns/c, request r: unknown request type"),
    ],
)
def test_a_class_that_is_missing_is_named_before_any_node_is_looked_at(request_, text):
    assert DeviceWorld(claim("c", request_)).outcome(claiming("c")) == f"0/2 nodes are available: {text}. {NOT_HELPFUL}"


def test_a_claim_that_cannot_be_asked_for_ends_the_attempt_with_an_error():
    world = DeviceWorld(claim("c", {**exactly("r"), "exactly": {**exactly("r")["exactly"], "allocationMode": "Some"}}))
    with pytest.raises(RuntimeError) as raised:
        world.outcome(claiming("c"))
    assert str(raised.value) == (
        'running "DynamicResources" filter plugin: claim ns/c, request r: unsupported count mode Some'
    )


def test_a_pod_that_no_node_could_take_anyway_is_not_told_of_a_broken_claim():
    world = DeviceWorld(claim("c", {**exactly("r"), "exactly": {**exactly("r")["exactly"], "allocationMode": "Some"}}))
    assert "2 Insufficient cpu" in world.outcome(claiming("c", cpu="99"))


def test_an_error_of_a_node_that_another_filter_rejects_counts_for_nothing():
    wanted = exactly("r", 1, f'device.attributes["{DRIVER}"].numa == 1')
    world = DeviceWorld(claim("c", wanted), make_gpus("n1", attributes={"numa": 1}), make_node("n2", cpu="1"))
    assert world.outcome(claiming("c", cpu="2")) == "n1"
    with pytest.raises(RuntimeError, match=f"on device {DRIVER}/n2/gpu-0: CEL runtime error: no such key: numa"):
        world.outcome(claiming("c"))


def test_devices_are_searched_only_on_nodes_that_no_other_filter_rejects(monkeypatch):
    searched = []
    allocate = Allocator.allocate

    def noted(self, claims, nodes, *args, **options):
        searched.extend(node.metadata.name for node in nodes)
        return allocate(self, claims, nodes, *args, **options)

    monkeypatch.setattr(Allocator, "allocate", noted)
    alternatives = {"name": "r", "firstAvailable": [alternative("two", 2), alternative("one")]}
    world = DeviceWorld(claim("c", alternatives), make_node("n1", cpu="1"))
    world.reserve(claiming("c", cpu="2"))
    assert searched == ["n2"]


def test_less_of_a_resource_is_advised_on_a_node_that_has_the_devices():
    nearly = [make_node(f"m{number}", cpu="1900m") for number in range(9)]
    world = DeviceWorld(claim(), make_node("n1", cpu="1900m"), make_node("n2", cpu="1"), *nearly)
    changes = Explainer(world.cache.nodes).explain(world.decide(claiming("c", cpu="2"))).changes
    assert changes == (LessOfResource("cpu", 1000, "n2"),)


def test_an_error_is_told_by_the_devices_of_a_node_that_no_other_filter_rejects():
    wanted = exactly("r", 1, f'device.attributes["{DRIVER}"].numa == 1')
    world = DeviceWorld(claim("c", wanted), make_gpus("n1", 2), make_node("n1", cpu="1"))
    with pytest.raises(RuntimeError, match=f"on device {DRIVER}/n2/gpu-0: CEL runtime error: no such key: numa"):
        world.outcome(claiming("c", cpu="2"))


@pytest.mark.parametrize(("milliseconds", "is_enough"), [(30, False), (150, True), (0, True)])
def test_a_search_ends_after_the_filter_timeout_if_that_is_less_than_an_attempt_has(milliseconds, is_enough):
    world, pod, state = DeviceWorld(claim()), claiming("c"), {}
    nodes, listers, ticks = world.cache.nodes, world.cache.listers, count()
    plugin = DynamicResources(
        DynamicResourcesArgs(filter_timeout=timedelta(milliseconds=milliseconds)),
        nodes,
        NodeIndex(nodes),
        listers.shared(ClaimCache),
        ExtendedResources(listers),
        afterwards=lambda exchange: None,
        clock=lambda: 0.0,
        cpu_clock=lambda: next(ticks) * 0.02,
        calls=PluginCalls(),
    )
    plugin.pre_filter(state, pod, nodes)
    (second,) = plugin.filter(state, pod, nodes, nodes.rows())[1:]
    assert second == (Code.SUCCESS if is_enough else Code.ERROR)
    texts = [reason.text for reason in plugin.reasons(state, pod, nodes, nodes.rows()) if reason.holds[1]]
    assert texts == ([] if is_enough else ["node n2: timed out trying to allocate devices"])


def test_a_claim_that_has_devices_is_followed_to_its_node():
    world = DeviceWorld(claim("c", devices=["gpu-0"], node="n2", users=["q"]))
    assert world.outcome(claiming("c")) == "n2"
    world.add(claim("c", devices=["gpu-0"], node="n3", users=["q"]))
    assert world.outcome(claiming("c")) == (
        f"0/2 nodes are available: 2 resourceclaim not available on the node. {NOT_HELPFUL}"
    )


def test_devices_that_claims_have_are_not_given_again():
    world = DeviceWorld(claim("a", devices=["gpu-0", "gpu-1"], node="n2"), claim())
    assert "2 cannot allocate all claims" in world.outcome(claiming("c"))
    world.claims.delete("ns/a")
    assert world.outcome(claiming("c")) == "n2"


def test_slices_classes_and_rules_count_as_soon_as_they_change():
    world = DeviceWorld(claim("c", exactly("r", 3)))
    assert "cannot allocate" in world.outcome(claiming("c"))
    world.add(make_gpus("n1", 3))
    assert world.outcome(claiming("c")) == "n1"
    world.cache.listers.of(DeviceClass).delete("gpu")
    assert "device class gpu does not exist" in world.outcome(claiming("c"))
    world.add(make_class())
    assert world.outcome(claiming("c")) == "n1"


def test_the_first_alternative_scores_most_and_counts_twice():
    choice = {"name": "r", "firstAvailable": [alternative("two", 2), alternative("one")]}
    world = DeviceWorld(claim("c", choice), make_gpus("n1", 1))
    decision = world.decide(claiming("c"))
    assert isinstance(decision.outcome, Placement)
    assert decision.outcome.node_name == "n2"
    assert {name: each.scores[PLUGIN] for name, each in trace_of(decision).items()} == {"n1": 2 * 87, "n2": 2 * 100}


def test_nodes_score_nothing_where_nothing_is_to_be_allocated():
    made = claim("c", {"name": "r", "firstAvailable": [alternative("a")]}, devices=["gpu-0"], node="n2")
    allocation = replace(made.status.allocation, node_selector=None)
    world = DeviceWorld(replace(made, status=replace(made.status, allocation=allocation)))
    decision = world.decide(claiming("c"))
    assert {name: each.scores[PLUGIN] for name, each in trace_of(decision).items()} == {"n1": 0, "n2": 0}


def bound_later(state, time="2026-01-01T23:59:00Z", **fields):
    """A claim whose device has to be made ready, and what its driver says."""
    made = claim("c", devices=["gpu-0"], node="n2", time=time, **fields)
    (result,) = made.status.allocation.devices.results
    result = replace(result, binding_conditions=["Attached"], binding_failure_conditions=["Broken"])
    devices = replace(made.status.allocation.devices, results=[result])
    conditions = [Condition(type=name, status="True", reason="R", message="m") for name in state]
    said = [AllocatedDeviceStatus(driver=result.driver, pool="n2", device="gpu-0", conditions=conditions)]
    allocation = replace(made.status.allocation, devices=devices)
    return replace(made, status=replace(made.status, allocation=allocation, devices=said if state else None))


@pytest.mark.parametrize(
    ("state", "time", "is_usable"),
    [
        (["Attached"], "2025-01-01T00:00:00Z", True),
        ([], "2026-01-01T23:59:00Z", True),
        ([], "2026-01-01T23:00:00Z", False),
        (["Broken"], "2026-01-01T23:59:00Z", False),
        ([], "no time", True),
    ],
    ids=["ready", "not yet", "overdue", "failed", "unreadable"],
)
def test_a_claim_whose_devices_fail_or_are_overdue_can_be_used_nowhere(state, time, is_usable):
    world = DeviceWorld(bound_later(state, time, users=["q"]))
    found = world.outcome(claiming("c"))
    assert found == "n2" if is_usable else "2 resourceclaim not available on the node" in found


def test_nodes_by_label_that_reach_a_device_are_those_of_its_slice():
    term = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]}
    world = DeviceWorld(make_node("n3", labels={"rack": "a"}), claim("c", exactly("r", of="net")), make_class("net"))
    world.add(make_slice("rack", [device("switch")], node=None, pool="rack", driver="net", nodeSelector=term))
    world.add(*(claim(f"x{i}", devices=[f"gpu-{i}"], node="n2") for i in range(2)))
    assert world.outcome(claiming("c")) == "n3"


def test_pods_of_a_simulation_share_a_claim_and_others_get_what_is_left():
    shared = ClusterObjects()
    shared.nodes = [make_node("n2", cpu="99")]
    shared.looked_up = [make_class(), make_gpus("n2", 2), claim("c"), claim("d"), claim("e")]
    shared.pods = [
        claiming("c", name="p0"),
        claiming("c", name="p1"),
        claiming("d", name="p2"),
        claiming("e", name="p3"),
    ]
    simulator = Simulator(default_configuration())
    simulator.add(shared)
    steps = list(iter(simulator.step, None))
    placed = {step.pod.name for step in steps if isinstance(step.outcome, Placement)}
    assert placed == {"p0", "p1", "p2"}
    claims = simulator.cache.listers.of(ResourceClaim)
    assert [each.uid for each in claims.get("ns/c").status.reserved_for] == ["p0", "p1"]
    assert claims.get("ns/e").status.allocation is None


def causes(world, pod):
    """Of each group of rejected nodes, how many and why."""
    groups = Explainer(world.cache.nodes).explain(world.decide(pod)).groups
    return [(group.count, [str(cause) for cause in group.causes]) for group in groups]


def test_an_explanation_tells_how_many_devices_a_request_found_and_what_refuses_the_others():
    expression = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "A"'
    models = [device(f"d{number}", attributes={"model": model}) for number, model in enumerate("AAB")]
    world = DeviceWorld(
        make_slice("more", models, node="n3", pool="n3"), make_node("n3"), claim("c", exactly("r", 3, expression))
    )
    asked = "claim ns/c, request r: asked 3 gpu"
    world.cache.listers.of(type(make_gpus("n2"))).delete("n2-gpus")
    found = causes(world, claiming("c"))
    assert (2, [f"{asked}, no devices here"]) in found
    ((_, (text,)),) = [each for each in found if each[0] == 1]
    assert text.startswith(f"{asked}, most free 2 on n3 (3 devices, 2 selected; others refused by device.driver ==")


def test_an_explanation_names_no_selector_where_all_devices_are_selected_and_they_are_too_few():
    world = DeviceWorld(claim("c", exactly("r", 9)))
    asked = "claim ns/c, request r: asked 9 gpu"
    assert (1, [f"{asked}, most free 2 on n2 (2 devices, 2 selected)"]) in causes(world, claiming("c"))


@pytest.mark.parametrize(
    ("devices", "slices", "state"),
    [
        (["d1"], 2, "being updated"),
        (["d1", "d1"], 1, "invalid"),
    ],
)
def test_an_explanation_names_pools_that_nothing_is_taken_from_by_their_state(devices, slices, state):
    more = make_slice("more", [device(each) for each in devices], node="n3", count=slices)
    other = make_slice("other", [device("e1")], node="n2", pool="second", count=2)
    world = DeviceWorld(more, other, make_node("n3"), make_node("n4"), claim("c", exactly("r", 9)))
    found = causes(world, claiming("c"))
    asked = "claim ns/c, request r: asked 9 gpu"
    assert (1, [f"{asked}, no devices here; pools are {state}, such as gpu.example.com/n3"]) in found
    assert any(texts == [f"{asked}, no devices here"] for _, texts in found)
    told = "; pools are being updated, such as gpu.example.com/second"
    assert [text for _, (text,) in found if text.endswith(told) and " on n2 (" in text]


def test_devices_that_suffice_for_each_request_but_not_for_all_are_told_in_the_plugins_words():
    world = DeviceWorld(claim("c", exactly("r", 2), exactly("s", 1)))
    assert (1, ["cannot allocate all claims"]) in causes(world, claiming("c"))


def test_a_claim_on_a_node_that_is_wrong_for_the_pod_anyway_keeps_its_devices():
    world = DeviceWorld(claim(devices=["gpu-0"], node="n2"))
    told = refused(world, claiming("c", node_selector={"disk": "ssd"})).message
    assert told.startswith("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption")
    assert world.later == []


def test_a_claim_keeps_its_devices_where_another_of_the_pod_gets_none():
    world = DeviceWorld(claim(devices=["gpu-0"], node="n2"), claim("other", exactly("r", 9)))
    told = refused(world, claiming("c", "other")).message
    assert told == f"0/2 nodes are available: 2 cannot allocate all claims. {NOT_HELPFUL}"
    assert world.later == []


def test_a_claim_gives_its_devices_back_where_it_alone_keeps_the_pod_from_a_node():
    world = DeviceWorld(claim(devices=["gpu-0"], node="gone"), claim("other"))
    told = refused(world, claiming("c", "other")).message
    reasons = "1 cannot allocate all claims, 1 resourceclaim not available on the node"
    assert told == f"0/2 nodes are available: {reasons}. deallocation of ResourceClaim completed, {NOT_HELPFUL}"
    assert len(world.later) == 1
