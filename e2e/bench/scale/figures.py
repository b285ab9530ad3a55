"""What a turn of a scale benchmark gave, and the bars that bayplan has to pass."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from e2e.bench.contestants import BAYPLAN, SAMPLED
from e2e.bench.results import Drain, Steady

MB = 1_000_000
FLOWS, COLD, LARGE = "flows", "cold", "large"
"""The scenes: pods that come while the scheduler runs; very many that wait at its start; a very large cluster."""
READY_SECONDS, RESIDENT_MB = 20.0, 600.0
BURST_TIMES, DRAIN_TIMES = 1.6, 1.5


@dataclass(frozen=True, slots=True)
class Start:
    """From the start of a process: seconds until it is ready, resident bytes then, and the drain."""

    ready: float
    ready_rss: int
    drain: Drain


@dataclass(frozen=True, slots=True)
class Outcome:
    """One contestant in one scene: its start, and what flowed, at rate 0 the burst; `problem`: why there is less."""

    scene: str
    contestant: str
    repeat: int
    nodes: int
    placed: int
    start: Start | None
    flows: Sequence[Steady]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """What had to be reached, and what was."""

    name: str
    passed: bool
    found: str


def bars(outcomes: Sequence[Outcome]) -> list[Bar]:
    """Returns the bars that these outcomes say something about; a ratio is the median over pairs of one repeat."""
    return [*_flow_bars(outcomes), *_drain_bars(outcomes), *_large_bars(outcomes)]


def _flow_bars(outcomes: Sequence[Outcome]) -> Iterator[Bar]:
    for rate in dict.fromkeys(flow.rate for each in outcomes for flow in each.flows):
        if rate:
            yield from _no_worse(f"p50 at {rate:g} pods/s", _pairs(outcomes, rate, lambda flow: flow.p50))
            yield from _no_worse(f"p99 at {rate:g} pods/s", _pairs(outcomes, rate, lambda flow: flow.p99))
        else:
            times = [theirs / ours for ours, theirs in _pairs(outcomes, rate, lambda flow: flow.all_bound)]
            yield from _at_least("a burst is bound", times, BURST_TIMES)


def _no_worse(name: str, pairs: Sequence[tuple[float, float]]) -> Iterator[Bar]:
    if pairs:
        ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
        worse = statistics.median(mine / other for mine, other in pairs)
        found = f"{ours * 1000:.0f} against {theirs * 1000:.0f} ms"
        yield Bar(f"{name} no worse than kube-scheduler's", worse <= 1, found)


def _at_least(name: str, times: Sequence[float], bar: float) -> Iterator[Bar]:
    if times:
        found = statistics.median(times)
        yield Bar(f"{name} at least {bar} times as fast as by kube-scheduler", found >= bar, f"{found:.2f} times")


def _pairs(outcomes: Sequence[Outcome], rate: float, value: Callable[[Steady], float]) -> list[tuple[float, float]]:
    """Ours and kube-scheduler's of the same repeat."""
    found = {
        (each.contestant, each.repeat): value(flow) for each in outcomes for flow in each.flows if flow.rate == rate
    }
    return [
        (ours, found[SAMPLED, repeat])
        for (contestant, repeat), ours in found.items()
        if contestant == BAYPLAN and (SAMPLED, repeat) in found
    ]


def _drain_bars(outcomes: Sequence[Outcome]) -> Iterator[Bar]:
    for scene in (COLD, LARGE):
        rates = {
            (each.contestant, each.repeat): each.start.drain.pods_per_second_with_events
            for each in outcomes
            if each.scene == scene and each.start is not None
        }
        times = [
            rate / rates[SAMPLED, repeat]
            for (contestant, repeat), rate in rates.items()
            if contestant == BAYPLAN and (SAMPLED, repeat) in rates
        ]
        yield from _at_least(f"{scene}: the drain with Events", times, DRAIN_TIMES)


def _large_bars(outcomes: Sequence[Outcome]) -> Iterator[Bar]:
    starts = [each.start for each in outcomes if (each.scene, each.contestant) == (LARGE, BAYPLAN) and each.start]
    if starts:
        ready = statistics.median(start.ready for start in starts)
        resident = max(start.drain.peak_rss for start in starts) / MB
        yield Bar(f"large: ready within {READY_SECONDS:.0f} s", ready <= READY_SECONDS, f"{ready:.1f} s")
        yield Bar(f"large: at most {RESIDENT_MB:.0f} MB", resident <= RESIDENT_MB, f"{resident:.0f} MB")


def lines(outcome: Outcome) -> list[str]:
    """Returns what there is to say about an outcome: a line for its start and one for each flow."""
    found = [f"did not finish: {outcome.problem}"] if outcome.problem else []
    if outcome.start is not None:
        found.append(_start_line(outcome.start))
    found += map(_flow_line, outcome.flows)
    return [f"{outcome.scene:6} {outcome.contestant:15} {line}" for line in found]


def _start_line(start: Start) -> str:
    drain = start.drain
    return (
        f"{drain.pods} waiting: ready after {start.ready:.1f} s with {start.ready_rss / MB:.0f} MB, first bind "
        f"{drain.first_bind:.1f} s, all bound {drain.last_bind:.1f} s; {drain.pods_per_second:.0f} pods/s, with "
        f"Events {drain.pods_per_second_with_events:.0f}; {drain.cpu_ms_per_pod:.2f} ms a pod, "
        f"peak {drain.peak_rss / MB:.0f} MB, {drain.nodes_used} nodes used"
    )


def _flow_line(flow: Steady) -> str:
    name = f"{flow.rate:g} pods/s" if flow.rate else "burst"
    return (
        f"{name}: {flow.pods} created at {flow.achieved_rate:.0f}/s, all bound after {flow.all_bound:.1f} s; "
        f"p50 {flow.p50 * 1000:.0f}, p99 {flow.p99 * 1000:.0f}, longest {flow.longest * 1000:.0f} ms; "
        f"{flow.cpu_ms_per_pod:.2f} ms a pod, peak {flow.peak_rss / MB:.0f} MB"
    )
