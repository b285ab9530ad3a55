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


async def test_a_list_that_is_older_than_the_one_before_is_told_and_taken_for_the_truth(scene):
    scene.put("a", queued=True)
    scene.put("left", queued=True)
    scene.server.version = 100
    scene.put("changed", queued=True)
    await scene.filled()
    scene.pending.gone("uid-left", "101")
    assert scene.queued() == {"a", "changed"}
    scene.list.on_went_back = scene.pending.forget_versions
    scene.server.objects[PODS] = {}
    scene.server.version = 20
    for name in ("a", "left"):
        scene.put(name)
    scene.put("changed", priority=7)
    await scene.filled()
    assert scene.queued() == {"a", "left", "changed"}
    assert scene.queue.pop().pod_info.name == "changed"
    scene.server.version = 50
    scene.put("a", priority=9)
    await scene.filled()
    assert scene.queue.pop().pod_info.name == "a"
