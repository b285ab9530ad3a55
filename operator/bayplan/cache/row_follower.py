"""Follows a node table's change logs, so that a reader knows which rows to look at again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable, PodChange

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


class RowFollower:
    """One reader's place in a node table's logs; its first look is at everything."""

    __slots__ = ("_layout", "_nodes", "_objects_at", "_usage_at")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._layout = -1
        self._objects_at = 0
        self._usage_at = 0

    def follow(self) -> RowChange:
        """What changed since the last call."""
        nodes = self._nodes
        objects_at, usage_at, layout = self._objects_at, self._usage_at, self._layout
        self._objects_at = nodes.objects_changed.position
        self._usage_at = nodes.usage_changed.position
        self._layout = nodes.layout
        if layout != nodes.layout:
            return _EVERYTHING
        usage = nodes.usage_changed.since(usage_at) if usage_at != self._usage_at else _NO_ROWS
        objects = nodes.objects_changed.since(objects_at) if objects_at != self._objects_at else _NO_ROWS
        if usage is None or objects is None:
            return _EVERYTHING
        return RowChange(everything=False, usage=usage, objects=objects)


class PodFollower:
    """One reader's place in the log of pods; for readers that count pods, to whom nodes do not matter."""

    __slots__ = ("_at", "_layout", "_nodes")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._layout: int | None = None
        self._at = 0

    def follow(self) -> Sequence[PodChange] | None:
        """The pods that came, went or look different since the last call, in order; None when all must be read anew."""
        nodes, at, layout = self._nodes, self._at, self._layout
        log = nodes.pods_changed
        self._at, self._layout = log.position, nodes.layout
        if layout != nodes.layout:
            return None
        return log.since(at) if at != self._at else ()


class ObjectFollower:
    """One reader's place in the log of node objects alone; for readers that pods do not concern."""

    __slots__ = ("_at", "_layout", "_nodes")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._layout = -1
        self._at = 0

    def follow(self) -> Rows | None:
        """The rows whose node object changed since the last call; None when all must be read anew, as at first."""
        nodes, at, layout = self._nodes, self._at, self._layout
        self._at, self._layout = nodes.objects_changed.position, nodes.layout
        if layout != nodes.layout:
            return None
        return nodes.objects_changed.since(at) if at != self._at else _NO_ROWS
