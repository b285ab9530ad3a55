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


_EVERYTHING = RowChange(everything=True, usage=_NO_ROWS, objects=_NO_ROWS)
_NOTHING = RowChange(everything=False, usage=_NO_ROWS, objects=_NO_ROWS)

_Place = tuple[int, int, int]
_START: _Place = (-1, 0, 0)


class RowFollower:
    """One reader's place in a node table's logs; its first look is at everything."""

    __slots__ = ("_before", "_change", "_nodes", "_place")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._before = self._place = _START
        self._change = _EVERYTHING

    def follow(self) -> RowChange:
        """What changed since the last call."""
        nodes = self._nodes
        self._before = self._place
        self._place = (nodes.layout, nodes.objects_changed.position, nodes.usage_changed.position)
        self._change = self._since(self._before)
        return self._change

    def follow_to(self, ahead: "RowFollower") -> RowChange:
        """As `follow`, up to where `ahead` is, of the same table; what it just found is not looked up again."""
        before, self._place = self._place, ahead._place  # noqa: SLF001 - another of the same kind
        if before == self._place:
            return _NOTHING
        return ahead._change if before == ahead._before else self._since(before)  # noqa: SLF001 - likewise

    def _since(self, place: _Place) -> RowChange:
        layout, objects_at, usage_at = self._place
        if place == self._place:
            return _NOTHING
        if place[0] != layout:
            return _EVERYTHING
        nodes = self._nodes
        usage = nodes.usage_changed.since(place[2]) if place[2] != usage_at else _NO_ROWS
        objects = nodes.objects_changed.since(place[1]) if place[1] != objects_at else _NO_ROWS
        if usage is None or objects is None:
            return _EVERYTHING
        return RowChange(everything=False, usage=usage, objects=objects)
