"""The table and the JSON document of a benchmark."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from e2e.bench.contestants import ALL_NODES, BAYPLAN, SAMPLED, Contestant
from e2e.bench.results import Drain, Run, Steady, drains, rate_ratio
from e2e.bench.workload import fewest_nodes

_MB = 1_000_000
_NO_FIGURE = "-"

_DRAIN_COLUMNS: tuple[tuple[str, Callable[[Drain], float], str], ...] = (
    ("pods/s", lambda drain: drain.pods_per_second, ".0f"),
    ("with Events", lambda drain: drain.pods_per_second_with_events, ".0f"),
    ("CPU ms/pod", lambda drain: drain.cpu_ms_per_pod, ".2f"),
    ("after 1st bind", lambda drain: drain.cpu_ms_per_pod_from_first_bind, ".2f"),
    ("peak MB", lambda drain: drain.peak_rss / _MB, ".0f"),
    ("nodes used", lambda drain: drain.nodes_used, ".0f"),
    ("s to 1st bind", lambda drain: drain.first_bind, ".1f"),
    ("s to all bound", lambda drain: drain.last_bind, ".1f"),
    ("API server ms/pod", lambda drain: drain.apiserver_cpu_ms_per_pod, ".2f"),
)
_STEADY_COLUMNS: tuple[tuple[str, Callable[[Steady], float], str], ...] = (
    ("p50 ms", lambda steady: steady.p50 * 1000, ".0f"),
    ("p99 ms", lambda steady: steady.p99 * 1000, ".0f"),
    ("steady CPU ms/pod", lambda steady: steady.cpu_ms_per_pod, ".2f"),
)


def table(runs: Sequence[Run], entrants: Sequence[Contestant], pods: int) -> str:
    """Returns one Markdown table, medians over the repeats, and below it the ratios and what went wrong."""
    heads = ["nodes", "scheduler", *(column[0] for column in (*_DRAIN_COLUMNS, *_STEADY_COLUMNS))]
    rows = [
        [str(nodes), contestant.title, *_figures(runs, contestant.name, nodes)]
        for nodes in dict.fromkeys(run.nodes for run in runs)
        for contestant in entrants
    ]
    lines = [*markdown(heads, rows), "", f"{pods} pods fit on {fewest_nodes(pods)} nodes."]
    for nodes, values in ratios(runs).items():
        for against, ratio in values.items():
            lines.append(f"{nodes} nodes: bayplan has {ratio:.2f} times the rate of {against}.")
    problems = [
        f"{run.contestant}, {run.nodes} nodes, repeat {run.repeat}: {run.problem}" for run in runs if run.problem
    ]
    return "\n".join([*lines, *problems])


def ratios(runs: Sequence[Run]) -> dict[int, dict[str, float]]:
    """Returns, by number of nodes, bayplan's rate divided by each rival's in the same repeat (median)."""
    found: dict[int, dict[str, float]] = {}
    for nodes in dict.fromkeys(run.nodes for run in runs):
        for rival in (SAMPLED, ALL_NODES):
            for with_events in (False, True):
                ratio = rate_ratio(runs, BAYPLAN, rival, nodes, with_events=with_events)
                if ratio is not None:
                    found.setdefault(nodes, {})[f"{rival}{', Events included' if with_events else ''}"] = ratio
    return found


def document(runs: Sequence[Run], **facts: object) -> dict[str, Any]:
    """Returns the JSON document: the facts, the ratios, and every run with its raw and derived figures."""
    return {**facts, "ratios": ratios(runs), "runs": [_as_document(run) for run in runs]}


def _figures(runs: Sequence[Run], contestant: str, nodes: int) -> list[str]:
    drained = drains(runs, contestant, nodes)
    steady = [run.steady for run in runs if run.steady and (run.contestant, run.nodes) == (contestant, nodes)]
    cells = [_median([value(drain) for drain in drained], form) for _, value, form in _DRAIN_COLUMNS]
    return cells + [_median([value(phase) for phase in steady], form) for _, value, form in _STEADY_COLUMNS]


def _median(values: Sequence[float], form: str) -> str:
    return format(statistics.median(values), form) if values else _NO_FIGURE


def markdown(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a Markdown table, numbers to the right; the second column is text."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if index == 1 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if index == 1 else "-" * (width - 1) + ":" for index, width in enumerate(widths)]
    return [line(heads), line(rule), *map(line, rows)]


def _as_document(run: Run) -> dict[str, Any]:
    result = asdict(run)
    if run.drain is not None:
        result["drain"] |= {
            "pods_per_second": run.drain.pods_per_second,
            "pods_per_second_with_events": run.drain.pods_per_second_with_events,
            "cpu_ms_per_pod": run.drain.cpu_ms_per_pod,
            "cpu_ms_per_pod_from_first_bind": run.drain.cpu_ms_per_pod_from_first_bind,
            "apiserver_cpu_ms_per_pod": run.drain.apiserver_cpu_ms_per_pod,
        }
    if run.steady is not None:
        result["steady"] |= {"cpu_ms_per_pod": run.steady.cpu_ms_per_pod}
    return result
