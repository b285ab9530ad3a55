"""Static binding: the volume at hand that a claim gets on each node."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import compile_label_selector
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.plugins.volume_binding.class_volumes import NO_VOLUME, Line, Slots, VolumeShelf, Wish, volume_size
from bayplan.plugins.volume_binding.node_topology import Mask, VolumeReach
from bayplan.plugins.volume_binding.volumes_by_class import VolumeStock
from bayplan.plugins.volumes.claims import VolumeError, claim_class

_FILESYSTEM = "Filesystem"
_FEW = 8


@dataclass(slots=True)
class Choice:
    """Which volume a claim gets on each row asked about; `chosen` holds slots of the shelf, `(rows,) intp`."""

    claim: PersistentVolumeClaim
    shelf: VolumeShelf
    chosen: Slots

    def volume_at(self, place: int) -> PersistentVolume | None:
        """The volume on the row at `place` of those asked about."""
        slot = int(self.chosen[place])
        return None if slot == NO_VOLUME else self.shelf.volumes[slot]


def choose_volumes(
    claims: Sequence[PersistentVolumeClaim], stock: VolumeStock, reach: VolumeReach, rows: Rows
) -> list[Choice]:
    """The volume of each claim on each row, in the order of `claims`; no volume serves two claims on a row.

    A volume meant for the claim wins, and where it cannot be used nothing else is taken. Otherwise it is the smallest
    volume that fits, the first of equals. Upstream: component-helpers storage/volume FindMatchingVolume.

    Raises:
        VolumeError: a claim's request is no quantity or its selector is invalid.
    """
    taken: dict[str, _Taken] = {}
    choices: list[Choice] = []
    for claim in claims:
        class_name = claim_class(claim)
        shelf = stock.shelf(class_name)
        chosen = _choose(claim, shelf, reach, rows, taken.get(class_name))
        choices.append(Choice(claim, shelf, chosen))
        if len(choices) < len(claims):
            taken.setdefault(class_name, _Taken(len(rows), len(shelf.volumes))).add(chosen)
    return choices


def requested_storage(claim: PersistentVolumeClaim) -> int:
    """What the claim asks for, exactly, in units of 10**-9 bytes.

    Raises:
        VolumeError: it is no quantity.
    """
    try:
        return nano((claim.spec.resources.requests or {}).get("storage"))
    except QuantityError as error:
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise VolumeError(f"claim {name}: spec.resources.requests[storage]: {error}") from error


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim, or was prebound to it by name (upstream: IsVolumeBoundToClaim)."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or reference.name != meta.name or reference.namespace != meta.namespace:
        return False
    return not reference.uid or reference.uid == meta.uid


class _Taken:
    """The slots that a pod's earlier claims took on each row: as lists while they are few, then as bits."""

    def __init__(self, row_count: int, slot_count: int) -> None:
        self._shape = (row_count, slot_count // 8 + 1)
        self._lists: list[Slots] = []
        self._bits: NDArray[np.uint8] | None = None

    def add(self, chosen: Slots) -> None:
        if self._bits is None:
            self._lists.append(chosen)
            if len(self._lists) <= _FEW:
                return
            self._bits = np.zeros(self._shape, dtype=np.uint8)
        else:
            self._lists = [chosen]
        for slots in self._lists:
            places = np.flatnonzero(slots != NO_VOLUME)
            self._bits[places, slots[places] >> 3] |= _bit(slots[places])

    def has(self, places: Slots, slots: Slots) -> Mask:
        """Which of the slots are taken on the rows at `places`, pair by pair."""
        if self._bits is not None:
            held: Mask = (self._bits[places, slots >> 3] & _bit(slots)) != 0
            return held
        taken = np.zeros(len(places), dtype=np.bool_)
        for chosen in self._lists:
            taken |= chosen[places] == slots
        return taken


def _bit(slots: Slots) -> NDArray[np.uint8]:
    bit: NDArray[np.uint8] = np.left_shift(1, slots & 7).astype(np.uint8)
    return bit


def _choose(
    claim: PersistentVolumeClaim, shelf: VolumeShelf, reach: VolumeReach, rows: Rows, taken: _Taken | None
) -> Slots:
    wish = _wish(claim)
    chosen: Slots = np.full(len(rows), NO_VOLUME, dtype=np.intp)
    left = np.arange(len(rows), dtype=np.intp)
    for slot in shelf.meant_for(f"{claim.metadata.namespace}/{claim.metadata.name}"):
        volume = shelf.volumes[slot]
        if volume is None or not _can_be_meant(volume, claim, wish):
            continue
        # It decides wherever it is not taken, reached or not.
        gone = np.zeros(len(left), dtype=np.bool_) if taken is None else taken.has(left, np.full(len(left), slot))
        decided = left[~gone]
        chosen[decided[reach.of_affinity(volume.spec.node_affinity)[rows[decided]]]] = slot
        left = left[gone]
        if not len(left):
            return chosen
    fitting = shelf.fitting(wish)
    slots = fitting.slots
    if len(slots):
        lines = shelf.lines(fitting, reach, rows[left])
        is_taken = None if taken is None else lambda places, found: taken.has(left[places], slots[found])
        best = _first_fitting(lines, len(slots), len(left), is_taken)
        chosen[left] = np.append(slots, NO_VOLUME)[best]
    return chosen


def _first_fitting(
    lines: Iterable[Line], count: int, row_count: int, is_taken: Callable[[Slots, Slots], Mask] | None
) -> Slots:
    """For each row the first of `count` fitting volumes that is in a line and not taken, or `count`."""
    best = np.full(row_count, count, dtype=np.intp)
    for line in lines:
        places = np.flatnonzero(line.first < line.end)
        at = line.first[places]
        while len(places):
            found = line.places[at]
            again = np.zeros(len(places), dtype=np.bool_) if is_taken is None else is_taken(places, found)
            usable = places[~again]
            best[usable] = np.minimum(best[usable], found[~again])
            again[again] = at[again] + 1 < line.end[places[again]]
            places, at = places[again], at[again] + 1
    return best


def _wish(claim: PersistentVolumeClaim) -> Wish:
    spec = claim.spec
    selector = None if spec.selector is None else compile_label_selector(spec.selector)
    if selector is not None and selector.error:
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise VolumeError(f"error creating internal label selector for claim: {name}: {selector.error}")
    mode = _FILESYSTEM if spec.volume_mode is None else spec.volume_mode
    access = frozenset(spec.access_modes or ())
    return Wish(requested_storage(claim), mode, spec.volume_attributes_class_name or "", access, selector)


def _can_be_meant(volume: PersistentVolume, claim: PersistentVolumeClaim, wish: Wish) -> bool:
    """Whether a volume is bound to the claim, and is what it asks for in all but access modes and labels."""
    spec = volume.spec
    size = volume_size(volume)
    return (
        is_meant_for(volume, claim)
        and (_FILESYSTEM if spec.volume_mode is None else spec.volume_mode) == wish.mode
        and (spec.volume_attributes_class_name or "") == wish.attributes
        and volume.metadata.deletion_timestamp is None
        and size is not None
        and size >= wish.size
    )
