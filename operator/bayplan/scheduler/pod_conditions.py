"""PodScheduled=False and nominations on pods: written at once, and a text that alone changed when there is time."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from bayplan.api.response import ApiCall
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import (
    WrittenCondition,
    condition_message,
    nomination_call,
    pod_scheduled_call,
    shown_condition,
    utc_now,
)

logger = logging.getLogger(__name__)

LONGEST_SECONDS: Final = 300
"""So long a text waits at most; a pod that no event helps is not tried for as long, and its text is as old then."""

PER_SECOND: Final = 5
"""So many texts are written in a second, or more if it takes them more than five minutes otherwise."""

_GRACE_SECONDS: Final = 1.0
"""The attempt at the end of the back-off comes first: it may find that the text is again what it was."""

KEPT_BYTES: Final = 16 * 2**20
"""What the texts that wait take at most: of ordinary ones some fifty thousand. What is more is written at once."""

_ENTRY_BYTES: Final = 300


class Patch(Protocol):
    """Sends a pod's patch, and calls `ended` with whether it was done."""

    def __call__(
        self, uid: str, call: ApiCall, ended: Callable[[bool], None], *, urgent: bool = False, patient: bool = False
    ) -> None:
        """Send the patch `call` of the pod `uid`: an `urgent` one before all others, a `patient` one for minutes."""


@dataclass(eq=False)
class PodConditions:
    """Keeps PodScheduled=False and nominations up to date; the reporter of failures and preemption rely on it.

    A pod may fail again before the watch shows what was written, so that is remembered with the version of the pod it
    was written for; a newer version speaks for itself. A write that was given up is forgotten, so that the next
    attempt makes up for it.

    Where taints or room come and go the counts in the message differ with each attempt. So a condition that is there
    already, with the same reason, gets its new text after the back-off of the attempt that found it, and not more than
    a few in a second, but after five minutes at most. It is the newest text by then, or none if that is what it was.
    kube-scheduler's attempts wait for their patch, which spreads them likewise.

    `newest` gives a pod in its newest version, None if it waits no more. `clock` is in seconds, `now` what is written.
    """

    patch: Patch
    newest: Callable[[str], PodInfo | None]
    clock: Callable[[], float]
    now: Callable[[], datetime] = utc_now
    _written: WeakKeyDictionary[PodInfo, WrittenCondition] = field(default_factory=WeakKeyDictionary, init=False)
    _texts: dict[int, dict[str, WrittenCondition]] = field(default_factory=dict, init=False)
    """Those that wait, by the second in which they are due, and by the UID of the pod."""
    _due: dict[str, int] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)

    def failed(
        self, pod: PodInfo, reason: str, message: str, *, nomination: str | None, backs_off_until: float | None
    ) -> bool:
        """Write why the pod is pending, or have a text wait if nothing else changed; whether it waits."""
        condition = (reason, condition_message(message))
        due = self._due.get(pod.uid)
        self.forget_text(pod.uid)
        known = self._known(pod)
        if nomination is None and known is not None and known[0] == reason:
            if known == condition:
                return False
            if due is None and backs_off_until is not None:
                due = self._free_second(backs_off_until + _GRACE_SECONDS)
            if due is not None and self._wait(pod.uid, condition, due):
                return True
        self.pending(pod, *condition, nomination=nomination)
        return False

    def pending(self, pod: PodInfo, reason: str, message: str, *, nomination: str | None = None) -> None:
        """Write at once why the pod is pending, unless that is written; `nomination` as in `pod_scheduled_call`.

        What goes wrong is logged.
        """
        try:
            self._write(pod, (reason, message), nomination, lambda done: None)
        except Exception:
            logger.exception("condition cannot be written pod=%r", pod.key)

    async def nominated(self, pod: PodInfo, reason: str, message: str, node_name: str) -> bool:
        """Write the nomination and the condition in one request; whether the API server took it.

        Victims end only then, so it goes before all that may wait.
        """
        self.forget_text(pod.uid)
        ended, end = _awaited()
        self._write(pod, (reason, message), node_name, end, urgent=True)
        return await ended

    async def expected_on(self, pod: PodInfo, node_name: str) -> bool:
        """Write the node that the pod is about to be bound to, and nothing else; whether the API server took it."""
        ended, end = _awaited()
        self.patch(pod.uid, nomination_call(pod, node_name), end, urgent=True)
        return await ended

    def nomination_ended(self, pod: PodInfo) -> None:
        """Take back the pod's nomination, and nothing else."""
        try:
            self.patch(pod.uid, nomination_call(pod, ""), lambda done: None, patient=True)
        except ValueError as error:
            logger.warning("nomination cannot be taken back pod=%r error=%s", pod.key, error)

    def forget_text(self, uid: str) -> None:
        """Write nothing that waits about the pod: it has a node, is nominated, or is gone."""
        due = self._due.pop(uid, None)
        if due is not None:
            texts = self._texts[due]
            self._bytes -= _size(texts.pop(uid))
            if not texts:
                del self._texts[due]

    def flush(self, now: float) -> Iterator[tuple[PodInfo, str]]:
        """Write the texts whose time has come; gives each pod with its text when that is written."""
        for due in [each for each in self._texts if each <= now]:
            for uid, condition in list(self._texts[due].items()):
                self.forget_text(uid)
                pod = self.newest(uid)
                if pod is not None and self._known(pod) != condition:
                    self.pending(pod, *condition)
                    yield pod, condition[1]

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while no text waits."""
        return min(self._texts, default=None)

    def _known(self, pod: PodInfo) -> WrittenCondition | None:
        """What was written on this version of the pod, or the condition that it shows; None if there is none."""
        return self._written.get(pod) or shown_condition(pod)

    def _free_second(self, earliest: float) -> int:
        """Return the first second from `earliest` on in which there is time for a text, or the last possible one."""
        last = ceil(self.clock() + LONGEST_SECONDS)
        at_most = max(PER_SECOND, len(self._due) // LONGEST_SECONDS + 1)
        seconds = range(ceil(min(earliest, last)), last)
        return next((each for each in seconds if len(self._texts.get(each, ())) < at_most), last)

    def _wait(self, uid: str, condition: WrittenCondition, due: int) -> bool:
        """Have the text wait; False if it is due, or too much waits already."""
        size = _size(condition)
        if due <= self.clock() or self._bytes + size > KEPT_BYTES:
            return False
        self._due[uid] = due
        self._texts.setdefault(due, {})[uid] = condition
        self._bytes += size
        return True

    def _write(
        self,
        pod: PodInfo,
        condition: WrittenCondition,
        nomination: str | None,
        ended: Callable[[bool], None],
        *,
        urgent: bool = False,
    ) -> None:
        reason, message = condition[0], condition_message(condition[1])
        try:
            call = pod_scheduled_call(
                pod, reason, message, self.now(), written=self._written.get(pod), nomination=nomination
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

        self.patch(pod.uid, call, end, urgent=urgent, patient=not urgent)


def _awaited() -> tuple[asyncio.Future[bool], Callable[[bool], None]]:
    """A future, and what a patch is to call at its end to set it."""
    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(done: bool) -> None:
        if not ended.done():
            ended.set_result(done)

    return ended, end


def _size(condition: WrittenCondition) -> int:
    return _ENTRY_BYTES + len(condition[1])
