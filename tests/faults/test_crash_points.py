"""P23 and F30: a scheduler that dies at any of its writes is followed by one that finishes the work, and no other."""

import pytest
from tests.faults.final_state import broken, p17_p21_status
from tests.faults.history import History, node_of
from tests.faults.memory_api import PODS
from tests.faults.steps import Step, World
from tests.faults.virtual_time import cancel_all, run

LOW = [Step("pod", {"name": f"p{number}", "cpu": 1000}, 0.002) for number in range(8)]
HIGH = [Step("pod", {"name": f"p{number}", "cpu": 2000, "priority": 10}, 0.002) for number in range(8, 11)]
NODES = [Step("node", {"name": f"n{number}", "cpu": 3, "zone": "a"}) for number in range(3)]
SCRIPT = [*NODES, *LOW, Step("compact", {}, 1.0), *HIGH]
"""Eight pods fill three nodes, and then three more each take the place of two."""
SETTLE_SECONDS = 100.0
WRITES = 43
"""So many writes the script takes without a death."""


THREE_FOR_ONE = [
    *[Step("node", {"name": f"n{number}", "cpu": 3, "zone": "a"}) for number in range(2)],
    *[Step("pod", {"name": f"p{number}", "cpu": 1000}, 0.002) for number in range(6)],
    Step("compact", {}, 1.0),
    Step("pod", {"name": "high", "cpu": 3000, "priority": 10}),
]
"""Six pods fill two nodes, and one that comes later takes the place of three."""
WRITES_OF_THREE_FOR_ONE, NOMINATES, ENDS_FIRST = 25, 14, 18
"""So many writes that takes, which one is the nomination, and which ends the first of the three."""


async def carry_out(number):
    """The script with a death at the given write; what was broken, and the world as it then is."""
    world = World(1)
    world.kill_at_write(number)
    for step in SCRIPT:
        await world.act(step)
    await world.pause(SETTLE_SECONDS)
    found = [*History(world.api).broken(), *broken(world.api, world.life), *p17_p21_status(world.api)]
    bound = sum(1 for pod in world.api.objects[PODS].values() if pod["spec"].get("nodeName"))
    await cancel_all()
    return found, bound, len(world.lives), len(world.api.writes)


async def nodes_of_the_ended(number):
    """The lives that ended a pod for another and from which node, and where that one is, with a death at a write."""
    world = World(1)
    world.kill_at_write(number)
    for step in THREE_FOR_ONE:
        await world.act(step)
    await world.pause(SETTLE_SECONDS)
    ended = [
        (write.life, node_of(change.old))
        for write in world.api.writes
        for change in world.api.history
        if write.method == "DELETE" and (change.version, change.collection) == (write.version, PODS)
    ]
    node = node_of(world.api.objects[PODS]["default/high"])
    lives, writes = len(world.lives), len(world.api.writes)
    await cancel_all()
    return ended, node, lives, writes


def test_three_pods_end_for_one_without_a_death():
    ended, node, lives, writes = run(nodes_of_the_ended(0))
    assert (ended, lives, writes) == ([(1, node)] * 3, 1, WRITES_OF_THREE_FOR_ONE)


def test_a_death_between_victims_leaves_the_others_to_the_next_life():
    ended, node, _, _ = run(nodes_of_the_ended(ENDS_FIRST))
    assert ended == [(1, node), (2, node), (2, node)]


@pytest.mark.parametrize("number", range(NOMINATES, WRITES_OF_THREE_FOR_ONE + 1))
def test_a_death_in_a_preemption_ends_none_on_another_node(number):
    ended, node, lives, _ = run(nodes_of_the_ended(number))
    assert ([place for _, place in ended], lives) == ([node] * 3, 2)


def test_the_script_binds_and_preempts_without_a_death():
    found, bound, lives, writes = run(carry_out(0))
    assert (found, lives) == ([], 1)
    assert bound == 6
    assert writes == WRITES


@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_a_death_at_any_write_costs_nothing(number):
    found, bound, lives, _ = run(carry_out(number))
    assert (found, lives) == ([], 2)
    assert bound == 6
