"""Pods that are tried again at a set time, because time alone may help them."""

from tests.queue.scene import FIT

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import SubQueue


def test_a_pod_with_a_time_is_tried_again_at_that_time_without_an_event(scene):
    scene.fail(scene.popped("p"), retry_at=129.5)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE
    assert scene.queue.next_deadline() == 130
    scene.queue.flush(129.9)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE
    scene.wait(30)
    assert scene.sub_queue("p") is SubQueue.ACTIVE
    assert scene.metrics.moves[-1] == ("active", "RetryTime")
    assert scene.queue.next_deadline() is None


def test_a_pod_whose_time_comes_still_backs_off(scene):
    scene.fail(scene.popped("p"), retry_at=100.2)
    scene.wait(1)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_the_next_attempt_settles_the_time_anew(scene):
    scene.fail(scene.popped("p"), retry_at=150)
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(scene.pop(), FIT)
    scene.wait(60)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE


def test_a_pod_that_is_gone_has_no_time(scene):
    scene.fail(scene.popped("p"), retry_at=150)
    scene.queue.delete("p")
    assert scene.queue.next_deadline() is None
    scene.queue.flush(1000)
    assert scene.queue.uids() == set()


def test_a_pod_that_is_up_already_is_left_alone_when_its_time_comes(scene):
    scene.fail(scene.popped("p"), retry_at=103)
    scene.move(ASSIGNED_POD_DELETE)
    scene.wait(2)
    assert scene.queue.next_deadline() is None
    scene.wait(5)
    assert scene.drain() == ["p"]
