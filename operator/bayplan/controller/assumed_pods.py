"""Finds pods that were bound and ended before any watch showed them on their node."""

import asyncio
import logging
from collections.abc import Callable, Collection

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.objects import Pod
from bayplan.api.watch_event import read_pod
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import pod_path

logger = logging.getLogger(__name__)


class AssumedPods:
    """Asks about pods that stay assumed, so that none takes room for ever.

    A pod that was bound, ran and ended while the watch of pods on nodes had a gap is in no later list: nothing would
    ever take it off its node. `assumed` gives the pods counted on the scheduler's word whose bind is over, `ended` is
    told of those that are gone. Pods that still run are left alone: the watch will show them.
    """

    def __init__(
        self, client: ApiClient, *, assumed: Callable[[], Collection[PodInfo]], ended: Callable[[Pod], None]
    ) -> None:
        self._client = client
        self._assumed = assumed
        self._ended = ended
        self._seen: set[str] = set()

    async def run(self, period_seconds: float) -> None:
        """Check for ever, with a pause of `period_seconds` between."""
        while True:
            await asyncio.sleep(period_seconds)
            await self.once()

    async def once(self) -> None:
        """Ask about each pod that was assumed the last time already; no answer leaves a pod as it is."""
        assumed = {pod.uid: pod for pod in self._assumed()}
        for uid in assumed.keys() & self._seen:
            if await self._has_ended(assumed[uid]) and uid in {pod.uid for pod in self._assumed()}:
                logger.info("pod ended before the watch showed it bound pod=%r", assumed[uid].key)
                self._ended(assumed[uid].pod)
        self._seen = set(assumed)

    async def _has_ended(self, pod: PodInfo) -> bool:
        try:
            response = await self._client.request("GET", pod_path(pod.namespace, pod.name))
        except (AmbiguousError, UnreachableError, ValueError):
            return False
        found = read_pod(response.body) if response.status == 200 else None
        if found is None:
            return response.status == 404
        return found.metadata.uid not in {"", pod.uid} or is_finished(found)
