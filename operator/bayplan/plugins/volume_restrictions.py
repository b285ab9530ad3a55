"""VolumeRestrictions: keep pods apart that may not use the same disk or claim at once."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Pod, Volume
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, CLAIM_ADD, NODE_ADD, EventRegistration, hint
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reads, Reason, Status, Traits
from bayplan.plugins.volumes.claims import claim_hint, claim_not_found, named_claims
from bayplan.plugins.volumes.csi_migration import text_of

Disk = tuple[str, ...]
"""What tells an in-tree disk from others: its kind and its name there."""

DiskUses = dict[Disk, bool]
"""The disks that pods use, and whether all of them only read."""

_DISK_CONFLICT = "node(s) had no available disk"
_CLAIM_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_WITHOUT_PRE_FILTER = 'cannot read "PreFilterVolumeRestrictions" from cycleState'
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


def disk_uses(pods: Iterable[Pod]) -> DiskUses:
    """Return the in-tree disks of pods that cannot be shared by all."""
    uses: DiskUses = {}
    for pod in pods:
        for volume in pod.spec.volumes or ():
            for disk, is_read_only in _disks_of(volume):
                uses[disk] = is_read_only and uses.get(disk, True)
    return uses


def are_in_conflict(wanted: DiskUses, held: DiskUses) -> bool:
    """Tell whether a disk is in both and somebody writes to it (upstream: volume_restrictions.go isVolumeConflict)."""
    return any(disk in held and not (is_read_only and held[disk]) for disk, is_read_only in wanted.items())


class VolumesInUse(UsageView):
    """Keeps the in-tree disks and named claims of the pods on each row of a table.

    Rows whose pods use neither cost nothing. An answer is never older than the table. Preemption asks about other
    tables of the same rows, without some of the pods; these are read on the spot.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._disks: dict[int, DiskUses] = {}
        self._rows_of_disk: InvertedIndex[Disk, int] = InvertedIndex()
        self._rows_of_claim: InvertedIndex[str, int] = InvertedIndex()

    def conflicts(self, wanted: DiskUses, nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Tell on which of `rows` the pods keep a pod with `wanted` disks away, `(rows,) bool`."""
        if not wanted:
            return np.zeros(len(rows), dtype=np.bool_)
        if nodes is not self._nodes:
            found = [are_in_conflict(wanted, _disks_on(nodes, row)) for row in rows.tolist()]
            return np.array(found, dtype=np.bool_)
        self.catch_up()
        holders = {row for disk in wanted for row in self._rows_of_disk.get(disk)}
        return np.isin(rows, [row for row in holders if are_in_conflict(wanted, self._disks[row])])

    def is_named(self, claim_key: str) -> bool:
        """Tell whether a persistentVolumeClaim volume of any pod on any node names the claim "namespace/name"."""
        self.catch_up()
        return bool(self._rows_of_claim.get(claim_key))

    def are_named_in(self, claim_keys: Collection[str], nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Tell whether any of the claims is in use if the pods of each of `rows` were those of `nodes`, `(rows,) bool`.

        A claim of the own table counts once, however many pods name it; each pod that another table adds or leaves out
        counts. So one of two users may be enough to leave out (upstream: volume_restrictions.go calPreFilterState).
        """
        used = sum(map(self.is_named, claim_keys))
        if nodes is self._nodes:
            return np.full(len(rows), used > 0)

        def counted(row: int) -> int:
            return used + _references(nodes, row, claim_keys) - _references(self._nodes, row, claim_keys)

        return np.array([counted(row) > 0 for row in rows.tolist()], dtype=np.bool_)

    def _start_over(self) -> None:
        for kept in (self._disks, self._rows_of_disk, self._rows_of_claim):
            kept.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._disks.pop(row, None)
            if disks := _disks_on(self._nodes, row):
                self._disks[row] = disks
            self._rows_of_disk.set(row, disks)
            self._rows_of_claim.set(row, _claims_on(self._nodes, row))


def _disks_on(nodes: NodeTable, row: int) -> DiskUses:
    return disk_uses(pod.pod for pod in nodes.pods[row].values())


def _claims_on(nodes: NodeTable, row: int) -> set[str]:
    pods = nodes.pods[row].values()
    return {f"{pod.namespace}/{name}" for pod in pods if pod.pod.spec.volumes for name in named_claims(pod.pod)}


def _references(nodes: NodeTable, row: int, claim_keys: Collection[str]) -> int:
    pods = (pod for pod in nodes.pods[row].values() if pod.pod.spec.volumes)
    return sum(f"{pod.namespace}/{name}" in claim_keys for pod in pods for name in named_claims(pod.pod))


def _disks_of(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    """Yield what must not be shared, and whether it is used read-only; an RBD image counts once for each monitor."""
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", text_of(gce, "pdName")), _is_read_only(gce)
    if (aws := volume.aws_elastic_block_store) is not None:
        # These cannot be shared even by pods that only read.
        yield ("aws", text_of(aws, "volumeID")), False
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", text_of(iscsi, "iqn")), _is_read_only(iscsi)
    if (rbd := volume.rbd) is not None:
        # The pool that the API server fills in; a file may leave it out.
        pool = text_of(rbd, "pool") or "rbd"
        monitors = rbd.get("monitors")
        for monitor in monitors if isinstance(monitors, list) else ():
            if isinstance(monitor, str):
                yield ("rbd", pool, text_of(rbd, "image"), monitor), _is_read_only(rbd)


def _is_read_only(source: Mapping[str, object]) -> bool:
    return source.get("readOnly") is True


class VolumeRestrictions:
    """Rejects nodes whose pods hold the pod's in-tree disks, and all nodes while its ReadWriteOncePod claim is in use.

    Upstream: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
    """

    name: ClassVar[str] = "VolumeRestrictions"
    # Which pods have what a pod needs is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER, signs_less=True)

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
