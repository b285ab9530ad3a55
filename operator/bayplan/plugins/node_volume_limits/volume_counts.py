"""The CSI volumes that pods and attachments take up on each node, counted again only where something changed."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volumes.claims import claim_references, ownership_problem
from bayplan.plugins.volumes.csi_migration import CSIVolume, csi_volume_of_inline
from bayplan.plugins.volumes.resolver import VolumeResolver
from bayplan.plugins.volumes.volumes_in_use import forget_row, note_row

_KEPT_COLUMNS = 64
_NOWHERE: frozenset[int] = frozenset()
_UNCOUNTED = CSIVolume("", "")


@dataclass(slots=True)
class _RowVolumes:
    """The volumes on one node, the UIDs of its pods, and the keys of claims and volumes that were looked up."""

    node_name: str = ""
    pods: set[str] = field(default_factory=set)
    used: set[CSIVolume] = field(default_factory=set)
    held: set[CSIVolume] = field(default_factory=set)
    """Attached, though no pod uses them."""
    claims: set[str] = field(default_factory=set)
    volumes: set[str] = field(default_factory=set)

    def count(self, driver: str) -> int:
        """How many of them are the driver's."""
        return sum(volume.driver == driver for volumes in (self.used, self.held) for volume in volumes)


class AttachedVolumes(UsageView):
    """The volumes on each row of a table; answers are never older than the table and the listers.

    Other tables of the same rows, on which pods are tried out, can be asked about too: they are counted on the spot.
    """

    def __init__(self, nodes: NodeTable, listers: Listers, resolver: VolumeResolver) -> None:
        super().__init__(nodes)
        self._resolver = resolver
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)
        self._attachments = _Attachments(listers)
        self._claims_at = self._volumes_at = 0
        self._classes_at = -1
        self._by_row: dict[int, _RowVolumes] = {}
        self._users: dict[CSIVolume, set[int]] = {}
        self._rows_of_claim: dict[str, set[int]] = {}
        self._rows_of_volume: dict[str, set[int]] = {}
        self._columns: dict[str, Column] = {}

    def with_new(self, volumes: set[CSIVolume], driver: str, nodes: NodeTable, rows: Rows) -> tuple[Column, Column]:
        """How many volumes of a driver each row would have with `volumes`, all the driver's, and how many are new.

        A volume that is attached but that no pod of the row uses counts as there and as new.
        """
        self._catch_up()
        if nodes is self._nodes:
            new = np.full(nodes.capacity, len(volumes), dtype=np.int64)
            for volume in volumes:
                users = self._users.get(volume)
                if users:
                    new[list(users)] -= 1
            new = new[rows]
            return self._column(driver)[rows] + new, new
        found = [self._on(nodes, row) for row in rows.tolist()]
        new = np.array([len(volumes - each.used) for each in found], dtype=np.int64)
        return new + np.array([each.count(driver) for each in found], dtype=np.int64), new

    def _column(self, driver: str) -> Column:
        column = self._columns.get(driver)
        if column is None:
            if len(self._columns) >= _KEPT_COLUMNS:
                self._columns.clear()
            column = self._columns[driver] = np.zeros(self._nodes.capacity, dtype=np.int64)
            for row, found in self._by_row.items():
                column[row] = found.count(driver)
        return column

    def _catch_up(self) -> None:
        stale = self._stale_rows()
        self.catch_up()
        if stale is None:
            self._read_all()
            return
        for row in stale:
            self._drop(row)
            self._count(row)

    def _stale_rows(self) -> set[int] | None:
        """The rows whose claims, volumes or attachments changed; None for all."""
        claims_at, self._claims_at = self._claims_at, self._claims.version
        volumes_at, self._volumes_at = self._volumes_at, self._volumes.version
        classes_at, self._classes_at = self._classes_at, self._classes.version
        claims = self._claims.changes.since(claims_at) if claims_at != self._claims_at else []
        volumes = self._volumes.changes.since(volumes_at) if volumes_at != self._volumes_at else []
        node_names = self._attachments.changed_nodes()
        if classes_at != self._classes_at or claims is None or volumes is None or node_names is None:
            return None
        stale: set[int] = set()
        for claim in claims:
            stale |= self._rows_of_claim.get(claim, _NOWHERE)
        for volume in volumes:
            stale |= self._rows_of_volume.get(volume, _NOWHERE)
        stale.update(row for name in node_names if (row := self._nodes.row(name)) is not None)
        return stale

    def _start_over(self) -> None:
        for kept in (self._by_row, self._users, self._rows_of_claim, self._rows_of_volume, self._columns):
            kept.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            if not self._add_new_pods(row):
                self._drop(row)
                self._count(row)

    def _drop(self, row: int) -> None:
        known = self._by_row.pop(row, None)
        if known is None:
            return
        forget_row(self._users, known.used, row)
        forget_row(self._rows_of_claim, known.claims, row)
        forget_row(self._rows_of_volume, known.volumes, row)
        for column in self._columns.values():
            column[row] = 0

    def _count(self, row: int) -> None:
        found = self._on(self._nodes, row)
        if not (found.claims or found.volumes or found.used):
            return
        self._by_row[row] = found
        self._note(row, found)
        self._fill_columns(row, found)

    def _add_new_pods(self, row: int) -> bool:
        """Count the pods that came to a row; False if more than that happened to it."""
        known, pods = self._by_row.get(row), self._nodes.pods[row]
        if known is None or known.node_name != self._nodes.names[row] or not known.pods <= pods.keys():
            return False
        found = _RowVolumes()
        for uid in pods.keys() - known.pods:
            self._take_pod(pods[uid], found)
        known.pods |= found.pods
        known.used |= found.used
        known.held -= found.used
        known.claims |= found.claims
        known.volumes |= found.volumes
        self._note(row, found)
        self._fill_columns(row, known)
        return True

    def _note(self, row: int, found: _RowVolumes) -> None:
        note_row(self._users, found.used, row)
        note_row(self._rows_of_claim, found.claims, row)
        note_row(self._rows_of_volume, found.volumes, row)

    def _fill_columns(self, row: int, found: _RowVolumes) -> None:
        if self._columns:
            counts = Counter(volume.driver for volumes in (found.used, found.held) for volume in volumes)
            for driver, column in self._columns.items():
                column[row] = counts[driver]

    def _on(self, nodes: NodeTable, row: int) -> _RowVolumes:
        """The volumes on a row of any table."""
        found = _RowVolumes(nodes.names[row])
        for pod in nodes.pods[row].values():
            self._take_pod(pod, found)
        for attachment in self._attachments.of_node(nodes.names[row]):
            spec = attachment.spec
            name = spec.source.persistent_volume_name or ""
            found.volumes.add(name)
            volume = self._volumes.get(name)
            if spec.attacher and volume is not None and volume.spec.csi is not None:
                found.held.add(CSIVolume(spec.attacher, volume.spec.csi.volume_handle))
        found.held -= found.used
        return found

    def _take_pod(self, pod: PodInfo, found: _RowVolumes) -> None:
        """Add the volumes of a pod on a node.

        A claim that is missing, or that belongs to another pod, counts nothing: its pod cannot run. (kube-scheduler
        fails the attempt of every other pod over a foreign ephemeral claim, so that one broken pod stops them all.)
        """
        found.pods.add(pod.uid)
        if not pod.pod.spec.volumes:
            return
        for reference in claim_references(pod.pod):
            key = f"{pod.namespace}/{reference.name}"
            found.claims.add(key)
            claim = self._claims.get(key)
            if claim is None or (reference.ephemeral and ownership_problem(pod, claim)):
                continue
            if claim.spec.volume_name:
                found.volumes.add(claim.spec.volume_name)
            found.used.add(self._resolver.of_claim(claim) or _UNCOUNTED)
        found.used.update(csi_volume_of_inline(volume) or _UNCOUNTED for volume in pod.pod.spec.volumes)
        found.used.discard(_UNCOUNTED)


