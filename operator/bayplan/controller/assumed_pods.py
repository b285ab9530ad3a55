"""Finds pods that were bound and ended before any watch showed them on their node."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from bayplan.api.client import ApiClient
from bayplan.api.objects import Pod
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.binder import fetch_pod

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class AssumedPods:
    """Asks about pods that stay assumed, so that none takes room for ever.

    A pod that was bound, ran and ended while the watch of pods on nodes had a gap is in no later list: nothing would
    ever take it off its node. `assumed` gives the pods counted on the scheduler's word whose bind is over, `ended` is
    told of those that are gone. Pods that still run are left alone: the watch will show them.
    """

    client: ApiClient
    assumed: Callable[[], Collection[PodInfo]]
    ended: Callable[[Pod], None]
    _seen: set[str] = field(default_factory=set, init=False)

    async def run(self, period_seconds: float) -> None:
        """Check for ever, with a pause of `period_seconds` between."""
        while True:
            await asyncio.sleep(period_seconds)
            await self.once()

    async def once(self) -> None:
        """Ask about each pod that was assumed the last time already; no answer leaves a pod as it is."""
        assumed = {pod.uid: pod for pod in self.assumed()}
        for uid in assumed.keys() & self._seen:
            if await self._has_ended(assumed[uid]) and uid in {pod.uid for pod in self.assumed()}:
                logger.info("pod ended before the watch showed it bound pod=%r", assumed[uid].key)
                self.ended(assumed[uid].pod)
        self._seen = set(assumed)

    async def _has_ended(self, pod: PodInfo) -> bool:
        status, found = await fetch_pod(self.client, pod.namespace, pod.name)
        if found is None:
            return status == 404
        return found.metadata.uid not in {"", pod.uid} or is_finished(found)
