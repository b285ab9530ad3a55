"""Static volume matching the slow way: every claim against every volume, one node at a time.

Follows kube-scheduler 1.36: component-helpers storage/volume FindMatchingVolume, and findMatchingVolumes around it.
"""

from collections.abc import Sequence

from bayplan.api.objects import Node
from bayplan.api.selectors import compile_label_selector, compile_node_selector
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim


def volumes_on(
    node: Node, claims: Sequence[PersistentVolumeClaim], volumes: Sequence[PersistentVolume]
) -> list[str | None]:
    """The name of the volume each claim gets on the node, claims in order of size; sizes are plain integers."""
    chosen: list[str | None] = []
    for claim in sorted(claims, key=size_of):
        found = _matching(node, claim, volumes, {name for name in chosen if name})
        chosen.append(found)
    return chosen


def size_of(claim: PersistentVolumeClaim) -> int:
    amount = (claim.spec.resources.requests or {}).get("storage")
    assert isinstance(amount, int)
    return amount


def _matching(
    node: Node, claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], excluded: set[str]
) -> str | None:
    smallest: PersistentVolume | None = None
    for volume in volumes:
        if volume.metadata.name in excluded:
            continue
        reference = volume.spec.claim_ref
        mine = (
            reference is not None
            and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
            and reference.uid in ("", claim.metadata.uid)
        )
        if reference is not None and not mine:
            continue
        if _capacity(volume) < size_of(claim):
            continue
        if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        affinity = volume.spec.node_affinity
        reached = affinity is None or (
            affinity.required is not None and compile_node_selector(affinity.required).matches(node.metadata.labels, "")
        )
        if mine:
            return volume.metadata.name if reached else None
        if not reached or not _is_free(volume, claim):
            continue
        if smallest is None or _capacity(smallest) > _capacity(volume):
            smallest = volume
    return None if smallest is None else smallest.metadata.name


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.status.phase != "Available" or volume.spec.storage_class_name != claim.spec.storage_class_name:
        return False
    selector = claim.spec.selector
    if selector is not None and not compile_label_selector(selector).matches(volume.metadata.labels):
        return False
    return set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())


def _capacity(volume: PersistentVolume) -> int:
    amount = (volume.spec.capacity or {}).get("storage")
    assert isinstance(amount, int)
    return amount
