"""The claim for extended resources that a DeviceClass provides: how it is made for a pod, and goes again."""

import re

import msgspec
import pytest
from msgspec.structs import replace
from tests.devices.device_builders import exactly
from tests.plugins.dynamic_resources.device_scene import (
    GPU,
    ClaimServer,
    asking,
    claim,
    perform,
    refused,
    world_with,
)

from bayplan.api.claim_objects import ClaimAnnotations, ResourceClaim
from bayplan.api.meta_objects import OwnerReference
from bayplan.api.response import ApiResponse
from bayplan.framework.cluster_event import RESOURCE_CLAIM_ANY, QueueingHint
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache

MADE = "p-extended-resources-abcde"


def left_over(**status):
    """The claim that an earlier attempt made for the pod and did not take back."""
    made = claim(MADE, exactly("container-0-request-1"), **status)
    owner = OwnerReference("v1", "Pod", "p", "p", controller=True)
    annotations = ClaimAnnotations(extended_resource_claim="true")
    return replace(made, metadata=replace(made.metadata, owner_references=[owner], annotations=annotations))


def made(world):
    """How many claims were made, and how many could not be."""
    return {labels[0]: count for labels, count in world.metrics.claims_made.values.items()}


def test_the_claim_is_made_allocated_reserved_and_told_of_on_the_pod():
    world = world_with()
    server = ClaimServer(world)
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
    (name,) = server.claims
    written = server.stored(name)
    assert [each.device for each in written.status.allocation.devices.results] == ["gpu-0", "gpu-1"]
    assert [each.uid for each in written.status.reserved_for] == ["p"]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-1"}
    told = {"resourceClaimName": name, "requestMappings": [mapping]}
    assert server.told["p"] == {"extendedResourceClaimStatus": told}
    assert "2 cannot allocate all claims" in world.outcome(asking(1, name="other"))


def test_its_devices_are_never_free_while_it_is_written():
    world = world_with()
    server = ClaimServer(world)

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
    server = ClaimServer(world)
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
    server = ClaimServer(world)

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
    server = ClaimServer(world)
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
    server = ClaimServer(world, kept)
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
    server = ClaimServer(world)
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
    server = ClaimServer(world)
    server.is_shown_at_once = False
    pod = asking()
    assert perform(world.reserve(pod), server)[0] == "claim is not shown: context deadline exceeded"
    world.unreserve(pod)
    (later,) = world.later
    assert perform(later, server) == ("done", [])
    assert server.claims == {}
