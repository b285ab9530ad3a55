"""The last decisions, and the last failed attempts on each pod, for whoever asks a running scheduler."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.scheduler.decision import Placement, RunnerUp

KEPT_DECISIONS: Final = 4096
"""A decision takes 2 KiB at most, as names have 253 characters; its message and its victims are counted."""
KEPT_TEXT_BYTES: Final = 2 * 2**20
"""What messages and victims of all decisions take at most, and once more the attempts on pods."""
ATTEMPTS_OF_A_POD: Final = 4
MOST_VICTIMS: Final = 16
LONGEST_MESSAGE: Final = 4096
"""Characters of a message that are kept; the pod's condition has more."""
_TEXT_BYTES: Final = 512
"""What an attempt, or a victim, takes besides its characters: a tuple, numbers, and what each string takes."""


_Names = tuple[tuple[str, str], ...]


class FailedAttempt(NamedTuple):
    """One attempt on a pod that failed: when, in seconds since the epoch, why, and how long it took."""

    time: float
    message: str
    seconds: float


_Attempts = tuple[FailedAttempt, ...]


class RecentDecision(msgspec.Struct, frozen=True, gc=False):
    """One decision: a node, or the message of why there is none; `time` is in seconds since the epoch."""

    time: float
    namespace: str
    name: str
    seconds: float
    evaluated: int
    uid: str
    """The pod's."""
    node: str | None = None
    score: int | None = None
    runner_up: RunnerUp | None = None
    """What came second, where the log is told of it."""
    feasible: int = 0
    message: str | None = None
    preempted: _Names = ()
    """The first of them, by namespace and name."""
    text_bytes: int = 0


@dataclass(eq=False)
class RecentDecisions:
    """Keeps what was decided last, within a bound in bytes; taking note is an append, for it is done for every pod.

    The scheduler writes it, and the API of the running scheduler reads it. Texts are those that are made in any case.
    Decisions are numbered from 1 on; `last` is the number of the newest.
    """

    now: Callable[[], float] = time.time
    last: int = field(default=0, init=False)
    _kept: deque[RecentDecision] = field(default_factory=deque, init=False)
    _text_bytes: int = field(default=0, init=False)
    _attempts: RecentlyUsed[str, _Attempts] = field(
        default_factory=lambda: RecentlyUsed(KEPT_TEXT_BYTES, _attempt_bytes), init=False
    )

    def placed(self, pod: PodInfo, placement: Placement, seconds: float, evaluated: int) -> None:
        """Take note that a pod has a node, `seconds` after it was popped, of so many that were `evaluated`."""
        kept, node, score = self._kept, placement.node_name, placement.score
        second, feasible = placement.runner_up, placement.feasible_nodes
        # By position: made by name it takes twice as long.
        kept.append(
            RecentDecision(
                self.now(), pod.namespace, pod.name, seconds, evaluated, pod.uid, node, score, second, feasible
            )
        )
        self.last += 1
        if len(kept) > KEPT_DECISIONS:
            self._drop()

    def failed(
        self, pod: PodInfo, message: str, seconds: float, *, evaluated: int = 0, preempted: Sequence[PodInfo] = ()
    ) -> None:
        """Take note of why a pod has none; `preempted` are to make room for it."""
        message = message[:LONGEST_MESSAGE]
        now, uid = self.now(), pod.uid
        attempts = self._attempts.peek(uid) or ()
        if attempts and attempts[-1].message == message:
            # Most attempts end as the one before did: the text is there already.
            message = attempts[-1].message
        self._attempts.put(uid, (*attempts, FailedAttempt(now, message, seconds))[-ATTEMPTS_OF_A_POD:])
        victims = tuple([(victim.namespace, victim.name) for victim in preempted[:MOST_VICTIMS]])
        size = _text_bytes(message) + sum([_text_bytes(part) for victim in victims for part in victim])
        self._kept.append(
            RecentDecision(
                now,
                pod.namespace,
                pod.name,
                seconds,
                evaluated,
                uid,
                message=message,
                preempted=victims,
                text_bytes=size,
            )
        )
        self.last += 1
        self._text_bytes += size
        while len(self._kept) > KEPT_DECISIONS or self._text_bytes > KEPT_TEXT_BYTES:
            self._drop()

    def after(self, number: int, most: int) -> tuple[int, list[RecentDecision]]:
        """Return the first decisions after the one of that number, at most so many, and the number of the first.

        A number that is gone by, or that none has yet, counts as the last before those that are kept.
        """
        first = self.last - len(self._kept) + 1
        start = number + 1 if first <= number + 1 <= self.last + 1 else first
        return start, list(islice(self._kept, start - first, start - first + most))

    def last_on(self, uid: str) -> tuple[int, RecentDecision] | None:
        """Return the last decision about the pod with its number; None once it is forgotten."""
        newest_first = enumerate(reversed(self._kept))
        return next(((self.last - back, each) for back, each in newest_first if each.uid == uid), None)

    def attempts_on(self, uid: str) -> list[FailedAttempt]:
        """Return the last attempts on the pod that failed, the oldest first."""
        return [*(self._attempts.peek(uid) or ())]

    def _drop(self) -> None:
        self._text_bytes -= self._kept.popleft().text_bytes


def _attempt_bytes(_: str, attempts: _Attempts) -> int:
    return sum([_text_bytes(each.message) for each in attempts])


def _text_bytes(text: str) -> int:
    return _TEXT_BYTES + (len(text) if text.isascii() else 4 * len(text))
