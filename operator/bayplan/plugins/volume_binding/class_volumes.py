"""What claims ask of volumes, and the volumes of a class as columns: a claim is compared with all of them at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.api.meta_objects import key_of
from bayplan.api.quantity import QuantityError, milli, value_of_milli
from bayplan.api.selectors import LabelMatcher, compile_label_selector
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from bayplan.api.storage_objects import PersistentVolumeClaimSpec as ClaimSpec
from bayplan.cache.change_log import KeyFollower, Rows
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.node_index import InternedColumn
from bayplan.cache.node_table import Column
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.plugins.volume_binding.assume_cache import AssumeCache
from bayplan.plugins.volume_binding.node_topology import NO_AFFINITY, Affinities, NodeTopology
from bayplan.plugins.volumes.claims import VolumeError, is_volume_bound_to_claim, volume_class

Slots = NDArray[np.intp]
"""Numbers of volumes within a class; a volume keeps its slot while it exists."""

NO_VOLUME: Final = -1
"""Stands in place of a slot for "no volume"."""

_AVAILABLE = "Available"
_FILESYSTEM = "Filesystem"
_UNREADABLE = -1
_FIRST_SLOTS = 64
_KEPT_FITTINGS = 64
"""For how many different requirements the fitting volumes are kept; each takes up to 16 bytes a volume."""


class VolumeForm(NamedTuple):
    """What is the same for many volumes: the mode, the VolumeAttributesClass ("" for none) and the access modes."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]

    @classmethod
    def of(cls, spec: PersistentVolumeSpec | ClaimSpec) -> "VolumeForm":
        """Read the form that a volume has or that a claim asks for."""
        mode = _FILESYSTEM if spec.volume_mode is None else spec.volume_mode
        return cls(mode, spec.volume_attributes_class_name or "", frozenset(spec.access_modes or ()))

    def has_mode_of(self, wanted: "VolumeForm") -> bool:
        """Tell whether mode and attributes class are the same; a prebound volume needs no more than that."""
        return (self.mode, self.attributes_class) == (wanted.mode, wanted.attributes_class)

    def satisfies(self, wanted: "VolumeForm") -> bool:
        """Tell whether a free volume of this form will do for a claim of the form `wanted`."""
        return self.has_mode_of(wanted) and wanted.access_modes <= self.access_modes


@dataclass(frozen=True, slots=True)
class ClaimRequirements:
    """What a claim asks of a volume; `size` is in thousandths of a byte."""

    size: int
    form: VolumeForm
    selector: LabelMatcher | None

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "ClaimRequirements":
        """Read the requirements of a claim.

        Raises:
            VolumeError: its request is no quantity or its selector is invalid.
        """
        spec = claim.spec
        selector = None if spec.selector is None else compile_label_selector(spec.selector)
        if selector is not None and selector.error:
            key = key_of(claim.metadata)
            raise VolumeError(f"error creating internal label selector for claim: {key}: {selector.error}")
        return cls(requested_storage(claim), VolumeForm.of(spec), selector)


def requested_storage(claim: PersistentVolumeClaim) -> int:
    """Return what the claim asks for, in thousandths of a byte.

    Raises:
        VolumeError: it is no quantity.
    """
    try:
        return milli((claim.spec.resources.requests or {}).get("storage"))
    except QuantityError as error:
        raise VolumeError(f"claim {key_of(claim.metadata)}: spec.resources.requests[storage]: {error}") from error


def volume_size(volume: PersistentVolume) -> int:
    """Return the volume's size, in thousandths of a byte; less than any request if it is no quantity."""
    try:
        return milli((volume.spec.capacity or {}).get("storage"))
    except QuantityError:
        return _UNREADABLE


@dataclass(frozen=True, slots=True)
class FittingVolumes:
    """The free volumes that meet a claim's requirements, wherever they can be used.

    Attributes:
        slots: The volumes, the smallest first, and of equally large ones the one that came first.
        by_affinity: Places in `slots`, sorted by the volumes' node affinity and then ascending.
        starts: For each number of an affinity where its part of `by_affinity` starts.
        ends: Likewise where it ends.
    """

    slots: Slots
    by_affinity: Slots
    starts: Slots
    ends: Slots


VolumeRun = tuple[Slots, Slots]
"""For each position a stretch of `FittingVolumes.by_affinity` that can be used there: its first place, and its end."""


