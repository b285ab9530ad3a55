import asyncio
import logging

import pytest
from tests.controller.intake_scene import IntakeScene
from tests.controller.kubernetes_api import PODS
from tests.faults.faults import Refuse, Reset
from tests.waiting import until

from bayplan.api.backoff import ROLES_SECONDS, ServerContact


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


async def test_a_403_is_told_once_an_api_server_that_came_back_had_time_to_read_the_roles(scene, caplog):
    caplog.set_level(logging.INFO)
    now = 100.0
    scene.list.contact = ServerContact("https://api.example.com", clock=lambda: now)

    async def lines(fault, times=1):
        caplog.clear()
        scene.server.inject(fault, path=PODS, times=times)
        assert not await scene.list.fill()
        return [record.getMessage().partition(" server=")[0].partition(" reason=")[0] for record in caplog.records]

    # The client asks once more by itself.
    assert await lines(Reset(), 2) == ["cannot reach the API server"]
    now += 5.0
    assert await lines(Refuse(403)) == ["the API server is reached again"]
    now += ROLES_SECONDS - 0.1
    assert await lines(Refuse(403)) == []
    now += 0.2
    assert await lines(Refuse(403)) == ["pending pods not listed, trying again later"]


async def test_a_403_at_the_start_is_told_at_once(scene, caplog):
    scene.list.contact = ServerContact("https://api.example.com")
    scene.server.inject(Refuse(403), path=PODS, times=1)
    assert not await scene.list.fill()
    assert "pending pods not listed" in caplog.text


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
