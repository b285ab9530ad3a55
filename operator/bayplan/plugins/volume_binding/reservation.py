"""One pod's volumes on its chosen node: assumed, then written, then waited for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from bayplan.api.kinds import path_segment
from bayplan.api.selectors import compile_node_selector
from bayplan.api.storage_objects import (
    NO_ANNOTATIONS,
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.cache.listers import Listers, key_of
from bayplan.cache.node_table import NodeTable
from bayplan.framework.effects import Effect, WaitFor, Write
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.plugins.volume_binding.assumptions import AssumedVolumes
from bayplan.plugins.volume_binding.matching import is_meant_for
from bayplan.plugins.volume_binding.search import NodeVolumes
from bayplan.plugins.volumes.claims import VolumeError, annotations, is_fully_bound
from bayplan.plugins.volumes.csi_migration import in_tree_plugin, is_migrated_on, migrated_node_affinity

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class StaticBinding:
    """A volume as it is to be bound to a claim; `changes` says whether that differs from what it was."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume
    changes: bool


@dataclass(frozen=True, slots=True)
class DynamicProvision:
    """A claim as it is to tell the provisioner of its node; `changes` as in StaticBinding."""

    claim: PersistentVolumeClaim
    changes: bool


@dataclass(slots=True)
class Reservation:
    """What is to be bound for a pod on its node."""

    bindings: list[StaticBinding] = field(default_factory=list)
    provisions: list[DynamicProvision] = field(default_factory=list)

    @classmethod
    def of(cls, found: NodeVolumes, node_name: str) -> "Reservation":
        """What a search for the one row of the node found.

        Raises:
            VolumeError: the pod cannot run there.
        """
        if found.rejected[0]:
            raise VolumeError(f'no pod volume found for node "{node_name}"')
        bindings = [
            _bound_to(volume, choice.claim) for choice in found.choices if (volume := choice.volume_at(0)) is not None
        ]
        provisions = [_provisioned_on(claim, node_name) for claim, where in found.provisions if where[0]]
        return cls(bindings, provisions)

    def assume(self, assumed: AssumedVolumes) -> None:
        """Let the volumes count as taken; nothing is assumed if it fails.

        Raises:
            VolumeError: a volume or a claim changed since it was found.
        """
        try:
            for binding in self.bindings:
                if binding.changes:
                    assumed.volumes.assume(binding.volume)
            for provision in self.provisions:
                assumed.claims.assume(provision.claim)
        except VolumeError:
            self.revert(assumed)
            raise

    def revert(self, assumed: AssumedVolumes) -> None:
        """End what was assumed; nothing happens where the listers have something newer."""
        for binding in self.bindings:
            assumed.volumes.restore(binding.volume)
        for provision in self.provisions:
            assumed.claims.restore(provision.claim)

    def effects(self, are_bound: Callable[[], Status | None], timeout_seconds: float) -> Sequence[Effect]:
        """The volumes' writes, then the claims', then the wait (upstream: BindPodVolumes)."""
        return (
            *(_volume_write(each.volume, each.claim) for each in self.bindings),
            *(_claim_write(each.claim) for each in self.provisions),
            WaitFor(are_bound, timeout_seconds, "binding volumes"),
        )


