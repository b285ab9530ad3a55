"""Writes on a pod why it is still pending, no more often than the reason changes."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from weakref import WeakKeyDictionary

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import ApiCall, WrittenCondition, condition_message, pod_scheduled_call

logger = logging.getLogger(__name__)

Patch = Callable[[str, ApiCall, Callable[[], None]], None]
"""`(uid, call, lost)`: sends a pod's patch; calls `lost` if it is given up."""


class PodConditions:
    """Keeps PodScheduled=False up to date; the scheduling loop relies on it never raising.

    A pod may fail again before the watch shows what was written, so that is remembered with the version of the pod it
    was written for; a newer version speaks for itself. A write that was given up is forgotten, so that the next
    attempt makes up for it.
    """

    def __init__(self, patch: Patch, now: Callable[[], datetime]) -> None:
        self._patch = patch
        self._now = now
        self._written: WeakKeyDictionary[PodInfo, WrittenCondition] = WeakKeyDictionary()

    def pending(self, pod: PodInfo, reason: str, message: str) -> None:
        """Say on the pod why it is pending, unless it says so already."""
        message = condition_message(message)
        try:
            call = pod_scheduled_call(pod, reason, message, self._now(), written=self._written.get(pod))
        except ValueError as error:
            logger.warning("condition cannot be written pod=%r error=%s", pod.key, error)
            return
        if call is None:
            return
        condition = (reason, message)
        self._written[pod] = condition
        self._patch(pod.uid, call, partial(self._lost, pod, condition))

    def _lost(self, pod: PodInfo, condition: WrittenCondition) -> None:
        if self._written.get(pod) == condition:
            del self._written[pod]
