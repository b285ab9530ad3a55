import pytest
from tests.queue.scene import FIT, Scene

from bayplan.queue.queued_pod import SubQueue


def test_a_rejected_pod_waits_for_an_event(scene):
    scene.reject("p")
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE
    assert not scene.queue.has_ready()


def test_an_error_is_retried_after_backoff_and_never_sooner(scene):
    scene.add("p")
    scene.clock.now = 100.46
    scene.fail(scene.pop(), frozenset(), error=True)
    assert scene.sub_queue("p") is SubQueue.ERROR_BACKOFF
    assert not scene.queue.has_ready()
    assert scene.queue.pop() is None
    assert scene.queue.next_deadline() == 102.0
    scene.queue.flush(101.99)
    assert scene.sub_queue("p") is SubQueue.ERROR_BACKOFF
    scene.queue.flush(102.0)
    assert scene.sub_queue("p") is SubQueue.ACTIVE
    assert scene.queue.next_deadline() is None


def test_a_failure_that_no_plugin_caused_counts_as_error(scene):
    scene.fail(scene.popped("p"), frozenset(), error=False)
    assert scene.sub_queue("p") is SubQueue.ERROR_BACKOFF


def test_the_plugins_of_an_error_are_not_asked(scene):
    scene.fail(scene.popped("p"), FIT, error=True)
    assert scene.sub_queue("p") is SubQueue.ERROR_BACKOFF
    assert scene.metrics.rejected() == {}


def test_backoff_grows_with_rejections_and_errors_are_counted_apart(scene):
    scene.add("p")
    waits = []
    for error in (False, False, False, True, True, False, False):
        queued = scene.pop()
        scene.fail(queued, FIT, error=error)
        assert queued.backs_off_until is not None
        waits.append(queued.backs_off_until - 1 - scene.clock.now)
        scene.bring_back()
    assert waits == [1, 2, 4, 1, 2, 8, 10]


@pytest.mark.parametrize("seconds", [1, 0], ids=["that come later", "of the same moment"])
def test_a_retried_pod_goes_behind_newcomers_of_its_priority(scene, seconds):
    queued = scene.popped("old")
    scene.clock.step(seconds)
    scene.add("newcomer")
    scene.clock.step(seconds)
    scene.fail(queued)
    scene.bring_back()
    assert scene.drain() == ["newcomer", "old"]


@pytest.mark.parametrize("seconds", [0.0, 0.75], ids=["as they come back", "while they are tried"])
def test_pods_that_errors_bring_back_together_let_those_pass_that_come(scene, seconds):
    scene.break_off("one")
    scene.break_off("another")
    scene.wait(2.0)
    scene.clock.step(seconds)
    scene.add("newcomer")
    assert scene.drain() == ["newcomer", "one", "another"]


def test_a_pod_that_an_error_brings_back_lets_others_pass_for_a_second_only(scene):
    scene.break_off("old")
    scene.wait(2.0)
    scene.clock.step(1.25)
    scene.add("newcomer")
    assert scene.drain() == ["old", "newcomer"]


def test_after_an_error_the_higher_priority_still_goes_first(scene):
    scene.break_off("high", priority=1)
    scene.wait(2.0)
    scene.add("newcomer")
    assert scene.drain() == ["high", "newcomer"]


def test_without_maximum_backoff_a_failed_pod_is_active_at_once():
    scene = Scene(max_backoff_seconds=0)
    scene.break_off("p")
    assert scene.sub_queue("p") is SubQueue.ACTIVE


def test_a_pod_handed_back_after_done_is_kept_and_tried_again(scene):
    queued = scene.popped("p")
    scene.queue.done("p")
    scene.fail(queued)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_a_pod_that_is_queued_again_already_is_not_taken_twice(scene):
    pod = scene.add("p")
    queued = scene.pop()
    scene.queue.done("p")
    scene.queue.add(pod)
    scene.fail(queued)
    assert scene.drain() == ["p"]
