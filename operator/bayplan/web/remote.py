"""A running scheduler as a source of the page: each question is passed on, with the rights of who asks."""

import asyncio
import time
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.client.errors import ClientError, RefusedError
from bayplan.client.scheduler_client import Answer, SchedulerClient
from bayplan.web.updates import Updates

SECONDS_BETWEEN: Final = 2.0
"""How long after an answer the scheduler is asked again."""

_encode = msgspec.json.encode


class RemoteSource:
    """Passes the page's questions on to a scheduler, and what it refuses back; its methods are those of `Inspector`."""

    def __init__(self, client: SchedulerClient, *, seconds_between: float = SECONDS_BETWEEN) -> None:
        self._client = client
        self._seconds_between = seconds_between

    @property
    def page(self) -> dict[str, Any]:
        """What the page says it shows."""
        return {"mode": "live", "title": self._client.url, "skipped": 0}

    async def run(self, updates: Updates) -> None:
        """Ask for what is new, again and again, until cancelled."""
        while True:
            await updates.refresh(round(time.time(), 1), running=True)
            await asyncio.sleep(self._seconds_between)

    async def summary(self) -> bytes:
        """Who schedules, by what, and how it stands."""
        return await _passed_on(self._client.summary())

    async def nodes(self) -> bytes:
        """All nodes, column by column."""
        return await _passed_on(self._client.nodes())

    async def node(self, name: str) -> bytes:
        """One node and its pods."""
        return await _passed_on(self._client.node(name))

    async def queue_page(self, start: int, limit: int) -> bytes:
        """Some of the pods that wait."""
        return await _passed_on(self._client.queue(limit=limit, continue_=str(start) if start else ""))

    async def decisions(self, after: int, limit: int) -> bytes:
        """Some of the last decisions."""
        return await _passed_on(self._client.decisions(after=after, limit=limit))

    async def explanation(self, namespace: str, name: str) -> bytes:
        """Why a pod is where it is, or nowhere."""
        return await _passed_on(self._client.explanation(namespace, name))

    async def simulation(self, body: bytes, count: str) -> bytes:
        """What would come of pods."""
        return await _passed_on(self._client.simulate(body, count=count))


async def _passed_on(question: Awaitable[Answer]) -> bytes:
    try:
        return _encode(await question)
    except RefusedError as error:
        raise RefusedQuestionError(HTTPStatus(error.status), str(error)) from error
    except ClientError as error:
        raise RefusedQuestionError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
