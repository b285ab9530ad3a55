import msgspec
import pytest
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


def answer(**fields):
    return msgspec.json.encode(make_pod(uid="u", **fields))


def test_the_answer_to_a_write_is_the_pods_newest_version(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    assert not scene.pending.knows("u", "8")
    scene.pending.written(answer(resource_version="8", labels={"a": "1"}))
    assert scene.pending.knows("u", "8")
    assert scene.queue.newest("u").pod.metadata.labels == {"a": "1"}


def test_an_answer_during_an_attempt_is_what_is_tried_next(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    queued = scene.queue.pop()
    scene.pending.written(answer(resource_version="8"))
    assert scene.pending.knows("u", "8")
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.get("u").pod_info.pod.metadata.resource_version == "8"


def test_a_version_that_comes_after_a_later_one_is_dropped(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="10"))
    scene.pending.changed(make_pod(uid="u", resource_version="9", labels={"a": "1"}))
    assert scene.pending.knows("u", "10")
    scene.pending.changed(make_pod(uid="u", resource_version="odd"))
    assert scene.pending.knows("u", "odd"), "versions that are no numbers have no order"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"kind":"Status"}', b"\xff"], ids=repr)
def test_an_answer_that_is_no_pod_changes_nothing(scene, body):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(body)
    assert scene.pending.knows("u", "7")


def test_an_answer_about_a_pod_that_no_longer_waits_does_not_queue_it(scene):
    scene.pending.written(answer(resource_version="8"))
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.queue.pop()
    scene.pending.gone("u")
    scene.pending.written(answer(resource_version="8"))
    assert (scene.queue.uids(), scene.pending.knows("u", "8")) == (set(), False)


def test_an_answer_about_a_pod_on_a_node_is_left_to_the_watch(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(answer(resource_version="8", node="a"))
    assert scene.pending.knows("u", "7")


def test_a_pod_without_a_version_is_never_known(scene):
    scene.pending.changed(make_pod(uid="u", resource_version=""))
    assert not scene.pending.knows("u", "")


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
