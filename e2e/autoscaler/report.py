"""The table of runs, with what a replay of the same traces foretells, and the picture of nodes over time."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from bayplan.replay.outcome import Mean, Outcome, mean_of
from bayplan.replay.plot import svg
from bayplan.replay.replay import PoolSettings, Replay
from e2e.autoscaler.karpenter import WHEN_EMPTY
from e2e.autoscaler.ledger import Live
from e2e.autoscaler.run import Run
from e2e.bench.report import markdown

_COLUMNS: tuple[tuple[str, Callable[[Live], float], str], ...] = (
    ("CPU paid over asked", lambda each: each.outcome.paid_over_asked, ".3f"),
    ("no packing below", lambda each: each.outcome.bound_over_asked, ".3f"),
    ("node-hours", lambda each: each.outcome.node_hours, ".3f"),
    ("most nodes", lambda each: each.outcome.most_nodes, ".1f"),
    ("nodes made", lambda each: each.outcome.nodes_made, ".1f"),
    ("evictions", lambda each: each.outcome.evicted, ".1f"),
    ("wait p50, s", lambda each: each.outcome.wait_p50, ".2f"),
    ("p95, s", lambda each: each.wait_p95, ".2f"),
)


def pool_settings(found: Mapping[Run, Live]) -> PoolSettings:
    """Return Karpenter's pace as replay is told it: how long empty nodes stay, and how long new ones take."""
    lives = [live for run, live in found.items() if run.consolidation == WHEN_EMPTY] or list(found.values())
    return PoolSettings(
        scale_down_after=round(fmean([each.empty_seconds for each in lives if each.empty_seconds] or [10.0]), 1),
        provision=round(fmean(each.new_node_seconds for each in lives), 1),
    )


def replayed(found: Mapping[Run, Live], settings: PoolSettings) -> dict[Run, Outcome]:
    """Return the replay of each run under WhenEmpty; what Karpenter moves otherwise, a replay does not know."""
    return {
        run: Replay(run.trace, run.configuration(), settings).run() for run in found if run.consolidation == WHEN_EMPTY
    }


def table(found: Mapping[Run, Live], foretold: Mapping[Run, Outcome]) -> str:
    """Return the means over the seeds as Markdown, with intervals of 95 % confidence."""
    heads = ["runs", "load, consolidation, scheduler", *(name for name, _, _ in _COLUMNS), "replay's node-hours"]
    rows = []
    for kind in dict.fromkeys((run.load, run.consolidation, run.contestant) for run in found):
        runs = [run for run in found if (run.load, run.consolidation, run.contestant) == kind]
        cells = [_cell([figure(found[run]) for run in runs], shown) for _, figure, shown in _COLUMNS]
        ratios = [foretold[run].node_hours / found[run].outcome.node_hours - 1 for run in runs if run in foretold]
        rows.append([str(len(runs)), ", ".join(kind), *cells, f"{fmean(ratios):+.1%}" if ratios else "-"])
    idle = min(live.cpu_idle for live in found.values())
    slowest = max(live.create_p99 for live in found.values())
    return "\n".join(
        [*markdown(heads, rows), "", f"The machine was idle for {idle:.0%} or more; creations p99 {slowest:.3f} s."]
    )


def _cell(values: Sequence[float], shown: str) -> str:
    mean: Mean = mean_of(values)
    return f"{mean.mean:{shown}}" + (f" ± {mean.confidence95:{shown}}" if mean.confidence95 else "")


def picture(found: Mapping[Run, Live], consolidation: str) -> str:
    """Return nodes over time of the first seed as SVG: a line for each scheduler, and the bound of the first."""
    runs = [run for run in found if run.consolidation == consolidation]
    first = min(run.seed for run in runs)
    return svg([(run.contestant, found[run].outcome) for run in runs if run.seed == first])
