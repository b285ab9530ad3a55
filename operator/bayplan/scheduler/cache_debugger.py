"""Compares the cache with the API server's content when asked to (upstream: backend/cache/debugger/debugger.go)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from bayplan.api.backoff import in_slices
from bayplan.api.credentials import Credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.kinds import NODES, PODS, Resource, resource_of
from bayplan.api.watch_event import outline_of
from bayplan.api.watch_source import AnswerError, BrokenStreamError, WatchSource, list_pages
from bayplan.cache.cache import Cache
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.cache_comparison import (
    CacheComparison,
    Difference,
    Dump,
    ListedDump,
    ListError,
    compare_steps,
    dump_held,
    lasting,
)

logger = logging.getLogger(__name__)

_NOT_FOUND = 404
_TIMEOUT_SECONDS = 60.0
_PAUSE_SECONDS = 5.0
"""Longer than a watch takes."""


@dataclass(eq=False)
class CacheDebugger:
    """Compares cache, queue and listers with lists of everything they are made of.

    It costs nothing until `compare` is called. Then everything is listed page by page and compared; where something
    differs, that is done again after a pause, and only what still differs counts. A second caller gets the answer of
    the comparison under way. `profiles` are the names of our schedulers, `on_compared` receives the counts by kind. The
    scheduling loop gets its turn every ten milliseconds meanwhile.
    """

    credentials: Credentials
    cache: Cache
    queue: SchedulingQueue
    profiles: Collection[str]
    on_compared: Callable[[Mapping[str, int]], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _running: asyncio.Task[CacheComparison] | None = field(default=None, init=False)

    async def compare(self) -> CacheComparison:
        """List everything, twice if need be, and return what differs from it.

        Raises:
            ListError: a kind could not be listed.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._compare(), name="cache comparison")
        return await asyncio.shield(self._running)

    async def _compare(self) -> CacheComparison:
        listed, differences = await self._look()
        if differences:
            await self.sleep(_PAUSE_SECONDS)
            listed, again = await self._look()
            differences = lasting(differences, again)
        found = CacheComparison(differences, listed.sizes())
        self.on_compared(found.counts)
        if differences:
            logger.warning("cache differs from the API server's content differences=%s", found.counts)
        return found

    async def _look(self) -> tuple[ListedDump, list[Difference]]:
        listed, held = ListedDump(self.profiles), Dump()
        await self._list(PODS, listed, listed.add_pod)
        await self._list(NODES, listed, listed.add_node)
        for kind in self.cache.listers.wanted():
            await self._list_looked_up(resource_of(kind), listed)
        await in_slices(dump_held(held, self.cache, self.queue), lambda _: None)
        found: list[Difference | None] = []
        await in_slices(compare_steps(held, listed), found.append)
        return listed, [each for each in found if each is not None]

    async def _list_looked_up(self, resource: Resource, listed: ListedDump) -> None:
        listed.of(resource.plural)
        try:
            await self._list(resource, listed, lambda obj: listed.add(resource.plural, obj))
        except _NotServedError:
            # What is known of a kind that is served no more stays, as with the watch.
            del listed.facts[resource.plural]
            kept = self.cache.listers.of(resource.type).objects
            listed.uncertain.update((resource.plural, key) for key in kept)

    async def _list(self, resource: Resource, listed: ListedDump, add: Callable[[Any], None]) -> None:
        decoder = msgspec.json.Decoder(resource.type)

        def take(raw: msgspec.Raw) -> None:
            try:
                add(decoder.decode(raw))
            except DECODE_ERRORS:
                identity = outline_of(raw).metadata
                listed.unreadable(resource.plural, identity.key, identity.uid)

        source = WatchSource(
            self.credentials, resource.path, list_timeout=_TIMEOUT_SECONDS, inactivity=_TIMEOUT_SECONDS
        )
        try:
            async for _, page in list_pages(source.page):
                await in_slices(page.items or (), take)
        except AnswerError as error:
            if error.status == _NOT_FOUND:
                raise _NotServedError(f"{resource.plural}: {error}") from error
            raise ListError(f"{resource.plural}: {error}") from error
        except (BrokenStreamError, CredentialsError, aiohttp.ClientError, OSError) as error:
            raise ListError(f"{resource.plural}: {error}") from error
        finally:
            await source.close()


class _NotServedError(ListError):
    """The API server knows no such kind."""
