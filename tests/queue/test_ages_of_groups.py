"""For how long a gang waits for room: what alerts go by."""

import pytest
from tests.queue.scene import FIT
from tests.queue.test_pod_groups import GroupScene, member

from bayplan.queue.queued_pod import SubQueue


@pytest.fixture
def scene() -> GroupScene:
    return GroupScene()


def test_the_gang_that_waits_longest_for_room_has_its_age(scene):
    assert scene.queue.oldest_group_age() == 0
    scene.gang(2, "a", "b")
    scene.wait(3)
    scene.fail_round(scene.pop_group())
    scene.set_group("later", least=1)
    scene.member("c", "later")
    scene.wait(7)
    assert scene.queue.oldest_group_age() == 10
    in_round = [scene.pop_group(), scene.pop_group()]
    assert {each.group.key.name for each in in_round} == {"g", "later"}
    assert scene.queue.oldest_group_age() == 10
    for uid in ("a", "b"):
        scene.queue.delete(uid)
    scene.queue.finish_round(next(each for each in in_round if each.group.key.name == "g"), failed=False)
    assert scene.queue.oldest_group_age() == 7


@pytest.mark.parametrize("held_by", ["too few pods", "a scheduling gate"])
def test_a_gang_that_waits_for_more_than_room_has_no_age(scene, held_by):
    scene.gang(2, "a", "b")
    scene.wait(3)
    if held_by == "too few pods":
        scene.queue.delete("b")
    else:
        scene.member("c", gates=["team/ready"])
    assert scene.sub_queue("a") is SubQueue.GATED
    assert scene.queue.oldest_group_age() == 0


def test_late_members_of_a_gang_that_is_whole_do_not_count_and_it_begins_anew_when_it_is_not_any_more(scene):
    scene.gang(2, "a", "b", "c")
    entity = scene.pop_group()
    for name in ("a", "b"):
        scene.cache.set_pod(member(name, node="n1"))
        scene.queue.done(name)
    scene.fail(entity.members["c"], FIT)
    scene.queue.finish_round(entity, failed=False)
    scene.wait(50)
    assert scene.queue.oldest_group_age() == 0
    scene.fail_round(scene.pop_group(), waits=True)
    scene.cache.remove_pod("b")
    assert scene.queue.oldest_group_age() == 50
