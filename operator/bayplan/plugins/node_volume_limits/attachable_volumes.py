"""The CSI volumes that a claim or a pod stands for (upstream: nodevolumelimits/csi.go filterAttachableVolumes)."""

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
    driver_of,
    is_in_tree_provisioner,
    translate_inline_volume,
    translate_volume,
)


class MissingClaimError(Exception):
    """The pod names a claim that does not exist; the text is shown to the user."""


class AttachableVolumes:
    """Resolves claims and inline volumes to volumes as CSI drivers count them.

    In-tree volumes count as volumes of the driver that succeeded their plugin. A claim without a volume counts as a
    volume of its class's provisioner that nobody else uses.
    """

    def __init__(self, listers: Listers) -> None:
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)

    def of_new_pod(self, pod: PodInfo) -> set[CSIVolume]:
        """Return the volumes of a pod that is to be scheduled.

        Raises:
            MissingClaimError: the pod names a claim that does not exist.
            VolumeError: it names a claim "", or an ephemeral claim that is not its own, or an in-tree disk that
                cannot be translated for its driver.
        """
        found: set[CSIVolume | None] = set()
        for reference in claim_references(pod.pod):
            if not reference.name:
                raise VolumeError("PersistentVolumeClaim had no name")
            key = f"{pod.namespace}/{reference.name}"
            claim = self._claims.get(key)
            if claim is None:
                raise MissingClaimError(f"looking up PVC {key}: {claim_not_found(reference.name)}")
            if reference.ephemeral and (problem := ownership_problem(pod, claim)):
                raise VolumeError(problem)
            found.add(self.of_claim(claim))
        for volume in pod.pod.spec.volumes or ():
            translation = translate_inline_volume(volume)
            if translation is not None:
                if translation.problem:
                    raise VolumeError(f"converting volume({volume.name}) from inline to csi: {translation.problem}")
                found.add(translation.csi)
        return {volume for volume in found if volume is not None}

    def of_claim(self, claim: PersistentVolumeClaim) -> CSIVolume | None:
        """Return the volume a claim has or will have; None if no driver counts it."""
        name = claim.spec.volume_name
        volume = self._volumes.get(name) if name else None
        if volume is None:
            counted = self._of_class(claim)
        elif volume.spec.csi is not None:
            counted = CSIVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        else:
            translation = translate_volume(volume)
            counted = None if translation is None else translation.csi
        return counted if counted is not None and counted.driver and counted.handle else None

    def _of_class(self, claim: PersistentVolumeClaim) -> CSIVolume | None:
        storage_class = self._classes.get(claim_class(claim))
        if storage_class is None:
            return None
        provisioner: str | None = storage_class.provisioner
        if is_in_tree_provisioner(storage_class.provisioner):
            provisioner = driver_of(storage_class.provisioner)
        # No driver gives a handle with blanks, so this equals no real one.
        handle = f"to be made for {claim.metadata.namespace}/{claim.metadata.name}"
        return CSIVolume(provisioner, handle) if provisioner else None
