"""Writes on a pod why it is still pending and where it is nominated, no more often than that changes."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from weakref import WeakKeyDictionary

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import (
    ApiCall,
    WrittenCondition,
    condition_message,
    nomination_ended_call,
    pod_scheduled_call,
)

logger = logging.getLogger(__name__)

Patch = Callable[[str, ApiCall, Callable[[bool], None]], None]
"""`(uid, call, ended)`: sends a pod's patch and calls `ended` with whether it was done."""


class PodConditions:
    """Keeps PodScheduled=False and nominations up to date; the scheduling loop relies on it never raising.

    A pod may fail again before the watch shows what was written, so that is remembered with the version of the pod it
    was written for; a newer version speaks for itself. A write that was given up is forgotten, so that the next
    attempt makes up for it.
    """

    def __init__(self, patch: Patch, now: Callable[[], datetime]) -> None:
        self._patch = patch
        self._now = now
        self._written: WeakKeyDictionary[PodInfo, WrittenCondition] = WeakKeyDictionary()

    def pending(self, pod: PodInfo, reason: str, message: str, *, nomination: str | None = None) -> None:
        """Write why the pod is pending, unless that is written already; `nomination` as in `pod_scheduled_call`."""
        self._write(pod, (reason, message), nomination, lambda done: None)

    async def nominated(self, pod: PodInfo, reason: str, message: str, node_name: str) -> bool:
        """Write the nomination and the condition in one request; whether the API server took it."""
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def end(done: bool) -> None:
            if not ended.done():
                ended.set_result(done)

        self._write(pod, (reason, message), node_name, end)
        return await ended

    def nomination_ended(self, pod: PodInfo) -> None:
        """Take back the pod's nomination, and nothing else."""
        try:
            self._patch(pod.uid, nomination_ended_call(pod), lambda done: None)
        except ValueError as error:
            logger.warning("nomination cannot be taken back pod=%r error=%s", pod.key, error)

    def _write(
        self, pod: PodInfo, condition: WrittenCondition, nomination: str | None, ended: Callable[[bool], None]
    ) -> None:
        reason, message = condition[0], condition_message(condition[1])
        try:
            call = pod_scheduled_call(
                pod, reason, message, self._now(), written=self._written.get(pod), nomination=nomination
            )
        except ValueError as error:
            logger.warning("condition cannot be written pod=%r error=%s", pod.key, error)
            ended(False)
            return
        if call is None:
            ended(True)
            return
        condition = self._written[pod] = (reason, message)

        def end(done: bool) -> None:
            if not done and self._written.get(pod) == condition:
                del self._written[pod]
            ended(done)

        self._patch(pod.uid, call, end)
