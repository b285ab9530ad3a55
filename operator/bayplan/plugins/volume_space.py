"""The room that storage drivers say they have for new volumes, by node."""

from dataclasses import dataclass

import numpy as np

from bayplan.api.objects import NodeSelectorTerm
from bayplan.api.quantity import QuantityError, value
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.row_follower import ObjectFollower
from bayplan.plugins.volume_reach import Pin, VolumeReach, label_terms, pin_of

NO_SPACE = -(2**63)
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Capacity:
    """A capacity read once."""

    class_name: str
    limit: int
    pin: Pin | None
    published: CSIStorageCapacity


class StorageSpace:
    """The largest volume of a class that can be made on each node; columns live until a capacity or a node changes."""

    def __init__(self, nodes: NodeTable, listers: Listers, reach: VolumeReach) -> None:
        self._nodes = nodes
        self._reach = reach
        self._rows = ObjectFollower(nodes)
        self._lister = listers.of(CSIStorageCapacity)
        self._at = 0
        self._known: dict[str, _Capacity] = {}
        self._of_class: dict[str, dict[str, _Capacity]] = {}
        self._columns: dict[str, Column] = {}

    def largest(self, class_name: str) -> Column:
        """In bytes, NO_SPACE where nothing can be made, `(capacity,) int64`."""
        self._catch_up()
        column = self._columns.get(class_name)
        if column is None:
            column = self._columns[class_name] = self._build(class_name)
        return column

    def _build(self, class_name: str) -> Column:
        column = np.full(self._nodes.capacity, NO_SPACE, dtype=np.int64)
        pinned: dict[str, list[_Capacity]] = {}
        for capacity in self._of_class.get(class_name, {}).values():
            if capacity.pin is not None:
                pinned.setdefault(capacity.pin.key, []).append(capacity)
                continue
            there = self._reach.of_labels(capacity.published.node_topology)
            column[there] = np.maximum(column[there], capacity.limit)
        for key, capacities in pinned.items():
            labels = self._reach.index.labels.column(key)
            found = [
                (place, each.limit)
                for each in capacities
                if each.pin is not None and (place := labels.id_of(each.pin.value)) is not None
            ]
            if found:
                by_value = np.full(len(labels.values), NO_SPACE, dtype=np.int64)
                places, limits = np.array(found, dtype=np.int64).T
                np.maximum.at(by_value, places, limits)
                np.maximum(column, by_value[labels.ids], out=column)
        return column

    def _catch_up(self) -> None:
        rows = self._rows.follow()
        if rows is None or len(rows):
            self._columns.clear()
        at, self._at = self._at, self._lister.version
        if at == self._at:
            return
        self._columns.clear()
        keys = self._lister.changes.since(at)
        if keys is None:
            self._known.clear()
            self._of_class.clear()
            keys = list(self._lister.objects)
        for key in keys:
            old = self._known.pop(key, None)
            if old is not None:
                others = self._of_class[old.class_name]
                del others[key]
                if not others:
                    del self._of_class[old.class_name]
            published = self._lister.get(key)
            limit = None if published is None else volume_limit(published)
            if published is not None and limit is not None:
                capacity = _Capacity(
                    published.storage_class_name, max(-_MOST, min(limit, _MOST)), _pin(published), published
                )
                self._known[key] = capacity
                self._of_class.setdefault(capacity.class_name, {})[key] = capacity


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; None if nothing, or nothing legible, is said."""
    quantity = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if quantity is None else value(quantity)
    except QuantityError:
        return None


def _pin(capacity: CSIStorageCapacity) -> Pin | None:
    selector = capacity.node_topology
    terms: list[NodeSelectorTerm] = [] if selector is None else label_terms(selector)
    return pin_of(terms)
