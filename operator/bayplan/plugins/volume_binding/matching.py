"""Static binding: which of the free volumes a claim gets on each node."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column
from bayplan.plugins.volume_binding.class_volumes import (
    NO_VOLUME,
    ClaimRequirements,
    ClassVolumes,
    FittingVolumes,
    Slots,
    VolumeRun,
    VolumesByClass,
)
from bayplan.plugins.volume_binding.node_topology import Mask, NodeTopology
from bayplan.plugins.volumes.claims import claim_class

_MOST_LISTS = 8
"""For how many claims of a pod lists are compared one by one; bits take longer to set up, but not longer to compare."""


@dataclass(frozen=True, slots=True)
class MatchedClaim:
    """The volumes that a claim gets: `slots` of its class by position, `(positions,) intp`."""

    claim: PersistentVolumeClaim
    volumes: ClassVolumes
    slots: Slots

    def volume_at(self, position: int) -> PersistentVolume | None:
        """Return the claim's volume on the row at a position."""
        slot = int(self.slots[position])
        return None if slot == NO_VOLUME else self.volumes.volumes[slot]

    @property
    def is_matched(self) -> Mask:
        """Where the claim gets a volume, `(positions,) bool`."""
        matched: Mask = self.slots != NO_VOLUME
        return matched

    def sizes(self) -> Column:
        """Return how large its volumes are, in bytes, 0 where it gets none, `(positions,) int64`."""
        sizes: Column = np.zeros(len(self.slots), dtype=np.int64)
        sizes[self.is_matched] = self.volumes.sizes(self.slots[self.is_matched])
        return sizes


def find_matching_volumes(
    claims: Sequence[PersistentVolumeClaim], volumes: VolumesByClass, topology: NodeTopology, rows: Rows
) -> list[MatchedClaim]:
    """Pick the volume of each claim on each row, in the order of `claims`; on a row no volume serves two claims.

    A volume that is bound to the claim wins, and where it cannot be used nothing else is taken. Otherwise the smallest
    volume that fits is taken, the first of equals. Upstream: binder.go findMatchingVolumes, and component-helpers
    storage/volume FindMatchingVolume.

    Raises:
        VolumeError: a claim's request is no quantity or its selector is invalid.
    """
    chosen_before: dict[str, _ChosenSlots] = {}
    matched: list[MatchedClaim] = []
    for claim in claims:
        class_name = claim_class(claim)
        of_class = volumes.of_class(class_name)
        slots = _match(claim, of_class, topology, rows, chosen_before.get(class_name))
        matched.append(MatchedClaim(claim, of_class, slots))
        if len(matched) < len(claims):
            chosen_before.setdefault(class_name, _ChosenSlots(len(rows), len(of_class.volumes))).add(slots)
    return matched


class _ChosenSlots:
    """The slots that a pod's earlier claims got at each position: as lists while they are few, then as bits."""

    def __init__(self, position_count: int, slot_count: int) -> None:
        self._shape = (position_count, slot_count // 8 + 1)
        self._lists: list[Slots] = []
        self._bits: NDArray[np.uint8] | None = None

    def add(self, chosen: Slots) -> None:
        if self._bits is None:
            self._lists.append(chosen)
            if len(self._lists) <= _MOST_LISTS:
                return
            self._bits = np.zeros(self._shape, dtype=np.uint8)
        else:
            self._lists = [chosen]
        for slots in self._lists:
            positions = np.flatnonzero(slots != NO_VOLUME)
            self._bits[positions, slots[positions] >> 3] |= _bit(slots[positions])

    def has(self, positions: Slots, slots: Slots) -> Mask:
        """Tell which of the slots were chosen at the positions, pair by pair."""
        if self._bits is not None:
            held: Mask = (self._bits[positions, slots >> 3] & _bit(slots)) != 0
            return held
        chosen = np.zeros(len(positions), dtype=np.bool_)
        for earlier in self._lists:
            chosen |= earlier[positions] == slots
        return chosen


def _bit(slots: Slots) -> NDArray[np.uint8]:
    bit: NDArray[np.uint8] = np.left_shift(1, slots & 7).astype(np.uint8)
    return bit


def _match(
    claim: PersistentVolumeClaim,
    volumes: ClassVolumes,
    topology: NodeTopology,
    rows: Rows,
    chosen_before: _ChosenSlots | None,
) -> Slots:
    wanted = ClaimRequirements.of(claim)
    matched: Slots = np.full(len(rows), NO_VOLUME, dtype=np.intp)
    left = np.arange(len(rows), dtype=np.intp)
    for slot in volumes.prebound(claim, wanted):
        volume = volumes.volumes[slot]
        affinity = None if volume is None else volume.spec.node_affinity
        # Where no earlier claim has this volume the search ends: the claim gets it, or nothing if it cannot be used.
        is_open = np.ones(len(left), dtype=np.bool_)
        if chosen_before is not None:
            is_open = ~chosen_before.has(left, np.full(len(left), slot))
        decided = left[is_open]
        matched[decided[topology.matching_affinity(affinity)[rows[decided]]]] = slot
        left = left[~is_open]
        if not len(left):
            return matched
    fitting = volumes.fitting(wanted)
    slots = fitting.slots
    if len(slots):
        runs = volumes.runs(fitting, topology, rows[left])
        has = None if chosen_before is None else lambda at, places: chosen_before.has(left[at], slots[places])
        matched[left] = np.append(slots, NO_VOLUME)[_first_fitting(runs, fitting, len(left), has)]
    return matched


def _first_fitting(
    runs: Iterable[VolumeRun],
    fitting: FittingVolumes,
    position_count: int,
    is_chosen: Callable[[Slots, Slots], Mask] | None,
) -> Slots:
    """Return for each position the first place in `fitting.slots` that is in a run and not chosen, or its length."""
    best = np.full(position_count, len(fitting.slots), dtype=np.intp)
    for first, end in runs:
        positions = np.flatnonzero(first < end)
        at = first[positions]
        while len(positions):
            places = fitting.by_affinity[at]
            again = np.zeros(len(positions), dtype=np.bool_) if is_chosen is None else is_chosen(positions, places)
            free = positions[~again]
            best[free] = np.minimum(best[free], places[~again])
            # Where an earlier claim has the volume, the next one of the run is looked at.
            again[again] = at[again] + 1 < end[positions[again]]
            positions, at = positions[again], at[again] + 1
    return best
