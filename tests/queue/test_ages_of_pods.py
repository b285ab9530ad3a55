"""For how long a pod waits for room: what alerts go by."""

import pytest
from tests.queue.scene import FIT, Scene
from tests.queue.test_pod_groups import GroupScene

from bayplan.queue.queued_pod import SubQueue


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_pod_that_waits_longest_has_its_age_until_it_has_a_node(scene):
    assert scene.queue.oldest_age() == 0
    scene.add("a")
    scene.wait(3)
    scene.add("b")
    assert scene.queue.oldest_age() == 3
    for queued in (scene.pop(), scene.pop()):
        assert scene.queue.oldest_age() == 3
        scene.fail(queued, FIT)
    scene.wait(400)
    assert scene.queue.oldest_age() == 403
    scene.queue.delete("a")
    assert scene.queue.oldest_age() == 400


def test_a_pod_that_a_gate_holds_has_no_age_until_it_is_tried(scene):
    scene.add("a", gates=["team/ready"])
    scene.wait(50)
    assert scene.queue.oldest_age() == 0


def test_a_pod_of_a_gang_has_an_age_from_its_first_round_on_and_none_while_others_are_missing():
    scene = GroupScene()
    scene.gang(2, "a", "b")
    scene.wait(3)
    scene.fail_round(scene.pop_group())
    scene.wait(7)
    assert scene.queue.oldest_age() == 10
    scene.queue.delete("b")
    assert scene.sub_queue("a") is SubQueue.GATED
    assert scene.queue.oldest_age() == 0
