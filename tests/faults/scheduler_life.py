"""One life of a scheduler on the API server in memory: from its start to its end, or to its death."""

import asyncio
import functools
import json
import random
from contextlib import suppress

import aiohttp
from tests.faults.memory_api import PODS, MemoryApi
from tests.faults.memory_transport import MemorySource, client_for, source_for
from tests.faults.virtual_time import cancel_all

from bayplan.api.credentials import Credentials
from bayplan.api.reflector import Reflector
from bayplan.api.watch_source import AnswerError, BrokenStreamError
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.build import Parts, build
from bayplan.controller.operator_thread import field_selector

CREDENTIALS = Credentials(server="http://memory")
"""Nobody looks at them; one for all lives, as making a TLS context takes long."""
_PROFILES = {"bayplan"}
_FIRST_LIST_SECONDS = 10.0
_COMPARE_SECONDS = 60.0
_ASSUMED_CHECK_SECONDS = 15.0


class KopfModel:
    """What reaches us of kopf: events of a list and of a watch, nothing of what vanished between the two, and its ends.

    kopf lists again on 410 by itself. On any other broken watch or refused list it ends, and `OperatorThread` starts it
    again after a pause.
    """

    def __init__(self, api: MemoryApi, parts: Parts) -> None:
        self._source = MemorySource(api, PODS, inactivity=70.0)
        self._operator = parts.operator
        self._query = {"fieldSelector": field_selector(_PROFILES)}

    async def run(self) -> None:
        pause, first = 1.0, True
        while True:
            try:
                await self._operate(first=first)
            except (AnswerError, BrokenStreamError, aiohttp.ClientError, OSError):
                first = False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 30.0)

    async def _operate(self, *, first: bool) -> None:
        if not first:
            self._operator.on_restart()
        version = ""
        while True:
            if not version:
                page = await self._source.page(self._query)
                for item in page.items or ():
                    self._operator.take({"type": None, "object": json.loads(bytes(item))})
                version = page.metadata.resource_version
            version = await self._watch(version)

    async def _watch(self, version: str) -> str:
        query = {**self._query, "watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
        with suppress(TimeoutError):
            async for lines in self._source.watch(query):
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        if event["object"]["code"] == 410:
                            return ""
                        raise AnswerError(event["object"]["code"], "in the stream")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._operator.take(event)
        return version


class SchedulerLife:
    """The parts of the real scheduler, run as `App` runs them, but for kopf, signals and the HTTP port."""

    def __init__(self, api: MemoryApi, configuration: SchedulerConfiguration, rng: random.Random) -> None:
        api.life += 1
        self.api = api
        reflector = functools.partial(
            Reflector, open_source=source_for(api), clock=api.loop.time, rng=random.Random(rng.random())
        )
        self.parts = build(
            configuration,
            CREDENTIALS,
            clock=api.loop.clock,
            make_client=client_for(api),
            make_reflector=reflector,
        )
        self._tasks = [asyncio.create_task(self._run(), name="life")]
        self.failed: BaseException | None = None

    async def _run(self) -> None:
        parts = self.parts
        parts.scheduler.dispatcher.start()
        for name, work in parts.watches.work().items():
            self._spawn(name, work)
        while not parts.watches.synced:  # noqa: ASYNC110  as App does
            await asyncio.sleep(0.02)
        self._spawn("intake", parts.intake_list.run(_COMPARE_SECONDS))
        self._spawn("assumed", parts.assumed_pods.run(_ASSUMED_CHECK_SECONDS))
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await parts.intake_list.complete.wait()
        self._spawn("kopf", KopfModel(self.api, parts).run())
        self._spawn("scheduler", parts.scheduler.run())

    def _spawn(self, name, work) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task) -> None:
        if not task.cancelled():
            self.failed = self.failed or task.exception() or RuntimeError(f"{task.get_name()} ended")

    async def stop(self) -> None:
        """End as on SIGTERM: no decisions any more, and binds under way are finished."""
        self.parts.scheduler.stop()
        await self.parts.scheduler.dispatcher.drain(binds_seconds=7.0, calls_seconds=2.0)
        await self.kill()

    async def kill(self) -> None:
        """End as on SIGKILL: whatever is under way stays as far as it came."""
        await cancel_all()
        self.api.sender_died()
