"""ImageLocality: prefer nodes that hold the pod's images already."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.traits import Reads, Traits

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_THRESHOLD_PER_CONTAINER = 1000 * _MIB


class ImageLocality:
    """Scores the bytes a node need not pull, less for images few nodes hold.

    Upstream: plugins/imagelocality/image_locality.go.
    """

    name: ClassVar[str] = "ImageLocality"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODES)

    def __init__(self, index: NodeIndex) -> None:
        self._index = index

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return (_container_count(pod), _images(pod))

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        cap = _MAX_THRESHOLD_PER_CONTAINER * max(_container_count(pod), 1)
        total = np.zeros(len(rows), dtype=np.int64)
        for image in _images(pod):
            held = self._index.images.state(normalized_image_name(image))
            if held is not None:
                # An image on one node of a thousand must not draw the whole workload there.
                worth = int(float(held.size) * (held.node_count / len(nodes)))
                total += held.holders[rows] * np.int64(min(worth, cap))
        return MAX_NODE_SCORE * (np.clip(total, _MIN_THRESHOLD, cap) - _MIN_THRESHOLD) // (cap - _MIN_THRESHOLD)


def normalized_image_name(name: str) -> str:
    """Return the name as nodes list it: with `:latest` when it has no tag; a digest counts as one."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _container_count(pod: PodInfo) -> int:
    spec = pod.pod.spec
    return len(spec.containers) + len(spec.init_containers or ())


def _images(pod: PodInfo) -> tuple[str, ...]:
    """Return the images of all containers and image volumes, repeated as often as they are used."""
    spec = pod.pod.spec
    if not spec.init_containers and not spec.volumes:
        return tuple([container.image for container in spec.containers])
    containers = [container.image for container in (*(spec.init_containers or ()), *spec.containers)]
    volumes = [volume.image.reference for volume in spec.volumes or () if volume.image is not None]
    return (*containers, *volumes)
