"""P23: a scheduler that dies at any of its writes is followed by one that finishes the work."""

import pytest
from tests.faults.final_state import broken, p17_p21_status
from tests.faults.history import History
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
