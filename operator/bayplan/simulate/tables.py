"""A simulation for people: which pod went where and why, and what the cluster looks like afterwards."""

import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from msgspec import UNSET
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayplan.api.meta_objects import controller_of
from bayplan.api.quantity import MAX_AMOUNT
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from bayplan.explain.explanation import Explanation, lines
from bayplan.framework.causes import listed
from bayplan.scheduler.decision import Placement
from bayplan.shown_text import printable
from bayplan.simulate.drain import drain_lines
from bayplan.simulate.report import Allocation, Preemption, PreemptionCandidate, Summary
from bayplan.simulate.step import Step

_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)
_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a listing; numbers stand to the right."""

    title: str
    number: bool = False


Row = Sequence[str]

_PARTS: Final = ("containers", "tolerations", "node_selector", "affinity", "topology_spread_constraints")
_POD_COLUMNS: Final = (Column("POD"), Column("NODE"), Column("SCORE", number=True), Column("WHY"))
_CANDIDATE_COLUMNS: Final = (
    Column(""),
    Column("NODE"),
    Column("BUDGETS BROKEN", number=True),
    Column("EARLIEST START"),
    Column("EVICTS"),
    Column("CHOSEN NODE HAS"),
)
_USE_COLUMNS: Final = (
    Column("RESOURCE"),
    Column("REQUESTED", number=True),
    Column("ALLOCATABLE", number=True),
    Column("OF ALL", number=True),
    Column("OF NODES IN USE", number=True),
)


class Printer:
    """Writes listings: aligned and whole lines for programs, fitted to the width for a terminal."""

    def __init__(self, stream: TextIO, *, terminal: bool | None = None, width: int | None = None) -> None:
        self._stream = stream
        wanted = stream.isatty() if terminal is None else terminal
        self._console = Console(file=stream, force_terminal=True, width=width, highlight=False) if wanted else None

    def line(self, text: str = "") -> None:
        """One line of text."""
        if self._console is not None:
            self._console.print(Text(printable(text)))
        else:
            self._stream.write(f"{printable(text)}\n")

    def columns_that_fit(self, first: int, each: int) -> int:
        """Return how many columns of that width fit beside the first one, at least one; programs get any number."""
        return sys.maxsize if self._console is None else max(1, (self._console.width - first) // each)

    def listing(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Rows under a heading."""
        if self._console is not None:
            table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
            for column in columns:
                table.add_column(
                    column.title, justify="right" if column.number else "left", overflow="fold", no_wrap=column.number
                )
            for row in rows:
                table.add_row(*(Text(printable(cell)) for cell in row))
            self._console.print(table)
            return
        cells = [[column.title for column in columns], *([printable(cell) for cell in row] for row in rows)]
        widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
        for row in cells:
            aligned = (
                cell.rjust(width) if column.number else cell.ljust(width)
                for cell, width, column in zip(row, widths, columns, strict=True)
            )
            self._stream.write("  ".join(aligned).rstrip() + "\n")


def pod_row(step: Step) -> Row:
    """POD, NODE, SCORE and WHY of one attempt."""
    outcome = step.outcome
    key = step.pod.key
    if isinstance(outcome, Placement):
        score = "" if outcome.score is None else str(outcome.score)
        return key, outcome.node_name, score, _scores(step.read.scores) or outcome.unscored or ""
    if step.victims:
        victims = ", ".join(victim.key for victim in step.victims)
        return key, "-", "", f"nominated to {step.nominated_node_name}, evicting {victims}"
    return key, "-", "", step.message or "" if outcome is None else outcome.message


