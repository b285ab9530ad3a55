"""What is derived from a node table, and read again only where the table changed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_log import PodChange

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class _Log(Protocol[C_co]):
    """A log as change_log has them."""

    @property
    def position(self) -> int: ...

    def since(self, position: int) -> C_co | None: ...


class _View(ABC, Generic[C]):
    """One reader's place in one of a table's logs: `catch_up` reads everything at first, then what changed.

    Everything is read again, too, when the table was laid out anew or when the log no longer reaches back far enough.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._layout: int | None = None
        self.read_to = 0
        """Up to where it has read the log."""

    def catch_up(self) -> bool:
        """Take in what changed in the table since the last call; whether anything did."""
        log, layout, position = self._log(), self._layout, self.read_to
        self._layout, self.read_to = self._nodes.layout, log.position
        changes = None
        if layout == self._layout:
            if position == self.read_to:
                return False
            changes = log.since(position)
        if changes is None:
            self._read_all()
        else:
            self._read(changes)
        return True

    @abstractmethod
    def _log(self) -> _Log[C]:
        """The log to follow."""

    @abstractmethod
    def _read_all(self) -> None:
        """Derive everything anew."""

    def _read(self, changes: C) -> None:
        """Take in some changes; by default everything is derived anew."""
        self._read_all()


class NodeView(_View[Rows]):
    """Follows node objects, for readers that pods do not concern; `_read` gets the rows whose object changed.

    A subclass overrides one of `_read_all` and `_read`, which come down to each other, or both.
    """

    def _log(self) -> _Log[Rows]:
        return self._nodes.objects_changed

    def _read_all(self) -> None:
        self._start_over()
        self._read(np.arange(self._nodes.capacity))

    def _start_over(self) -> None:
        """Make room for what all rows say, and forget what they said."""


class UsageView(NodeView):
    """Follows nodes and the pods on them; `_read` gets the rows where either changed."""

    def _log(self) -> _Log[Rows]:
        return self._nodes.usage_changed


class PodView(_View[Sequence[PodChange]]):
    """Follows pods, for readers that count them; `_read` gets those that came, went or look different.

    They come in order, but for large ones, which come at once: a reader must end alike in any order.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        nodes.pods_changed.readers.add(self)

    def _log(self) -> _Log[Sequence[PodChange]]:
        return self._nodes.pods_changed

    def take(self, change: PodChange) -> None:
        """See `PodReader.take`; who is to start over will find the pod as it is then."""
        if self._layout == self._nodes.layout:
            self._read((change,))