class BindingWatch:
    """Tells from the listers, which hold nothing assumed, what became of a reservation's writes.

    Upstream: volumebinding/binder.go checkBindings.
    """

    def __init__(self, reservation: Reservation, nodes: NodeTable, listers: Listers, node_name: str) -> None:
        self._reservation = reservation
        self._nodes = nodes
        self._node_name = node_name
        self._volumes = listers.of(PersistentVolume)
        self._claims = listers.of(PersistentVolumeClaim)
        self._csi_nodes = listers.of(CSINode)

    def check(self) -> Status | None:
        """None while claims are still to be bound, SUCCESS once all are, an ERROR when they will not be."""
        try:
            done = all(map(self._is_bound, self._reservation.bindings)) and all(
                map(self._is_provisioned, self._reservation.provisions)
            )
        except VolumeError as error:
            return Status(Code.ERROR, (str(error),))
        return SUCCESS if done else None

    def _is_bound(self, binding: StaticBinding) -> bool:
        name = binding.volume.metadata.name
        volume = self._volumes.get(name)
        if volume is None:
            raise VolumeError(f'failed to check binding: persistentvolumes "{name}" not found')
        claim = self._claim(binding.claim, "failed to check binding")
        if binding.changes and volume.metadata.resource_version == binding.volume.metadata.resource_version:
            # The watch has not shown the write yet.
            return False
        self._check_affinity(volume)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, provision: DynamicProvision) -> bool:
        claim = self._claim(provision.claim, "failed to check provisioning pvc")
        if provision.changes and claim.metadata.resource_version == provision.claim.metadata.resource_version:
            return False
        if annotations(claim).selected_node != self._node_name:
            # A provisioner that fails removes the annotation: the pod may go elsewhere.
            raise VolumeError(f'provisioning failed for PVC "{claim.metadata.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                # The claim's watch may be ahead of the volumes'.
                return False
            self._check_affinity(volume)
        return is_fully_bound(claim)

    def _claim(self, known: PersistentVolumeClaim, doing: str) -> PersistentVolumeClaim:
        key = key_of(known.metadata)
        claim = self._claims.get(key)
        if claim is None:
            raise VolumeError(f'{doing}: persistentvolumeclaims "{key}" not found')
        return claim

    def _check_affinity(self, volume: PersistentVolume) -> None:
        row = self._nodes.row(self._node_name)
        node = None if row is None else self._nodes.nodes[row]
        if node is None:
            raise VolumeError(f'failed to get node "{self._node_name}": node "{self._node_name}" not found')
        affinity, plugin = volume.spec.node_affinity, in_tree_plugin(volume)
        if plugin is not None and is_migrated_on(plugin, self._csi_nodes.get(self._node_name)):
            affinity = migrated_node_affinity(volume, plugin)
        if affinity is None or affinity.required is None:
            return
        if not compile_node_selector(affinity.required).matches(node.metadata.labels, ""):
            raise VolumeError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{self._node_name}": '
                "no matching NodeSelectorTerms"
            )


def _bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> StaticBinding:
    """The volume as it is once bound to the claim (upstream: component-helpers storage/volume GetBindVolumeToClaim)."""
    meta = claim.metadata
    reference = ObjectReference("PersistentVolumeClaim", meta.namespace, meta.name, meta.uid)
    spec, notes = volume.spec, annotations(volume)
    old = spec.claim_ref
    changes = False
    if old is None or (old.namespace, old.name, old.uid) != (meta.namespace, meta.name, meta.uid):
        spec = replace(spec, claim_ref=reference)
        changes = True
    if not is_meant_for(volume, claim) and notes.bound_by_controller is None:
        notes = replace(notes, bound_by_controller="yes")
        changes = True
    bound = replace(volume, spec=spec, metadata=replace(volume.metadata, annotations=notes)) if changes else volume
    return StaticBinding(claim, bound, changes)


def _provisioned_on(claim: PersistentVolumeClaim, node_name: str) -> DynamicProvision:
    notes = claim.metadata.annotations or NO_ANNOTATIONS
    changes = notes.selected_node != node_name
    metadata = replace(claim.metadata, annotations=replace(notes, selected_node=node_name))
    return DynamicProvision(replace(claim, metadata=metadata), changes)


def _volume_write(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Write:
    meta = claim.metadata
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    metadata: dict[str, Any] = {"uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version}
    by_controller = annotations(volume).bound_by_controller
    if by_controller is not None:
        metadata["annotations"] = {_BOUND_BY_CONTROLLER: by_controller}
    name = volume.metadata.name
    return Write(
        f"/api/v1/persistentvolumes/{path_segment(name)}",
        {"metadata": metadata, "spec": {"claimRef": reference}},
        f"persistentvolume {name}",
    )


def _claim_write(claim: PersistentVolumeClaim) -> Write:
    meta = claim.metadata
    metadata = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "annotations": {_SELECTED_NODE: annotations(claim).selected_node},
    }
    return Write(
        f"/api/v1/namespaces/{path_segment(meta.namespace)}/persistentvolumeclaims/{path_segment(meta.name)}",
        {"metadata": metadata},
        f"persistentvolumeclaim {meta.namespace}/{meta.name}",
    )
