"""ExpectedDuration: pods that end together stand together, so that nodes drain; kube-scheduler has no such plugin."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from math import ceil, inf
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.api.meta_objects import controller_of
from bayplan.cache.change_log import PodChange, Rows
from bayplan.cache.incremental_view import PodView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.config.bayplan_args import ExpectedDurationArgs
from bayplan.config.errors import quote
from bayplan.config.fields import parse_duration
from bayplan.framework.candidate import start_time
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Normalize, Reads, Traits

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
NEVER: Final = 2**40
"""When a pod ends of which nobody knows it, and how long it runs; in seconds."""
_EMPTY: Final = -1
_NOT_STARTED: Final = 60
"""What left its node within so many seconds without a start time may never have run there."""


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


class LatestEnds(PodView):
    """When the last pod of each node is expected to end, kept as pods come and go.

    A pod counts from its start, or from when it was first seen on its node, and for as long as was expected then.
    Those that stay on their node, as a DaemonSet's do, count for nothing. What ended is what `durations` learn of,
    unless somebody deleted it or its node, or it never came further than being assumed there.
    """

    def __init__(self, nodes: NodeTable, durations: PodDurations, clock: Callable[[], float]) -> None:
        super().__init__(nodes)
        self._durations = durations
        self._clock = clock
        self._spans: dict[str, tuple[int, int]] = {}
        """Start and expected end of each pod, by its UID."""
        self._latest: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def latest(self) -> NDArray[np.int64]:
        """Seconds since the epoch by row, NEVER, or -1 for an empty node, `(capacity,) int64`; not to be changed."""
        self.catch_up()
        return self._latest

    def take(self, change: PodChange) -> None:
        # Whether such a large pod ended or was resized shows only in what comes next, so it teaches nothing.
        if change[1] is not None:
            self._spans.pop(change[1].uid, None)
        super().take(change)

    def _read_all(self) -> None:
        there = {uid for pods in self._nodes.pods for uid in pods}
        self._spans = {uid: span for uid, span in self._spans.items() if uid in there}
        self._latest = np.array([self._latest_of(pods.values()) for pods in self._nodes.pods], dtype=np.int64)

    def _read(self, changes: Sequence[PodChange]) -> None:
        for row, before, after in changes:
            # Whoever is there still was resized.
            if before is not None and after is None and before.uid not in self._nodes.pods[row]:
                self._end(before, row)
        for row in {row for row, _, _ in changes}:
            self._latest[row] = self._latest_of(self._nodes.pods[row].values())

    def _end(self, pod: PodInfo, row: int) -> None:
        span = self._spans.pop(pod.uid, None)
        # Nobody has seen the pods end whose node went, and it may come back with them.
        node_is_there = self._nodes.row(pod.pod.spec.node_name) == row
        if span is not None and node_is_there and not pod.is_terminating:
            ran = int(self._clock()) - span[0]
            if ran > 0 and (start_time(pod) != inf or ran >= _NOT_STARTED):
                self._durations.learn(pod, ran)

    def _latest_of(self, pods: Iterable[PodInfo]) -> int:
        return max([self._end_of(pod) for pod in pods if not pod.stays], default=_EMPTY)

    def _end_of(self, pod: PodInfo) -> int:
        span = self._spans.get(pod.uid)
        if span is None:
            started = start_time(pod)
            start = int(self._clock() if started == inf else started)
            expected = self._durations.of(pod)
            span = self._spans[pod.uid] = start, NEVER if expected is None else start + expected
        return span[1]


class ExpectedDuration:
    """Scores those nodes highest that are expected to drain when the pod ends, or soon after.

    A node drains when the last of its pods ends. The score is 50 + 50 * e / d where the pod, which ends in e seconds,
    has it drain no later than it would, in d, and 50 * d / e where it does; an empty node gets 0. A node whose last end
    is past is expected to run on for as long as it is overdue. A pod that nobody knows the end of never ends, and so is
    best beside others of that kind.
    """

    name: ClassVar[str] = "ExpectedDuration"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE, normalize=Normalize.CUSTOM)

    def __init__(self, args: ExpectedDurationArgs, nodes: NodeTable, clock: Callable[[], float]) -> None:
        self._durations = PodDurations(args.owner_label)
        self._ends = LatestEnds(nodes, self._durations, clock)
        self._clock = clock

    def sign_pod(self, pod: PodInfo) -> Hashable:
        # When nodes drain is the same for all pods; the pod's own end counts in normalize_score, in every cycle.
        return ()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return self._ends.latest()[rows]

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        expected = self._durations.of(pod)
        ends_in = NEVER if expected is None else expected
        drains_in = np.where(scores == NEVER, NEVER, np.abs(scores - int(self._clock())))
        half = MAX_NODE_SCORE // 2
        in_time = half + half * ends_in // np.maximum(drains_in, ends_in)
        late = half * drains_in // ends_in
        found: Scores = np.where(drains_in >= ends_in, in_time, late)
        found[scores == _EMPTY] = 0
        return found

    def score_note(self, pod: PodInfo) -> str:
        return self._durations.note(pod)

    def release_unused(self) -> None:
        # What has ended since is learnt while its time is known, also where nothing is decided.
        self._ends.catch_up()
