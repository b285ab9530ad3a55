import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import make_pod
from tests.scheduler.handler_scene import Scene


@pytest.fixture
def scene():
    return Scene()


def test_a_pending_pod_of_ours_is_queued_and_strangers_are_not(scene):
    scene.pending.changed(make_pod(uid="ours"))
    scene.pending.changed(make_pod(uid="theirs", scheduler_name="default-scheduler"))
    assert scene.queue.uids() == {"ours"}
    assert scene.wakes == 2


@pytest.mark.parametrize("change", [{"node": "a"}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_a_queued_pod_that_is_no_longer_pending_leaves_the_queue(scene, change):
    scene.pending.changed(make_pod(uid="u"))
    scene.pending.changed(make_pod(uid="u", **change))
    assert scene.queue.uids() == set()
    assert scene.gone == ["u"]


@pytest.mark.parametrize(
    "odd",
    [{"name": ""}, {"name": ".."}, {"namespace": "."}, {"name": "\ud800"}, {"uid": ""}, {"cpu": "many"}],
    ids=repr,
)
def test_a_pending_pod_nobody_can_work_with_is_reported_and_left_out(scene, odd, caplog):
    scene.pending.changed(make_pod(**{"uid": "u", **odd}))
    assert (scene.queue.uids(), scene.observer.left_out) == (set(), ["Pod"])
    assert "pod left out" in caplog.text


def test_a_queued_pod_that_becomes_unreadable_leaves_the_queue(scene):
    scene.pending.changed(make_pod(uid="u", cpu="1"))
    scene.pending.changed(make_pod(uid="u", cpu="many", resource_version="2"))
    assert scene.queue.uids() == set()


def test_a_pod_that_is_gone_leaves_the_queue_and_its_events(scene):
    scene.pending.changed(make_pod(uid="u"))
    scene.pending.gone("u")
    assert (scene.queue.uids(), scene.gone) == (set(), ["u"])


def test_a_late_event_of_a_bound_pod_does_not_queue_it_again(scene):
    scene.assigned.on_add(make_pod(uid="u", node="a"))
    scene.pending.changed(make_pod(uid="u"))
    assert scene.queue.uids() == set()


def version(scene):
    """The version of the pod that will be tried next."""
    held = scene.queue.newest("u")
    return None if held is None else held.pod.metadata.resource_version


def answer(**fields):
    return msgspec.json.encode(make_pod(uid="u", **fields))


def event(kind="MODIFIED", *, name="p", spec=None, **fields):
    """A watch event as it is once its JSON is read; `fields` are the pod's metadata."""
    metadata = {"namespace": "shop", "name": name, "uid": "u", **fields}
    return {"type": kind, "object": {"metadata": metadata, "spec": spec or {"schedulerName": "bayplan"}}}


def test_the_answer_to_a_write_is_the_pods_newest_version(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(answer(resource_version="8", labels={"a": "1"}))
    assert version(scene) == "8"
    assert scene.queue.newest("u").pod.metadata.labels == {"a": "1"}


def test_an_answer_during_an_attempt_is_what_is_tried_next(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    queued = scene.queue.pop()
    scene.pending.written(answer(resource_version="8"))
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.get("u").pod_info.pod.metadata.resource_version == "8"


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
def test_only_a_later_version_is_news_and_what_is_no_number_is_never_later_than_one(scene, held, told, kept):
    scene.pending.changed(make_pod(uid="u", resource_version=held))
    scene.pending.changed(make_pod(uid="u", resource_version=told, labels={"a": "1"}))
    assert version(scene) == kept
    assert bool(scene.queue.newest("u").pod.metadata.labels) == (held != told == kept)


def test_a_pod_without_a_version_is_always_news(scene):
    for labels in ({}, {"a": "1"}):
        scene.pending.changed(make_pod(uid="u", resource_version="", labels=labels))
    assert scene.queue.newest("u").pod.metadata.labels == {"a": "1"}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"kind":"Status"}', b"\xff"], ids=repr)
def test_an_answer_that_is_no_pod_changes_nothing(scene, body):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(body)
    assert version(scene) == "7"


def test_an_answer_about_a_pod_that_no_longer_waits_does_not_queue_it(scene):
    scene.pending.written(answer(resource_version="8"))
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.queue.pop()
    scene.pending.gone("u")
    scene.pending.written(answer(resource_version="8"))
    assert scene.queue.uids() == set()


def test_an_answer_about_a_pod_on_a_node_is_left_to_the_watch(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(answer(resource_version="8", node="a"))
    assert version(scene) == "7"


@pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED"])
def test_a_watched_pod_is_queued_as_it_is_now(scene, kind):
    scene.pending.watched(event(kind, resourceVersion="7"))
    scene.pending.watched(event(kind, resourceVersion="8", labels={"a": "1"}))
    assert scene.queue.newest("u").pod.metadata.labels == {"a": "1"}


def test_a_version_that_is_held_already_is_not_even_read(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.watched(event(resourceVersion="7", spec={"priority": "unreadable"}))
    assert (version(scene), scene.observer.left_out) == ("7", [])


@pytest.mark.parametrize("spec", [None, {"priority": "unreadable"}], ids=["readable", "unreadable"])
def test_a_watched_pod_that_is_deleted_leaves_the_queue_readable_or_not(scene, spec):
    scene.pending.changed(make_pod(uid="u"))
    scene.pending.watched(event("DELETED", spec=spec))
    assert (scene.queue.uids(), scene.gone, scene.observer.left_out) == (set(), ["u"], [])


def test_a_watched_pod_that_cannot_be_read_is_reported_by_name_and_leaves_the_queue(scene, caplog):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.watched(event(resourceVersion="8", name="odd", spec={"priority": "high"}))
    assert (scene.queue.uids(), scene.observer.left_out) == (set(), ["Pod"])
    assert "pod left out pod='shop/odd'" in caplog.text
    assert "spec.priority" in caplog.text


def test_a_pod_that_leaves_the_unscheduled_ones_because_it_was_bound_keeps_its_place_on_the_node(scene):
    scene.pending.changed(make_pod(uid="u", cpu="1"))
    queued = scene.queue.pop()
    scene.cache.assume_pod(queued.pod_info, "a")
    scene.pending.watched(event("DELETED"))
    assert (scene.cache.node_of("u"), scene.cpu()) == ("a", 1000)
    scene.queue.done("u")
    assert scene.pending.accounts_for("u", "2")
    assert scene.pending.uids() == set()


@pytest.mark.parametrize(("told", "queued"), [("8", False), ("9", False), ("10", True)])
@pytest.mark.parametrize("known", [False, True])
def test_after_its_deletion_only_a_later_version_of_a_pod_enters_the_queue(scene, known, told, queued):
    if known:
        scene.pending.watched(event("ADDED", resourceVersion="7"))
    scene.pending.watched(event("DELETED", resourceVersion="9"))
    scene.pending.changed(make_pod(uid="u", resource_version=told))
    assert (version(scene), scene.pending.uids()) == ((told, {"u"}) if queued else (None, set()))


def test_an_older_version_does_not_undo_a_deletion_during_the_attempt(scene):
    scene.pending.watched(event("ADDED", resourceVersion="5"))
    queued = scene.queue.pop()
    scene.pending.watched(event("DELETED", resourceVersion="9"))
    scene.pending.watched(event("MODIFIED", resourceVersion="7"))
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.uids() == set()


def test_a_pod_that_ended_or_has_a_node_is_not_queued_by_what_was_said_before(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="9", phase="Failed"))
    scene.pending.changed(make_pod(uid="u", resource_version="8"))
    assert scene.queue.uids() == set()


def test_a_pod_that_only_a_list_did_not_have_may_come_again_as_it_was(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.gone("u")
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    assert scene.queue.uids() == {"u"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = [
    "metadata",
    "spec",
    "status",
    "name",
    "uid",
    "containers",
    "resources",
    "requests",
    "cpu",
    "priority",
    "labels",
]
LIKE_A_POD = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner) | st.lists(inner, max_size=2), max_leaves=15
)


@given(
    st.fixed_dictionaries({}, optional={"type": st.sampled_from([None, "ADDED", "DELETED", 7]), "object": LIKE_A_POD})
)
@example({"type": "ADDED", "object": {"metadata": {"generation": 2**80}, "spec": {"priority": 10**400}}})
@example({"type": "ADDED", "object": {"metadata": {"uid": ["u"], "name": {"a": 1}}}})
@example({"type": "ADDED", "object": {"metadata": {"uid": 10**5000, "name": 10**5000, "resourceVersion": 10**5000}}})
@example({"type": "DELETED", "object": {"metadata": {"uid": "u", "resourceVersion": "9" * 5000}}})
def test_nothing_that_json_can_hold_makes_taking_an_event_raise(told):
    Scene().pending.watched(told)


def test_a_body_nested_beyond_reason_is_reported_by_name(scene, caplog):
    body = {}
    for _ in range(3000):
        body = {"metadata": body, "spec": body, "status": body}
    scene.pending.watched({"type": "ADDED", "object": {**body, "metadata": {"name": "deep", "namespace": "x"}}})
    assert scene.queue.uids() == set()


def test_an_update_during_the_bind_is_what_is_tried_next_if_the_bind_fails(scene):
    scene.pending.changed(make_pod(uid="u"))
    queued = scene.queue.pop()
    scene.cache.assume_pod(queued.pod_info, "a")
    newer = make_pod(uid="u", resource_version="2", tolerations=["x"])
    scene.pending.changed(newer)
    assert scene.queue.pop() is None
    scene.cache.forget_pod("u")
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.get("u").pod_info.pod is newer
