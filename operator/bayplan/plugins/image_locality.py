"""ImageLocality: prefer nodes that hold the pod's images already."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Node
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Reads, Traits

_MAX_SIZE = 2**62
_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_THRESHOLD_PER_IMAGE = 1000 * _MIB


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


class ImageLocality:
    """Scores the bytes a node need not pull, less for images few nodes hold.

    Upstream: plugins/imagelocality/image_locality.go.
    """

    name: ClassVar[str] = "ImageLocality"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODES)

    def __init__(self, nodes: NodeTable) -> None:
        self._holders = ImageHolders(nodes)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _images(pod)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        images = _images(pod)
        cap = _MAX_THRESHOLD_PER_IMAGE * max(len(images), 1)
        total = np.zeros(len(rows), dtype=np.int64)
        for image in images:
            held = self._holders.state(normalized_image_name(image))
            if held is not None:
                # An image on one node of a thousand must not draw the whole workload there.
                worth = int(float(held.size) * (held.node_count / len(nodes)))
                total += held.holders[rows] * np.int64(min(worth, cap))
        return MAX_NODE_SCORE * (np.clip(total, _MIN_THRESHOLD, cap) - _MIN_THRESHOLD) // (cap - _MIN_THRESHOLD)


def normalized_image_name(name: str) -> str:
    """Return the name as nodes list it: with `:latest` when it has no tag; a digest counts as one."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _images(pod: PodInfo) -> tuple[str, ...]:
    """Return the images of all containers and image volumes, repeated as often as they are used."""
    spec = pod.pod.spec
    if not spec.init_containers and not spec.volumes:
        return tuple([container.image for container in spec.containers])
    containers = [container.image for container in (*(spec.init_containers or ()), *spec.containers)]
    volumes = [volume.image.reference for volume in spec.volumes or () if volume.image is not None]
    return (*containers, *volumes)


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
