"""The volumes of one storage class as columns, so that a claim is held against all of them at once."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import LabelMatcher
from bayplan.api.storage_objects import PersistentVolume, VolumeNodeAffinity
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import LabelColumn
from bayplan.plugins.volume_binding.node_topology import Pin, VolumeReach, pin_of, terms_key

Slots = NDArray[np.intp]
"""Places of volumes on a shelf; a volume keeps its slot while it exists."""

NO_VOLUME: Final = -1
"""Instead of a slot: no volume."""

_AVAILABLE = "Available"
_FILESYSTEM = "Filesystem"
_FIRST_SLOTS = 64

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim asks of a volume; `size` is exact, in units of 10**-9 bytes."""

    size: int
    mode: str
    attributes: str
    access: frozenset[str]
    selector: LabelMatcher | None


@dataclass(frozen=True, slots=True)
class _Kind:
    """What of a volume is the same for many."""

    mode: str
    attributes: str
    access: frozenset[str]

    def serves(self, wish: Wish) -> bool:
        return (self.mode, self.attributes) == (wish.mode, wish.attributes) and wish.access <= self.access


class _Interned(Generic[V]):
    """Distinct values, each with a small number."""

    def __init__(self) -> None:
        self.values: list[V] = []
        self._place_of: dict[V, int] = {}

    def place(self, value: V) -> int:
        place = self._place_of.get(value)
        if place is None:
            place = self._place_of[value] = len(self.values)
            self.values.append(value)
        return place


@dataclass(frozen=True, slots=True)
class Fitting:
    """The free volumes that a wish could have: `slots`, smallest first, the first of equals first.

    `grouped` are places in `slots` by the volumes' affinity, those of affinity `a` from `starts[a]` to `ends[a]`.
    """

    slots: Slots
    grouped: Slots
    starts: Slots
    ends: Slots


