"""Looks up pods that stay assumed: those that ended before any watch showed them on their node, or were never bound."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.api.client import ApiClient
from bayplan.api.objects import Pod
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.binder import fetch_pod
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler

logger = logging.getLogger(__name__)

LONGEST_BIND_SECONDS = 180.0
"""Longer than any bind: five posts of ten seconds, their pauses, and the minute in which the last may take effect."""


@dataclass(eq=False)
class AssumedPods:
    """Asks about pods that stay assumed, so that none takes room for ever.

    A pod that was bound, ran and ended while the watch of pods on nodes had a gap is in no later list: nothing would
    ever take it off its node. One that was never bound after all, by an error or because the API server's data went
    back, would be nobody's. `remove` takes those that are gone off their node. Those that the API server has shown
    without a node for longer than a bind can take, so that none can land any more, are tried again. Pods that still run
    are left alone: the watch will show them. So are those whose bind is under way, which looks after them. `clock` is
    in seconds and never goes back.
    """

    client: ApiClient
    cache: Cache
    scheduler: Scheduler
    pending: PendingPodEvents
    remove: Callable[[Pod], None]
    clock: Callable[[], float] = time.monotonic
    _seen: set[str] = field(default_factory=set, init=False)
    _unbound_since: dict[str, float] = field(default_factory=dict, init=False)

    async def run(self, period_seconds: float) -> None:
        """Check for ever, with a pause of `period_seconds` between."""
        while True:
            await asyncio.sleep(period_seconds)
            await self.once()

    async def once(self) -> None:
        """Ask about each pod that was assumed the last time already; no answer leaves a pod as it is."""
        assumed = {pod.uid: pod for pod in self.cache.assumed_pods() if not self.scheduler.is_binding(pod.uid)}
        for uid in assumed.keys() & self._seen:
            pod = assumed[uid]
            status, found = await fetch_pod(self.client, pod.namespace, pod.name)
            if self.cache.is_assumed(uid) and not self.scheduler.is_binding(uid):
                self._compare(pod, status, found)
        self._seen = set(assumed)
        self._unbound_since = {uid: at for uid, at in self._unbound_since.items() if uid in assumed}

    def _compare(self, pod: PodInfo, status: int, found: Pod | None) -> None:
        """Act on what the API server shows of an assumed pod."""
        if found is None or found.metadata.uid in {"", pod.uid}:
            over = status == 404 or (found is not None and is_finished(found))
        else:
            over = True  # Another pod has its name.
        if over:
            logger.info("pod ended before the watch showed it bound pod=%r", pod.key)
            self.remove(pod.pod)
        elif found is not None and found.metadata.uid and not found.spec.node_name:
            since = self._unbound_since.setdefault(pod.uid, self.clock())
            if self.clock() - since >= LONGEST_BIND_SECONDS:
                logger.warning("pod is not bound although it was assumed to be, and is tried again pod=%r", pod.key)
                self.scheduler.never_bound(PodInfo(found))
                self.pending.changed(found)
        elif found is not None:
            self._unbound_since.pop(pod.uid, None)
