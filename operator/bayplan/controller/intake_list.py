"""Lists the pending pods: all of them to fill the queue, and their metadata to find what kopf did not tell."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

import aiohttp
import msgspec

from bayplan.api.backoff import Backoff, ServerContact, in_slices, is_away
from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.meta_objects import ObjectMeta, key_of
from bayplan.api.objects import Pod
from bayplan.api.watch_event import outline_of, read_pod
from bayplan.api.watch_source import PAGE_SIZE, AnswerError, BrokenStreamError, VersionHistory, WatchSource, list_pages
from bayplan.controller.operator_thread import field_selector
from bayplan.logs.formats import V4
from bayplan.scheduler.binder import fetch_pod
from bayplan.scheduler.pending_pods import PendingPodEvents

logger = logging.getLogger(__name__)

_WHOLE = "application/json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
LIST_SECONDS = 30.0
_NO_ANSWER = (CredentialsError, aiohttp.ClientError, OSError)
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_AFTER_REFUSAL_SECONDS = 15.0
# After so many failed lists in a row, which take at least some twenty seconds, the queue may be out of date.
_STALE_AFTER_FAILURES = 8


class _Item(msgspec.Struct, gc=False):
    metadata: ObjectMeta


_item_decoder = msgspec.json.Decoder(_Item)


@dataclass(eq=False)
class IntakeList:
    """Keeps the queue equal to the pending pods of our profiles where kopf's watch cannot.

    kopf makes an event of each listed pod, at thirty times what it costs to read the pod, so the queue is filled from a
    list of our own, and scheduling starts with all pods in order of priority. kopf never reports what vanished between
    two of its watches, so what is queued is compared with a list of metadata once in a while: a pod deleted in such a
    gap would be tried for ever.
    """

    client: ApiClient
    open_source: Callable[[], WatchSource]
    """Gives a way to the API server's pods, for one list."""
    scheduler_names: Collection[str]
    pending: PendingPodEvents
    page_size: int = PAGE_SIZE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    on_went_back: Callable[[], None] = lambda: None
    """Called when a list is older than the one before: etcd was restored from a backup."""
    contact: ServerContact | None = None
    """Knows of outages of the API server, which are then not told here at each try."""
    backoff: Backoff = field(
        default_factory=lambda: Backoff(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_AFTER_REFUSAL_SECONDS)
    )
    complete: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set once the queue was filled from a whole list."""
    _history: VersionHistory = field(default_factory=VersionHistory, init=False)
    _asked: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _fill_asked: bool = field(default=False, init=False)
    _away: bool = field(default=False, init=False)
    _missing: set[str] = field(default_factory=set, init=False)

    def problem(self) -> str | None:
        """Why it is not known what waits, in constant words; None if it is."""
        if not self.complete.is_set():
            return "pending pods are not listed yet"
        return "pending pods cannot be listed" if self.backoff.failures >= _STALE_AFTER_FAILURES else None

    def ask_for_fill(self) -> None:
        """Have the queue filled again: a watch began anew."""
        self._fill_asked = True
        self._asked.set()

    def ask_for_comparison(self) -> None:
        """Have the queue compared now: the API server was away, or a watch had a gap."""
        self._asked.set()

    async def run(self, period_seconds: float) -> None:
        """Fill the queue now and whenever that is asked for, and compare it every `period_seconds`; for ever."""
        self._fill_asked = True
        while True:
            self._asked.clear()
            while not await (self.fill() if self._fill_asked else self.compare()):
                await self.sleep(self.backoff.failed(away=self._away))
            self.backoff.worked()
            with suppress(TimeoutError):
                async with asyncio.timeout(period_seconds):
                    await self._asked.wait()

    async def fill(self) -> bool:
        """Take every pending pod, and drop what is queued and no longer pending; False if there was no answer.

        Pods enter in order of creation, as if the queue had been there then. Of the same second, and so of equal age
        to the API server, they keep the order in which it lists, by namespace and name, whatever their profiles.
        A pod that cannot be read is left to kopf's event of it, which reports it.
        """
        self._fill_asked = False
        before = self.pending.uids()
        listed: set[str] = set()
        pods: list[Pod] = []

        def read(raw: msgspec.Raw) -> None:
            pod = read_pod(raw)
            if pod is None:
                listed.add(outline_of(raw).metadata.uid)
            else:
                listed.add(pod.metadata.uid)
                pods.append(pod)

        if not await self._each_item(_WHOLE, read):
            self._fill_asked = True
            return False
        await in_slices(sorted(pods, key=_age), self._take)
        self._drop(before - listed)
        self.complete.set()
        return True

    async def compare(self) -> bool:
        """Repair differences between queue and cluster; False if there was no answer, which leaves all as it is."""
        before = self.pending.uids()
        listed: dict[str, ObjectMeta] = {}

        def take(raw: msgspec.Raw) -> None:
            metadata = _item_decoder.decode(raw).metadata
            listed[metadata.uid] = metadata

        if not await self._each_item(_METADATA_ONLY, take):
            return False
        self._drop(before - listed.keys())
        # A pod that is being deleted is skipped by the scheduler: nobody holds it, and nothing is amiss.
        unknown = {
            uid
            for uid, meta in listed.items()
            if not meta.deletion_timestamp and not self.pending.accounts_for(uid, meta.resource_version)
        }
        # Once may be a matter of timing; twice means that kopf did not tell.
        for uid in unknown & self._missing:
            await self._fetch(listed[uid])
        self._missing = unknown
        return True

    def _drop(self, ghosts: Collection[str]) -> None:
        for uid in ghosts:
            self.pending.gone(uid)
        if ghosts:
            logger.info("pods that are no longer pending left the queue pods=%d", len(ghosts))

    async def _each_item(self, accept: str, take: Callable[[msgspec.Raw], None]) -> bool:
        """Pass each pending pod of our profiles to `take`; False if the API server does not answer with all of them."""
        source = self.open_source()
        try:
            for name in sorted(self.scheduler_names):
                ask = partial(source.page, accept=accept)
                query = {"fieldSelector": field_selector({name})}
                async for is_first, page in list_pages(ask, query, page_size=self.page_size):
                    # All pages have the version of the first.
                    if is_first and self._history.went_back(page.metadata.resource_version):
                        self.on_went_back()
                    await in_slices(page.items or (), take)
        except (*_NO_ANSWER, AnswerError, BrokenStreamError, *DECODE_ERRORS) as error:
            level = self._level_of(error, reason := f"{type(error).__name__}: {error}")
            logger.log(level, "pending pods not listed, trying again later reason=%s", reason)
            return False
        finally:
            await source.close()
        if self.contact is not None:
            self.contact.answered()
        return True

    def _level_of(self, error: Exception, reason: str) -> int:
        """Note whether the API server is away; returns the level at which it is told that there is no list.

        Quiet in an outage, which is told once, and while a server that came back may not have read the roles yet.
        """
        is_silent = isinstance(error, _NO_ANSWER)
        status = error.status if isinstance(error, AnswerError) else 0
        self._away = is_silent or is_away(status)
        if self.contact is None:
            return logging.WARNING
        if status == HTTPStatus.UNAUTHORIZED:
            return self.contact.unknown(str(error))
        if is_silent:
            self.contact.failed(reason)
        elif not self._away:
            self.contact.answered()
        is_early = status == HTTPStatus.FORBIDDEN and self.contact.has_unread_roles()
        return V4 if is_early or (self._away and self.contact.is_lost) else logging.WARNING

    async def _fetch(self, metadata: ObjectMeta) -> None:
        _, pod = await fetch_pod(self.client, metadata.namespace, metadata.name)
        if pod is not None and pod.metadata.uid == metadata.uid:
            self._take(pod)
            if metadata.uid in self.pending.uids():
                logger.info("pod the watch did not tell of enters the queue pod=%r", key_of(metadata))

    def _take(self, pod: Pod) -> None:
        try:
            self.pending.changed(pod)
        except Exception:
            # One pod that breaks its taker must not keep the others out.
            logger.exception("a pod was not taken pod=%r", key_of(pod.metadata))


def _age(pod: Pod) -> tuple[str, str]:
    """Sort as `fill` takes pods; times from an API server are all in one form, so their texts have their order."""
    return pod.metadata.creation_timestamp or "~", key_of(pod.metadata)
