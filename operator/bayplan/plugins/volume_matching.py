"""Static binding: the volume at hand that a claim gets on each node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import compile_label_selector
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.volume_claims import VolumeError, claim_class
from bayplan.plugins.volume_reach import NodeReach, Places

_AVAILABLE = "Available"
_FILESYSTEM = "Filesystem"
_STORAGE = "storage"

NO_VOLUME = -1
"""In `Choice.chosen`: no volume matches on that node."""


@dataclass(slots=True)
class Choice:
    """Which of `volumes` a claim gets on each row asked about; `chosen` holds places in `volumes`, `(rows,) intp`."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    chosen: Places


def choose_volumes(
    claims: Sequence[PersistentVolumeClaim],
    volumes_of_class: Callable[[str], Sequence[PersistentVolume]],
    reach: NodeReach,
    row_count: int,
) -> list[Choice]:
    """The volume of each claim on each row, in the order of `claims`; no volume serves two claims on a row.

    A volume meant for the claim wins, and where it cannot be used nothing else is taken. Otherwise it is the smallest
    volume that fits, the first of equals. Upstream: component-helpers storage/volume FindMatchingVolume.

    Raises:
        VolumeError: a claim's request is no quantity or its selector is invalid.
    """
    taken: dict[str, list[Places]] = {}
    choices: list[Choice] = []
    for claim in claims:
        choice = _choose(claim, volumes_of_class(claim_class(claim)), reach, row_count, taken)
        choices.append(choice)
        if len(choices) < len(claims):
            _note_taken(choice, taken)
    return choices


def requested_storage(claim: PersistentVolumeClaim) -> int:
    """What the claim asks for, exactly, in units of 10**-9 bytes.

    Raises:
        VolumeError: it is no quantity.
    """
    try:
        return nano((claim.spec.resources.requests or {}).get(_STORAGE))
    except QuantityError as error:
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise VolumeError(f"claim {name}: spec.resources.requests[storage]: {error}") from error


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim, or was prebound to it by name (upstream: IsVolumeBoundToClaim)."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or reference.name != meta.name or reference.namespace != meta.namespace:
        return False
    return not reference.uid or reference.uid == meta.uid


def _choose(
    claim: PersistentVolumeClaim,
    volumes: Sequence[PersistentVolume],
    reach: NodeReach,
    row_count: int,
    taken: dict[str, list[Places]],
) -> Choice:
    meant, free = _candidates(claim, volumes)
    candidates = [*meant, *free]
    chosen: Places = np.full(row_count, NO_VOLUME, dtype=np.intp)
    is_open = np.ones(row_count, dtype=np.bool_)
    left = row_count
    for place, volume in enumerate(candidates):
        if not left:
            break
        reached = reach.of_affinity(volume.spec.node_affinity)
        mine = reached[is_open[reached]]
        elsewhere = taken.get(volume.metadata.name)
        if elsewhere is not None:
            mine = mine[~np.isin(mine, np.concatenate(elsewhere))]
        chosen[mine] = place
        if place < len(meant):
            # A volume meant for the claim decides wherever it is not taken, reached or not.
            before, is_open = is_open, np.zeros(row_count, dtype=np.bool_)
            for places in elsewhere or ():
                is_open[places] = before[places]
            left = int(np.count_nonzero(is_open))
        else:
            is_open[mine] = False
            left -= len(mine)
    return Choice(claim, candidates, chosen)


def _candidates(
    claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]
) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
    """The volumes meant for the claim, and the free ones that would do, smallest first."""
    requested = requested_storage(claim)
    selector = None if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
    if selector is not None and selector.error:
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise VolumeError(f"error creating internal label selector for claim: {name}: {selector.error}")
    mode = _FILESYSTEM if claim.spec.volume_mode is None else claim.spec.volume_mode
    modes = set(claim.spec.access_modes or ())
    attributes = claim.spec.volume_attributes_class_name or ""
    meant: list[PersistentVolume] = []
    free: list[tuple[int, PersistentVolume]] = []
    for volume in volumes:
        spec = volume.spec
        is_meant = spec.claim_ref is not None
        if is_meant and not is_meant_for(volume, claim):
            continue
        if (_FILESYSTEM if spec.volume_mode is None else spec.volume_mode) != mode:
            continue
        if (spec.volume_attributes_class_name or "") != attributes or volume.metadata.deletion_timestamp is not None:
            continue
        capacity = _capacity(volume)
        if capacity is None or capacity < requested:
            continue
        if is_meant:
            meant.append(volume)
        elif (
            volume.status.phase == _AVAILABLE
            and modes <= set(spec.access_modes or ())
            and (selector is None or selector.matches(volume.metadata.labels))
        ):
            free.append((capacity, volume))
    free.sort(key=lambda entry: entry[0])
    return meant, [volume for _, volume in free]


def _capacity(volume: PersistentVolume) -> int | None:
    try:
        return nano((volume.spec.capacity or {}).get(_STORAGE))
    except QuantityError:
        return None


def _note_taken(choice: Choice, taken: dict[str, list[Places]]) -> None:
    order = np.argsort(choice.chosen, kind="stable")
    ordered = choice.chosen[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=NO_VOLUME))
    for start, places in zip(starts.tolist(), np.split(order, starts)[1:], strict=True):
        taken.setdefault(choice.volumes[ordered[start]].metadata.name, []).append(places)
