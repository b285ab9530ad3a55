"""Which volumes the pods on each node use, recounted only where pods changed."""

from bayplan.api.objects import Volume
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.plugins.volume_claims import ClaimReference, claim_references

PodClaim = tuple[PodInfo, ClaimReference]
"""A claim in use and the pod that names it."""


def is_disk(volume: Volume) -> bool:
    """Whether the volume is an in-tree disk that pods cannot share as they like."""
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


class VolumesInUse:
    """The in-tree disks and claims of the pods on each row of a table.

    Rows whose pods use neither cost nothing. Catches up with the table when it is asked, so an answer is never older
    than the table. Other tables of the same rows, on which the removal of pods is tried out, can be asked about too.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._follower = RowFollower(nodes)
        self._disks: dict[int, list[Volume]] = {}
        self._claims: dict[int, list[PodClaim]] = {}
        self._named: dict[str, set[int]] = {}

    def disks(self, nodes: NodeTable, row: int) -> list[Volume]:
        """The in-tree disks of the pods on a row."""
        if nodes is not self._nodes:
            return _disks_on(nodes, row)
        self._catch_up()
        return self._disks.get(row, [])

    def claims(self, nodes: NodeTable, row: int) -> list[PodClaim]:
        """The claims of the pods on a row, each with its pod."""
        if nodes is not self._nodes:
            return _claims_on(nodes, row)
        self._catch_up()
        return self._claims.get(row, [])

    def count(self, nodes: NodeTable, row: int) -> int:
        """How many disks and claims the pods on a row have, those in use twice counted twice."""
        if nodes is not self._nodes:
            return len(_disks_on(nodes, row)) + len(_claims_on(nodes, row))
        self._catch_up()
        return len(self._disks.get(row, ())) + len(self._claims.get(row, ()))

    def is_named(self, nodes: NodeTable, claim_key: str) -> bool:
        """Whether a persistentVolumeClaim volume of any pod on any node names the claim "namespace/name"."""
        self._catch_up()
        rows = self._named.get(claim_key, ())
        if nodes is self._nodes:
            return bool(rows)
        return any(claim_key in _named_keys(_claims_on(nodes, row)) for row in rows)

    def _catch_up(self) -> None:
        change = self._follower.follow()
        if change.everything:
            self._disks.clear()
            self._claims.clear()
            self._named.clear()
            for row, pods in enumerate(self._nodes.pods):
                if pods:
                    self._count(row)
        elif len(change.usage):
            for row in change.usage.tolist():
                self._drop(row)
                self._count(row)

    def _drop(self, row: int) -> None:
        self._disks.pop(row, None)
        for key in _named_keys(self._claims.pop(row, [])):
            rows = self._named[key]
            rows.discard(row)
            if not rows:
                del self._named[key]

    def _count(self, row: int) -> None:
        disks, claims = _disks_on(self._nodes, row), _claims_on(self._nodes, row)
        if disks:
            self._disks[row] = disks
        if claims:
            self._claims[row] = claims
            for key in _named_keys(claims):
                self._named.setdefault(key, set()).add(row)


def _disks_on(nodes: NodeTable, row: int) -> list[Volume]:
    pods = nodes.pods[row].values()
    return [volume for pod in pods for volume in pod.pod.spec.volumes or () if is_disk(volume)]


def _claims_on(nodes: NodeTable, row: int) -> list[PodClaim]:
    pods = nodes.pods[row].values()
    return [(pod, claim) for pod in pods if pod.pod.spec.volumes for claim in claim_references(pod.pod)]


def _named_keys(claims: list[PodClaim]) -> set[str]:
    return {f"{pod.namespace}/{reference.name}" for pod, reference in claims if not reference.ephemeral}