class AlikePods:
    """Keeps the rows of pods of one controller, or that share all parts of their template, and their fate.

    The reader of files gives equal parts to pods as one object. Those that got a node had the same fate, whichever it
    is, as had those that got none for the same reason.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, list[Row]] = {}

    def is_first(self, pod: PodInfo, row: Row) -> bool:
        """Add the row of a decision, POD, NODE, SCORE and WHY, and say whether there was none like it."""
        owner = controller_of(pod.pod.metadata)
        kind: Hashable = (owner and owner.uid) or tuple(id(getattr(pod.pod.spec, part)) for part in _PARTS)
        alike = self._rows.setdefault((pod.namespace, pod.priority, kind, row[3] if row[1] == "-" else ""), [])
        alike.append(row)
        return len(alike) == 1

    def rows(self) -> Iterator[Row]:
        """Give a row for each kind of pods, in the order of their first ones."""
        for alike in self._rows.values():
            pods = len({row[0] for row in alike})
            name, node, _, why = alike[0]
            # Where one node is left, nothing is scored.
            scores = [row[2] for row in alike if row[2]]
            if pods > 1:
                nodes = Counter(row[1] for row in alike)
                name += f" and {pods - 1:,} more"
                node = node if node == "-" else str(listed(f"{each} ({count})" for each, count in nodes.items()))
            yield name, node, " to ".join(dict.fromkeys(scores[:1] + scores[-1:])), why


def print_pods(printer: Printer, rows: Iterable[Row]) -> None:
    """One line a pod, in the order they were tried."""
    printer.listing(_POD_COLUMNS, rows)


def print_explanation(printer: Printer, pod: PodInfo, explanation: Explanation) -> None:
    """Why a pod goes where it goes, or nowhere: nodes in groups, scores, and what would help."""
    for line in lines(pod.key, explanation):
        printer.line(line)
    printer.line()


def print_preemption(printer: Printer, pod: PodInfo, compared: Preemption) -> None:
    """The nodes where evictions would help, the chosen one marked and first, and why it is better than each other."""
    printer.line(f"{pod.key}: preemption chooses {compared.chosen} ({compared.why})")

    def victims(each: PreemptionCandidate) -> str:
        named = zip(each.victims, each.victim_priorities, strict=True)
        return ", ".join(f"{victim} (priority {priority})" for victim, priority in named)

    def row(each: PreemptionCandidate) -> Row:
        return (
            "" if each.worse_by else "*",
            each.node,
            str(each.num_pdb_violations),
            each.earliest_start_time or "-",
            f"{len(each.victims)} pods: {victims(each)}" if len(each.victims) > 1 else victims(each),
            each.worse_by or "",
        )

    printer.listing(_CANDIDATE_COLUMNS, map(row, sorted(compared.candidates, key=lambda each: each.worse_by or "")))
    printer.line()


def print_summary(printer: Printer, summary: Summary) -> None:
    """Counts of pods and nodes, how full the cluster is, and how fast it was decided."""
    printer.listing(_USE_COLUMNS, [_use_row(name, use) for name, use in summary.allocation.items()])
    printer.line()
    parts = [
        f"{summary.scheduled} scheduled",
        f"{summary.unschedulable} unschedulable",
        *_counts(
            (summary.gated, "gated"),
            (summary.preempted, "evicted"),
            (summary.running, "already on nodes"),
            (summary.on_unknown_nodes, "on nodes not given"),
            (summary.finished, "finished"),
            (summary.other_schedulers, "of other schedulers"),
            (sum(each.pods for each in summary.skipped), "skipped"),
        ),
    ]
    printer.line(f"Pods:  {summary.pods}: {', '.join(parts)}")
    over = f", {summary.overcommitted_nodes} overcommitted" if summary.overcommitted_nodes else ""
    packing = "no packing that fits" if over else "no packing"
    printer.line(
        f"Nodes: {summary.nodes_in_use} of {summary.nodes} in use{over}; "
        f"{packing} needs fewer than {summary.lower_bound_nodes}"
    )
    if summary.stranded_devices is not UNSET:
        printer.line(f"Devices: {summary.stranded_devices:.1f} stranded, which is left of those that are taken in part")
    for line in (line for each in summary.drained for line in drain_lines(each)):
        printer.line(f"Drain: {line}")
    if summary.ignored_kinds:
        kinds = ", ".join(f"{count} {kind}" for kind, count in summary.ignored_kinds.items())
        printer.line(f"Ignored: {kinds}")
    if summary.seconds:
        printer.line(f"Decided in {summary.seconds:.3f} s ({summary.decisions_per_second:,.0f} decisions/s)")


def _scores(scores: dict[str, int] | None) -> str:
    """Plugin scores, highest first, without those of 0."""
    ranked = sorted((scores or {}).items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {score}" for name, score in ranked if score) or ("all scores 0" if scores else "")


def _counts(*counts: tuple[int, str]) -> list[str]:
    return [f"{count} {what}" for count, what in counts if count]


def _use_row(name: str, use: Allocation) -> Row:
    return (
        name,
        amount_of(name, use, use.requested),
        amount_of(name, use, use.allocatable),
        percent(use.requested, use.allocatable) if use.at_least is UNSET else "-",
        percent(use.requested_in_use, use.allocatable_in_use) if use.at_least is UNSET else "-",
    )


def amount_of(name: str, use: Allocation, value: int) -> str:
    """One of the amounts of `use`, as it is shown; it says where there may be more than was counted."""
    bound = "at least " if use.at_least is not UNSET and value >= MAX_AMOUNT else ""
    return bound + amount(name, value)


def amount(name: str, value: int) -> str:
    """An amount of a resource in the unit people use: cores, GiB, or a count."""
    if name == CPU:
        return f"{value / 1000:,.10g}"
    if name in _BYTES or name.startswith("hugepages-"):
        return f"{value / _GIB:,.1f} GiB"
    return f"{value:,}"


def percent(part: int, whole: int) -> str:
    """A share, or nothing where there is no whole."""
    return f"{100 * part / whole:.1f}%" if whole else "-"
