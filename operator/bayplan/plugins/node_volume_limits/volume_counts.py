"""The CSI volumes that are used or attached on each node, counted again only where something changed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volumes.claims import claim_references, ownership_problem
from bayplan.plugins.volumes.csi_migration import CSIVolume, translate_inline_volume

VolumeOfClaim = Callable[[PersistentVolumeClaim], CSIVolume | None]
"""Returns the volume that a claim has or will have; None if no driver counts it."""

_KEPT_COLUMNS = 64


@dataclass(slots=True)
class _RowVolumes:
    """The volumes on one node.

    `claims` and `volumes` are the keys of the objects that were looked up for them: the row is counted again when one
    of them changes.
    """

    node_name: str = ""
    pods: set[str] = field(default_factory=set)
    """The UIDs of the pods."""
    used: set[CSIVolume] = field(default_factory=set)
    attached: set[CSIVolume] = field(default_factory=set)
    """Those that are attached but that no pod uses."""
    claims: set[str] = field(default_factory=set)
    volumes: set[str] = field(default_factory=set)

    def copy(self) -> "_RowVolumes":
        """Return the same, to be added to."""
        used, attached = self.used.copy(), self.attached.copy()
        return _RowVolumes(self.node_name, self.pods.copy(), used, attached, self.claims.copy(), self.volumes.copy())

    def count(self, driver: str) -> int:
        """Return how many of them are the driver's."""
        return sum(volume.driver == driver for volumes in (self.used, self.attached) for volume in volumes)


class VolumeCounts(UsageView):
    """Counts the volumes on each row of a table; answers are never older than the table and the listers.

    Preemption asks about other tables of the same rows, without some of the pods; these are counted on the spot.
    """

    def __init__(self, nodes: NodeTable, listers: Listers, volume_of: VolumeOfClaim) -> None:
        super().__init__(nodes)
        self._volume_of = volume_of
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._attachments = _Attachments(listers)
        self._classes = listers.of(StorageClass)
        self._changed_claims = self._claims.follower()
        self._changed_volumes = self._volumes.follower()
        self._classes_version = 0
        self._by_row: dict[int, _RowVolumes] = {}
        self._rows_using: InvertedIndex[CSIVolume, int] = InvertedIndex()
        self._rows_of_claim: InvertedIndex[str, int] = InvertedIndex()
        self._rows_of_volume: InvertedIndex[str, int] = InvertedIndex()
        self._columns: dict[str, Column] = {}

    def with_new(self, volumes: set[CSIVolume], driver: str, nodes: NodeTable, rows: Rows) -> tuple[Column, Column]:
        """Return how many volumes of a driver each row would have with `volumes`, and how many of these are new there.

        All `volumes` are the driver's. One that is attached but that no pod of the row uses counts as present and as
        new. Both columns are `(rows,) int64`.
        """
        self._catch_up()
        if nodes is self._nodes:
            new = np.full(nodes.capacity, len(volumes), dtype=np.int64)
            for volume in volumes:
                users = self._rows_using.get(volume)
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
            self._set(row, self._on(self._nodes, row))

    def _stale_rows(self) -> set[int] | None:
        """Return the rows whose claims, volumes or attachments changed; None for all, as a class changed."""
        stale: set[int] = set()
        for claim in self._changed_claims.follow(self._rows_of_claim.keys()):
            stale.update(self._rows_of_claim.get(claim))
        for volume in self._changed_volumes.follow(self._rows_of_volume.keys()):
            stale.update(self._rows_of_volume.get(volume))
        names = self._attachments.changed_nodes()
        stale.update(row for name in names if (row := self._nodes.row(name)) is not None)
        before, self._classes_version = self._classes_version, self._classes.version
        return stale if before == self._classes_version else None

    def _start_over(self) -> None:
        for kept in (self._by_row, self._rows_using, self._rows_of_claim, self._rows_of_volume, self._columns):
            kept.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._set(row, self._with_new_pods(row) or self._on(self._nodes, row))

    def _set(self, row: int, found: _RowVolumes) -> None:
        """Take in what is on a row now."""
        self._by_row.pop(row, None)
        if found.claims or found.volumes or found.used:
            self._by_row[row] = found
        self._rows_using.set(row, found.used)
        self._rows_of_claim.set(row, found.claims)
        self._rows_of_volume.set(row, found.volumes)
        for driver, column in self._columns.items():
            column[row] = found.count(driver)

    def _with_new_pods(self, row: int) -> _RowVolumes | None:
        """Return what is on a row to which pods only came, these alone looked at; None if more happened to it."""
        known, pods = self._by_row.get(row), self._nodes.pods[row]
        if known is None or known.node_name != self._nodes.names[row] or not known.pods <= pods.keys():
            return None
        found = known.copy()
        for uid in pods.keys() - known.pods:
            self._take_pod(pods[uid], found)
        found.attached -= found.used
        return found

    def _on(self, nodes: NodeTable, row: int) -> _RowVolumes:
        """Return the volumes on a row of any table."""
        found = _RowVolumes(nodes.names[row])
        for pod in nodes.pods[row].values():
            self._take_pod(pod, found)
        for attachment in self._attachments.of_node(nodes.names[row]):
            spec = attachment.spec
            name = spec.source.persistent_volume_name or ""
            found.volumes.add(name)
            volume = self._volumes.get(name)
            if spec.attacher and volume is not None and volume.spec.csi is not None:
                found.attached.add(CSIVolume(spec.attacher, volume.spec.csi.volume_handle))
        found.attached -= found.used
        return found

    def _take_pod(self, pod: PodInfo, found: _RowVolumes) -> None:
        """Add the volumes of a pod on a node.

        A claim that is missing or that belongs to another pod counts nothing, as its pod cannot run. This differs from
        kube-scheduler, where an ephemeral claim of another pod fails the attempts of all pods on that node.
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
            if (volume := self._volume_of(claim)) is not None:
                found.used.add(volume)
        for translation in map(translate_inline_volume, pod.pod.spec.volumes):
            if translation is not None and translation.csi is not None:
                found.used.add(translation.csi)


class _Attachments:
    """Keeps VolumeAttachments by the node they are on."""

    def __init__(self, listers: Listers) -> None:
        self._lister = listers.of(VolumeAttachment)
        self._changes = self._lister.follower()
        self._keys_on: InvertedIndex[str, str] = InvertedIndex()

    def of_node(self, name: str) -> list[VolumeAttachment]:
        """Return the attachments on a node; `changed_nodes` must have been asked since the last change."""
        return [self._lister.objects[key] for key in self._keys_on.get(name)]

    def changed_nodes(self) -> set[str]:
        """Return the nodes whose attachments changed since the last call."""
        changed: set[str] = set()
        for key in self._changes.follow(self._keys_on.holders()):
            attachment = self._lister.get(key)
            node_names = [] if attachment is None else [attachment.spec.node_name]
            changed.update(self._keys_on.keys_of(key), node_names)
            self._keys_on.set(key, node_names)
        return changed
