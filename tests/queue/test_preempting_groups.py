"""A group for which victims end waits in the queue until they were told to, and no longer than they are there."""

import pytest
from tests.builders import make_pod_info
from tests.queue.test_pod_groups import GroupScene

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import SubQueue


@pytest.fixture
def scene() -> GroupScene:
    return GroupScene()


def test_a_group_that_preempts_is_held_until_its_victims_are_told_and_tried_at_once_when_they_are_gone(scene):
    scene.gang(2, "a", "b")
    victims = [make_pod_info(name, node="n", uid=name) for name in ("v", "w")]
    entity = scene.pop_group()
    scene.queue.preempting.begin(entity.group.key, ["v", "w"])
    scene.fail_round(entity)
    assert scene.queue.get("a").sub_queue is SubQueue.GATED
    assert scene.message("a") == "waiting for the preemption for this pod group to be finished"
    scene.queue.move_all(ASSIGNED_POD_DELETE, victims[0], None)
    scene.queue.preempting.end(entity.group.key)
    assert scene.queue.get("a").sub_queue is not SubQueue.GATED
    assert scene.queue.pop() is None
    scene.queue.move_all(ASSIGNED_POD_DELETE, victims[1], None)
    assert scene.pop_group() is entity


def test_a_group_whose_victims_stay_backs_off_and_is_tried_again(scene):
    scene.gang(2, "a", "b")
    entity = scene.pop_group()
    scene.queue.preempting.begin(entity.group.key, ["v"])
    scene.fail_round(entity)
    scene.queue.preempting.end(entity.group.key)
    scene.clock.now += 3
    scene.queue.flush(scene.clock())
    assert scene.pop_group() is entity


def test_victims_of_a_group_without_members_wake_nobody(scene):
    scene.gang(2, "a", "b")
    entity = scene.pop_group()
    scene.queue.preempting.begin(entity.group.key, ["v"])
    scene.fail_round(entity)
    for each in [*entity.members.values()]:
        scene.queue.delete(each.uid)
    scene.queue.move_all(ASSIGNED_POD_DELETE, make_pod_info("v", node="n", uid="v"), None)
    scene.queue.preempting.end(entity.group.key)
    assert scene.queue.pop() is None
