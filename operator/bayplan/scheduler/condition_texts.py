"""When the text of a PodScheduled condition is written: a while after it changed, and a few in a second."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import WrittenCondition, condition_message

LONGEST_SECONDS: Final = 300
"""So long a text waits at most; a pod that no event helps is not tried for as long, and its text is as old then."""

PER_SECOND: Final = 5
"""So many texts are written in a second, or more if it takes them more than five minutes otherwise."""

_GRACE_SECONDS: Final = 1.0
"""The attempt at the end of the back-off comes first: it may find that the text is again what it was."""

KEPT_BYTES: Final = 16 * 2**20
"""What the texts that wait take at most: of ordinary ones some fifty thousand. What is more is written at once."""

_ENTRY_BYTES: Final = 300


@dataclass(eq=False)
class ConditionTexts:
    """Writes that a pod cannot be scheduled at once, and a text that changes only when there is time.

    Where taints or room come and go the counts in the message differ with each attempt. So a condition that is there
    already, with the same reason, gets its new text after the back-off of the attempt that found it, and not more than
    a few in a second, but after five minutes at most. It is the newest text by then, or none if that is what it was.
    kube-scheduler's attempts wait for their patch, which spreads them likewise.

    `newest` gives a pod in its newest version, None if it waits no more, and `told` what its condition is or will be
    once all is written. `write` writes one at once, with a nomination as `pod_scheduled_call` has it, and `write_late`
    one that waited. `clock` is in seconds.
    """

    newest: Callable[[str], PodInfo | None]
    told: Callable[[PodInfo], WrittenCondition | None]
    write: Callable[[PodInfo, WrittenCondition, str | None], None]
    write_late: Callable[[PodInfo, WrittenCondition], None]
    clock: Callable[[], float]
    _texts: dict[int, dict[str, WrittenCondition]] = field(default_factory=dict, init=False)
    """By the second in which they are due, and by the UID of the pod."""
    _due: dict[str, int] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)

    def failed(
        self, pod: PodInfo, condition: WrittenCondition, nomination: str | None, backs_off_until: float | None
    ) -> bool:
        """Write why the pod is pending, or have a text wait if nothing else changed; whether it waits."""
        condition = (condition[0], condition_message(condition[1]))
        due = self._due.get(pod.uid)
        self.forget(pod.uid)
        told = self.told(pod)
        if nomination is None and told is not None and told[0] == condition[0]:
            if told == condition:
                return False
            if due is None and backs_off_until is not None:
                due = self._free_second(backs_off_until + _GRACE_SECONDS)
            if due is not None and self._wait(pod.uid, condition, due):
                return True
        self.write(pod, condition, nomination)
        return False

    def forget(self, uid: str) -> None:
        """Write nothing that waits about the pod: it has a node, is nominated, or is gone."""
        due = self._due.pop(uid, None)
        if due is not None:
            texts = self._texts[due]
            self._bytes -= _size(texts.pop(uid))
            if not texts:
                del self._texts[due]

    def flush(self, now: float) -> None:
        """Write the texts whose time has come."""
        if not self._due:
            return
        for due in [each for each in self._texts if each <= now]:
            for uid, condition in list(self._texts[due].items()):
                self.forget(uid)
                pod = self.newest(uid)
                if pod is not None and self.told(pod) != condition:
                    self.write_late(pod, condition)

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while no text waits."""
        return min(self._texts, default=None)

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


def _size(condition: WrittenCondition) -> int:
    return _ENTRY_BYTES + len(condition[1])
