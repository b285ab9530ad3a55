import asyncio

import pytest
from tests.controller.intake_scene import IntakeScene
from tests.controller.kubernetes_api import PODS
from tests.faults.faults import Refuse, Reset
from tests.waiting import until


@pytest.fixture
def scene(server, client):
    return IntakeScene(server, client)


@pytest.mark.parametrize(("fault", "longest"), [(Refuse(503), 4.0), (Reset(), 4.0), (Refuse(403), 15.0)], ids=repr)
async def test_an_outage_is_over_within_seconds_of_the_api_servers_return(scene, fault, longest):
    scene.put("a", queued=True)
    await scene.filled()
    assert scene.list.problem() is None
    scene.server.inject(fault, path=PODS, times=20)
    delays, problems = [], []

    async def sleep(seconds):
        delays.append(seconds)
        problems.append(scene.list.problem())

    scene.list.sleep = sleep
    running = asyncio.create_task(scene.list.run(3600))
    await until(lambda: len(delays) > 9 and scene.list.problem() is None)
    assert max(delays) == longest
    assert (problems[0], problems[-1]) == (None, "pending pods cannot be listed")
    running.cancel()


async def test_it_is_compared_as_soon_as_that_is_asked_for(scene):
    running = asyncio.create_task(scene.list.run(3600))
    await until(scene.list.complete.is_set)
    scene.ghost("ghost")
    scene.list.ask_for_comparison()
    await until(lambda: scene.queued() == set())
    running.cancel()
