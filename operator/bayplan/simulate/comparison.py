"""Several configurations on the same cluster: what each made of it, and which pods are elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import UNSET

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.shown_text import natural_key
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.repack import repack_lines
from bayplan.simulate.report import Compared, Comparison, MovedPod, Report
from bayplan.simulate.tables import Column, Printer, Row, amount_of

PodKey = tuple[str, str]
"""Namespace and name of a pod."""


ComparedCluster = tuple[Compared, Mapping[PodKey, str]]
"""What one configuration made of the cluster, and the node of each pod that has one in the end."""


def own_pods(objects: ClusterObjects) -> ClusterObjects:
    """Return the same objects for another simulation, decoded once; what a configuration makes of pods is not shared.

    A simulation keeps on a pod what its profiles take it for, which another configuration sees otherwise.
    """
    pods = []
    for pod in objects.pods:
        own = PodInfo(pod.pod)
        own.take_over(pod)
        pods.append(own)
    return replace(objects, pods=pods)


def placements(nodes: NodeTable) -> dict[PodKey, str]:
    """Return the node of each pod that is on one of the nodes."""
    return {
        (pod.namespace, pod.name): nodes.names[row] for row in nodes.rows().tolist() for pod in nodes.pods[row].values()
    }


def compared(outcomes: Sequence[ComparedCluster]) -> Comparison:
    """Return the outcomes side by side, with every pod that is not on the same node in all of them."""
    moved = []
    for key in {key for _, placed in outcomes for key in placed}:
        nodes = [placed.get(key) for _, placed in outcomes]
        if len(set(nodes)) > 1:
            moved.append(MovedPod(*key, nodes))
    moved.sort(key=lambda pod: (natural_key(pod.namespace), natural_key(pod.name)))
    return Comparison([each for each, _ in outcomes], moved)


MOVED_SHOWN: Final = 20
"""Most pods whose nodes are listed; all of them are in the JSON output."""

_COUNTS: Final[Sequence[tuple[str, Callable[[Report], int]]]] = (
    ("scheduled", lambda report: report.summary.scheduled),
    ("unschedulable", lambda report: report.summary.unschedulable),
    ("evicted", lambda report: report.summary.preempted),
    ("nodes in use", lambda report: report.summary.nodes_in_use),
    ("no packing needs fewer than", lambda report: report.summary.lower_bound_nodes),
    ("overcommitted nodes", lambda report: report.summary.overcommitted_nodes),
)
_ALWAYS: Final = 5
"""So many of the counts are shown even if they are 0 everywhere."""
_LABEL_WIDTH: Final = 30
_VALUE_WIDTH: Final = 14


def print_comparison(printer: Printer, comparison: Comparison, *, is_summary: bool = False) -> None:
    """Print which letter stands for which file, one column a configuration, and the pods that are elsewhere.

    Where the columns do not fit the width there are several listings. A summary names no pods.
    """
    reports = [each.report for each in comparison.configurations]
    letters = print_side_by_side(printer, [each.config for each in comparison.configurations], [*_rows(reports)])
    for letter, report in zip(letters, reports, strict=True):
        if report.repack is not UNSET:
            printer.line()
            for line in repack_lines(report.repack):
                printer.line(f"{letter}: {line}")
    if not is_summary:
        _print_moved(printer, letters, comparison.moved)


def print_side_by_side(
    printer: Printer, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]
) -> Sequence[str]:
    """Print which letter stands for which name, and rows with a cell for each; return the letters."""
    letters = [_letter(index) for index in range(len(names))]
    for letter, name in zip(letters, names, strict=True):
        printer.line(f"{letter}: {name}")
    at_once = printer.columns_that_fit(_LABEL_WIDTH, _VALUE_WIDTH)
    for first in range(0, len(names), at_once):
        chosen = slice(first, first + at_once)
        printer.line()
        columns = (Column(""), *(Column(letter, number=True) for letter in letters[chosen]))
        printer.listing(columns, [(label, *cells[chosen]) for label, cells in rows])
    return letters


def _rows(reports: Sequence[Report]) -> Iterator[tuple[str, Sequence[str]]]:
    for number, (label, count) in enumerate(_COUNTS):
        counts = [count(report) for report in reports]
        if number < _ALWAYS or any(counts):
            yield label, [str(each) for each in counts]
    fits = [report.count.fits for report in reports if report.count is not UNSET]
    if fits:
        yield "more of the counted pod fit", [str(each) for each in fits]
    for name, of_first in reports[0].summary.allocation.items():
        if name == PODS or not of_first.allocatable:
            continue
        uses = [report.summary.allocation[name] for report in reports]
        yield f"{name} stranded", [amount_of(name, use, use.stranded) for use in uses]
        yield f"{name} free on one node", [amount_of(name, use, use.largest_free) for use in uses]


def _print_moved(printer: Printer, letters: Sequence[str], moved: Sequence[MovedPod]) -> None:
    printer.line()
    if not moved:
        printer.line("All pods are on the same nodes.")
        return
    pods = "1 pod is" if len(moved) == 1 else f"{len(moved)} pods are"
    printer.line(f"{pods} not on the same node everywhere:")
    rows: list[Row] = [
        (f"{pod.namespace}/{pod.name}", *(node or "-" for node in pod.nodes)) for pod in moved[:MOVED_SHOWN]
    ]
    printer.listing((Column("POD"), *map(Column, letters)), rows)
    if len(moved) > MOVED_SHOWN:
        printer.line(f"and {len(moved) - MOVED_SHOWN} more, which -o json has")


def _letter(index: int) -> str:
    """A, B and so on, AA after Z."""
    before, last = divmod(index, 26)
    return (_letter(before - 1) if before else "") + chr(ord("A") + last)