class ClassVolumes:
    """Keeps the volumes of one storage class in the order they came."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.volumes: list[PersistentVolume | None] = []
        """By slot; None where a volume is gone."""
        self._slot_of: dict[str, int] = {}
        self._gone = 0
        self._prebound: InvertedIndex[str, int] = InvertedIndex()
        self._sizes = InternedColumn(_FIRST_SLOTS, 0)
        self._size_ranks: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        # The form of a volume that is not free is None.
        self._forms: InternedColumn[VolumeForm | None] = InternedColumn(_FIRST_SLOTS, None)
        self._affinities = Affinities(_FIRST_SLOTS)
        self._columns = (self._sizes, self._forms, self._affinities.column)
        self._fitting: RecentlyUsed[ClaimRequirements, FittingVolumes] = RecentlyUsed(_KEPT_FITTINGS)

    @property
    def is_empty(self) -> bool:
        """Whether no volume is left."""
        return not self._slot_of

    def set(self, volume: PersistentVolume) -> None:
        """Take in a new or changed volume."""
        self._fitting.clear()
        slot = self._slot_of.setdefault(volume.metadata.name, len(self.volumes))
        if slot == len(self.volumes):
            self.volumes.append(None)
            if slot == len(self._sizes.ids):
                for column in self._columns:
                    column.ids = np.resize(column.ids, 2 * slot)
        self._prebound.set(slot, _claim_key(volume))
        self.volumes[slot] = volume
        is_free = (
            volume.spec.claim_ref is None
            and volume.status.phase == _AVAILABLE
            and volume.metadata.deletion_timestamp is None
        )
        self._sizes.set(slot, volume_size(volume))
        self._forms.set(slot, VolumeForm.of(volume.spec) if is_free else None)
        self._affinities.set(slot, volume.spec.node_affinity)
        if any(column.crowded for column in self._columns):
            self._renumber()

    def delete(self, name: str) -> None:
        """Forget a volume."""
        slot = self._slot_of.pop(name, None)
        if slot is None:
            return
        self._fitting.clear()
        self._prebound.set(slot, ())
        self.volumes[slot] = None
        self._forms.set(slot, None)
        self._gone += 1
        if self._gone > _FIRST_SLOTS and 2 * self._gone > len(self.volumes):
            self._renumber()

    def prebound(self, claim: PersistentVolumeClaim, wanted: ClaimRequirements) -> list[int]:
        """Return the slots of volumes bound to the claim that have its mode and its size, in order."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        return [
            slot
            for slot in sorted(self._prebound.get(key))
            if (volume := self.volumes[slot]) is not None
            and is_volume_bound_to_claim(volume, claim)
            and VolumeForm.of(volume.spec).has_mode_of(wanted.form)
            and volume.metadata.deletion_timestamp is None
            and volume_size(volume) >= wanted.size
        ]

    def fitting(self, wanted: ClaimRequirements) -> FittingVolumes:
        """Return the free volumes that would do for a claim; they are found once for all claims that ask the same."""
        known = self._fitting.get(wanted) if wanted.selector is None else None
        if known is None:
            slots = self._fitting_slots(wanted)
            affinities = self._affinities.column.ids[slots]
            counts = np.bincount(affinities, minlength=len(self._affinities.column.values))
            ends = np.cumsum(counts)
            known = FittingVolumes(slots, np.argsort(affinities, kind="stable"), ends - counts, ends)
            if wanted.selector is None:
                self._fitting.put(wanted, known)
        return known

    def sizes(self, slots: Slots) -> Column:
        """Return how large the volumes in these slots are, in bytes, `(slots,) int64`."""
        return self._sizes.each(slots, value_of_milli, np.int64)

    def runs(self, fitting: FittingVolumes, topology: NodeTopology, rows: Rows) -> Iterator[VolumeRun]:
        """Yield the fitting volumes that can be used on each row; on one row a volume is in one run at most."""
        for numbers in self._affinities.on_rows(fitting.starts < fitting.ends, topology, rows):
            is_usable = numbers != NO_AFFINITY
            yield np.where(is_usable, fitting.starts[numbers], 0), np.where(is_usable, fitting.ends[numbers], 0)

    def _renumber(self) -> None:
        """Drop empty slots, and what only volumes had that are gone or changed."""
        left = [volume for volume in self.volumes if volume is not None]
        self._clear()
        for volume in left:
            self.set(volume)

    def _fitting_slots(self, wanted: ClaimRequirements) -> Slots:
        count = len(self.volumes)
        forms = np.array([form is not None and form.satisfies(wanted.form) for form in self._forms.values])
        sizes = np.array([size >= wanted.size for size in self._sizes.values])
        if not forms.any() or not sizes.any():
            return np.empty(0, dtype=np.intp)
        slots = np.flatnonzero(forms[self._forms.ids[:count]] & sizes[self._sizes.ids[:count]])
        if wanted.selector is not None:
            slots = slots[[wanted.selector.matches(self._labels_of(slot)) for slot in slots.tolist()]]
        if len(self._size_ranks) != len(self._sizes.values):
            order = sorted(range(len(self._sizes.values)), key=self._sizes.values.__getitem__)
            self._size_ranks = np.empty(len(order), dtype=np.int32)
            self._size_ranks[order] = np.arange(len(order), dtype=np.int32)
        return slots[np.argsort(self._size_ranks[self._sizes.ids[slots]], kind="stable")]

    def _labels_of(self, slot: int) -> dict[str, str] | None:
        volume = self.volumes[slot]
        return None if volume is None else volume.metadata.labels


class VolumesByClass:
    """Keeps all volumes by storage class, as they are assumed to be; an answer is never older than the assume cache."""

    def __init__(self, volumes: AssumeCache[PersistentVolume]) -> None:
        self._volumes = volumes
        self._listed = volumes.lister.follower()
        self._assumed = KeyFollower(volumes.changes, volumes.lister.objects)
        self._classes: dict[str, ClassVolumes] = {}
        self._known: dict[str, tuple[str, str]] = {}
        """The class and the UID of each volume, by name."""

    def of_class(self, class_name: str) -> ClassVolumes:
        """Return the volumes of a class."""
        self._catch_up()
        return self._classes.get(class_name) or ClassVolumes()

    def _catch_up(self) -> None:
        listed, assumed = (each.follow(self._known) for each in (self._listed, self._assumed))
        for name in dict.fromkeys([*listed, *assumed]):
            self._update(name)

    def _update(self, name: str) -> None:
        volume = self._volumes.get(name)
        known = self._known.pop(name, None)
        identity = None if volume is None else (volume_class(volume), volume.metadata.uid)
        if known is not None and known != identity:
            volumes = self._classes[known[0]]
            volumes.delete(name)
            if volumes.is_empty:
                del self._classes[known[0]]
        if volume is not None and identity is not None:
            self._known[name] = identity
            self._classes.setdefault(identity[0], ClassVolumes()).set(volume)


def _claim_key(volume: PersistentVolume) -> list[str]:
    """Return the key of the claim that a volume is bound to, if there is one."""
    reference = volume.spec.claim_ref
    return [] if reference is None else [f"{reference.namespace}/{reference.name}"]
