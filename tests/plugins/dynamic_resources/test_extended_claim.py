"""Extended resources that a DeviceClass provides: where pods run, and the claim that is made for them."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.builders import make_container, make_node, make_pod_info
from tests.devices.device_builders import exactly, make_class, make_gpus
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
    refused,
)

from bayplan.api.claim_objects import ClaimAnnotations, ResourceClaim
from bayplan.api.device_objects import DeviceClass
from bayplan.api.meta_objects import OwnerReference
from bayplan.api.objects import Pod
from bayplan.api.response import ApiResponse
from bayplan.cache.listers import Listers
from bayplan.framework.cluster_event import DEVICE_CLASS_ADD_OR_UPDATE, RESOURCE_CLAIM_ANY, QueueingHint
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.extended_claim import requests_of
from bayplan.plugins.extended_resources import ExtendedResources

DATA = Path(__file__).parent / "data" / "extended_requests.json"
"""What `record_extended` recorded of kube-scheduler 1.37.1."""
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
MADE = "p-extended-resources-abcde"


def world_with(*objects, count=2):
    return DeviceWorld(providing(), *objects, count=count)


def left_over(**status):
    """The claim that an earlier attempt made for the pod and did not take back."""
    made = claim(MADE, exactly("container-0-request-1"), **status)
    owner = OwnerReference("v1", "Pod", "p", "p", controller=True)
    annotations = ClaimAnnotations(extended_resource_claim="true")
    return replace(made, metadata=replace(made.metadata, owner_references=[owner], annotations=annotations))


class MakingServer(ClaimServer):
    """As an API server that also makes and deletes claims, and keeps what is said of the pod."""

    def __init__(self, world, *claims):
        super().__init__(world, *claims)
        self.pod_status = None

    def answer(self, request):
        if request.method == "POST" and not self.before.get(len(self.calls) + 1):
            self.calls.append(request)
            metadata = {**request.body["metadata"], "name": MADE, "uid": "made", "resourceVersion": "1"}
            self.claims[MADE] = {"metadata": metadata, "spec": request.body["spec"]}
            self.show()
            return ApiResponse(201, ClaimServer.answer(self, replace_method(request, MADE)).body)
        if request.path.endswith("/pods/p/status"):
            self.calls.append(request)
            self.pod_status = request.body["status"]
            return ApiResponse(200, b"{}")
        answer = super().answer(request)
        if request.method == "DELETE":
            del self.claims[MADE]
            self.world.claims.delete(f"ns/{MADE}")
        return answer


def made(world):
    """How many claims were made, and how many could not be."""
    return {labels[0]: count for labels, count in world.metrics.claims_made.values.items()}


def replace_method(request, name):
    return type(request)("GET", f"{request.path}/{name}", request.about)


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
    server = MakingServer(world, claim())
    assert perform(world.reserve(pod), server) == ("done", [])
    assert (list(server.claims), server.pod_status) == (["c"], None)


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


def test_the_claim_is_made_allocated_reserved_and_told_of_on_the_pod():
    world = world_with()
    server = MakingServer(world)
    assert perform(world.reserve(asking(2)), server) == ("done", [])
    assert made(world) == {"success": 1, "failure": 0}
    sent = server.calls[0]
    assert (sent.method, sent.path) == ("POST", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    metadata = dict(sent.body["metadata"])
    assert re.fullmatch("p-extended-resources-[0-9a-f]{5}", metadata.pop("name"))
    assert metadata == {
        "namespace": "ns",
        "generateName": "p-extended-resources-",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert sent.body["spec"] == {"devices": {"requests": [{"name": "container-0-request-1", "exactly": wanted}]}}
    written = server.stored(MADE)
    assert [each.device for each in written.status.allocation.devices.results] == ["gpu-0", "gpu-1"]
    assert [each.uid for each in written.status.reserved_for] == ["p"]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-1"}
    told = {"resourceClaimName": MADE, "requestMappings": [mapping]}
    assert server.pod_status == {"extendedResourceClaimStatus": told}
    assert "2 cannot allocate all claims" in world.outcome(asking(1, name="other"))


def test_its_devices_are_never_free_while_it_is_written():
    world = world_with()
    server = MakingServer(world)

    def taken():
        state = world.cache.listers.shared(ClaimCache).state
        assert len(state.usage(("gpu.example.com", "n2"))) == 2

    for number in range(1, 5):
        server.before[number] = lambda: taken() or False
    server.before.pop(1)
    assert perform(world.reserve(asking(2)), server, during=taken) == ("done", [])
    taken()


@pytest.mark.parametrize("number", [3, 4])
def test_after_a_bind_that_failed_the_claim_is_deleted_and_its_devices_are_free(number):
    world = world_with()
    server = MakingServer(world)
    pod = asking(2)
    server.before[number] = lambda: ApiResponse(422, b'{"reason": "Invalid", "message": "no"}')
    said, _ = perform(world.reserve(pod), server)
    assert said.endswith(": no")
    world.unreserve(pod)
    (later,) = world.later
    assert perform(later, server) == ("done", [])
    assert [call.method for call in server.calls[-3:]] == ["GET", "PATCH", "DELETE"]
    assert server.claims == {}
    assert world.outcome(pod) == "n2"


@pytest.mark.parametrize(("owner", "said"), [("p", "done"), ("q", "taken")])
def test_a_claim_that_is_there_already_was_sent_a_try_whose_answer_was_lost_if_it_is_for_this_pod(owner, said):
    world = world_with()
    server = MakingServer(world)

    def answer():
        name = server.calls[-1].body["metadata"]["name"]
        kept = left_over()
        (reference,) = kept.metadata.owner_references
        named = replace(kept.metadata, name=name, owner_references=[replace(reference, uid=owner)])
        server.claims[name] = msgspec.to_builtins(replace(kept, metadata=named))
        server.show()
        return ApiResponse(409, b'{"reason": "AlreadyExists", "message": "taken"}')

    server.before[1] = answer
    assert perform(world.reserve(asking(1)), server)[0].endswith(said)
    assert len(server.claims) == 1


def test_a_claim_that_could_not_be_made_leaves_nothing_behind():
    world = world_with()
    server = MakingServer(world)
    server.before[1] = lambda: ApiResponse(403, b'{"reason": "Forbidden", "message": "not allowed"}')
    pod = asking(2)
    said, _ = perform(world.reserve(pod), server)
    assert said == "create claim for extended resources ns/<extended-resources>: not allowed"
    assert made(world) == {"success": 0, "failure": 1}
    world.unreserve(pod)
    assert (world.later, world.outcome(pod)) == ([], "n2")


@pytest.mark.parametrize("status", [{}, {"devices": ["gpu-0"], "node": "n2"}], ids=["free", "allocated"])
def test_a_claim_that_an_earlier_attempt_left_has_to_go_first(status):
    kept = left_over(**status)
    world = world_with(kept)
    pod = asking(1)
    found = refused(world, pod).diagnosis
    assert found.reasons == {"cannot schedule extended resource claim": 2}
    assert "deletion of ResourceClaim completed" in world.outcome(pod)
    server = MakingServer(world, kept)
    world.later[0].begin()
    assert perform(world.later[0], server) == ("done", [])
    assert world.outcome(pod) == "n2"
    registered = world.framework.registrations()["DynamicResources"]
    (hint,) = [each.hint for each in registered if each.event is RESOURCE_CLAIM_ANY]
    assert hint(pod, kept, None) is QueueingHint.QUEUE


def test_where_nothing_is_written_the_pod_has_its_claim_at_once():
    world = world_with()
    world.reserve(asking(2)).assume()
    (made,) = world.cache.listers.of(ResourceClaim).objects.values()
    assert [each.device for each in made.status.allocation.devices.results] == ["gpu-0", "gpu-1"]
    assert "2 cannot allocate all claims" in world.outcome(asking(1, name="other"))


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


def test_devices_of_two_tries_of_a_pod_are_taken_until_the_request_of_the_first_has_ended():
    world = world_with(count=2)
    first = world.reserve(asking()).begin()
    next(first)
    world.unreserve(asking())
    world.reserve(asking())
    assert "cannot allocate" in world.outcome(asking(name="q"))
    first.close()
    assert world.outcome(asking(name="q")) == "n2"


def test_a_claim_that_is_made_for_a_try_which_was_given_up_goes_again():
    world = world_with()
    server = MakingServer(world)
    pod = asking()
    conversation = world.reserve(pod).begin()
    request = next(conversation)
    world.unreserve(pod)
    assert world.later == []
    conversation.send(server.answer(request))
    conversation.close()
    (later,) = world.later
    assert perform(later, server) == ("done", [])
    assert server.claims == {}


def test_one_that_the_watch_did_not_show_goes_too():
    world = world_with()
    server = MakingServer(world)
    server.show = lambda: None
    pod = asking()
    assert perform(world.reserve(pod), server)[0] == "claim is not shown: context deadline exceeded"
    world.unreserve(pod)
    (later,) = world.later
    assert perform(later, server) == ("done", [])
    assert server.claims == {}
