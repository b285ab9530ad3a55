"""When the text of a PodScheduled condition is written: the newest one only, once back-off would be over."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import WrittenCondition, condition_message

LONGEST_SECONDS: Final = 10.0
"""So long a text waits at most; kube-scheduler's default for the longest back-off."""

KEPT_BYTES: Final = 16 * 2**20
"""What the texts that wait take at most: of ordinary ones some fifty thousand. What is more is written at once."""

_ENTRY_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class _Text:
    pod: PodInfo
    condition: WrittenCondition

    @property
    def size(self) -> int:
        return _ENTRY_BYTES + len(self.condition[1])


@dataclass(eq=False)
class ConditionTexts:
    """Writes that a pod cannot be scheduled at once, and a text that changes as often as the pod would back off.

    An idle scheduler tries rejected pods long before their back-off is over, and where taints or room come and go the
    counts in the message differ each time. So a condition that is there already, with the same reason, gets its new
    text at the whole second after the back-off of the attempt that found it first, or not at all if the text is by then
    what it was. kube-scheduler's attempts wait for their patch, which spreads them likewise.

    `told` gives what a pod's condition is or will be once all is written, `write` writes one, with a nomination as
    `pod_scheduled_call` has it. `clock` is in seconds.
    """

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
        due = self._due.get(pod.uid)
        self.forget(pod.uid)
        told = self.told(pod)
        if nomination is None and told is not None and told[0] == condition[0]:
            if told == condition:
                return
            latest = self.clock() + LONGEST_SECONDS
            due = ceil(min(backs_off_until or 0.0, latest)) if due is None else due
            if self._wait(_Text(pod, condition), due):
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
                self.write(text.pod, text.condition, None)

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while no text waits."""
        return min(self._texts, default=None)

    def _wait(self, text: _Text, due: int) -> bool:
        """Have the text wait; False if it is due, or too much waits already."""
        if due <= self.clock() or self._bytes + text.size > KEPT_BYTES:
            return False
        self._due[text.pod.uid] = due
        self._texts.setdefault(due, {})[text.pod.uid] = text
        self._bytes += text.size
        return True
