"""Minutes without an API server, and two schedulers at once, in virtual time."""

import pytest
from tests.faults.final_state import broken
from tests.faults.history import History
from tests.faults.memory_api import PODS
from tests.faults.scheduler_life import SchedulerLife
from tests.faults.steps import Step, World
from tests.faults.virtual_time import cancel_all, run

from bayplan.config.load import default_configuration

TEN_MINUTES = 600.0
BACK_SECONDS = 5.0


def node_of(world, name):
    return world.api.objects[PODS][f"default/{name}"]["spec"].get("nodeName")


async def pods_and_a_node_come_during_an_outage(seconds):
    """How long after the API server's return each pod was bound, all that was broken, and the writes of the outage."""
    world = World(1)
    await world.act(Step("node", {"name": "n0", "cpu": 2, "zone": "a"}, 5.0))
    await world.act(Step("pod", {"name": "before", "cpu": 2000}, 5.0))
    world.api.go_down()
    await world.pause(seconds / 2)
    # Others reach another API server of the cluster, which is back when ours is.
    await world.act(Step("pod", {"name": "later", "cpu": 1000}))
    await world.act(Step("node", {"name": "n1", "cpu": 2, "zone": "a"}))
    await world.act(Step("delete", {"name": "before"}))
    await world.act(Step("pod", {"name": "last", "cpu": 2000}))
    await world.pause(seconds / 2)
    writes = len(world.api.writes)
    world.api.come_back()
    await world.pause(BACK_SECONDS)
    bound = {name: node_of(world, name) for name in ("later", "last")}
    tried = len(world.api.writes) - writes
    await world.pause(200.0)
    found = [*History(world.api).broken(), *broken(world.api, world.life)]
    await cancel_all()
    return bound, tried, found


@pytest.mark.parametrize("seconds", [1.0, 30.0, TEN_MINUTES])
def test_pods_that_came_during_an_outage_are_bound_within_seconds_of_its_end(seconds):
    bound, tried, found = run(pods_and_a_node_come_during_an_outage(seconds))
    assert found == []
    assert set(bound.values()) == {"n0", "n1"}
    # A few for each pod: no storm.
    assert tried <= 12


async def two_at_once():
    """Twelve pods, room for eight, and two schedulers of one name that decide at the same time."""
    world = World(1)
    other = SchedulerLife(world.api, default_configuration(), world.rng)
    for number in range(4):
        await world.act(Step("node", {"name": f"n{number}", "cpu": 2, "zone": "a"}))
    await world.pause(3.0)
    for number in range(12):
        await world.act(Step("pod", {"name": f"p{number}", "cpu": 1000}, 0.001))
    await world.pause(200.0)
    found = [*History(world.api).p1_bound_once()]
    found += [each for life in (world.life, other) for each in broken(world.api, life)]
    bound = sum(1 for number in range(12) if node_of(world, f"p{number}"))
    await cancel_all()
    return found, bound


def test_two_schedulers_of_one_name_bind_each_pod_once_and_lose_none():
    """Who may write is the lease's to say; without one a node can be overfilled, but nothing is lost or bound twice."""
    found, bound = run(two_at_once())
    assert found == []
    assert bound >= 8
