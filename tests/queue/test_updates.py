"""What a new version of a pod changes in the queue."""

from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.queue.scene import COLOUR, Scene, info, make_profile

from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    TARGET_POD_LABEL,
    EventRegistration,
    QueueingHint,
)
from bayplan.queue.queued_pod import SubQueue


def test_an_update_of_an_active_pod_replaces_the_object_and_keeps_its_turn(scene):
    scene.add("first")
    scene.add("second")
    new = info("first", version="2", colour="red")
    scene.update(new)
    assert scene.pop().pod_info is new


def test_a_waiting_pod_keeps_its_affinity_terms_from_version_to_version(scene):
    affinity = required(term("zone"))
    terms = scene.add("p", pod_affinity=affinity).affinity_terms
    scene.update(info("p", version="2", pod_affinity=affinity))
    popped = scene.pop()
    assert popped.pod_info.affinity_terms is terms
    scene.update(info("p", version="3", pod_affinity=affinity))
    assert scene.queue.newest("p").affinity_terms is terms


def test_an_update_that_changes_the_order_is_obeyed(scene):
    scene.add("first")
    scene.add("second")
    scene.update(info("second", version="2", priority=7))
    assert scene.drain() == ["second", "first"]


def test_an_update_in_backoff_replaces_the_object_in_place(scene):
    scene.reject("p")
    scene.move(ASSIGNED_POD_DELETE)
    new = info("p", version="2")
    scene.update(new)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
    assert scene.pop().pod_info is new


def test_an_update_of_the_same_version_is_ignored(scene):
    pod = scene.add("p")
    scene.update(info("p", priority=9))
    assert scene.pop().pod_info is pod


def test_an_update_of_an_unknown_pod_adds_it(scene):
    scene.update(info("p"))
    assert scene.drain() == ["p"]


def test_adding_a_known_pod_is_an_update(scene):
    scene.add("p")
    scene.add("p", version="2")
    assert scene.drain() == ["p"]


def test_a_change_its_rejector_wants_brings_the_pod_back(scene):
    scene.reject("p", COLOUR)
    scene.clock.step(5)
    scene.update(info("p", version="2", tolerations=["gpu"]))
    assert scene.sub_queue("p") is SubQueue.ACTIVE
    assert scene.metrics.moves[-1] == ("active", "TargetPodUpdatePodToleration")


def test_any_other_change_leaves_the_pod_waiting_with_its_new_object(scene):
    scene.reject("p", COLOUR)
    new = info("p", version="2", colour="red")
    scene.update(new)
    queued = scene.queue.get("p")
    assert queued.sub_queue is SubQueue.UNSCHEDULABLE
    assert queued.pod_info is new


def test_an_update_during_a_cycle_is_replayed_for_its_pod_and_for_no_other(scene):
    scene.add("p")
    scene.add("bystander")
    first, second = scene.pop(), scene.pop()
    old = first.pod_info
    new = info("p", version="2", tolerations=["gpu"])
    scene.update(new)
    assert first.pod_info is old
    scene.fail(first, COLOUR)
    scene.fail(second, COLOUR)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
    assert first.pod_info is new
    assert scene.sub_queue("bystander") is SubQueue.UNSCHEDULABLE


def test_a_hint_about_an_update_sees_both_versions():
    seen = []

    def hint(pod, old, new):
        seen.append((pod, old, new))
        return QueueingHint.SKIP

    profile = make_profile(registrations={"Nosy": [EventRegistration(TARGET_POD_LABEL, hint)]})
    scene = Scene(profile=profile)
    old = scene.reject("p", frozenset({"Nosy"}))
    new = info("p", version="2", colour="red")
    scene.update(new)
    assert seen == [(new, old, new)]
