"""VolumeRestrictions: keep pods apart that may not use the same disk or claim at once."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, CLAIM_ADD, NODE_ADD, EventRegistration, hint
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reads, Reason, Status, Traits
from bayplan.plugins.volumes.claims import claim_hint, claim_not_found, named_claims
from bayplan.plugins.volumes.volumes_in_use import VolumesInUse, are_in_conflict, disk_uses

_DISK_CONFLICT = "node(s) had no available disk"
_CLAIM_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_WITHOUT_PRE_FILTER = 'cannot read "PreFilterVolumeRestrictions" from cycleState'
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class VolumeRestrictions:
    """Rejects nodes whose pods hold the pod's in-tree disks, and all nodes while its ReadWriteOncePod claim is in use.

    Upstream: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
    """

    name: ClassVar[str] = "VolumeRestrictions"
    # Which pods have what a pod needs is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER)

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._in_use = VolumesInUse(nodes)
        self._claims = listers.of(PersistentVolumeClaim)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(disk_uses([pod.pod])), bool(named_claims(pod.pod))

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
        # Of the real table, also where another is filtered: upstream decides before pods are added or removed.
        if not disk_uses([pod.pod]) and not any(self._in_use.is_named(key) for key in exclusive):
            return PreFilterResult(SKIP)
        state[self.name] = exclusive
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        # Not taken from PreFilter: a dry run of preemption removes pods, and nominated pods are added.
        conflicts = self._in_use.conflicts(disk_uses([pod.pod]), nodes, rows)
        if claims := state.get(self.name, ()):
            conflicts |= self._in_use.are_named_in(claims, nodes, rows)
        # A profile that disables the PreFilter gets the error where no disk keeps the pod away, as upstream.
        elsewhere = Code.SUCCESS if self.name in state else Code.ERROR
        return np.where(conflicts, np.int8(Code.UNSCHEDULABLE), np.int8(elsewhere))

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        conflicts = self._in_use.conflicts(disk_uses([pod.pod]), nodes, rows)
        rest = _CLAIM_CONFLICT if self.name in state else _WITHOUT_PRE_FILTER
        return [Reason(_DISK_CONFLICT, conflicts), Reason(rest, ~conflicts)]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ASSIGNED_POD_DELETE, hint(_held_what_is_wanted, old=PodInfo)),
            EventRegistration(NODE_ADD),
            EventRegistration(CLAIM_ADD, claim_hint(ephemeral_too=False)),
        )


def _held_what_is_wanted(pod: PodInfo, old: PodInfo, new: object) -> bool:
    """Return whether the deleted pod held one of the pod's disks or claims."""
    # Few pods hold anything, and the waiting one may want a thousand claims: what was held is looked at first.
    if old.namespace != pod.namespace or not old.pod.spec.volumes:
        return False
    claims, disks = set(named_claims(old.pod)), disk_uses([old.pod])
    shared = bool(claims) and not claims.isdisjoint(named_claims(pod.pod))
    return shared or (bool(disks) and are_in_conflict(disk_uses([pod.pod]), disks))
