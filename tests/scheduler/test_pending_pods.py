from functools import reduce

import msgspec
import pytest
from tests.builders import make_pod

from bayplan.api.watch_event import pod_event
from bayplan.queue.queued_pod import SubQueue


def test_a_pending_pod_of_ours_is_queued_and_strangers_are_not(handlers):
    handlers.pending.changed(make_pod(uid="ours"))
    handlers.pending.changed(make_pod(uid="theirs", scheduler_name="default-scheduler"))
    assert handlers.queue.uids() == {"ours"}
    assert handlers.wakes == 2


@pytest.mark.parametrize(
    "change",
    [{"node": "a"}, {"phase": "Failed"}, {"phase": "Succeeded"}, {"cpu": "many", "resource_version": "2"}],
    ids=["bound", "failed", "succeeded", "unreadable"],
)
def test_a_queued_pod_that_is_no_longer_pending_or_readable_leaves_the_queue(handlers, change):
    handlers.pending.changed(make_pod(uid="u"))
    handlers.pending.changed(make_pod(uid="u", **change))
    assert (handlers.queue.uids(), handlers.gone) == (set(), ["u"])


@pytest.mark.parametrize(
    "odd",
    [{"name": ""}, {"name": ".."}, {"namespace": "."}, {"name": "\ud800"}, {"uid": ""}, {"cpu": "many"}],
    ids=repr,
)
def test_a_pending_pod_nobody_can_work_with_is_reported_and_left_out(handlers, odd, caplog):
    handlers.pending.changed(make_pod(**{"uid": "u", **odd}))
    assert (handlers.queue.uids(), handlers.metrics.left_out) == (set(), ["Pod"])
    assert "pod left out" in caplog.text


def test_a_late_event_of_a_bound_pod_does_not_queue_it_again(handlers):
    handlers.assigned.on_add(make_pod(uid="u", node="a"))
    handlers.pending.changed(make_pod(uid="u"))
    assert handlers.queue.uids() == set()


def version(handlers):
    """The version of the pod that will be tried next."""
    held = handlers.queue.newest("u")
    return None if held is None else held.pod.metadata.resource_version


def answer(**fields):
    return msgspec.json.encode(make_pod(uid="u", **fields))


def event(kind="MODIFIED", *, name="p", spec=None, **fields):
    """A watch event as it is once its JSON is read; `fields` are the pod's metadata."""
    metadata = {"namespace": "shop", "name": name, "uid": "u", **fields}
    return {"type": kind, "object": {"metadata": metadata, "spec": spec or {"schedulerName": "bayplan"}}}


def test_the_answer_to_a_write_is_the_pods_newest_version(handlers):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.written(answer(resource_version="8", labels={"a": "1"}))
    assert version(handlers) == "8"
    assert handlers.queue.newest("u").pod.metadata.labels == {"a": "1"}


@pytest.mark.parametrize(
    ("held", "told", "kept"),
    [
        ("10", "9", "10"),
        ("10", "10", "10"),
        ("9", "10", "10"),
        ("10", "9" * 5000, "9" * 5000),
        ("9" * 5000, "10", "9" * 5000),
        ("10", "odd", "10"),
        ("10", "", "10"),
        ("odd", "10", "10"),
        ("odd", "odd", "odd"),
        ("odd", "other", "other"),
    ],
)
def test_only_a_later_version_is_news_and_what_is_no_number_is_never_later_than_one(handlers, held, told, kept):
    handlers.pending.changed(make_pod(uid="u", resource_version=held))
    handlers.pending.changed(make_pod(uid="u", resource_version=told, labels={"a": "1"}))
    assert version(handlers) == kept
    assert bool(handlers.queue.newest("u").pod.metadata.labels) == (held != told == kept)


def test_a_pod_without_a_version_is_always_news(handlers):
    for labels in ({}, {"a": "1"}):
        handlers.pending.changed(make_pod(uid="u", resource_version="", labels=labels))
    assert handlers.queue.newest("u").pod.metadata.labels == {"a": "1"}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"kind":"Status"}', b"\xff"], ids=repr)
def test_an_answer_that_is_no_pod_changes_nothing(handlers, body):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.written(body)
    assert version(handlers) == "7"


def test_an_answer_about_a_pod_that_no_longer_waits_does_not_queue_it(handlers):
    handlers.pending.written(answer(resource_version="8"))
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.queue.pop()
    handlers.pending.gone("u")
    handlers.pending.written(answer(resource_version="8"))
    assert handlers.queue.uids() == set()


def test_an_answer_about_a_pod_on_a_node_is_left_to_the_watch(handlers):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.written(answer(resource_version="8", node="a"))
    assert version(handlers) == "7"


@pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED"])
def test_a_watched_pod_is_queued_as_it_is_now(handlers, kind):
    handlers.pending.watched(pod_event(event(kind, resourceVersion="7")))
    handlers.pending.watched(pod_event(event(kind, resourceVersion="8", labels={"a": "1"})))
    assert handlers.queue.newest("u").pod.metadata.labels == {"a": "1"}


