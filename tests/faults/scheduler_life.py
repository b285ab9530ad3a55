"""One life of a scheduler on the API server in memory: from its start to its end, or to its death."""

import asyncio
import functools
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain, repeat

import aiohttp
from tests.faults.memory_api import PODS, MemoryApi
from tests.faults.memory_transport import MemorySource, client_for, source_for
from tests.faults.virtual_time import cancel_all

from bayplan.api.credentials import Credentials
from bayplan.api.reflector import Reflector
from bayplan.api.watch_event import pod_event
from bayplan.api.watch_source import AnswerError, BrokenStreamError
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.build import Parts, build
from bayplan.controller.operator_thread import field_selector

CREDENTIALS = Credentials(server="http://memory")
"""Nobody looks at them; one for all lives, as making a TLS context takes long."""
_PROFILES = {"bayplan"}
_PATIENCE = (0.5, 1.0, 2.0, 3.0)
_FIRST_LIST_SECONDS = 10.0
_COMPARE_SECONDS = 60.0
_ASSUMED_CHECK_SECONDS = 15.0


class KopfModel:
    """What reaches us of kopf: that it begins to watch, the events of that, and nothing of what happened before.

    kopf lists again on 410 by itself, and asks again where it gets no answer. On any other refusal or broken watch it
    ends, and `OperatorThread` starts it again after a pause, or as soon as the API server is known to be back.
    """

    def __init__(self, api: MemoryApi, parts: Parts) -> None:
        self._source = MemorySource(api, PODS, inactivity=70.0)
        self._operator = parts.operator
        self._query = {"fieldSelector": field_selector(_PROFILES)}
        self._back = asyncio.Event()
        self._operator.end_pause = self._back.set  # where the operator would wait
        self._operator.restart = self._back.set

    async def run(self) -> None:
        pause = 1.0
        while True:
            with suppress(AnswerError, BrokenStreamError):
                await self._operate()
            self._back.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._back.wait()
            pause = 1.0 if self._back.is_set() else min(pause * 2, 30.0)

    async def _operate(self) -> None:
        version = ""
        while True:
            if not version:
                version = await self._patiently(self._list)
            version = await self._patiently(functools.partial(self._watch, version))

    async def _patiently(self, ask: Callable[[], Awaitable[str]]) -> str:
        for pause in chain(_PATIENCE, repeat(_PATIENCE[-1])):
            try:
                return await ask()
            except AnswerError as error:
                if error.status < 500 and error.status != 429:
                    raise
            except (aiohttp.ClientError, OSError):
                pass
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _list(self) -> str:
        page = await self._source.page({"fieldSelector": f"{field_selector(_PROFILES)},status.phase=Succeeded"})
        self._operator.on_list()
        return page.metadata.resource_version

    async def _watch(self, version: str) -> str:
        """Watch until the stream ends; the version to go on from, "" where that is gone."""
        query = {**self._query, "watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
        try:
            async for lines in self._source.watch(query):
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR" and event["object"]["code"] == 410:
                        return ""
                    if event["type"] == "ERROR":
                        raise BrokenStreamError(f"{event['object']['code']} in the stream")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._operator.take(pod_event(event))
        except (TimeoutError, aiohttp.ClientPayloadError):
            # What was read is known.
            await asyncio.sleep(_PATIENCE[0])
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
            open_source=source_for(api),
        )
        self._tasks = [asyncio.create_task(self._run(), name="life")]
        self.failed: BaseException | None = None

    async def _run(self) -> None:
        parts = self.parts
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
