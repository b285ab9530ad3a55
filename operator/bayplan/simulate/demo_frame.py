"""What `bayplan demo` shows: maps of nodes, where the pods are, and what came of it, as text that fits a width."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from textwrap import wrap
from typing import Final

import numpy as np
from rich.text import Text

from bayplan.cache.node_table import NodeTable
from bayplan.simulate.strategy_comparison import StrategyComparison, StrategyRun

_WIDE: Final = 4
"""Columns of a cell that says the percentage."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What a cell of one column is drawn with, in growing order, and what an empty node is shown as."""

    levels: str
    empty: str


BLOCKS: Final = Glyphs("▁▂▃▄▅▆▇█", "·")
ASCII: Final = Glyphs("0123456789", ".")


def glyphs_for(encoding: str | None) -> Glyphs:
    """Block characters where the terminal's encoding has them."""
    try:
        (BLOCKS.levels + BLOCKS.empty).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


@dataclass(frozen=True, slots=True)
class Cells:
    """How a map is laid out: columns of a cell, and how many nodes one stands for where room is short."""

    columns: int
    nodes: int


def fullness(nodes: NodeTable) -> list[tuple[str, int]]:
    """The nodes in the table's order with the percentage of what each is fullest of; 0 is for an empty one alone."""
    rows = nodes.rows()
    shares = np.zeros(len(rows), dtype=np.int64)
    for name, taken in nodes.requested.items():
        shares = np.maximum(shares, 100 * taken[rows] // np.maximum(nodes.allocatable[name][rows], 1))
    shares = np.where(nodes.pod_count[rows] > 0, np.maximum(shares, 1), 0)
    return [(nodes.names[row], share) for row, share in zip(rows.tolist(), shares.tolist(), strict=True)]


def cells_for(filled: Sequence[tuple[str, int]], *, width: int, lines: int) -> Cells:
    """The most telling cells with which the map is at most so wide, and has no more lines, or one a pool."""
    pools = _pools(filled)
    columns = width - _label(pools)
    for cells in (Cells(_WIDE, 1), Cells(1, 1)):
        if sum(_lines(len(shares), cells, columns) for _, shares in pools) <= lines:
            return cells
    nodes = 2
    longest = max(len(shares) for _, shares in pools)
    while nodes < longest and sum(_lines(len(shares), Cells(1, nodes), columns) for _, shares in pools) > lines:
        nodes += 1
    return Cells(1, nodes)


def node_map(filled: Sequence[tuple[str, int]], cells: Cells, *, width: int, glyphs: Glyphs) -> list[Text]:
    """Draw the nodes pool by pool, each pool beginning on a line of its own with its name."""
    pools = _pools(filled)
    label = _label(pools)
    lines: list[Text] = []
    for pool, shares in pools:
        means = [_mean(shares[at : at + cells.nodes]) for at in range(0, len(shares), cells.nodes)]
        in_line = max(1, (width - label) // cells.columns)
        for at in range(0, len(means), in_line):
            line = Text().append(f"{'' if at else pool:<{label}}", style="bold")
            for share in means[at : at + in_line]:
                line.append(_cell(share, cells.columns, glyphs), style=_style(share))
            lines.append(line)
    return lines


def legend(cells: Cells, glyphs: Glyphs) -> str:
    """Say what a cell means."""
    who = "each node is" if cells.nodes == 1 else f"{cells.nodes} nodes are"
    what = "Percent of" if cells.columns == _WIDE else f"{glyphs.levels[0]} to {glyphs.levels[-1]}: how full of"
    return f"{what} what {who} fullest of; {glyphs.empty} is empty"


def _pools(filled: Sequence[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    return [
        (pool, [share for _, share in members])
        for pool, members in groupby(filled, key=lambda each: each[0].rpartition("-")[0])
    ]


def _label(pools: Sequence[tuple[str, list[int]]]) -> int:
    return max(len(pool) for pool, _ in pools) + 1


def _lines(count: int, cells: Cells, columns: int) -> int:
    in_line = max(1, columns // cells.columns)
    return ceil(ceil(count / cells.nodes) / in_line)


def _mean(shares: Sequence[int]) -> int:
    # Rounded up: only nodes that are all empty look empty.
    return ceil(sum(shares) / len(shares))


def _cell(share: int, columns: int, glyphs: Glyphs) -> str:
    if not share:
        return glyphs.empty.rjust(columns)
    if columns > 1:
        return f"{share:>{columns}}"
    return glyphs.levels[min(share * len(glyphs.levels) // 100, len(glyphs.levels) - 1)]


def _style(share: int) -> str:
    if not share:
        return "dim"
    return "green" if share >= 85 else "cyan" if share >= 50 else "yellow"


_GAP: Final = 3
_SIDE_BY_SIDE: Final = 79
"""From so many columns on there are two of what is shown in each."""
_LABEL: Final = 18
_COLUMN: Final = 10
_EVENT_LINES: Final = 4
"""Lines left for what happens, where more telling maps would take them."""


def frame(
    comparison: StrategyComparison, *, width: int, height: int, glyphs: Glyphs, events: Sequence[str] = ()
) -> Text:
    """Draw the comparison as it stands, at most `width` columns; above its result it has at most `height` lines.

    `events` are the last lines of what happened, the newest at the end; as many are shown as there is room for.
    Below some 40 columns and 20 lines it is larger than that.
    """
    is_wide = width >= _SIDE_BY_SIDE
    half = (width - _GAP) // 2 if is_wide else width
    title = f"bayplan demo: {len(comparison.scene.nodes)} nodes, {comparison.scene.pods} pods come and go"
    table, results = _table(comparison), _results(comparison)
    below = _beside(table, results, half) if is_wide else table
    fixed = 1 + (1 if is_wide else 2) + 2 + len(below)
    filled = [fullness(run.simulator.cache.nodes) for run in comparison.runs]
    room = (height - fixed - _EVENT_LINES) // (1 if is_wide else 2)
    cells = cells_for(filled[0], width=half, lines=room)
    maps = [
        _titled(run, node_map(each, cells, width=half, glyphs=glyphs))
        for run, each in zip(comparison.runs, filled, strict=True)
    ]
    lines = [
        *_wrapped(title, width, "bold"),
        *(_beside(maps[0], maps[1], half) if is_wide else [*maps[0], *maps[1]]),
        *_wrapped(legend(cells, glyphs), width, "dim"),
        *below,
    ]
    lines += _news(comparison, events, width, height - len(lines))
    if comparison.finished and not is_wide:
        lines += results
    return Text("\n").join(lines)


def wrapped(line: str, width: int) -> list[str]:
    """Break a line of what happened where it does not fit, between words."""
    return wrap(line, max(width, 1), subsequent_indent=" " * min(7, width // 4), break_on_hyphens=False)


def _titled(run: StrategyRun, lines: list[Text]) -> list[Text]:
    return [Text(f"{run.label}: {run.strategy}", style="bold"), *lines]


def _table(comparison: StrategyComparison) -> list[Text]:
    uses = [run.use for run in comparison.runs]
    counts = [run.counts for run in comparison.runs]
    rows = (
        ("nodes in use", [use.in_use for use in uses]),
        ("could be emptied", [use.emptiable for use in uses]),
        *((where, [each[where] for each in counts]) for where in counts[0]),
        ("all pods", [sum(each.values()) for each in counts]),
    )
    head = Text(f"{'':<{_LABEL}}" + "".join(f"{run.label:>{_COLUMN}}" for run in comparison.runs), style="bold")
    return [head, *(Text(f"{label:<{_LABEL}}" + "".join(f"{each:>{_COLUMN},}" for each in row)) for label, row in rows)]


def _results(comparison: StrategyComparison) -> list[Text]:
    """Of each stage that has ended how many nodes were in use and could be emptied."""
    lines = [Text("nodes in use / could be emptied, when", style="bold")]
    for title, *uses in comparison.results:
        amounts = (f"{use.in_use:,} / {use.emptiable:,}" for use in uses)
        lines.append(Text(f"{title:<{_LABEL}}" + "".join(f"{each:>{_COLUMN}}" for each in amounts)))
    return lines if len(lines) > 1 else []


def _news(comparison: StrategyComparison, events: Sequence[str], width: int, room: int) -> list[Text]:
    """The last evictions, and below them the last of `events`; each whole or not at all."""
    kept: list[Text] = []
    for line in (run.last_eviction for run in comparison.runs):
        broken = _wrapped(line, width, "yellow") if line and events else []
        if len(kept) + len(broken) <= room:
            kept += broken
    recent: list[Text] = []
    for line in reversed(events):
        broken = _wrapped(line, width, "dim")
        if len(kept) + len(recent) + len(broken) > room:
            break
        recent = [*broken, *recent]
    return kept + recent


def _beside(left: Sequence[Text], right: Sequence[Text], width: int) -> list[Text]:
    """Two blocks of lines, of which the left one is made `width` columns wide."""
    lines: list[Text] = []
    for place in range(max(len(left), len(right))):
        line = left[place].copy() if place < len(left) else Text()
        if place < len(right):
            line.pad_right(width + _GAP - line.cell_len)
            line = line + right[place]
        lines.append(line)
    return lines


def _wrapped(line: str, width: int, style: str) -> list[Text]:
    return [Text(each, style=style) for each in wrapped(line, width)]
