"""Extended resources that a DeviceClass provides: where pods run, and the claim that is made for them."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.builders import make_container, make_node, make_pod_info
from tests.devices.device_builders import make_class, make_gpus
from tests.plugins.dynamic_resources.device_scene import (
    GPU,
    NOT_HELPFUL,
    ClaimServer,
    DeviceWorld,
    asking,
    claim,
    claiming,
    perform,
    providing,
    world_with,
)

from bayplan.api.device_objects import DeviceClass
from bayplan.api.objects import Pod
from bayplan.cache.listers import Listers
from bayplan.framework.cluster_event import DEVICE_CLASS_ADD_OR_UPDATE, NODE_ALLOCATABLE, QueueingHint
from bayplan.plugins.dynamic_resources.extended_claim import requests_of
from bayplan.plugins.extended_resources import ExtendedResources

DATA = Path(__file__).parent / "data" / "extended_requests.json"
"""What `record_extended` recorded of kube-scheduler 1.37.1."""
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_a_pod_runs_where_devices_provide_what_it_asks_for(resource):
    world = world_with()
    assert world.outcome(asking(2, resource)) == "n2"
    assert world.outcome(asking(3, resource)) == f"0/2 nodes are available: 2 cannot allocate all claims. {NOT_HELPFUL}"


def test_without_a_class_it_is_a_resource_that_no_node_has():
    world = DeviceWorld()
    assert "2 Insufficient nvidia.com/gpu" in world.outcome(asking())
    world.add(providing())
    assert world.outcome(asking()) == "n2"
    world.add(make_class())
    assert "2 Insufficient nvidia.com/gpu" in world.outcome(asking())


def test_a_node_whose_device_plugin_offers_it_is_filtered_by_what_that_has_left():
    world = world_with(make_node("n3", allocatable={GPU: 1}), make_gpus("n3", 4))
    assert world.outcome(asking(2)) == "n2"
    world.add(make_node("n2", unschedulable=True))
    assert "1 Insufficient nvidia.com/gpu" in world.outcome(asking(2))
    assert world.outcome(asking(1)) == "n3"
    assert world.reserve(asking(1)) is None, "nothing is written where a device plugin gives the devices"


def test_a_pod_with_a_claim_of_its_own_also_runs_where_a_device_plugin_offers_the_resource():
    world = world_with(make_node("n2", allocatable={GPU: 2}), claim())
    pod = claiming("c", containers=[make_container(requests={GPU: 1})])
    server = ClaimServer(world, claim())
    assert perform(world.reserve(pod), server) == ("done", [])
    assert (list(server.claims), server.told) == (["c"], {})


def test_a_resource_that_no_class_provides_must_be_listed_by_the_node():
    world = world_with(make_node("n2", allocatable={"example.com/fpga": 1}))
    assert world.outcome(asking(1, **{"example.com/fpga": 1})) == "n2"
    assert "2 Insufficient example.com/fpga" in world.outcome(asking(1, **{"example.com/fpga": 2}))


def test_devices_that_are_taken_by_claims_or_in_flight_are_not_given_again():
    world = world_with(claim("c", devices=["gpu-0"], node="n2", users=["q"]))
    assert "2 cannot allocate all claims" in world.outcome(asking(2))
    world.reserve(asking(1, name="first"))
    assert "2 cannot allocate all claims" in world.outcome(asking(1))
    world.unreserve(asking(1, name="first"))
    assert world.outcome(asking(1)) == "n2"


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, providing(), True),
        (None, providing(resource="example.com/other"), False),
        (make_class(), providing(), True),
        (providing(), providing(created="2026-01-01T00:00:00Z"), False),
        (providing(), make_class(), False),
    ],
    ids=["comes", "of another resource", "names it now", "no news", "names it no more"],
)
def test_a_class_wakes_pods_that_ask_for_what_it_provides(old, new, wakes):
    registered = world_with().framework.registrations()["NodeResourcesFit"]
    (hint,) = [each.hint for each in registered if each.event is DEVICE_CLASS_ADD_OR_UPDATE]
    assert hint(asking(), old, new) is (QueueingHint.QUEUE if wakes else QueueingHint.SKIP)


def test_a_new_class_wakes_pods_that_name_it():
    registered = DeviceWorld().framework.registrations()["NodeResourcesFit"]
    (hint,) = [each.hint for each in registered if each.event is DEVICE_CLASS_ADD_OR_UPDATE]
    assert hint(asking(1, IMPLICIT), None, make_class()) is QueueingHint.QUEUE
    assert hint(asking(1, IMPLICIT), make_class(), make_class()) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("had", "has", "cpu", "wakes"),
    [(1, 0, "4", True), (0, 0, "4", True), (4, 3, "4", False), (1, 0, "0", False)],
    ids=["a device plugin left", "there was none", "there is one", "too small otherwise"],
)
def test_a_changed_node_wakes_pods_whose_resource_its_devices_are_to_provide(had, has, cpu, wakes):
    """Upstream: noderesources/fit.go haveAnyRequestedResourcesIncreased."""
    registered = world_with().framework.registrations()["NodeResourcesFit"]
    (hint,) = [each.hint for each in registered if each.event is NODE_ALLOCATABLE]
    old, new = (make_node("n1", cpu=cpu, allocatable={GPU: amount}) for amount in (had, has))
    assert hint(asking(2), old, new) is (QueueingHint.QUEUE if wakes else QueueingHint.SKIP)


def test_of_classes_for_one_resource_the_newest_counts_then_the_first_by_name():
    listers = Listers()
    known = ExtendedResources(listers)
    for name, created in (("c", "2026-01-02T00:00:00Z"), ("b", "2026-01-03T00:00:00Z"), ("a", "2026-01-03T00:00:00Z")):
        listers.of(DeviceClass).set(providing(name, created=created))
    assert known.classes[GPU] == "a"
    listers.of(DeviceClass).delete("a")
    assert known.classes[GPU] == "b"
    listers.of(DeviceClass).delete("b")
    assert dict(known.classes) == {GPU: "c", "deviceclass.resource.kubernetes.io/c": "c"}


@pytest.mark.parametrize("recorded", json.loads(DATA.read_text()))
def test_requests_and_who_uses_them_are_those_of_kube_scheduler(recorded):
    kinds = ("initContainers", "containers")
    pod = msgspec.convert({"spec": {kind: recorded[kind] for kind in kinds}}, Pod)
    asked = {name for kind in kinds for each in recorded[kind] for name in each["resources"]["requests"]}
    requests, mappings = requests_of(pod, {name: "gpu" for name in (GPU, IMPLICIT) if name in asked})
    assert msgspec.to_builtins(requests) == recorded["requests"]
    assert mappings == recorded["mappings"]


def test_init_containers_use_what_later_containers_have_and_share_what_is_lacking():
    inits = [
        make_container("small", requests={GPU: 1}),
        make_container("sidecar", requests={GPU: 2, "cpu": 1}, restart_policy="Always"),
        make_container("large", requests={GPU: 7}),
        make_container("larger", requests={GPU: 9}),
    ]
    pod = make_pod_info(init_containers=inits, containers=[make_container("main", requests={GPU: 4})]).pod
    requests, mappings = requests_of(pod, {GPU: "gpu"})
    assert [(each.name, each.exactly.count) for each in requests] == [
        ("container-1-request-1", 2),
        ("container-3-request-0", 5),
        ("container-4-request-0", 4),
    ]
    assert [(each["containerName"], each["requestName"]) for each in mappings] == [
        ("sidecar", "container-1-request-1"),
        ("main", "container-4-request-0"),
        ("small", "container-1-request-1"),
        ("large", "container-4-request-0"),
        ("large", "container-3-request-0"),
        ("larger", "container-4-request-0"),
        ("larger", "container-3-request-0"),
    ]
