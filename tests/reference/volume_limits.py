"""Volume limits the slow way: one node at a time, everything looked up anew.

Follows kube-scheduler 1.37 plugins/nodevolumelimits/csi.go, for pods with claims of CSI drivers.
"""

from collections import Counter
from collections.abc import Sequence

from bayplan.api.objects import Pod
from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.cache.listers import Listers


def exceeds_limits(pod: Pod, node_name: str, others: Sequence[Pod], listers: Listers) -> bool:
    """Whether the node with `others` on it has too many volumes of some driver with the pod too, or lacks one."""
    new = _volumes_of(pod, listers)
    installed = listers.of(CSINode).get(node_name)
    names = {each.name for each in (installed.spec.drivers or ())} if installed is not None else set()
    for driver in new.values():
        about = listers.of(CSIDriver).get(driver)
        if about is not None and about.spec.prevent_pod_scheduling_if_missing and driver not in names:
            return True
    there: dict[str, str] = {}
    for other in others:
        there |= _volumes_of(other, listers)
    csi_node = listers.of(CSINode).get(node_name)
    limits = {}
    for driver in (csi_node.spec.drivers or ()) if csi_node is not None else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            limits[driver.name] = driver.allocatable.count
    counts = Counter(there.values())
    attached = {}
    for each in listers.of(VolumeAttachment).objects.values():
        volume = listers.of(PersistentVolume).get(each.spec.source.persistent_volume_name or "")
        if each.spec.node_name == node_name and volume is not None and volume.spec.csi is not None:
            attached[f"{each.spec.attacher}/{volume.spec.csi.volume_handle}"] = each.spec.attacher
    counts.update(driver for name, driver in attached.items() if name not in there)
    wanted = Counter(driver for name, driver in new.items() if name not in there)
    return any(driver in limits and counts[driver] + count > limits[driver] for driver, count in wanted.items())


def _volumes_of(pod: Pod, listers: Listers) -> dict[str, str]:
    """The driver of each volume by its unique name."""
    found = {}
    for each in pod.spec.volumes or ():
        assert each.persistent_volume_claim is not None
        claim = listers.of(PersistentVolumeClaim).get(f"default/{each.persistent_volume_claim.claim_name}")
        if claim is None:
            continue
        volume = listers.of(PersistentVolume).get(claim.spec.volume_name)
        if volume is not None:
            if volume.spec.csi is not None:
                found[f"{volume.spec.csi.driver}/{volume.spec.csi.volume_handle}"] = volume.spec.csi.driver
        elif (storage_class := listers.of(StorageClass).get(claim.spec.storage_class_name or "")) is not None:
            found[f"{storage_class.provisioner}/random-{claim.metadata.name}"] = storage_class.provisioner
    return found
