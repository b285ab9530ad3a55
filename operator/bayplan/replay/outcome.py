"""What came of replays: what was paid and asked for, how long pods waited, and configurations side by side."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, sqrt
from statistics import fmean, stdev
from typing import Final

import msgspec

from bayplan.simulate.comparison import print_side_by_side
from bayplan.simulate.tables import Printer


class _Reported(msgspec.Struct, frozen=True, rename="camel"):
    """camelCase on the wire."""


class Waits(_Reported, frozen=True):
    """How long pods of one priority waited from their arrival until they were bound, in seconds."""

    priority: int
    pods: int
    p50: float
    p99: float


class Moment(_Reported, frozen=True):
    """The nodes that are paid for at one time, and the fewest that any packing of the running pods needs."""

    seconds: float
    nodes: int
    lower_bound_nodes: int


class Outcome(_Reported, frozen=True):
    """Everything that one configuration made of a trace, up to its end."""

    pods: int
    """Pods that came, each as often as its owner made it."""
    bound: int
    waiting: int
    """Pods without a node at the end."""
    evicted: int
    decisions: int
    node_hours: float
    core_hours_paid: float
    """Cores of all nodes from their request until they are gone."""
    core_hours_asked: float
    """What pods ask for while they are on nodes."""
    lower_bound_node_hours: float
    lower_bound_core_hours: float
    """No packing of the pods that ran at each moment has fewer."""
    most_nodes: int
    nodes_made: int
    wait_p50: float
    wait_p99: float
    waits: list[Waits]
    moments: list[Moment]
    seconds: float
    """How long the replay took, of which `decisionSeconds` were for scheduling."""
    decision_seconds: float

    @property
    def paid_over_asked(self) -> float:
        """Core-hours paid for one that was asked for; 0 where nothing was."""
        return self.core_hours_paid / self.core_hours_asked if self.core_hours_asked else 0.0

    @property
    def bound_over_asked(self) -> float:
        """The lower bound of `paid_over_asked`."""
        return self.lower_bound_core_hours / self.core_hours_asked if self.core_hours_asked else 0.0


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the least of some ordered values that a share of them does not exceed; 0 where there are none."""
    return ordered[max(ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0


def waits_of(by_priority: dict[int, list[float]]) -> list[Waits]:
    """Return the waits of each priority, the highest first."""
    ordered = [(priority, sorted(waits)) for priority, waits in sorted(by_priority.items(), reverse=True)]
    return [Waits(priority, len(waits), quantile(waits, 0.5), quantile(waits, 0.99)) for priority, waits in ordered]


_T: Final[Sequence[float]] = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for 95 % by degrees of freedom, from 1 on; with more of them the last one is a little wide."""

_FIGURES: Final[Sequence[tuple[str, Callable[[Outcome], float], str]]] = (
    ("core-hours paid over asked", lambda each: each.paid_over_asked, ",.3f"),
    ("no packing pays less than", lambda each: each.bound_over_asked, ",.3f"),
    ("core-hours paid", lambda each: each.core_hours_paid, ",.0f"),
    ("core-hours asked", lambda each: each.core_hours_asked, ",.0f"),
    ("node-hours", lambda each: each.node_hours, ",.1f"),
    ("no packing has fewer than", lambda each: each.lower_bound_node_hours, ",.1f"),
    ("most nodes at once", lambda each: each.most_nodes, ",.5g"),
    ("nodes made", lambda each: each.nodes_made, ",.6g"),
    ("pods bound", lambda each: each.bound, ",.7g"),
    ("pods waiting at the end", lambda each: each.waiting, ",.6g"),
    ("pods evicted", lambda each: each.evicted, ",.6g"),
    ("wait p50, seconds", lambda each: each.wait_p50, ",.1f"),
    ("wait p99, seconds", lambda each: each.wait_p99, ",.1f"),
)


class Mean(msgspec.Struct, frozen=True, rename="camel"):
    """A mean, and how far from it the true one is at most in 95 of 100 cases; None for a single value."""

    mean: float
    confidence95: float | None = None


class ReplayedConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """What came of one configuration, once for each seed."""

    config: str
    outcomes: list[Outcome]
    paid_over_asked: Mean
    lower_bound_over_asked: Mean


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of some values with the confidence interval by Student's t."""
    if len(values) == 1:
        return Mean(values[0])
    t = _T[min(len(values) - 1, len(_T)) - 1]
    return Mean(fmean(values), t * stdev(values) / sqrt(len(values)))


def replayed(config: str, outcomes: Sequence[Outcome]) -> ReplayedConfiguration:
    """Sum up the outcomes of a configuration, of which there is at least one."""
    return ReplayedConfiguration(
        config,
        [*outcomes],
        mean_of([each.paid_over_asked for each in outcomes]),
        mean_of([each.bound_over_asked for each in outcomes]),
    )


def print_summary(printer: Printer, configurations: Sequence[ReplayedConfiguration]) -> None:
    """Print which letter stands for which configuration, and a column of figures for each."""
    rows = [*_rows([each.outcomes for each in configurations])]
    print_side_by_side(printer, [each.config for each in configurations], rows)


def _rows(outcomes: Sequence[Sequence[Outcome]]) -> Iterator[tuple[str, Sequence[str]]]:
    for title, figure, shown in _FIGURES:
        yield title, [_cell(mean_of([figure(each) for each in some]), shown) for some in outcomes]
    priorities = {each.priority for some in outcomes for outcome in some for each in outcome.waits}
    for priority in sorted(priorities, reverse=True) if len(priorities) > 1 else ():
        waits = [[each for outcome in some for each in outcome.waits if each.priority == priority] for some in outcomes]
        yield f"wait p50, priority {priority}", [_wait([each.p50 for each in some]) for some in waits]
        yield f"wait p99, priority {priority}", [_wait([each.p99 for each in some]) for some in waits]


def _wait(seconds: Sequence[float]) -> str:
    return _cell(mean_of(seconds), ",.1f") if seconds else "-"


def _cell(mean: Mean, shown: str) -> str:
    text = format(mean.mean, shown)
    return text if mean.confidence95 is None else f"{text} ± {mean.confidence95:,.3g}"
