"""Which volumes the pods on each node use, recounted only where pods changed."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from bayplan.api.objects import Volume
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.node_table import NodeTable
from bayplan.plugins.volumes.claims import named_claims

K = TypeVar("K", bound=Hashable)


def is_disk(volume: Volume) -> bool:
    """Whether the volume is an in-tree disk that pods cannot share as they like."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def disk_names(volume: Volume) -> list[Hashable]:
    """What two volumes have in common if they are the same in-tree disk."""
    names: list[Hashable] = []
    if volume.gce_persistent_disk is not None:
        names.append(("gce", text_of(volume.gce_persistent_disk, "pdName")))
    if volume.aws_elastic_block_store is not None:
        names.append(("aws", text_of(volume.aws_elastic_block_store, "volumeID")))
    if volume.iscsi is not None:
        names.append(("iscsi", text_of(volume.iscsi, "iqn")))
    if volume.rbd is not None:
        names.append(("rbd", text_of(volume.rbd, "pool"), text_of(volume.rbd, "image")))
    return names


def text_of(source: Mapping[str, object], key: str) -> str:
    """A field of a volume as text, "" if it is missing."""
    return str(source.get(key) or "")


class VolumesInUse(UsageView):
    """The in-tree disks and named claims of the pods on each row of a table.

    Rows whose pods use neither cost nothing. Catches up with the table when it is asked, so an answer is never older
    than the table. Other tables of the same rows, on which the removal of pods is tried out, can be asked about too.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._disks: dict[int, list[Volume]] = {}
        self._rows_of_disk: dict[Hashable, set[int]] = {}
        self._claims: dict[int, set[str]] = {}
        self._rows_of_claim: dict[str, set[int]] = {}

    def disks(self, nodes: NodeTable, row: int) -> list[Volume]:
        """The in-tree disks of the pods on a row."""
        if nodes is not self._nodes:
            return _disks_on(nodes, row)
        self.catch_up()
        return self._disks.get(row, [])

    def rows_with(self, disks: Iterable[Volume], nodes: NodeTable, rows: Rows) -> list[int]:
        """The places in `rows` of those whose pods may use one of these disks; all of them in other tables."""
        if nodes is not self._nodes:
            return list(range(len(rows)))
        self.catch_up()
        found = {row for disk in disks for name in disk_names(disk) for row in self._rows_of_disk.get(name, ())}
        return np.flatnonzero(np.isin(rows, list(found))).tolist() if found else []

    def is_named(self, nodes: NodeTable, claim_key: str) -> bool:
        """Whether a persistentVolumeClaim volume of any pod on any node names the claim "namespace/name"."""
        self.catch_up()
        rows = self._rows_of_claim.get(claim_key, ())
        if nodes is self._nodes:
            return bool(rows)
        return any(claim_key in _claims_on(nodes, row) for row in rows)

    def _start_over(self) -> None:
        for kept in (self._disks, self._rows_of_disk, self._claims, self._rows_of_claim):
            kept.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._drop(row)
            self._count(row)

    def _drop(self, row: int) -> None:
        disks = self._disks.pop(row, ())
        forget_row(self._rows_of_disk, {name for disk in disks for name in disk_names(disk)}, row)
        forget_row(self._rows_of_claim, self._claims.pop(row, ()), row)

    def _count(self, row: int) -> None:
        disks, claims = _disks_on(self._nodes, row), _claims_on(self._nodes, row)
        if disks:
            self._disks[row] = disks
            note_row(self._rows_of_disk, (name for disk in disks for name in disk_names(disk)), row)
        if claims:
            self._claims[row] = claims
            note_row(self._rows_of_claim, claims, row)


def note_row(rows_of: dict[K, set[int]], keys: Iterable[K], row: int) -> None:
    """Add `row` to the rows of each key."""
    for key in keys:
        rows_of.setdefault(key, set()).add(row)


def forget_row(rows_of: dict[K, set[int]], keys: Iterable[K], row: int) -> None:
    """Take `row` from the rows of each key, all of which have it."""
    for key in keys:
        rows = rows_of[key]
        rows.discard(row)
        if not rows:
            del rows_of[key]


def _disks_on(nodes: NodeTable, row: int) -> list[Volume]:
    pods = nodes.pods[row].values()
    return [volume for pod in pods for volume in pod.pod.spec.volumes or () if is_disk(volume)]


def _claims_on(nodes: NodeTable, row: int) -> set[str]:
    pods = nodes.pods[row].values()
    return {f"{pod.namespace}/{name}" for pod in pods if pod.pod.spec.volumes for name in named_claims(pod.pod)}
