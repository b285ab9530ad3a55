"""A live copy of one resource, exact after every gap."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Generic

import aiohttp

from bayplan.api.backoff import CLIENT_GO, Backoff, ServerContact, WatchTiming, in_slices, is_away
from bayplan.api.credentials import Credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.object_store import Handler, ObjectStore, T
from bayplan.api.watch_source import PAGE_SIZE, AnswerError, BrokenStreamError, VersionHistory, WatchSource, list_pages
from bayplan.logs.formats import V2

logger = logging.getLogger(__name__)

# After so many answered refusals in a row the resource version itself is suspect: list again.
RELIST_AFTER_REFUSALS = 5
# A watch that lived so long was healthy: what ends it is a new trouble, not the old one.
STEADY_SECONDS = 5.0
MAX_RETRY_AFTER_SECONDS = 120.0


@dataclass(eq=False, repr=False, kw_only=True)
class Reflector(Generic[T]):
    """Keeps a handler's view of one resource equal to the server's, for ever.

    Relied on by the cluster cache and the queue. Every list replaces what was known: what vanished in a gap is
    deleted. The first list and those after a gap are consistent reads. Whatever fails is tried again with back-off;
    only cancellation ends `run`. An object that cannot be decoded is reported once per version and skipped; its last
    readable version stays (`keep_undecodable`, for pods: what they use stays used) or is deleted (for nodes: nothing is
    placed on outdated facts).

    `objects` is the store itself, by "namespace/name" or name: read it, do not change it. `refused_with` is the HTTP
    status of the server's last refusal, 0 once it answered again. `on_refused` receives the status and the reason of
    each refusal, and the seconds since the first of those in a row, 0.0 for that; where it returns True it sees to it
    that people are told, and it is not logged here. `on_allowed` is called when the server answers again after
    refusals. `on_recovered` is called when the server watches again after it was away, and after each list but the
    first. `on_went_back` is called before that if the list is older than what was known: etcd was restored. Such a list
    is the truth, whatever versions its objects have. `contact` is told of the server's absence and return, and that it
    does not know who asks, which is then not logged here at each try. `shared` and `on_handled` are the store's.
    `on_applied` receives how many seconds after their arrival events were all handled. `name` tells it from others in
    the log, by default `path`.
    """

    credentials: Credentials = field(kw_only=False)
    path: str = field(kw_only=False)
    object_type: type[T] = field(kw_only=False)
    handler: Handler[T]
    name: str = ""
    field_selector: str = ""
    page_size: int = PAGE_SIZE
    keep_undecodable: bool = True
    shared: Callable[[T], T] = lambda obj: obj
    on_undecodable: Callable[[str, str], None] | None = None
    on_refused: Callable[[int, str, float], bool] = lambda status, reason, seconds: False
    on_allowed: Callable[[], None] = lambda: None
    on_recovered: Callable[[], None] = lambda: None
    on_went_back: Callable[[], None] = lambda: None
    on_applied: Callable[[float], None] = lambda seconds: None
    on_handled: Callable[[str, float], None] = lambda call, seconds: None
    contact: ServerContact | None = None
    timing: WatchTiming = CLIENT_GO
    open_source: Callable[..., WatchSource] = WatchSource
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)
    synced: bool = field(default=False, init=False)
    relists_total: int = field(default=0, init=False)
    refused_with: int = field(default=0, init=False)
    _history: VersionHistory = field(default_factory=VersionHistory, init=False)
    _anew: bool = field(default=False, init=False)
    _went_back: bool = field(default=False, init=False)
    _refused_at: float = field(default=0.0, init=False)
    _resource_version: str = field(default="", init=False)
    _refusals: int = field(default=0, init=False)
    _expired_at_once: bool = field(default=False, init=False)
    _last_event: float = field(default=-math.inf, init=False)
    _last_contact: float = field(default=-math.inf, init=False)
    _watch_opened: float | None = field(default=None, init=False)
    _received: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Know of no object yet."""
        self.name = self.name or self.path
        self._store: ObjectStore[T] = ObjectStore(
            self.object_type,
            self.handler,
            on_undecodable=self.on_undecodable or self._log_undecodable,
            keep_undecodable=self.keep_undecodable,
            shared=self.shared,
            on_handled=self.on_handled,
        )
        self.objects = self._store.objects
        limits = {"list_timeout": self.timing.list_timeout, "inactivity": self.timing.inactivity}
        self._source = self.open_source(self.credentials, self.path, **limits)
        self._selector = {"fieldSelector": self.field_selector} if self.field_selector else {}
        self._backoff = Backoff(self.timing.first_delay, rng=self.rng)

    def last_event_age(self, now: float) -> float:
        """Return the seconds from the last list, event or bookmark to `now` (monotonic); infinite before any."""
        return now - self._last_event

    def silence(self, now: float) -> float:
        """Return the seconds to `now` since the server last listed, opened the watch or sent anything on it."""
        return now - self._last_contact

    def relist(self) -> None:
        """Have everything listed anew as soon as possible, and report every object, known or not."""
        self._anew = True
        self._history.forget()
        self._source.interrupt()

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                delay = await self._round()
                if delay > 0.0:
                    await self.sleep(delay)
        finally:
            await self._source.close()

    async def _round(self) -> float:
        """List if need be and watch until something ends it; return the seconds to wait before the next round."""
        self._watch_opened, self._received = None, False
        try:
            if self._anew or not self._resource_version:
                await self._list()
            await self._watch()
        except AnswerError as error:
            return self._after_refusal(error)
        except BrokenStreamError as error:
            self._refusals += 1
            return self._after_failure(f"{type(error).__name__}: {error}", relist=self._is_stuck())
        except (CredentialsError, aiohttp.ClientError, OSError) as error:
            # TimeoutError, too, is an OSError: silence beyond the limit. That of a watch is ordinary where nothing
            # happens and the API server sends no bookmarks; if it is away, opening the next one fails.
            is_silence = isinstance(error, TimeoutError) and self._watch_opened is not None
            level = logging.DEBUG if is_silence else logging.WARNING
            return self._after_failure(f"{type(error).__name__}: {error}", relist=False, away=True, level=level)
        except Exception:
            logger.exception("reflector failed, listing again watch=%s", self.name)
            return self._after_failure("unexpected error", relist=True)
        if self._was_steady():
            self._worked()
            return 0.0
        self._refusals += 1
        return self._after_failure("the server ended the watch at once", relist=self._is_stuck())

    def _after_refusal(self, error: AnswerError) -> float:
        now = self.clock()
        if error.status != self.refused_with:
            self.refused_with, self._refused_at = error.status, now
        reported = self.on_refused(error.status, str(error), now - self._refused_at)
        self._refusals += 1
        gone = error.status == HTTPStatus.GONE
        # An expired version is the normal end of a long gap: the list after it need not wait, whatever failed before.
        # A version that has just been listed is another matter.
        at_once = gone and (self._was_steady() or not self._expired_at_once)
        level = logging.DEBUG if reported else V2 if at_once else logging.WARNING
        if error.status == HTTPStatus.UNAUTHORIZED and self.contact is not None:
            level = self.contact.unknown(str(error))
        delay = self._after_failure(
            f"answer {error}", relist=gone or self._is_stuck(), away=is_away(error.status), level=level
        )
        if gone:
            self._expired_at_once = True
        if at_once:
            return 0.0
        return max(delay, min(error.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))

    def _after_failure(self, reason: str, *, relist: bool, away: bool = False, level: int = logging.WARNING) -> float:
        if self._was_steady():
            self._worked()
        if not self._anew:
            self._history.seen(self._resource_version)
        if relist:
            self._resource_version = ""
        delay = self._backoff.failed(away=away)
        failures = self._backoff.failures
        if away and self.contact is not None:
            level = min(level, self.contact.interrupted(reason, failures, was_open=self._watch_opened is not None))
        text = "watch interrupted watch=%s relist=%s failures=%d reason=%r"
        logger.log(level, text, self.name, relist, failures, reason)
        return delay

    def _answered(self) -> None:
        if self.refused_with:
            self.refused_with = 0
            self.on_allowed()
        if self.contact is not None:
            self.contact.answered()

    def _worked(self) -> None:
        self._backoff.worked()
        self._refusals = 0
        self._expired_at_once = False

    def _was_steady(self) -> bool:
        opened = self._watch_opened
        return opened is not None and (self._received or self.clock() - opened >= STEADY_SECONDS)

    def _is_stuck(self) -> bool:
        return self._refusals > RELIST_AFTER_REFUSALS and not self._was_steady()

    async def _list(self) -> None:
        started = self.clock()
        present: set[str] = set()
        async for is_first, page in list_pages(self._source.page, self._selector, page_size=self.page_size, restarts=2):
            if is_first:
                present.clear()
                self._went_back |= self._history.went_back(page.metadata.resource_version)
                anew = self._anew or self._went_back
                self._store.trusts_versions = not anew
            await self._in_slices(page.items or [], lambda raw: present.add(self._store.put(raw)))
        await self._in_slices(self._store.keys_outside(present), self._store.remove)
        self._store.trusts_versions = True
        self._anew = self._anew and not anew
        self._resource_version = page.metadata.resource_version
        self._last_event = self._last_contact = self.clock()
        self._answered()
        self.relists_total += self.synced
        logger.info("listed watch=%s objects=%d seconds=%.3f", self.name, len(self.objects), self._last_event - started)
        if not self.synced:
            self.synced = True
            self.handler.on_synced()
            return
        if self._went_back:
            self.on_went_back()
        self._went_back = False
        self.on_recovered()

    async def _in_slices(self, items: list[Any], act: Callable[[Any], None]) -> None:
        await in_slices(items, act, seconds=self.timing.slice, clock=self.clock)

    async def _watch(self) -> None:
        query = {
            **self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(self.rng.randint(*self.timing.watch_lifetime)),
        }
        async with aclosing(self._source.watch(query)) as batches:
            async for lines in batches:
                self._last_contact = self.clock()
                if self._anew:
                    return
                if self._watch_opened is None:
                    self._watch_opened = self.clock()
                    self._answered()
                    if self._backoff.away:
                        self._backoff.worked()
                        self.on_recovered()
                await self._in_slices(lines, self._apply)
                self.on_applied(self.clock() - self._last_contact)

    def _apply(self, line: bytes) -> None:
        resource_version = self._store.take(line)
        if resource_version:
            self._resource_version = resource_version
            self._last_event = self.clock()
            self._received = True

    def _log_undecodable(self, key: str, error: str) -> None:
        logger.warning("object skipped, it cannot be decoded watch=%s object=%r reason=%r", self.name, key, error)
