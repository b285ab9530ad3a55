"""VolumeRestrictions: disks and claims that two pods may not use at once."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from bayplan.api.objects import Pod, Volume
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_TAINT,
    ActionType,
    EventRegistration,
    EventResource,
    QueueingHint,
    cluster_event,
)
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reason, Status
from bayplan.framework.traits import Reads, Traits
from bayplan.plugins.volumes.claims import claim_not_found, named_claims, names_claim
from bayplan.plugins.volumes.volumes_in_use import VolumesInUse, is_disk, text_of

_DISK_CONFLICT = "node(s) had no available disk"
_CLAIM_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"

_Disk = tuple[str, ...]
"""What tells a disk from others: its kind and its name there."""
_Uses = dict[_Disk, set[bool]]
"""By disk the ways it is used: read-only, or not."""


class VolumeRestrictions:
    """Rejects nodes whose pods hold the pod's in-tree disks, and all nodes while its ReadWriteOncePod claim is in use.

    Upstream: plugins/volumerestrictions/volume_restrictions.go.
    """

    name: ClassVar[str] = "VolumeRestrictions"
    # Which pods have what a pod needs is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER)

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._in_use = VolumesInUse(nodes)
        self._claims = listers.of(PersistentVolumeClaim)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(_disks(pod.pod)), bool(named_claims(pod.pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not pod.pod.spec.volumes:
            return NOT_CONCERNED
        exclusive: set[str] = set()
        for name in named_claims(pod.pod):
            claim = self._claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (claim_not_found(name),)))
            if _READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.add(f"{pod.namespace}/{name}")
        if not _disks(pod.pod) and not self._are_in_use(exclusive, nodes):
            return PreFilterResult(SKIP)
        state[self.name] = exclusive
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        # Asked again, not remembered: preemption asks about tables without the pods in the way.
        if self._are_in_use(state.get(self.name, ()), nodes):
            return np.full(len(rows), Code.UNSCHEDULABLE, dtype=np.int8)
        return self._disk_conflicts(pod, nodes, rows) * np.int8(Code.UNSCHEDULABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        conflicts = self._disk_conflicts(pod, nodes, rows)
        return [Reason(_DISK_CONFLICT, conflicts), Reason(_CLAIM_CONFLICT, ~conflicts)]

    def events_to_register(self) -> Sequence[EventRegistration]:
        claim_added = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        return (
            EventRegistration(ASSIGNED_POD_DELETE, _held_what_it_needs),
            EventRegistration(NODE_ADD),
            EventRegistration(NODE_TAINT),
            EventRegistration(claim_added, _is_its_claim),
        )

    def _are_in_use(self, claim_keys: Iterable[str], nodes: NodeTable) -> bool:
        return any(self._in_use.is_named(nodes, key) for key in claim_keys)

    def _disk_conflicts(self, pod: PodInfo, nodes: NodeTable, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        conflicts = np.zeros(len(rows), dtype=np.bool_)
        disks = _disks(pod.pod)
        if disks:
            uses = _uses(disks)
            for place in self._in_use.rows_with(disks, nodes, rows):
                conflicts[place] = _are_in_conflict(uses, self._in_use.disks(nodes, int(rows[place])))
        return conflicts


def _disks(pod: Pod) -> list[Volume]:
    return [volume for volume in pod.spec.volumes or () if is_disk(volume)]


def _are_in_conflict(uses: _Uses, held: Iterable[Volume]) -> bool:
    """Whether a pod that uses disks so cannot be where these are held: read-only ones mostly can be shared."""
    for disk, is_read_only in _disks_of(held):
        if (ways := uses.get(disk)) and not (is_read_only and ways == {True}):
            return True
    return False


def _uses(disks: Iterable[Volume]) -> _Uses:
    uses: _Uses = {}
    for disk, is_read_only in _disks_of(disks):
        uses.setdefault(disk, set()).add(is_read_only)
    return uses


def _disks_of(volumes: Iterable[Volume]) -> Iterator[tuple[_Disk, bool]]:
    """What must not be shared, and whether it is used read-only; a volume on several monitors counts on each."""
    for volume in volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            yield ("gce", text_of(gce, "pdName")), _is_read_only(gce)
        if (aws := volume.aws_elastic_block_store) is not None:
            # Not even read-only ones can be shared.
            yield ("aws", text_of(aws, "volumeID")), False
        if (iscsi := volume.iscsi) is not None:
            yield ("iscsi", text_of(iscsi, "iqn")), _is_read_only(iscsi)
        if (rbd := volume.rbd) is not None:
            for monitor in _monitors(rbd):
                yield ("rbd", text_of(rbd, "pool"), text_of(rbd, "image"), monitor), _is_read_only(rbd)


def _is_read_only(source: dict[str, Any]) -> bool:
    return source.get("readOnly") is True


def _monitors(source: dict[str, Any]) -> set[str]:
    monitors = source.get("monitors")
    return {each for each in monitors if isinstance(each, str)} if isinstance(monitors, list) else set()


def _held_what_it_needs(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Whether the deleted pod held a disk or a claim of the rejected one."""
    if not isinstance(old, PodInfo):
        return QueueingHint.QUEUE
    if old.namespace != pod.namespace:
        return QueueingHint.SKIP
    shared = set(named_claims(pod.pod)) & set(named_claims(old.pod))
    return (
        QueueingHint.QUEUE if shared or _are_in_conflict(_uses(_disks(pod.pod)), _disks(old.pod)) else QueueingHint.SKIP
    )


def _is_its_claim(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if isinstance(new, PersistentVolumeClaim) and not names_claim(pod, new, ephemeral_too=False):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE
