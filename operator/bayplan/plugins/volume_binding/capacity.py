"""The space that CSI drivers publish for new volumes, by node (upstream: binder.go hasEnoughCapacity)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayplan.api.meta_objects import LabelSelector, Quantity
from bayplan.api.quantity import QuantityError, value
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import LabelColumn
from bayplan.cache.node_table import Column, NodeTable
from bayplan.plugins.volume_binding.node_topology import (
    NodeTopology,
    NumberByLabelValue,
    SingleLabelTerm,
    label_terms,
    single_label_term,
)

NO_SPACE = -(2**63)


class Space(NamedTuple):
    """What is published for a class, in bytes by row, `(capacity,) int64`.

    Of several capacities that reach a node the one that counts is that with the largest volume, then that with most
    in total; kube-scheduler takes any that is large enough.
    """

    largest_volume: Column
    """The largest volume that can be made there, NO_SPACE where none can."""
    total: Column
    """All that can be made there, 0 where it is not said."""


class _Amounts(NamedTuple):
    """What a capacity publishes, in bytes."""

    limit: int
    total: int


@dataclass(frozen=True, slots=True)
class _Capacity:
    """A CSIStorageCapacity as it was read; `term` is all that `topology` selects by, if it is that simple."""

    class_name: str
    amounts: _Amounts
    topology: LabelSelector | None
    term: SingleLabelTerm | None


class StorageCapacities(NodeView):
    """Keeps what each node has space for, by class, until a capacity or a node changes."""

    def __init__(self, nodes: NodeTable, listers: Listers, topology: NodeTopology) -> None:
        super().__init__(nodes)
        self._topology = topology
        self._lister = listers.of(CSIStorageCapacity)
        self._changes = self._lister.follower()
        self._known: dict[str, _Capacity] = {}
        self._classes: dict[str, _ClassCapacities] = {}

    def of_class(self, class_name: str) -> Space:
        """Return what is published for a class."""
        self._catch_up()
        capacities = self._classes.get(class_name)
        if capacities is None:
            return _no_space(self._nodes)
        if capacities.space is None:
            capacities.space = capacities.space_on(self._nodes, self._topology)
        return capacities.space

    def _catch_up(self) -> None:
        self.catch_up()
        for key in self._changes.follow(self._known):
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
            capacities.space = None


class _ClassCapacities:
    """Keeps the capacities of one storage class; those of nodes with one label value are told apart.

    Drivers of local storage publish a capacity for each node, so there may be as many as nodes.
    """

    def __init__(self) -> None:
        self.space: Space | None = None
        """What `space_on` returned, until something changes."""
        self._by_label: dict[str, _CapacitiesByLabel] = {}
        self._others: dict[str, _Capacity] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the class has no capacity."""
        return not (self._by_label or self._others)

    def space_on(self, nodes: NodeTable, topology: NodeTopology) -> Space:
        """Return what each row has space for."""
        space = _no_space(nodes)
        for capacity in self._others.values():
            there = topology.matching_labels(capacity.topology)
            _raise_to(space, np.where(there, capacity.amounts.limit, NO_SPACE), np.int64(capacity.amounts.total))
        for label, capacities in self._by_label.items():
            _raise_to(space, *capacities.on(topology.index.labels.column(label)))
        return space

    def set(self, key: str, capacity: _Capacity) -> None:
        """Take in a capacity that was not there."""
        self.space = None
        term = capacity.term
        if term is None:
            self._others[key] = capacity
        else:
            self._by_label.setdefault(term.key, _CapacitiesByLabel()).set(term.value, key, capacity.amounts)

    def delete(self, key: str, capacity: _Capacity) -> None:
        """Forget a capacity."""
        self.space = None
        term = capacity.term
        if term is None:
            del self._others[key]
            return
        capacities = self._by_label[term.key]
        capacities.delete(term.value, key)
        if capacities.is_empty:
            del self._by_label[term.key]


class _CapacitiesByLabel:
    """Keeps the capacities of one class for nodes with a value of one label, and which of a value's counts."""

    def __init__(self) -> None:
        self._published: dict[str, dict[str, _Amounts]] = {}
        self._limits = NumberByLabelValue(NO_SPACE)
        self._totals = NumberByLabelValue(0)

    @property
    def is_empty(self) -> bool:
        """Whether no value of the label has a capacity."""
        return not self._published

    def on(self, labels: LabelColumn) -> Space:
        """Return what each row has space for by its value in the label's column."""
        return Space(self._limits.by_id(labels)[labels.ids], self._totals.by_id(labels)[labels.ids])

    def set(self, value: str, key: str, amounts: _Amounts) -> None:
        """Take in a capacity that was not there."""
        self._published.setdefault(value, {})[key] = amounts
        self._renew(value)

    def delete(self, value: str, key: str) -> None:
        """Forget a capacity."""
        del self._published[value][key]
        self._renew(value)

    def _renew(self, value: str) -> None:
        published = self._published[value]
        if not published:
            del self._published[value]
        counted = max(published.values(), default=_Amounts(NO_SPACE, 0))
        self._limits.set(value, counted.limit)
        self._totals.set(value, counted.total)


def _no_space(nodes: NodeTable) -> Space:
    return Space(np.full(nodes.capacity, NO_SPACE, dtype=np.int64), np.zeros(nodes.capacity, dtype=np.int64))


def _raise_to(space: Space, limits: Column, totals: "Column | np.int64") -> None:
    """Let a capacity count where it is the best yet; `limits` is NO_SPACE where it is not published."""
    known, known_totals = space
    counts = (limits > known) | ((limits == known) & (limits != NO_SPACE) & (totals > known_totals))
    np.copyto(known_totals, totals, where=counts)
    np.copyto(known, limits, where=counts)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the largest volume that can be made, in bytes; None if none, or no readable one, is published."""
    return _bytes(capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size)


def _read(capacity: CSIStorageCapacity | None) -> _Capacity | None:
    limit = None if capacity is None else volume_limit(capacity)
    if capacity is None or limit is None:
        return None
    topology = capacity.node_topology
    term = None if topology is None else single_label_term(label_terms(topology))
    return _Capacity(capacity.storage_class_name, _Amounts(limit, _bytes(capacity.capacity) or 0), topology, term)


def _bytes(quantity: Quantity | None) -> int | None:
    try:
        return None if quantity is None else value(quantity)
    except QuantityError:
        return None
