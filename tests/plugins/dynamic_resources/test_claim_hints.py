"""Which changes bring back a pod that DynamicResources rejected."""

import pytest
from msgspec.structs import replace
from tests.plugins.dynamic_resources.device_scene import DeviceWorld, asking, claim, claiming, providing

from bayplan.api.objects import PodResourceClaimStatus
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, RESOURCE_CLAIM_ANY, TARGET_POD_CLAIMS, QueueingHint

FREE = claim("c")
TAKEN = claim("c", devices=["gpu-0"], node="n2")
SHARED = claim("c", devices=["gpu-0"], node="n2", users=["q"])
OTHER = claim("other")
OTHER_TAKEN = claim("other", devices=["gpu-0"], node="n2")
ELSEWHERE = replace(FREE, metadata=replace(FREE.metadata, namespace="elsewhere"))


def hint_for(world, event):
    registered = world.framework.registrations()["DynamicResources"]
    (hint,) = [each.hint for each in registered if each.event is event]
    return hint


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, FREE, True),
        (FREE, TAKEN, True),
        (TAKEN, SHARED, True),
        (FREE, replace(FREE, metadata=replace(FREE.metadata, finalizers=["x"])), False),
        (None, OTHER, False),
        (OTHER, OTHER_TAKEN, False),
        (OTHER_TAKEN, OTHER, True),
        (OTHER_TAKEN, None, True),
        (OTHER, None, False),
        (None, ELSEWHERE, False),
    ],
    ids=[
        *(
            "its claim comes",
            "is allocated",
            "is reserved",
            "another finalizer",
            "another comes",
            "another is allocated",
        ),
        *("another is deallocated", "another goes with devices", "another goes without", "another namespace"),
    ],
)
def test_a_change_of_a_claim_helps_if_it_is_the_pods_or_frees_devices(old, new, wakes):
    hint = hint_for(DeviceWorld(FREE), RESOURCE_CLAIM_ANY)
    assert hint(claiming("c"), old, new) is (QueueingHint.QUEUE if wakes else QueueingHint.SKIP)


def test_nothing_helps_a_pod_that_lacks_another_claim():
    hint = hint_for(DeviceWorld(FREE), RESOURCE_CLAIM_ANY)
    assert hint(claiming("c", "late"), OTHER_TAKEN, OTHER) is QueueingHint.SKIP


def test_the_names_of_generated_claims_help_once_all_are_there():
    world = DeviceWorld(FREE)
    hint = hint_for(world, TARGET_POD_CLAIMS)
    before = claiming("c")
    made = PodResourceClaimStatus(name="own", resource_claim_name="late")
    after = claiming("c", made=["own"])
    after.pod = replace(after.pod, status=replace(after.pod.status, resource_claim_statuses=[made]))
    assert hint(before, before, after) is QueueingHint.SKIP
    assert hint(before, before, before) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("given_up", "wakes"),
    [
        (claiming("c", name="q"), True),
        (claiming("other", name="q"), False),
        (claiming(name="q"), False),
        (claiming("c", name="q", node="n2"), False),
        (claiming("gone", name="q"), True),
        (asking(name="q"), True),
    ],
    ids=["has none now", "has its devices still", "no claims", "on a node", "its claim is gone", "extended resources"],
)
def test_a_pod_that_gives_back_devices_which_were_never_written_helps(given_up, wakes):
    hint = hint_for(DeviceWorld(FREE, OTHER_TAKEN, providing()), ASSIGNED_POD_DELETE)
    assert hint(claiming("c"), given_up, None) is (QueueingHint.QUEUE if wakes else QueueingHint.SKIP)
