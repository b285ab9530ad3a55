"""A group that failed is tried again when something happened since, and not only because time went by."""

from collections.abc import Callable

import pytest
from tests.queue.scene import FIT
from tests.queue.test_pod_groups import GroupScene, member

from bayplan.api.objects import Condition
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_TAINT
from bayplan.groups.pod_groups import INITIALLY_SCHEDULED
from bayplan.queue.queued_pod import SubQueue


@pytest.fixture
def scene() -> GroupScene:
    return GroupScene()


def test_a_group_is_not_tried_again_while_nothing_happens_and_at_once_when_something_does(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(0.9)
    assert scene.sub_queue("a") is SubQueue.ERROR_BACKOFF
    scene.wait(200)
    assert scene.queue.pop() is None
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE
    scene.move(NODE_TAINT)
    scene.fail_round(scene.pop_group(), waits=True)
    scene.move(NODE_TAINT)
    assert scene.queue.pop() is None
    scene.wait(3)
    assert scene.sub_queue("a") is SubQueue.ACTIVE


def test_pods_that_an_event_wakes_go_before_groups_of_their_priority_that_it_wakes(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.set_group("h", least=1, priority=5)
    scene.member("c", "h", priority=5)
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(5)
    scene.add("single")
    scene.fail(scene.pop(), FIT)
    scene.wait(20)
    scene.move(NODE_TAINT)
    assert list(scene.pop_group().members) == ["c"]
    assert scene.pop().uid == "single"
    assert list(scene.pop_group().members) == ["a", "b"]


def test_pods_that_end_one_after_the_other_give_their_room_in_one_round_within_a_second(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    scene.move(ASSIGNED_POD_DELETE)
    scene.wait(0.4)
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.queue.pop() is None
    assert scene.queue.next_deadline() == pytest.approx(scene.clock() + 0.1)
    scene.wait(0.2)
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE


def test_a_pod_that_ends_is_no_news_to_a_group_that_was_tried_since(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    scene.move(ASSIGNED_POD_DELETE)
    scene.member("c")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE


def test_what_happens_during_the_round_counts(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    entity = scene.pop_group()
    scene.move(NODE_TAINT)
    scene.fail_round(entity, waits=True)
    scene.wait(2)
    assert scene.sub_queue("a") is SubQueue.ACTIVE


def test_a_group_that_waits_for_news_is_tried_again_after_five_minutes(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(2)
    scene.wait(297)
    assert scene.queue.pop() is None
    scene.wait(2)
    assert list(scene.pop_group().members) == ["a", "b"]


def test_a_group_is_not_tried_at_once_because_a_member_begins_to_end(scene: GroupScene) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    scene.update(member("a", resource_version="2", deleting=True))
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE
    scene.queue.delete("a")
    assert scene.sub_queue("b") is SubQueue.GATED


@pytest.mark.parametrize("when", ["in back-off", "while it waits"])
def test_the_others_are_tried_although_a_member_takes_long_to_end(scene: GroupScene, when: str) -> None:
    scene.gang(2, "a", "b", "c")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20 if when == "while it waits" else 0)
    scene.update(member("a", resource_version="2", deleting=True))
    scene.wait(0.6 if when == "while it waits" else 2)
    assert scene.sub_queue("b") is SubQueue.ACTIVE


@pytest.mark.parametrize("when", ["in back-off", "while it waits"])
def test_what_is_written_on_a_member_is_no_news(scene: GroupScene, when: str) -> None:
    scene.gang(2, "a", "b")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(2 if when == "while it waits" else 0)
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    scene.update(member("a", resource_version="2", conditions=[condition]))
    scene.wait(20)
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE
    queued = scene.queue.get("a")
    assert queued is not None
    assert queued.pod_info.pod.status.conditions == [condition]


def test_a_condition_that_is_written_on_the_group_is_no_news(scene: GroupScene) -> None:
    scene.gang(2, "a", "b", uid="u")
    scene.fail_round(scene.pop_group(), waits=True)
    scene.wait(20)
    condition = Condition(type=INITIALLY_SCHEDULED, status="False", reason="Unschedulable")
    scene.set_group(least=2, uid="u", condition=condition)
    assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE
    scene.move(NODE_TAINT)
    assert scene.pop_group().group.condition == condition


CHANGES: dict[str, Callable[[GroupScene], object]] = {
    "a member comes": lambda scene: scene.member("c"),
    "a member tolerates more": lambda scene: scene.update(member("a", resource_version="2", tolerations=["gpu"])),
    "a member goes": lambda scene: scene.queue.delete("c"),
    "the group is another": lambda scene: scene.set_group(least=1),
}


@pytest.mark.parametrize("when", ["in the round", "in back-off", "while it waits"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_becomes_of_the_group_itself_counts(scene: GroupScene, what: str, when: str) -> None:
    scene.gang(2, "a", "b")
    if what == "a member goes":
        scene.member("c")
    entity = scene.pop_group()
    if when == "in the round":
        CHANGES[what](scene)
    scene.fail_round(entity, waits=True)
    if when == "in back-off":
        CHANGES[what](scene)
    scene.wait(2)
    if when == "while it waits":
        assert scene.sub_queue("a") is SubQueue.UNSCHEDULABLE
        CHANGES[what](scene)
    assert scene.sub_queue("a") is SubQueue.ACTIVE
