"""The room that storage drivers say they have for new volumes, by node."""

from dataclasses import dataclass, field

import numpy as np

from bayplan.api.quantity import QuantityError, value
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import LabelColumn
from bayplan.cache.node_table import Column, NodeTable
from bayplan.plugins.volume_binding.node_topology import Pin, VolumeReach, label_terms, pin_of

NO_SPACE = -(2**63)
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Capacity:
    """A capacity read once."""

    class_name: str
    limit: int
    pin: Pin | None
    published: CSIStorageCapacity


class StorageSpace(NodeView):
    """The largest volume of a class that can be made on each node; columns live until a capacity or a node changes."""

    def __init__(self, nodes: NodeTable, listers: Listers, reach: VolumeReach) -> None:
        super().__init__(nodes)
        self._reach = reach
        self._lister = listers.of(CSIStorageCapacity)
        self._at = 0
        self._known: dict[str, _Capacity] = {}
        self._classes: dict[str, _ClassSpace] = {}

    def largest(self, class_name: str) -> Column:
        """In bytes, NO_SPACE where nothing can be made, `(capacity,) int64`."""
        self._catch_up()
        space = self._classes.get(class_name)
        if space is None:
            return np.full(self._nodes.capacity, NO_SPACE, dtype=np.int64)
        if space.column is None:
            space.column = np.full(self._nodes.capacity, NO_SPACE, dtype=np.int64)
            for capacity in space.others.values():
                there = self._reach.of_labels(capacity.published.node_topology)
                space.column[there] = np.maximum(space.column[there], capacity.limit)
            for key, limits in space.pinned.items():
                labels = self._reach.index.labels.column(key)
                np.maximum(space.column, limits.by_value(labels)[labels.ids], out=space.column)
        return space.column

    def _catch_up(self) -> None:
        self.catch_up()
        at, self._at = self._at, self._lister.version
        if at == self._at:
            return
        keys = self._lister.changes.since(at)
        if keys is None:
            self._known.clear()
            self._classes.clear()
            keys = list(self._lister.objects)
        for key in keys:
            old = self._known.pop(key, None)
            if old is not None:
                self._classes[old.class_name].drop(key, old)
            published = self._lister.get(key)
            limit = None if published is None else volume_limit(published)
            if published is not None and limit is not None:
                limit = max(-_MOST, min(limit, _MOST))
                capacity = _Capacity(published.storage_class_name, limit, _pin(published), published)
                self._known[key] = capacity
                self._classes.setdefault(capacity.class_name, _ClassSpace()).put(key, capacity)

    def _read_all(self) -> None:
        for space in self._classes.values():
            space.column = None


@dataclass(slots=True)
class _ClassSpace:
    """The capacities of a class by key, those for one label value apart, and what they come to on each row."""

    pinned: dict[str, "_PinnedLimits"] = field(default_factory=dict)
    others: dict[str, _Capacity] = field(default_factory=dict)
    column: Column | None = None

    def put(self, key: str, capacity: _Capacity) -> None:
        self.column = None
        if capacity.pin is None:
            self.others[key] = capacity
        else:
            self.pinned.setdefault(capacity.pin.key, _PinnedLimits()).put(key, capacity.pin.value, capacity.limit)

    def drop(self, key: str, capacity: _Capacity) -> None:
        self.column = None
        if capacity.pin is None:
            del self.others[key]
        else:
            self.pinned[capacity.pin.key].drop(key, capacity.pin.value)


class _PinnedLimits:
    """The limits of nodes with a value of one label."""

    def __init__(self) -> None:
        self._limits: dict[str, dict[str, int]] = {}
        self._labels: LabelColumn | None = None
        self._by_value: Column = np.empty(0, dtype=np.int64)

    def put(self, key: str, label: str, limit: int) -> None:
        """Take in a capacity that was not there."""
        self._limits.setdefault(label, {})[key] = limit
        self._renew(label)

    def drop(self, key: str, label: str) -> None:
        """Forget a capacity."""
        limits = self._limits[label]
        del limits[key]
        if not limits:
            del self._limits[label]
        self._renew(label)

    def by_value(self, labels: LabelColumn) -> Column:
        """The largest limit for each value of the label column, `(values,) int64`."""
        if labels is not self._labels or len(self._by_value) != len(labels.values):
            self._labels = labels
            # The first value stands for nodes without the label.
            found = [NO_SPACE, *(self._largest(label or "") for label in labels.values[1:])]
            self._by_value = np.array(found, dtype=np.int64)
        return self._by_value

    def _renew(self, label: str) -> None:
        place = None if self._labels is None else self._labels.id_of(label)
        if place is not None and place < len(self._by_value):
            self._by_value[place] = self._largest(label)

    def _largest(self, label: str) -> int:
        return max(self._limits.get(label, {}).values(), default=NO_SPACE)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; None if nothing, or nothing legible, is said."""
    quantity = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if quantity is None else value(quantity)
    except QuantityError:
        return None


def _pin(capacity: CSIStorageCapacity) -> Pin | None:
    return None if capacity.node_topology is None else pin_of(label_terms(capacity.node_topology))
