"""When the text of a PodScheduled condition is written: once it has lasted for a back-off."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import WrittenCondition, condition_message

LONGEST_SECONDS: Final = 60.0
"""So long a text waits at most."""

_GRACE_SECONDS: Final = 1.0
"""The attempt at the end of the back-off comes first: it may find that the text is again what it was."""

KEPT_BYTES: Final = 16 * 2**20
"""What the texts that wait take at most: of ordinary ones some fifty thousand. What is more is written at once."""

_ENTRY_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class _Text:
    condition: WrittenCondition
    since: float
    """When the first text began to wait that this one took the place of."""

    @property
    def size(self) -> int:
        return _ENTRY_BYTES + len(self.condition[1])


@dataclass(eq=False)
class ConditionTexts:
    """Writes that a pod cannot be scheduled at once, and a text that changes only when it has lasted.

    An idle scheduler tries rejected pods before their back-off is over, and where taints or room come and go the counts
    in the message differ each time. So a condition that is there already, with the same reason, gets its new text when
    the back-off of the attempt that found it is over and the next attempt has not found another, after a minute at
    most; and not at all if the text is by then what it was. kube-scheduler's attempts wait for their patch, which
    spreads them likewise.

    `newest` gives a pod in its newest version, None if it waits no more, and `told` what its condition is or will be
    once all is written. `write` writes one, with a nomination as `pod_scheduled_call` has it. `clock` is in seconds.
    """

    newest: Callable[[str], PodInfo | None]
    told: Callable[[PodInfo], WrittenCondition | None]
    write: Callable[[PodInfo, WrittenCondition, str | None], None]
    clock: Callable[[], float]
    _texts: dict[int, dict[str, _Text]] = field(default_factory=dict, init=False)
    """By the second in which they are due, and by the UID of the pod."""
    _due: dict[str, int] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)

    def failed(
        self, pod: PodInfo, condition: WrittenCondition, nomination: str | None, backs_off_until: float | None
    ) -> None:
        """Write why the pod is pending, or have a text wait if nothing else changed."""
        condition = (condition[0], condition_message(condition[1]))
        waiting = self._waiting(pod.uid)
        told = self.told(pod)
        if nomination is None and told is not None and told[0] == condition[0] and told != condition:
            if waiting is not None and waiting.condition == condition:
                return
            now = self.clock()
            text = _Text(condition, now if waiting is None else waiting.since)
            self.forget(pod.uid)
            if backs_off_until is not None and self._wait(pod.uid, text, backs_off_until + _GRACE_SECONDS):
                return
        self.forget(pod.uid)
        if nomination is None and told == condition:
            return
        self.write(pod, condition, nomination)

    def forget(self, uid: str) -> None:
        """Write nothing that waits about the pod: it has a node, is nominated, or is gone."""
        due = self._due.pop(uid, None)
        if due is not None:
            texts = self._texts[due]
            self._bytes -= texts.pop(uid).size
            if not texts:
                del self._texts[due]

    def flush(self, now: float) -> None:
        """Write the texts whose time has come."""
        if not self._due:
            return
        for due in [each for each in self._texts if each <= now]:
            for uid, text in list(self._texts[due].items()):
                self.forget(uid)
                pod = self.newest(uid)
                if pod is not None and self.told(pod) != text.condition:
                    self.write(pod, text.condition, None)

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while no text waits."""
        return min(self._texts, default=None)

    def _waiting(self, uid: str) -> _Text | None:
        due = self._due.get(uid)
        return None if due is None else self._texts[due][uid]

    def _wait(self, uid: str, text: _Text, until: float) -> bool:
        """Have the text wait; False if it is due, or too much waits already."""
        due = ceil(min(until, text.since + LONGEST_SECONDS))
        if due <= self.clock() or self._bytes + text.size > KEPT_BYTES:
            return False
        self._due[uid] = due
        self._texts.setdefault(due, {})[uid] = text
        self._bytes += text.size
        return True
