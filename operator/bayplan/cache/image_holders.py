"""Which nodes hold which images, for ImageLocality."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Node
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_table import NodeTable

_MAX_SIZE = 2**62


@dataclass(frozen=True, slots=True)
class ImageState:
    """An image some node holds: its `size` in bytes as the first holder in the table tells it, and who holds it.

    `holders` is `(capacity,) bool`, `node_count` how many of it are set.
    """

    size: int
    node_count: int
    holders: NDArray[np.bool_]


class ImageHolders(NodeView):
    """Rows by image name, as one bit per row and name: nodes list dozens of images under several names each."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._rows_of: dict[str, int] = {}
        self._names_at: dict[int, tuple[str, ...]] = {}

    def state(self, name: str) -> ImageState | None:
        """Who holds the image of that full name; None when nobody does."""
        self.catch_up()
        bits = self._rows_of.get(name)
        if bits is None:
            return None
        capacity = self._nodes.capacity
        packed = np.frombuffer(bits.to_bytes((capacity + 7) // 8, "little"), dtype=np.uint8)
        holders = np.unpackbits(packed, count=capacity, bitorder="little").astype(np.bool_)
        first = self._nodes.nodes[(bits & -bits).bit_length() - 1]
        return ImageState(_size(first, name), bits.bit_count(), holders)

    def _start_over(self) -> None:
        self._rows_of.clear()
        self._names_at.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._set(row, _names(self._nodes.nodes[row]))

    def _set(self, row: int, names: tuple[str, ...]) -> None:
        before = self._names_at.get(row, ())
        if before == names:
            return
        bit, rows_of = 1 << row, self._rows_of
        for name in before:
            rest = rows_of[name] & ~bit
            if rest:
                rows_of[name] = rest
            else:
                del rows_of[name]
        for name in names:
            rows_of[name] = rows_of.get(name, 0) | bit
        if names:
            self._names_at[row] = names
        else:
            self._names_at.pop(row, None)


def _names(node: Node | None) -> tuple[str, ...]:
    """The names of the node's images, each once."""
    if node is None:
        return ()
    return tuple(dict.fromkeys(name for image in node.status.images or () for name in image.names or ()))


def _size(node: Node | None, name: str) -> int:
    if node is not None:
        for image in node.status.images or ():
            if name in (image.names or ()):
                return min(max(image.size_bytes, 0), _MAX_SIZE)
    return 0
