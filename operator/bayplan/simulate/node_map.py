"""A map of nodes as text: a cell each that says how full it is, in as few columns and lines as there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import Final

import numpy as np
from rich.text import Text

from bayplan.cache.node_table import NodeTable

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
