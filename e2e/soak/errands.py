"""Writes to the API server while it may be away: each is tried, none is waited for."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from bayplan.api.errors import AmbiguousError, UnreachableError
from e2e.controlplane.client import Object

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
NO_ANSWER = 0
_AT_ONCE = 256
_TIMEOUT_SECONDS = 30.0


class Errands:
    """Sends requests in tasks of their own, at most one for each key at a time.

    `answers` counts what came back by status, NO_ANSWER where nobody knows, and `skipped` what was not begun because
    too many were under way: then the machine is too slow for what the soak asks of it.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.answers: Counter[int] = Counter()
        self.skipped = 0
        self._client = ApiClient(load_credentials(kubeconfig))
        self._busy: dict[str, asyncio.Future[None]] = {}
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        left = list(self._busy.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._client.close()

    def start(self, key: str, errand: Callable[[], Awaitable[None]]) -> bool:
        """Begins an errand unless one of this key is under way, or too many are; tells whether it did."""
        if key in self._busy:
            return False
        if len(self._busy) >= _AT_ONCE:
            self.skipped += 1
            return False
        task = asyncio.ensure_future(errand())
        task.add_done_callback(partial(self._ended, key))
        self._busy[key] = task
        return True

    def check(self) -> None:
        """Raises what ended an errand that should not have: the soak itself is wrong then."""
        if self._failure is not None:
            raise self._failure

    async def send(self, method: str, path: str, document: Object, content_type: str = "application/json") -> int:
        """Sends one request and returns the status, or NO_ANSWER if it may or may not have been acted on.

        Raises:
            UnreachableError: it was not sent.
        """
        body = json.dumps(document).encode()
        try:
            answer = await self._client.request(
                method, path, body=body, content_type=content_type, timeout_seconds=_TIMEOUT_SECONDS
            )
        except AmbiguousError:
            self.answers[NO_ANSWER] += 1
            return NO_ANSWER
        self.answers[answer.status] += 1
        return answer.status

    def _ended(self, key: str, task: asyncio.Future[None]) -> None:
        del self._busy[key]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, UnreachableError):
            self.answers[NO_ANSWER] += 1
        elif error is not None:
            self._failure = error
