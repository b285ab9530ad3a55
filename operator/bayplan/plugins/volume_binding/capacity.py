"""The space that CSI drivers publish for new volumes, by node (upstream: binder.go hasEnoughCapacity)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.quantity import QuantityError, value
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.change_log import KeyFollower
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.plugins.volume_binding.node_topology import (
    NodeTopology,
    NumberByLabelValue,
    SingleLabelTerm,
    label_terms,
    single_label_term,
)

NO_SPACE = -(2**63)
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Capacity:
    """A CSIStorageCapacity as it was read; `term` is all that `topology` selects by, if it is that simple."""

    class_name: str
    limit: int
    topology: LabelSelector | None
    term: SingleLabelTerm | None


class StorageCapacities(NodeView):
    """Keeps the largest volume of a class that each node has space for, until a capacity or a node changes."""

    def __init__(self, nodes: NodeTable, listers: Listers, topology: NodeTopology) -> None:
        super().__init__(nodes)
        self._topology = topology
        self._lister = listers.of(CSIStorageCapacity)
        self._changes = KeyFollower(self._lister.changes)
        self._known: dict[str, _Capacity] = {}
        self._classes: dict[str, _ClassCapacities] = {}

    def largest_volume(self, class_name: str) -> Column:
        """Return the largest volume in bytes, NO_SPACE where none can be made, `(capacity,) int64`."""
        self._catch_up()
        capacities = self._classes.get(class_name)
        if capacities is None:
            return np.full(self._nodes.capacity, NO_SPACE, dtype=np.int64)
        if capacities.column is None:
            capacities.column = capacities.largest_on(self._nodes, self._topology)
        return capacities.column

    def _catch_up(self) -> None:
        self.catch_up()
        keys: Iterable[str] | None = self._changes.follow()
        if keys is None:
            self._known.clear()
            self._classes.clear()
            keys = self._lister.objects
        for key in keys:
            old, new = self._known.pop(key, None), _read(self._lister.get(key))
            if old is not None:
                capacities = self._classes[old.class_name]
                capacities.delete(key, old)
                if capacities.is_empty:
                    del self._classes[old.class_name]
            if new is not None:
                self._known[key] = new
                self._classes.setdefault(new.class_name, _ClassCapacities()).set(key, new)

    def _read_all(self) -> None:
        for capacities in self._classes.values():
            capacities.column = None


class _ClassCapacities:
    """Keeps the capacities of one storage class; those of nodes with one label value are told apart.

    Drivers of local storage publish a capacity for each node, so there may be as many as nodes.
    """

    def __init__(self) -> None:
        self.column: Column | None = None
        """What `largest_on` returned, until something changes."""
        self._limits: dict[SingleLabelTerm, dict[str, int]] = {}
        self._largest: dict[str, NumberByLabelValue] = {}
        self._others: dict[str, _Capacity] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the class has no capacity."""
        return not (self._limits or self._others)

    def largest_on(self, nodes: NodeTable, topology: NodeTopology) -> Column:
        """Return the largest limit on each row, `(capacity,) int64`."""
        column = np.full(nodes.capacity, NO_SPACE, dtype=np.int64)
        for capacity in self._others.values():
            there = topology.matching_labels(capacity.topology)
            column[there] = np.maximum(column[there], capacity.limit)
        for key, limits in self._largest.items():
            labels = topology.index.labels.column(key)
            np.maximum(column, limits.by_id(labels)[labels.ids], out=column)
        return column

    def set(self, key: str, capacity: _Capacity) -> None:
        """Take in a capacity that was not there."""
        self.column = None
        if capacity.term is None:
            self._others[key] = capacity
        else:
            self._limits.setdefault(capacity.term, {})[key] = capacity.limit
            self._renew(capacity.term)

    def delete(self, key: str, capacity: _Capacity) -> None:
        """Forget a capacity."""
        self.column = None
        if capacity.term is None:
            del self._others[key]
        else:
            del self._limits[capacity.term][key]
            self._renew(capacity.term)

    def _renew(self, term: SingleLabelTerm) -> None:
        limits = self._limits[term]
        if not limits:
            del self._limits[term]
        largest = self._largest.setdefault(term.key, NumberByLabelValue(NO_SPACE))
        largest.set(term.value, max(limits.values(), default=NO_SPACE))


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the largest volume that can be made, in bytes; None if none, or no readable one, is published."""
    quantity = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if quantity is None else value(quantity)
    except QuantityError:
        return None


def _read(capacity: CSIStorageCapacity | None) -> _Capacity | None:
    limit = None if capacity is None else volume_limit(capacity)
    if capacity is None or limit is None:
        return None
    topology = capacity.node_topology
    term = None if topology is None else single_label_term(label_terms(topology))
    return _Capacity(capacity.storage_class_name, min(limit, _MOST), topology, term)
