"""An Event that the API server does not have, because its creation was lost or because it expired, is created again."""

from datetime import UTC, datetime

import pytest
from tests.builders import make_pod_info
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import Refuse, Reset
from tests.waiting import Sleeps

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder

EVENTS = "/apis/events.k8s.io/v1/events"


class Scene:
    """A pod that fails, on an API server."""

    def __init__(self, server, client):
        self.server, self.passed = server, 0.0
        self.dispatcher = Dispatcher(client, client, sleep=Sleeps())
        self.recorder = EventRecorder(
            emit=self.dispatcher.send,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            hostname="host",
            clock=lambda: self.passed,
        )

    async def fail(self, times):
        for _ in range(times):
            self.recorder.failed_scheduling(make_pod_info(uid="u"), "no room")
        await self.written()

    async def written(self):
        await self.dispatcher.drain(binds_seconds=30, calls_seconds=30)

    def events(self):
        """The note and the series of each Event there is."""
        stored = self.server.objects.get(EVENTS, {}).values()
        return [(event["note"], event.get("series", {}).get("count")) for event in stored]


@pytest.fixture
async def scene():
    async with FakeApiServer() as server:
        client = ApiClient(Credentials(server=server.url))
        yield Scene(server, client)
        await client.close()


@pytest.mark.parametrize(("fault", "tries"), [(Refuse(403), 1), (Reset(), 4)], ids=["refused", "lost"])
async def test_an_event_that_was_lost_is_there_when_its_next_failure_was_counted(scene, fault, tries):
    scene.server.inject(fault, method="POST", path="/events", times=tries)
    await scene.fail(1)
    assert scene.events() == []
    await scene.fail(1)
    scene.passed += 30
    scene.recorder.sweep()
    await scene.written()
    assert scene.events() == [("no room", 2)]


async def test_an_event_that_expired_is_there_again_with_all_that_was_counted(scene):
    await scene.fail(3)
    assert scene.events() == [("no room", None)], "this API server keeps no series, but has the Event"
    (key,) = scene.server.objects[EVENTS]
    scene.server.delete(EVENTS, key)
    scene.passed += 300
    await scene.fail(1)
    scene.passed += 360
    scene.recorder.sweep()
    await scene.written()
    assert scene.events() == [("no room", 4)]
