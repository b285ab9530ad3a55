"""VolumeBinding's score the slow way: one node at a time, in fractions.

Follows kube-scheduler 1.37 plugins/volumebinding/scorer.go, for claims with spec.storageClassName.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

from tests.reference.requests import exact

from bayplan.api.storage_objects import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

SHAPE = ((0, 100), (100, 0))


def storage_score(
    matched: Sequence[tuple[PersistentVolumeClaim, PersistentVolume]],
    provisioned: Sequence[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]],
    shape: Sequence[tuple[int, int]] = SHAPE,
) -> int:
    """The score of a node where claims get these volumes, and others are made of these capacities."""
    requested: dict[str, Fraction] = {}
    available: dict[str, Fraction] = {}
    for claim, volume in matched:
        name = claim.spec.storage_class_name or ""
        requested[name] = requested.get(name, Fraction(0)) + _storage(claim.spec.resources.requests)
        available[name] = available.get(name, Fraction(0)) + _storage(volume.spec.capacity)
    for claim, capacity in () if matched else provisioned:
        if capacity is not None:
            name = claim.spec.storage_class_name or ""
            requested[name] = requested.get(name, Fraction(0)) + _storage(claim.spec.resources.requests)
            available[name] = exact(capacity.capacity)
    scores = [_at(_utilization(requested[name], available[name]), shape) for name in requested]
    return floor(Fraction(sum(scores), len(scores)) + Fraction(1, 2)) if scores else 0


def _utilization(requested: Fraction, available: Fraction) -> int:
    return 100 if not available or requested > available else floor(100 * requested / available)


def _at(percent: int, shape: Sequence[tuple[int, int]]) -> int:
    for index, (utilization, score) in enumerate(shape):
        if percent <= utilization:
            if index == 0:
                return score
            before, start = shape[index - 1]
            return start + int(Fraction((score - start) * (percent - before), utilization - before))
    return shape[-1][1]


def _storage(amounts: Mapping[str, object] | None) -> Fraction:
    return exact((amounts or {}).get("storage"))
