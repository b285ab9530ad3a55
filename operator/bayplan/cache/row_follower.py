"""Follows a node table's change logs, so that a reader knows which rows to look at again."""

from dataclasses import dataclass

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable

_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


@dataclass(slots=True)  # made twice a cycle: a frozen one takes three times as long
class RowChange:
    """What changed since a reader last looked.

    `usage` are rows whose pods or node object changed, `objects` those of them whose node object did; both are empty
    when `everything` must be read anew.
    """

    everything: bool
    usage: Rows
    objects: Rows


EVERYTHING = RowChange(everything=True, usage=_NO_ROWS, objects=_NO_ROWS)
NOTHING = RowChange(everything=False, usage=_NO_ROWS, objects=_NO_ROWS)

_Position = tuple[int, int, int]
"""Layout, and where the logs of objects and of usage end."""


class RowFollower:
    """One reader's position in a node table's logs; its first look is at everything."""

    __slots__ = ("_nodes", "_position")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._position: _Position = (-1, 0, 0)

    def follow(self) -> RowChange:
        """What changed since the last call."""
        nodes, before = self._nodes, self._position
        position = (nodes.layout, nodes.objects_changed.position, nodes.usage_changed.position)
        if before == position:
            return NOTHING
        self._position = position
        if before[0] != position[0]:
            return EVERYTHING
        usage = nodes.usage_changed.since(before[2]) if before[2] != position[2] else _NO_ROWS
        objects = nodes.objects_changed.since(before[1]) if before[1] != position[1] else _NO_ROWS
        if usage is None or objects is None:
            return EVERYTHING
        return RowChange(everything=False, usage=usage, objects=objects)
