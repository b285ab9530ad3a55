"""How long pods are expected to run: as they say, or as others of their owner ran that have ended."""

import re
from functools import lru_cache
from math import ceil
from typing import Final

from bayplan.api.meta_objects import controller_of
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.config.errors import quote
from bayplan.config.fields import parse_duration

ANNOTATION: Final = "bayplan.io/expected-duration"
KEPT_BYTES: Final = 2**20
"""What is learnt may take so much: some thousand owners."""

_OWNER_BYTES: Final = 400
"""What an owner takes beside its name."""
_RECENT: Final = 16
"""An ended pod counts for so much of the mean at least, so that it follows what changes."""
_PARTS: Final = 2**10
"""A second of a mean: rounded down to whole ones, it would sink to the shortest run."""
_MOST_CHARACTERS: Final = 32
_MOST_SECONDS: Final = 10**9
_GENERATED: Final = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2456789]{5,10}|[0-9]{8,10})$")
"""What Kubernetes appends to the names of what it makes: of ReplicaSets, of Jobs of CronJobs, of generateName."""


@lru_cache(maxsize=1024)
def read_seconds(text: str) -> int | None:
    """Return the seconds that an annotation says, rounded up: as a number, or as Go writes durations; else None."""
    if len(text) > _MOST_CHARACTERS:
        return None
    if text.isascii() and text.isdecimal():
        seconds = int(text)
    else:
        duration = parse_duration(text)
        seconds = 0 if duration is None else ceil(duration.total_seconds())
    return seconds if 0 < seconds <= _MOST_SECONDS else None


class PodDurations:
    """Tells what pods say of themselves, and learns of those that have ended; `KEPT_BYTES` bound what it knows."""

    def __init__(self, owner_label: str) -> None:
        self._owner_label = owner_label
        self._learnt: RecentlyUsed[str, tuple[int, int]] = RecentlyUsed(
            KEPT_BYTES, lambda owner, _: _OWNER_BYTES + 4 * len(owner)
        )
        """By owner how many pods have ended, and the mean of how long they ran, in 1024ths of a second."""

    @property
    def nbytes(self) -> int:
        """About what is learnt takes."""
        return self._learnt.size

    def of(self, pod: PodInfo) -> int | None:
        """Return for how many seconds the pod is expected to run in all; None if nobody knows."""
        meta = pod.pod.metadata
        said = None if meta.annotations is None else meta.annotations.expected_duration
        seconds = None if said is None else read_seconds(said)
        if seconds is not None:
            return seconds
        learnt = self._learnt_of(pod)
        return None if learnt is None else learnt[1]

    def learn(self, pod: PodInfo, seconds: int) -> None:
        """Take in how long a pod ran that has ended."""
        owner = self._owner(pod)
        if owner:
            count, mean = self._learnt.get(owner) or (0, 0)
            count += 1
            self._learnt.put(owner, (count, mean + (seconds * _PARTS - mean) // min(count, _RECENT)))

    def note(self, pod: PodInfo) -> str:
        """Say how long the pod is expected to run, and by what; a wrong annotation is named."""
        meta = pod.pod.metadata
        said = None if meta.annotations is None else meta.annotations.expected_duration
        if said is not None and (seconds := read_seconds(said)) is not None:
            return f"expected to run {seconds} s, by its annotation"
        learnt = self._learnt_of(pod)
        told = "not known how long it runs"
        if learnt is not None:
            told = f"expected to run {learnt[1]} s, the mean of {learnt[0]} of {self._owner(pod)}"
        if said is None:
            return told
        return (
            f"{ANNOTATION} {quote(said[:_MOST_CHARACTERS])} is ignored: it is no duration such as 90m, or 5400; {told}"
        )

    def _learnt_of(self, pod: PodInfo) -> tuple[int, int] | None:
        owner = self._owner(pod)
        learnt = self._learnt.get(owner) if owner else None
        return None if learnt is None else (learnt[0], learnt[1] // _PARTS)

    def _owner(self, pod: PodInfo) -> str:
        """Return what pods that are alike have in common; "" for a pod that nobody controls."""
        meta = pod.pod.metadata
        label = (meta.labels or {}).get(self._owner_label)
        if self._owner_label and label:
            return f"{meta.namespace}/{label}"
        controller = controller_of(meta)
        return f"{controller.kind} {meta.namespace}/{_GENERATED.sub('', controller.name)}" if controller else ""