class VolumeShelf:
    """Volumes in the order they came; `put` and `drop` keep it current, one volume at a time."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.volumes: list[PersistentVolume | None] = []
        """By slot; None where a volume is gone."""
        self._slot_of: dict[str, int] = {}
        self._gone = 0
        self._meant: dict[str, set[int]] = {}
        self._sizes: _Interned[int] = _Interned()
        self._ranks: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._kinds: _Interned[_Kind] = _Interned()
        self._reach = _Reaches()
        self._fitting: dict[Wish, Fitting] = {}
        self._is_free = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        self._size_at, self._kind_at, self._reach_at = (np.zeros(_FIRST_SLOTS, dtype=np.int32) for _ in range(3))

    @property
    def is_empty(self) -> bool:
        """Whether no volume is left."""
        return not self._slot_of

    def put(self, volume: PersistentVolume) -> None:
        """Take in a new or changed volume."""
        self._fitting.clear()
        slot = self._slot_of.get(volume.metadata.name)
        if slot is None:
            slot = self._slot_of[volume.metadata.name] = len(self.volumes)
            self.volumes.append(None)
            if slot == len(self._is_free):
                self._grow()
        else:
            self._forget_claim(slot)
        self.volumes[slot] = volume
        spec = volume.spec
        if spec.claim_ref is not None:
            self._meant.setdefault(f"{spec.claim_ref.namespace}/{spec.claim_ref.name}", set()).add(slot)
        size = volume_size(volume)
        self._is_free[slot] = (
            spec.claim_ref is None
            and volume.status.phase == _AVAILABLE
            and volume.metadata.deletion_timestamp is None
            and size is not None
        )
        self._size_at[slot] = self._sizes.place(size or 0)
        self._kind_at[slot] = self._kinds.place(_kind(volume))
        self._reach_at[slot] = self._reach.place(spec.node_affinity)

    def drop(self, name: str) -> None:
        """Forget a volume."""
        slot = self._slot_of.pop(name, None)
        if slot is None:
            return
        self._fitting.clear()
        self._forget_claim(slot)
        self.volumes[slot] = None
        self._is_free[slot] = False
        self._gone += 1
        if self._gone > _FIRST_SLOTS and 2 * self._gone > len(self.volumes):
            left = [volume for volume in self.volumes if volume is not None]
            self._clear()
            for volume in left:
                self.put(volume)

    def meant_for(self, claim_key: str) -> list[int]:
        """The slots of volumes that name the claim "namespace/name", of whatever UID, in order."""
        return sorted(self._meant.get(claim_key, ()))

    def fitting(self, wish: Wish) -> Fitting:
        """The free volumes that would do."""
        known = self._fitting.get(wish) if wish.selector is None else None
        if known is None:
            slots = self._fitting_slots(wish)
            affinities = self._reach_at[slots]
            counts = np.bincount(affinities, minlength=self._reach.count)
            ends = np.cumsum(counts)
            known = Fitting(slots, np.argsort(affinities, kind="stable"), ends - counts, ends)
            if wish.selector is None:
                self._fitting[wish] = known
        return known

    def lines(self, fitting: Fitting, reach: VolumeReach, rows: Rows) -> Iterator["Line"]:
        """The fitting volumes that reach each row, as lines of which every volume is in one at most on each row."""
        wanted = fitting.starts < fitting.ends
        for at in self._reach.on_rows(wanted, reach, rows):
            reached = at != NO_VOLUME
            first, end = np.where(reached, fitting.starts[at], 0), np.where(reached, fitting.ends[at], 0)
            yield Line(fitting.grouped, first, end)

    def _fitting_slots(self, wish: Wish) -> Slots:
        count = len(self.volumes)
        kinds = np.array([kind.serves(wish) for kind in self._kinds.values], dtype=np.bool_)
        sizes = np.array([size >= wish.size for size in self._sizes.values], dtype=np.bool_)
        if not kinds.any() or not sizes.any():
            return np.empty(0, dtype=np.intp)
        suits = self._is_free[:count] & kinds[self._kind_at[:count]] & sizes[self._size_at[:count]]
        slots = np.flatnonzero(suits)
        if wish.selector is not None:
            slots = slots[[wish.selector.matches(self._labels(slot)) for slot in slots.tolist()]]
        if len(self._ranks) != len(self._sizes.values):
            order = sorted(range(len(self._sizes.values)), key=self._sizes.values.__getitem__)
            self._ranks = np.empty(len(order), dtype=np.int32)
            self._ranks[order] = np.arange(len(order), dtype=np.int32)
        return slots[np.argsort(self._ranks[self._size_at[slots]], kind="stable")]

    def _labels(self, slot: int) -> dict[str, str]:
        volume = self.volumes[slot]
        return {} if volume is None else volume.metadata.labels or {}

    def _forget_claim(self, slot: int) -> None:
        volume = self.volumes[slot]
        reference = None if volume is None else volume.spec.claim_ref
        if reference is not None:
            key = f"{reference.namespace}/{reference.name}"
            slots = self._meant[key]
            slots.discard(slot)
            if not slots:
                del self._meant[key]

    def _grow(self) -> None:
        for name in ("_is_free", "_size_at", "_kind_at", "_reach_at"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros_like(column)]))


@dataclass(slots=True)
class Line:
    """For each row a stretch `first` to `end` of `places`, which are places among the fitting volumes, ascending."""

    places: Slots
    first: Slots
    end: Slots


class _Reaches:
    """The distinct node affinities of a shelf's volumes, by number."""

    def __init__(self) -> None:
        self._place_of: dict[Hashable, int] = {}
        self._by_key: dict[str, _PinsOfKey] = {}
        self._others: dict[int, VolumeNodeAffinity | None] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._place_of)

    def place(self, affinity: VolumeNodeAffinity | None) -> int:
        """The number of an affinity."""
        terms = None if affinity is None or affinity.required is None else affinity.required.node_selector_terms or ()
        pin = None if terms is None else pin_of(terms)
        key = pin or (None if terms is None else terms_key(terms))
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = len(self._place_of)
            if isinstance(pin, Pin):
                self._by_key.setdefault(pin.key, _PinsOfKey()).places[pin.value] = place
            else:
                self._others[place] = affinity
        return place

    def on_rows(self, wanted: NDArray[np.bool_], reach: VolumeReach, rows: Rows) -> Iterator[Slots]:
        """Arrays of the numbers of `wanted` affinities that hold for each row, or NO_VOLUME."""
        for key, pins in self._by_key.items():
            labels = reach.index.labels.column(key)
            yield pins.by_value(labels)[labels.ids[rows]]
        for place, affinity in self._others.items():
            if wanted[place]:
                yield np.where(reach.of_affinity(affinity)[rows], place, NO_VOLUME)


class _PinsOfKey:
    """The affinities that ask for one value of a certain label."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self._known: tuple[LabelColumn, int, int] | None = None
        self._by_value: Slots = np.empty(0, dtype=np.intp)

    def by_value(self, labels: LabelColumn) -> Slots:
        """The affinity's number for each value of the label column, or NO_VOLUME, `(values,) intp`."""
        known = self._known
        if known is None or known[0] is not labels or known[1:] != (len(labels.values), len(self.places)):
            self._known = (labels, len(labels.values), len(self.places))
            self._by_value = np.array(
                [self.places.get(value or "", NO_VOLUME) for value in labels.values], dtype=np.intp
            )
            self._by_value[0] = NO_VOLUME
        return self._by_value


def volume_size(volume: PersistentVolume) -> int | None:
    """The volume's size, exactly, in units of 10**-9 bytes; None if it is no quantity."""
    try:
        return nano((volume.spec.capacity or {}).get("storage"))
    except QuantityError:
        return None


def _kind(volume: PersistentVolume) -> _Kind:
    spec = volume.spec
    mode = _FILESYSTEM if spec.volume_mode is None else spec.volume_mode
    return _Kind(mode, spec.volume_attributes_class_name or "", frozenset(spec.access_modes or ()))