def test_a_version_that_is_held_already_is_not_even_read(handlers):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.watched(pod_event(event(resourceVersion="7", spec={"priority": "unreadable"})))
    assert (version(handlers), handlers.metrics.left_out) == ("7", [])


@pytest.mark.parametrize("spec", [None, {"priority": "unreadable"}], ids=["readable", "unreadable"])
def test_a_watched_pod_that_is_deleted_leaves_the_queue_readable_or_not(handlers, spec):
    handlers.pending.changed(make_pod(uid="u"))
    handlers.pending.watched(pod_event(event("DELETED", spec=spec)))
    assert (handlers.queue.uids(), handlers.gone, handlers.metrics.left_out) == (set(), ["u"], [])


def test_a_watched_pod_that_cannot_be_read_is_reported_by_name_and_leaves_the_queue(handlers, caplog):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.watched(pod_event(event(resourceVersion="8", name="odd", spec={"priority": "high"})))
    assert (handlers.queue.uids(), handlers.metrics.left_out) == (set(), ["Pod"])
    assert "pod left out pod='shop/odd'" in caplog.text
    assert "spec.priority" in caplog.text


def test_a_pod_that_leaves_the_unscheduled_ones_because_it_was_bound_keeps_its_place_on_the_node(handlers):
    handlers.pending.changed(make_pod(uid="u", cpu="1"))
    queued = handlers.queue.pop()
    handlers.cache.assume_pod(queued.pod_info, "a")
    handlers.pending.watched(pod_event(event("DELETED")))
    assert (handlers.cache.node_of("u"), handlers.cpu()) == ("a", 1000)
    handlers.queue.done("u")
    assert handlers.pending.accounts_for("u", "2")
    assert handlers.pending.uids() == set()


@pytest.mark.parametrize(("told", "queued"), [("8", False), ("9", False), ("10", True)])
@pytest.mark.parametrize("known", [False, True])
def test_after_its_deletion_only_a_later_version_of_a_pod_enters_the_queue(handlers, known, told, queued):
    if known:
        handlers.pending.watched(pod_event(event("ADDED", resourceVersion="7")))
    handlers.pending.watched(pod_event(event("DELETED", resourceVersion="9")))
    handlers.pending.changed(make_pod(uid="u", resource_version=told))
    assert (version(handlers), handlers.queue.uids()) == ((told, {"u"}) if queued else (None, set()))


def test_an_older_version_does_not_undo_a_deletion_during_the_attempt(handlers):
    handlers.pending.watched(pod_event(event("ADDED", resourceVersion="5")))
    queued = handlers.queue.pop()
    handlers.pending.watched(pod_event(event("DELETED", resourceVersion="9")))
    handlers.pending.watched(pod_event(event("MODIFIED", resourceVersion="7")))
    handlers.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert handlers.queue.uids() == set()


def test_a_pod_that_ended_is_not_queued_by_what_was_said_before(handlers):
    handlers.pending.changed(make_pod(uid="u", resource_version="9", phase="Failed"))
    handlers.pending.changed(make_pod(uid="u", resource_version="8"))
    assert handlers.queue.uids() == set()


def test_a_pod_that_only_a_list_did_not_have_may_come_again_as_it_was(handlers):
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    handlers.pending.gone("u")
    handlers.pending.changed(make_pod(uid="u", resource_version="7"))
    assert handlers.queue.uids() == {"u"}


DEEP = reduce(lambda inner, _: {"metadata": inner, "spec": inner, "status": inner}, range(3000), {})


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"generation": 2**80}, "spec": {"priority": 10**400}},
        {"metadata": {"uid": ["u"], "name": {"a": 1}}},
        {"metadata": {"uid": 10**5000, "name": 10**5000, "resourceVersion": 10**5000}},
        {"metadata": 7},
        DEEP,
    ],
    ids=["huge numbers", "names that are no text", "names that are huge", "no metadata", "nested beyond reason"],
)
def test_no_event_is_odd_enough_to_raise(handlers, body):
    handlers.pending.watched(pod_event({"type": "ADDED", "object": body}))
    assert handlers.queue.uids() == set()


def test_an_update_during_the_bind_is_what_is_tried_next_if_the_bind_fails(handlers):
    handlers.pending.changed(make_pod(uid="u"))
    queued = handlers.queue.pop()
    handlers.cache.assume_pod(queued.pod_info, "a")
    newer = make_pod(uid="u", resource_version="2", tolerations=["x"])
    handlers.pending.changed(newer)
    assert handlers.queue.pop() is None
    handlers.cache.forget_pod("u")
    handlers.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert handlers.queue.get("u").pod_info.pod is newer


def test_a_deleted_pod_that_room_was_kept_for_wakes_the_loop_for_those_that_may_use_it(scene):
    scene.node(cpu="1")
    scene.pod("strong", priority=9, nominated="n1", gates=["later"])
    scene.pod("weak")
    scene.step()
    assert scene.sub_queue_of("weak") is SubQueue.UNSCHEDULABLE
    scene.after(60.0)
    scene.news.clear()
    scene.pending.gone("strong", "9")
    assert scene.sub_queue_of("weak") is SubQueue.ACTIVE
    assert scene.news.is_set()
