"""The CSI volumes that pods and attachments take up, as drivers count them."""

from bayplan.api.storage_objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volume_claims import (
    VolumeError,
    claim_class,
    claim_not_found,
    claim_references,
    ownership_problem,
)
from bayplan.plugins.volume_migration import (
    CSIVolume,
    csi_volume,
    csi_volume_of_inline,
    driver_of,
    is_in_tree_provisioner,
    is_migrated_inline,
)
from bayplan.plugins.volumes_in_use import VolumesInUse

_NO_VOLUMES: frozenset[CSIVolume] = frozenset()


class MissingClaimError(Exception):
    """The pod names a claim that does not exist; the text is the user's."""


class AttachedVolumes:
    """Counts volumes on nodes that have a CSINode: there in-tree volumes count as those of their CSI driver.

    A claim that has no volume yet counts as a volume of its class's provisioner that nobody else uses.
    """

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._in_use = VolumesInUse(nodes)
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)
        self._attachments = listers.of(VolumeAttachment)
        self._by_node: dict[str, set[CSIVolume]] = {}
        self._by_node_at = (-1, -1)

    def of_new_pod(self, pod: PodInfo) -> set[CSIVolume]:
        """The volumes a pod to schedule brings.

        Raises:
            MissingClaimError: it names a claim that does not exist.
            VolumeError: it names a claim "", or an ephemeral claim that is not its own.
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
            found |= self._of_claim(claim)
        return found | _inline(pod)

    def most_on_row(self, nodes: NodeTable, row: int) -> int:
        """A number that the volumes on a row, attachments included, do not exceed; found without looking them up."""
        return self._in_use.count(nodes, row) + len(self.by_attachment(nodes.names[row]))

    def on_row(self, nodes: NodeTable, row: int) -> set[CSIVolume]:
        """The volumes of the pods on a row.

        A claim that is missing, or that belongs to another pod, counts nothing: its pod cannot run. (kube-scheduler
        fails the attempt of every other pod over a foreign ephemeral claim, so that one broken pod stops them all.)
        """
        found: set[CSIVolume] = set()
        for pod, reference in self._in_use.claims(nodes, row):
            claim = self._claims.get(f"{pod.namespace}/{reference.name}")
            if claim is not None and not (reference.ephemeral and ownership_problem(pod, claim)):
                found |= self._of_claim(claim)
        for volume in self._in_use.disks(nodes, row):
            translated = csi_volume_of_inline(volume)
            if translated is not None:
                found.add(translated)
        return found

    def by_attachment(self, node_name: str) -> set[CSIVolume]:
        """The volumes that VolumeAttachments hold on a node, whether a pod there uses them or not."""
        versions = (self._attachments.version, self._volumes.version)
        if versions != self._by_node_at:
            self._by_node_at = versions
            self._by_node = {}
            for attachment in self._attachments.objects.values():
                spec = attachment.spec
                volume = self._volumes.get(spec.source.persistent_volume_name or "")
                if spec.attacher and volume is not None and volume.spec.csi is not None:
                    held = CSIVolume(spec.attacher, volume.spec.csi.volume_handle)
                    self._by_node.setdefault(spec.node_name, set()).add(held)
        return self._by_node.get(node_name, set())

    def _of_claim(self, claim: PersistentVolumeClaim) -> frozenset[CSIVolume]:
        name = claim.spec.volume_name
        volume = self._volumes.get(name) if name else None
        if volume is None:
            counted = self._of_class(claim)
        elif volume.spec.csi is not None:
            counted = CSIVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        else:
            counted = csi_volume(volume)
        return frozenset((counted,)) if counted is not None and counted.driver and counted.handle else _NO_VOLUMES

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


def _inline(pod: PodInfo) -> set[CSIVolume]:
    inline = [volume for volume in pod.pod.spec.volumes or () if is_migrated_inline(volume)]
    translated = {csi_volume_of_inline(volume) for volume in inline}
    if None in translated:
        raise VolumeError(f"converting a volume of pod {pod.key} from inline to csi: Invalid format for AWS volume")
    return {each for each in translated if each is not None}
