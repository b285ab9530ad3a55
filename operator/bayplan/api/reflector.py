"""A live copy of one resource, exact after every gap."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec

from bayplan.api.credentials import Credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.object_store import Handler, ObjectStore, T
from bayplan.api.watch_event import UNREADABLE, outline_of, raw_event_decoder
from bayplan.api.watch_source import AnswerError, BrokenStreamError, WatchSource

Item = TypeVar("Item")

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.010

GONE = 410
# After so many answered refusals in a row the resource version itself is suspect: list again.
RELIST_AFTER_REFUSALS = 5
# A watch that lived so long was healthy: what ends it is a new trouble, not the old one.
STEADY_SECONDS = 5.0
MAX_RETRY_AFTER_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The reflector's patience, in seconds; the defaults are client-go's (tools/cache/reflector.go)."""

    first_delay: float = 0.8
    longest_delay: float = 30.0
    watch_lifetime: tuple[int, int] = (300, 600)
    # Bookmarks come about every 60 s, so a silence of 75 s is a dead connection.
    inactivity: float = 75.0
    list_timeout: float = 60.0
    slice: float = SLICE_SECONDS


class Reflector(Generic[T]):
    """Keeps a handler's view of one resource equal to the server's, for ever.

    Relied on by the cluster cache and the queue. Every list replaces what was known: what vanished in a gap is
    deleted. The first list and those after a gap are consistent reads. Whatever fails is tried again with back-off;
    only cancellation ends `run`. An object that cannot be decoded is reported once per version and skipped, the
    others go on; its last readable version stays (`keep_undecodable`, for pods: what they use stays used) or is
    deleted (for nodes: nothing is placed on outdated facts).

    `objects` is the store itself, by "namespace/name" or name: read it, do not change it. `refused_with` is the HTTP
    status of the server's last refusal, 0 once it answered again. `on_refused` receives the status and the reason of a
    refusal that differs from the one before; where it returns True it reported it, and repeats are not logged here.
    `name` tells it from others in the log, by default `path`.
    """

    def __init__(
        self,
        credentials: Credentials,
        path: str,
        object_type: type[T],
        *,
        handler: Handler[T],
        name: str = "",
        field_selector: str = "",
        page_size: int = 500,
        keep_undecodable: bool = True,
        on_undecodable: Callable[[str, str], None] | None = None,
        on_refused: Callable[[int, str], bool] | None = None,
        timing: Timing | None = None,
        open_source: Callable[..., WatchSource] = WatchSource,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.path = path
        self._name = name or path
        self.synced = False
        self.relists_total = 0
        self.refused_with = 0
        self._on_refused = on_refused
        self._reported = False
        self._timing = timing or Timing()
        self._handler = handler
        self._store: ObjectStore[T] = ObjectStore(
            handler, on_undecodable=on_undecodable or self._log_undecodable, keep_undecodable=keep_undecodable
        )
        self.objects = self._store.objects
        self._source = open_source(
            credentials, path, list_timeout=self._timing.list_timeout, inactivity=self._timing.inactivity
        )
        self._selector = {"fieldSelector": field_selector} if field_selector else {}
        self._page_size = page_size
        event_type = msgspec.defstruct("Event", [("type", str), ("object", object_type)])
        self._event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event_type)
        self._object_decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(object_type)
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._resource_version = ""
        self._failures = 0
        self._last_event = -math.inf
        self._watch_opened: float | None = None
        self._received = False

    def last_event_age(self, now: float) -> float:
        """Return the seconds from the last list, event or bookmark to `now` (monotonic); infinite before any."""
        return now - self._last_event

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                delay = await self._round()
                if delay > 0.0:
                    await self._sleep(delay)
        finally:
            await self._source.close()

    async def _round(self) -> float:
        """List if need be and watch until something ends it; return the seconds to wait before the next round."""
        self._watch_opened, self._received = None, False
        try:
            if not self._resource_version:
                await self._list()
            await self._watch()
        except AnswerError as error:
            return self._after_refusal(error)
        except (BrokenStreamError, CredentialsError, aiohttp.ClientError, OSError) as error:
            # TimeoutError, too, is an OSError: silence beyond the limit.
            refused = isinstance(error, BrokenStreamError)
            return self._after_failure(f"{type(error).__name__}: {error}", relist=refused and self._is_stuck())
        except Exception:
            logger.exception("reflector failed, listing again watch=%s", self._name)
            return self._after_failure("unexpected error", relist=True)
        if self._was_steady():
            self._failures = 0
            return 0.0
        return self._after_failure("the server ended the watch at once", relist=self._is_stuck())

    def _after_refusal(self, error: AnswerError) -> float:
        if error.status != self.refused_with:
            self.refused_with = error.status
            self._reported = self._on_refused is not None and self._on_refused(error.status, str(error))
        gone = error.status == GONE
        # An expired version is the normal end of a long gap: the first list after it need not wait.
        at_once = gone and (self._failures == 0 or self._was_steady())
        level = logging.DEBUG if self._reported else logging.WARNING
        delay = self._after_failure(f"answer {error}", relist=gone or self._is_stuck(), level=level)
        if at_once:
            return 0.0
        return max(delay, min(error.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))

    def _after_failure(self, reason: str, *, relist: bool, level: int = logging.WARNING) -> float:
        if self._was_steady():
            self._failures = 0
        if relist:
            self._resource_version = ""
        # 2**16 is far past the longest delay and keeps the power small.
        doubled = self._timing.first_delay * 2.0 ** min(self._failures, 16)
        self._failures += 1
        delay = min(doubled * self._rng.uniform(1.0, 2.0), self._timing.longest_delay)
        logger.log(
            level,
            "watch interrupted watch=%s relist=%s failures=%d reason=%r",
            self._name,
            relist,
            self._failures,
            reason,
        )
        return delay

    def _was_steady(self) -> bool:
        opened = self._watch_opened
        return opened is not None and (self._received or self._clock() - opened >= STEADY_SECONDS)

    def _is_stuck(self) -> bool:
        return self._failures >= RELIST_AFTER_REFUSALS and not self._was_steady()

    async def _list(self) -> None:
        started = self._clock()
        present: set[str] = set()
        query = {**self._selector, "limit": str(self._page_size)}
        restarts = 0
        while True:
            try:
                page = await self._source.page(query)
            except AnswerError as error:
                if error.status != GONE or "continue" not in query:
                    raise
                # The list outlived its snapshot: from the start again, and at last in one piece.
                restarts += 1
                present.clear()
                query = {**self._selector} | ({"limit": str(self._page_size)} if restarts < 2 else {})
                continue
            await self._in_slices(page.items or [], lambda raw: present.add(self._put_raw(raw)))
            if not page.metadata.continue_:
                break
            if page.metadata.continue_ == query.get("continue"):
                raise BrokenStreamError("the list repeats its continue token")
            query["continue"] = page.metadata.continue_
        await self._in_slices(self._store.keys_outside(present), self._store.remove)
        self._resource_version = page.metadata.resource_version
        self._last_event = self._clock()
        self.refused_with = 0
        self.relists_total += self.synced
        logger.info(
            "listed watch=%s objects=%d seconds=%.3f", self._name, len(self.objects), self._last_event - started
        )
        if not self.synced:
            self.synced = True
            self._handler.on_synced()

    async def _in_slices(self, items: list[Any], act: Callable[[Any], None]) -> None:
        await in_slices(items, act, seconds=self._timing.slice, clock=self._clock)

    async def _watch(self) -> None:
        query = {
            **self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(self._rng.randint(*self._timing.watch_lifetime)),
        }
        async with aclosing(self._source.watch(query)) as batches:
            async for lines in batches:
                if self._watch_opened is None:
                    self._watch_opened = self._clock()
                    self.refused_with = 0
                await self._in_slices(lines, self._apply)

    def _apply(self, line: bytes) -> None:
        try:
            event = self._event_decoder.decode(line)
        except UNREADABLE:
            self._apply_raw(line)
            return
        obj: T = event.object
        meta = obj.metadata
        kind = event.type
        if kind not in {"ADDED", "MODIFIED", "DELETED"} or not meta.resource_version:
            self._apply_raw(line)
            return
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        if kind == "DELETED":
            self._store.remove(key, meta.uid)
        else:
            self._store.put(key, obj)
        self._advance(meta.resource_version)

    def _apply_raw(self, line: bytes) -> None:
        """Take an event that is no ordinary one: a bookmark, an error, or an object that does not decode."""
        try:
            event = raw_event_decoder.decode(line)
        except UNREADABLE as error:
            raise BrokenStreamError(f"the event is not readable: {error}") from error
        outline = outline_of(event.object)
        if event.type == "ERROR":
            raise AnswerError(outline.code or 500, f"{outline.reason}: {outline.message}")
        identity = outline.metadata
        if event.type == "DELETED":
            self._store.remove(identity.key, identity.uid)
        elif event.type in {"ADDED", "MODIFIED"}:
            self._put_raw(event.object)
        if identity.resource_version:
            self._advance(identity.resource_version)

    def _put_raw(self, raw: msgspec.Raw) -> str:
        """Store an object that is still JSON and return its key."""
        try:
            obj = self._object_decoder.decode(raw)
        except UNREADABLE as error:
            reason = str(error)
        else:
            meta = obj.metadata
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            self._store.put(key, obj)
            return key
        identity = outline_of(raw).metadata
        self._store.put_undecodable(identity.key, identity.uid, identity.resource_version, reason)
        return identity.key

    def _advance(self, resource_version: str) -> None:
        self._resource_version = resource_version
        self._last_event = self._clock()
        self._received = True

    def _log_undecodable(self, key: str, error: str) -> None:
        logger.warning("object skipped, it cannot be decoded watch=%s object=%r reason=%r", self._name, key, error)


async def in_slices(
    items: Iterable[Item],
    act: Callable[[Item], None],
    *,
    seconds: float = SLICE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Act on each item in order, giving way to the rest of the program every `seconds`."""
    until = clock() + seconds
    for item in items:
        act(item)
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + seconds
