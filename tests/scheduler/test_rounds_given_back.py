"""A round that comes to nothing gives back all that it held, last first, and a large one a part at a time."""

import random
from itertools import pairwise

import pytest
from tests.builders import make_node, make_pod_info
from tests.cache_checks import assert_adds_up, digest
from tests.group_builders import make_pod_group
from tests.scheduler.group_scene import LARGE, GroupScene

from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.pod_group_round import RoundStatus


@pytest.fixture
def scene():
    return GroupScene()


def test_a_plugin_that_fails_to_give_back_keeps_nobody_elses_room(scene, caplog):
    scene.reserving.answers["unreserve p1"] = RuntimeError("stuck")
    scene.run(make_pod_group(least=4), scene.queued("1", "1", "1", LARGE))
    assert scene.reserving.given_back == ["p2", "p1", "p0"]
    assert scene.cache.sizes().pods == 0
    assert "did not give back" in caplog.text


def test_a_placed_round_can_be_given_back_as_a_whole_or_in_part(scene):
    attempt = scene.round(make_pod_group(least=3), scene.queued("1", "1", "1"))
    result = attempt.run()
    attempt.give_back(result.members[1])
    assert scene.reserving.held == ["p0", "p2"]
    attempt.undo()
    attempt.undo()
    assert (scene.cache.sizes().pods, scene.reserving.held) == (0, [])


def test_a_large_gang_that_fails_is_given_back_a_part_at_a_time(scene):
    scene.cache.set_node(make_node("big", cpu="1500", pods=2000))
    attempt = scene.round(make_pod_group(least=700), scene.queued(*["1"] * 699, LARGE))
    held = [0]
    while attempt.step() is None:
        held.append(len(scene.reserving.held))
    assert (max(held), scene.reserving.held, scene.cache.sizes().pods) == (699, [], 0)
    assert max(before - after for before, after in pairwise([*held, 0])) <= 256


def test_a_round_abandoned_while_it_is_given_back_leaves_nothing_behind(scene):
    scene.cache.set_node(make_node("big", cpu="1500", pods=2000))
    attempt = scene.round(make_pod_group(least=700), scene.queued(*["1"] * 699, LARGE))
    while not scene.reserving.given_back:
        attempt.step()
    assert scene.reserving.held
    attempt.abandon(RuntimeError("scheduling ends"))
    assert (scene.reserving.held, scene.cache.sizes().pods) == ([], 0)
    assert len(scene.reserving.given_back) == 699


def test_after_a_thousand_failed_rounds_the_cache_is_as_before():
    scene = GroupScene(nodes=5)
    scene.cache.set_pod(make_pod_info("lost", node="gone", group="g"))
    scene.bound("there", cpu="2", labels={"app": "web"})
    before, dice = digest(scene.cache), random.Random(28)
    shapes = [{"cpu": "1"}, {"cpu": "3"}, {"host_ports": [80]}, {"cpu": "1", "labels": {"app": "web"}}]
    for number in range(1000):
        pods = [make_pod_info(f"p{i}", group="g", **dice.choice(shapes)) for i in range(dice.randint(1, 6))]
        pods.insert(dice.randint(0, len(pods)), make_pod_info("large", cpu=LARGE, group="g"))
        members = [QueuedPodInfo(pod, 0.0, i) for i, pod in enumerate(pods)]
        scene.reserving.answers = {"p3": RuntimeError("broken")} if dice.random() < 0.2 else {}
        result = scene.run(make_pod_group(least=len(pods) + 1), members)
        assert result.status is not RoundStatus.SCHEDULED, number
        if number % 100 == 0:
            assert digest(scene.cache) == before
            assert_adds_up(scene.cache)
    assert digest(scene.cache) == before
    assert_adds_up(scene.cache)
    assert scene.reserving.held == []
