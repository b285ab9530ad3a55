"""Finds what the intake missed: pods that vanished while it was not watching, and pods it never told of."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlencode

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod
from bayplan.api.pod_answer import read_pod
from bayplan.api.watch_event import UNREADABLE
from bayplan.api.watch_source import ListMeta
from bayplan.scheduler.api_calls import pod_path

logger = logging.getLogger(__name__)

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 1000


class _Item(msgspec.Struct, gc=False):
    metadata: ObjectMeta


class _List(msgspec.Struct, gc=False):
    metadata: ListMeta
    items: list[_Item] | msgspec.UnsetType | None = msgspec.UNSET


_list_decoder = msgspec.json.Decoder(_List)


class IntakeResync:
    """Compares the queue with a metadata-only list of the pending pods and repairs the difference.

    kopf never reports what vanished between two of its watches, so without this a pod deleted in a gap would be tried
    for ever. `selectors` together find the pending pods of our profiles and no others. `queued` gives the UIDs held,
    `gone` drops one, `changed` takes a pod, `known` says whether a pod is accounted for anywhere.
    """

    def __init__(
        self,
        client: ApiClient,
        selectors: Collection[str],
        *,
        queued: Callable[[], Collection[str]],
        known: Callable[[str], bool],
        gone: Callable[[str], None],
        changed: Callable[[Pod], None],
    ) -> None:
        self._client = client
        self._selectors = selectors
        self._queued = queued
        self._known = known
        self._gone = gone
        self._changed = changed
        self._missing: set[str] = set()

    async def run(self, period_seconds: float) -> None:
        """Resync for ever, with a pause of `period_seconds` between."""
        while True:
            await asyncio.sleep(period_seconds)
            await self.once()

    async def once(self) -> None:
        """Compare once; an API server that does not answer leaves everything as it is."""
        before = set(self._queued())
        listed = await self._pending()
        if listed is None:
            return
        ghosts = before - listed.keys()
        for uid in ghosts:
            self._gone(uid)
        if ghosts:
            logger.info("pods that are no longer pending left the queue pods=%d", len(ghosts))
        unknown = self._unknown(listed)
        # Once may be a matter of timing; twice means the intake did not tell.
        for uid in unknown & self._missing:
            await self._fetch(listed[uid])
        self._missing = unknown

    def _unknown(self, listed: Mapping[str, ObjectMeta]) -> set[str]:
        # A pod that is being deleted is skipped by the scheduler: nobody holds it, and nothing is amiss.
        return {uid for uid, meta in listed.items() if not meta.deletion_timestamp and not self._known(uid)}

    async def _pending(self) -> dict[str, ObjectMeta] | None:
        """All pending pods of our profiles by UID; None if the API server does not answer."""
        listed: dict[str, ObjectMeta] = {}
        for selector in self._selectors:
            found = await self._list(selector)
            if found is None:
                return None
            listed |= found
        return listed

    async def _list(self, selector: str) -> dict[str, ObjectMeta] | None:
        found: dict[str, ObjectMeta] = {}
        token = ""
        while True:
            query = {"fieldSelector": selector, "limit": str(_PAGE)} | ({"continue": token} if token else {})
            try:
                response = await self._client.request(
                    "GET", f"/api/v1/pods?{urlencode(query)}", accept=_METADATA_ONLY, timeout_seconds=30.0
                )
                page = _list_decoder.decode(response.body) if response.status == 200 else None
            except (AmbiguousError, UnreachableError, *UNREADABLE):
                page = None
            if page is None or page.items is msgspec.UNSET:
                return None
            found.update((item.metadata.uid, item.metadata) for item in page.items or ())
            token = page.metadata.continue_
            if not token:
                return found

    async def _fetch(self, metadata: ObjectMeta) -> None:
        try:
            response = await self._client.request("GET", pod_path(metadata.namespace, metadata.name))
        except (AmbiguousError, UnreachableError, ValueError):
            return
        pod = read_pod(response.body) if response.status == 200 else None
        if pod is not None and pod.metadata.uid == metadata.uid:
            logger.info(
                "pod the watch did not tell of enters the queue pod=%r", f"{metadata.namespace}/{metadata.name}"
            )
            self._changed(pod)
