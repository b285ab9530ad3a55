"""Which volumes of CSI drivers claims and pods stand for."""

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volumes.claims import (
    VolumeError,
    claim_class,
    claim_not_found,
    claim_references,
    ownership_problem,
)
from bayplan.plugins.volumes.csi_migration import (
    CSIVolume,
    csi_volume,
    csi_volume_of_inline,
    driver_of,
    inline_problem,
    is_in_tree_provisioner,
)


class MissingClaimError(Exception):
    """The pod names a claim that does not exist; the text is the user's."""


class VolumeResolver:
    """Names volumes as drivers count them, on nodes that have a CSINode: there in-tree volumes are their driver's.

    A claim that has no volume yet counts as a volume of its class's provisioner that nobody else uses.
    """

    def __init__(self, listers: Listers) -> None:
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)

    def of_new_pod(self, pod: PodInfo) -> set[CSIVolume]:
        """The volumes a pod to schedule brings.

        Raises:
            MissingClaimError: it names a claim that does not exist.
            VolumeError: it names a claim "", or an ephemeral claim that is not its own, or a disk that cannot be
                named in its driver's words.
        """
        found: set[CSIVolume] = set()
        for reference in claim_references(pod.pod):
            if not reference.name:
                raise VolumeError("PersistentVolumeClaim had no name")
            key = f"{pod.namespace}/{reference.name}"
            claim = self._claims.get(key)
            if claim is None:
                raise MissingClaimError(f"looking up PVC {key}: {claim_not_found(reference.name)}")
            if reference.ephemeral and (problem := ownership_problem(pod, claim)):
                raise VolumeError(problem)
            counted = self.of_claim(claim)
            if counted is not None:
                found.add(counted)
        for volume in pod.pod.spec.volumes or ():
            if problem := inline_problem(volume):
                raise VolumeError(f"converting volume({volume.name}) from inline to csi: {problem}")
            counted = csi_volume_of_inline(volume)
            if counted is not None:
                found.add(counted)
        return found

    def of_claim(self, claim: PersistentVolumeClaim) -> CSIVolume | None:
        """The volume a claim has or will have; None if no driver counts it."""
        name = claim.spec.volume_name
        volume = self._volumes.get(name) if name else None
        if volume is None:
            counted = self._of_class(claim)
        elif volume.spec.csi is not None:
            counted = CSIVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        else:
            counted = csi_volume(volume)
        return counted if counted is not None and counted.driver and counted.handle else None

    def _of_class(self, claim: PersistentVolumeClaim) -> CSIVolume | None:
        storage_class = self._classes.get(claim_class(claim))
        if storage_class is None:
            return None
        provisioner: str | None = storage_class.provisioner
        if is_in_tree_provisioner(storage_class.provisioner):
            provisioner = driver_of(storage_class.provisioner)
        # A blank cannot be part of a handle that a driver gives.
        handle = f"to be made for {claim.metadata.namespace}/{claim.metadata.name}"
        return CSIVolume(provisioner, handle) if provisioner else None
