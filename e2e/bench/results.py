"""What one run of one contestant gave, as plain numbers: seconds, bytes, counts."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drain:
    """Pods that waited before the scheduler was started, until all were bound and their Events written.

    Moments are seconds after the process was started. CPU seconds are the scheduler's, from its start; the
    control plane's are from the scheduler's start too. `threads` is CPU seconds by thread name.
    """

    pods: int
    first_bind: float
    last_bind: float
    last_event: float
    cpu_at_first_bind: float
    cpu_at_last_bind: float
    cpu_at_last_event: float
    threads: dict[str, float]
    apiserver_cpu: float
    etcd_cpu: float
    peak_rss: int
    nodes_used: int
    events_at_last_bind: int
    events: int

    @property
    def pods_per_second(self) -> float:
        """Pods bound a second, from the first bind to the last."""
        return self.pods / (self.last_bind - self.first_bind)

    @property
    def pods_per_second_with_events(self) -> float:
        """The same, to the last Event: a scheduler that puts its Events off does not look faster here."""
        return self.pods / (self.last_event - self.first_bind)

    @property
    def cpu_ms_per_pod(self) -> float:
        """The scheduler's CPU, start and Events included."""
        return self.cpu_at_last_event / self.pods * 1000

    @property
    def cpu_ms_per_pod_from_first_bind(self) -> float:
        """The scheduler's CPU without its start."""
        return (self.cpu_at_last_event - self.cpu_at_first_bind) / self.pods * 1000

    @property
    def apiserver_cpu_ms_per_pod(self) -> float:
        """What the API server did meanwhile."""
        return self.apiserver_cpu / self.pods * 1000


@dataclass(frozen=True, slots=True)
class Steady:
    """Pods created while the scheduler runs, at a rate or, where that is 0, as fast as they are taken.

    Latencies are from the request's sending to the bind, `all_bound` from the first sending to the last bind.
    """

    pods: int
    rate: float
    achieved_rate: float
    p50: float
    p99: float
    longest: float
    create_p50: float
    cpu: float
    events: int
    peak_rss: int
    all_bound: float

    @property
    def cpu_ms_per_pod(self) -> float:
        """The scheduler's CPU, Events included."""
        return self.cpu / self.pods * 1000


@dataclass(frozen=True, slots=True)
class Run:
    """One contestant's turn; `problem` says what kept it from finishing."""

    contestant: str
    nodes: int
    repeat: int
    drain: Drain | None
    steady: Steady | None
    problem: str = ""


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least `share` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def drains(runs: Sequence[Run], contestant: str, nodes: int) -> list[Drain]:
    """Returns the finished drains of a contestant, in the order of the repeats."""
    return [run.drain for run in runs if run.drain and (run.contestant, run.nodes) == (contestant, nodes)]


def rate_ratio(runs: Sequence[Run], ours: str, theirs: str, nodes: int, *, with_events: bool = False) -> float | None:
    """Returns the median, over the repeats, of our rate divided by theirs in the same repeat; None without pairs."""

    def rate(drain: Drain) -> float:
        return drain.pods_per_second_with_events if with_events else drain.pods_per_second

    found = {
        (run.contestant, run.repeat): rate(run.drain) for run in runs if run.drain is not None and run.nodes == nodes
    }
    pairs = [
        value / found[theirs, repeat]
        for (name, repeat), value in found.items()
        if name == ours and (theirs, repeat) in found
    ]
    return statistics.median(pairs) if pairs else None