class _Attachments:
    """VolumeAttachments by the node they are on."""

    def __init__(self, listers: Listers) -> None:
        self._lister = listers.of(VolumeAttachment)
        self._at = 0
        self._known: dict[str, VolumeAttachment] = {}
        self._of_node: dict[str, dict[str, VolumeAttachment]] = {}

    def of_node(self, name: str) -> list[VolumeAttachment]:
        """The attachments on a node as of the last `changed_nodes`."""
        return list(self._of_node.get(name, {}).values())

    def changed_nodes(self) -> set[str] | None:
        """The nodes whose attachments changed since the last call; None if all may have."""
        at, self._at = self._at, self._lister.version
        if at == self._at:
            return set()
        keys = self._lister.changes.since(at)
        if keys is None:
            self._known.clear()
            self._of_node.clear()
            for key, attachment in self._lister.objects.items():
                self._add(key, attachment)
            return None
        changed: set[str] = set()
        for key in keys:
            old, new = self._known.pop(key, None), self._lister.get(key)
            if old is not None:
                changed.add(old.spec.node_name)
                on_node = self._of_node[old.spec.node_name]
                del on_node[key]
                if not on_node:
                    del self._of_node[old.spec.node_name]
            if new is not None:
                changed.add(new.spec.node_name)
                self._add(key, new)
        return changed

    def _add(self, key: str, attachment: VolumeAttachment) -> None:
        self._known[key] = attachment
        self._of_node.setdefault(attachment.spec.node_name, {})[key] = attachment
