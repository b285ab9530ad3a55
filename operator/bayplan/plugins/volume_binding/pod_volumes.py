"""What is bound for one pod on its chosen node: it is assumed, then written, then waited for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from bayplan.api.kinds import path_segment
from bayplan.api.meta_objects import key_of
from bayplan.api.response import MERGE_PATCH, ApiCall
from bayplan.api.selectors import compile_node_selector
from bayplan.api.storage_objects import CSINode, ObjectReference, PersistentVolume, PersistentVolumeClaim
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.plugins.volume_binding.assume_cache import AssumeCaches
from bayplan.plugins.volume_binding.binder import FoundVolumes
from bayplan.plugins.volumes.claims import VolumeError, annotations, is_fully_bound, is_volume_bound_to_claim
from bayplan.plugins.volumes.csi_migration import is_migrated_on, migrated_node_affinity, translate_volume

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class BindingInfo:
    """A claim, and the volume as it is once bound to it; `is_changed` tells whether that differs from what it was."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume
    is_changed: bool


@dataclass(frozen=True, slots=True)
class DynamicProvision:
    """A claim as it is once it tells the provisioner its node; `is_changed` as in BindingInfo."""

    claim: PersistentVolumeClaim
    is_changed: bool


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is to be bound for a pod on its node (upstream: PodVolumes)."""

    static_bindings: list[BindingInfo]
    dynamic_provisions: list[DynamicProvision]

    @classmethod
    def of(cls, found: FoundVolumes, node_name: str) -> "PodVolumes":
        """Take what was found for the one row of the node.

        Raises:
            VolumeError: the pod cannot run there.
        """
        if found.rejected[0]:
            raise VolumeError(f'no pod volume found for node "{node_name}"')
        return cls(
            [_bind(volume, each.claim) for each in found.matched if (volume := each.volume_at(0)) is not None],
            [_provision(each.claim, node_name) for each in found.provisioned if each.where[0]],
        )

    def assume(self, caches: AssumeCaches) -> None:
        """Let the volumes count as taken; nothing stays assumed if it fails (upstream: AssumePodVolumes).

        Raises:
            VolumeError: a volume or a claim changed since it was found.
        """
        try:
            for binding in self.static_bindings:
                if binding.is_changed:
                    caches.volumes.assume(binding.volume)
            for provision in self.dynamic_provisions:
                caches.claims.assume(provision.claim)
        except VolumeError:
            self.revert(caches)
            raise

    def revert(self, caches: AssumeCaches) -> None:
        """End what was assumed (upstream: RevertAssumedPodVolumes)."""
        for binding in self.static_bindings:
            if binding.is_changed:  # Otherwise it is another pod that assumed it.
                caches.volumes.restore(binding.volume)
        for provision in self.dynamic_provisions:
            caches.claims.restore(provision.claim)

    def writes(self) -> Iterator[ApiCall]:
        """Yield the writes of the volumes, then those of the claims (upstream: bindAPIUpdate)."""
        yield from (_volume_write(each.volume, each.claim) for each in self.static_bindings)
        yield from (_claim_write(each.claim) for each in self.dynamic_provisions)


class BindingCheck:
    """Tells from the listers, which hold nothing assumed, what became of the writes for a pod.

    Upstream: binder.go checkBindings.
    """

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._nodes = nodes
        self._volumes = listers.of(PersistentVolume)
        self._claims = listers.of(PersistentVolumeClaim)
        self._csi_nodes = listers.of(CSINode)

    def are_bound(self, volumes: PodVolumes, node_name: str) -> bool:
        """Return whether all claims are bound.

        Raises:
            VolumeError: one of them will not be.
        """
        return all(self._is_bound(each, node_name) for each in volumes.static_bindings) and all(
            self._is_provisioned(each, node_name) for each in volumes.dynamic_provisions
        )

    def _is_bound(self, binding: BindingInfo, node_name: str) -> bool:
        name = binding.volume.metadata.name
        volume = self._volumes.get(name)
        if volume is None:
            raise VolumeError(f'failed to check binding: persistentvolumes "{name}" not found')
        claim = self._claim(binding.claim, "failed to check binding")
        if binding.is_changed and volume.metadata.resource_version == binding.volume.metadata.resource_version:
            # The watch has not shown the write yet.
            return False
        self._check_affinity(volume, node_name)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'ClaimRef got reset for pv "{name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, provision: DynamicProvision, node_name: str) -> bool:
        claim = self._claim(provision.claim, "failed to check provisioning pvc")
        if provision.is_changed and claim.metadata.resource_version == provision.claim.metadata.resource_version:
            return False
        if annotations(claim).selected_node != node_name:
            # A provisioner that fails removes the annotation: the pod may go elsewhere.
            raise VolumeError(f'provisioning failed for PVC "{claim.metadata.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                # The claim's watch may be ahead of the volumes'.
                return False
            self._check_affinity(volume, node_name)
        return is_fully_bound(claim)

    def _claim(self, known: PersistentVolumeClaim, doing: str) -> PersistentVolumeClaim:
        key = key_of(known.metadata)
        claim = self._claims.get(key)
        if claim is None:
            raise VolumeError(f'{doing}: persistentvolumeclaims "{key}" not found')
        return claim

    def _check_affinity(self, volume: PersistentVolume, node_name: str) -> None:
        node = self._nodes.node(node_name)
        if node is None:
            raise VolumeError(f'failed to get node "{node_name}": node "{node_name}" not found')
        affinity, translation = volume.spec.node_affinity, translate_volume(volume)
        if translation is not None and is_migrated_on(translation.plugin, self._csi_nodes.get(node_name)):
            affinity = migrated_node_affinity(volume, translation.plugin)
        if affinity is None or affinity.required is None:
            return
        if not compile_node_selector(affinity.required).matches(node.metadata.labels, ""):
            raise VolumeError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node_name}": '
                "no matching NodeSelectorTerms"
            )


def _bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> BindingInfo:
    """Bind the volume to the claim (upstream: component-helpers storage/volume GetBindVolumeToClaim)."""
    meta, old, notes = claim.metadata, volume.spec.claim_ref, annotations(volume)
    spec = volume.spec
    if old is None or (old.namespace, old.name, old.uid) != (meta.namespace, meta.name, meta.uid):
        spec = replace(spec, claim_ref=ObjectReference("PersistentVolumeClaim", meta.namespace, meta.name, meta.uid))
    if not is_volume_bound_to_claim(volume, claim) and notes.bound_by_controller is None:
        notes = replace(notes, bound_by_controller="yes")
    if spec is volume.spec and notes is annotations(volume):
        return BindingInfo(claim, volume, is_changed=False)
    metadata = replace(volume.metadata, annotations=notes)
    return BindingInfo(claim, replace(volume, spec=spec, metadata=metadata), is_changed=True)


def _provision(claim: PersistentVolumeClaim, node_name: str) -> DynamicProvision:
    notes = annotations(claim)
    metadata = replace(claim.metadata, annotations=replace(notes, selected_node=node_name))
    return DynamicProvision(replace(claim, metadata=metadata), notes.selected_node != node_name)


def _volume_write(volume: PersistentVolume, claim: PersistentVolumeClaim) -> ApiCall:
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
    body = {"metadata": metadata, "spec": {"claimRef": reference}}
    return _patch(f"/api/v1/persistentvolumes/{path_segment(name)}", f"persistentvolume {name}", body)


def _claim_write(claim: PersistentVolumeClaim) -> ApiCall:
    meta = claim.metadata
    metadata = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "annotations": {_SELECTED_NODE: annotations(claim).selected_node},
    }
    path = f"/api/v1/namespaces/{path_segment(meta.namespace)}/persistentvolumeclaims/{path_segment(meta.name)}"
    return _patch(path, f"persistentvolumeclaim {meta.namespace}/{meta.name}", {"metadata": metadata})


def _patch(path: str, about: str, body: dict[str, Any]) -> ApiCall:
    """Write what names UID and version, so that the API server refuses it for an object that is another one by now."""
    return ApiCall("PATCH", path, about, body, MERGE_PATCH)
