"""How many devices nodes have of an extended resource that a DeviceClass provides, and how many of those are taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.api.device_objects import Device, ResourceSliceSpec
from bayplan.api.objects import NodeSelector
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.devices.allocated_state import PoolId
from bayplan.devices.allocator import Allocator
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.plugins.node_affinity import NodeSelection

_Rows = NDArray[np.intp]


@dataclass(slots=True)
class _Part:
    """Devices of one pool that the same rows reach; `held` are taken as of a `version` of the pool's usage."""

    pool: PoolId
    names: Sequence[str]
    rows: _Rows
    version: int = 0
    held: int = 0


class _Counted(NamedTuple):
    """What a class has for each row, and the parts of which that is the sum; good for what it was `made_of`."""

    made_of: tuple[object, ...]
    parts: Sequence[_Part]
    total: Column
    held: Column
    broken: _Rows


class DeviceAmounts:
    """Gives NodeResourcesFit and NodeResourcesBalancedAllocation columns to score by where device plugins give none.

    Devices that the class selects count, in slices of whatever generation, tainted or not; those that a claim has, or
    has a share of, are taken. A node for one of whose devices a selector fails has none. Upstream:
    noderesources/resource_allocation.go calculateDRAResourceTotals.
    """

    def __init__(self, listers: Listers, nodes: NodeTable, index: NodeIndex) -> None:
        self.extended = ExtendedResources(listers)
        self._cache = listers.shared(ClaimCache)
        self._nodes = nodes
        self._index = index
        self._counted: dict[str, _Counted] = {}

    def concerns(self, pod: PodInfo, names: Sequence[str]) -> bool:
        """Return whether the pod asks for one of these resources and a class provides it.

        Devices come and go without a change of the row, so such a pod shares no scores.
        """
        asked = self.extended.asked_by(pod)
        return bool(asked) and any(name in asked for name in names)

    def columns(self, name: str) -> tuple[Column, Column] | None:
        """Return what is taken of a resource and what there is, row by row; None if no class provides it.

        Where a device plugin offers it, that is what its node lists and what pods request.
        """
        class_name = self.extended.classes.get(name)
        if class_name is None:
            return None
        counted = self._count(class_name)
        by_plugin = self._nodes.offered(name)
        taken = np.where(by_plugin > 0, self._nodes.taken(name), counted.held)
        return taken, np.where(by_plugin > 0, by_plugin, counted.total)

    def _count(self, class_name: str) -> _Counted:
        allocator, state = self._cache.allocator(), self._cache.state
        made_of = (allocator, self._nodes.layout, self._nodes.objects_changed.position)
        known = self._counted.get(class_name)
        if known is None or known.made_of != made_of:
            if len(self._counted) > len(self.extended.classes):
                self._counted.clear()
            known = self._counted[class_name] = self._made(class_name, allocator, made_of)
        for part in known.parts:
            if part.version != (version := state.version(part.pool)):
                usage = state.usage(part.pool)
                held = sum(name in usage for name in part.names)
                known.held[part.rows] += held - part.held
                part.version, part.held = version, held
        known.held[known.broken] = 0
        return known

    def _made(self, class_name: str, allocator: Allocator, made_of: tuple[object, ...]) -> _Counted:
        parts: list[_Part] = []
        broken: list[_Rows] = []
        for wire, places in allocator.selected(class_name):
            spec, devices = wire.spec, wire.spec.devices or ()
            pool = (spec.driver, spec.pool.name)
            if places is None:
                broken.append(self._reached_by(spec))
            elif not spec.per_device_node_selection:
                parts.append(_Part(pool, [devices[at].name for at in places], self._reached_by(spec)))
            else:
                parts += [_Part(pool, [devices[at].name], self._reached_by(devices[at])) for at in places]
        total = np.zeros(self._nodes.capacity, dtype=np.int64)
        for part in parts:
            total[part.rows] += len(part.names)
        without = np.concatenate([*broken, np.zeros(0, dtype=np.intp)])
        total[without] = 0
        return _Counted(made_of, parts, total, np.zeros_like(total), without)

    def _reached_by(self, what: ResourceSliceSpec | Device) -> _Rows:
        """Return the rows that a slice or a device says it is for."""
        rows = self._nodes.rows()
        if what.all_nodes:
            return rows
        if what.node_name:
            row = self._nodes.row(what.node_name)
            return np.array([] if row is None else [row], dtype=np.intp)
        selector: NodeSelector | None = what.node_selector
        if selector is None:
            return rows[:0]
        return rows[NodeSelection(selector.node_selector_terms or ()).matches(self._index, self._nodes, rows)]
