"""A member whose bind failed after a round placed it: its group backs off as it would by itself."""

import pytest
from tests.queue.test_pod_groups import GroupScene


@pytest.fixture
def scene() -> GroupScene:
    return GroupScene()


def test_a_member_whose_binds_fail_one_after_the_other_backs_off_as_a_single_pod_does(scene: GroupScene) -> None:
    scene.gang(1, "a")
    assert [seconds_until_tried(scene) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_rounds_that_failed_before_make_the_back_off_of_a_bind_that_failed_no_longer(scene: GroupScene) -> None:
    scene.gang(1, "a")
    for _ in range(3):
        scene.fail_round(scene.pop_group())
        scene.wait(15)
    assert seconds_until_tried(scene) == 1


def seconds_until_tried(scene: GroupScene) -> int:
    """For how many whole seconds the only member of a group backs off whose bind fails after a round placed it."""
    entity = scene.pop_group()
    (queued,) = entity.members.values()
    scene.queue.finish_round(entity, failed=False)
    failed = scene.clock()
    scene.fail(queued, frozenset(), error=True)
    while not scene.queue.has_ready():
        scene.wait(scene.queue.next_deadline() - scene.clock())
    return int(scene.clock() - failed) - 1
