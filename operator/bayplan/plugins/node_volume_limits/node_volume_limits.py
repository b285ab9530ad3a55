"""NodeVolumeLimits: place volumes of a CSI driver only where it is, and no more than it can attach there."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    CSI_NODE_ADD,
    CSI_NODE_UPDATE,
    VOLUME_ATTACHMENT_DELETE,
    EventRegistration,
    hint,
)
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SUCCESS, Code, Codes, Reads, Reason, Traits
from bayplan.plugins.node_volume_limits.volume_counts import VolumeCounts
from bayplan.plugins.volumes.claims import (
    ClaimReference,
    claim_class,
    claim_hint,
    claim_not_found,
    claim_reference,
    has_claims,
    ownership_problem,
)
from bayplan.plugins.volumes.csi_migration import (
    CSIVolume,
    driver_of,
    translate_inline_volume,
    translate_volume,
)
from bayplan.plugins.volumes.csi_nodes import NO_LIMIT, CSINodeColumns, limits_of

_EXCEEDED = "node(s) exceed max volume count"

Mask = NDArray[np.bool_]


class ClaimProblem(NamedTuple):
    """Why a claim keeps its pod from every node, as the user is told, and as what it counts."""

    text: str
    code: Code = Code.ERROR


class WantedVolumes(NamedTuple):
    """The volumes of a pod that is to be scheduled."""

    volumes: dict[CSIVolume, bool]
    """Each with whether it is an in-tree volume that a driver has taken over."""
    untranslatable: str
    """Why an in-tree disk of the pod has no name at its driver, or ""; nodes without a CSINode do not ask."""
    problem: ClaimProblem | None = None
    """What is wrong with a claim, told where nothing is wrong with a disk before it; what comes after is not read."""


class NodeVolumeLimits:
    """Rejects nodes on which a CSI driver of the pod's volumes can attach no further volume.

    Nodes without a CSINode, or whose CSINode gives no count, have no limit. With `scaling` (the feature gate
    VolumeLimitScaling, on by default) nodes without a driver are rejected if its CSIDriver says so. Upstream:
    pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    # Which volumes a pod's claims stand for is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER, signs_less=True)

    def __init__(self, nodes: NodeTable, listers: Listers, *, scaling: bool = True) -> None:
        self._drivers = listers.of(CSIDriver) if scaling else None
        self._csi_nodes = CSINodeColumns(nodes, listers)
        self._attachable = AttachableVolumes(listers)
        self._counts = VolumeCounts(nodes, listers, self._attachable.of_claim)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _has_attachable_volumes(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS) if _has_attachable_volumes(pod) else NOT_CONCERNED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        wanted = self._attachable.of_new_pod(pod)
        if wanted.problem is None:
            codes = self._count(wanted, nodes, rows)
        else:
            codes = np.full(len(rows), wanted.problem.code, dtype=np.int8)
        if wanted.untranslatable:
            codes[self._csi_nodes.existing()[rows]] = Code.ERROR
        return codes

    def _count(self, wanted: WantedVolumes, nodes: NodeTable, rows: Rows) -> Codes:
        """Reject where a driver is missing or would have too many volumes."""
        rejected = np.zeros(len(rows), dtype=np.bool_)
        for driver in self._required_drivers(wanted):
            rejected |= self._missing(driver, wanted, rows)
        for driver in {volume.driver for volume in wanted.volumes}:
            limits = self._csi_nodes.limits(driver)[rows]
            limited = np.flatnonzero(limits != NO_LIMIT)
            if len(limited):
                volumes = {volume for volume in wanted.volumes if volume.driver == driver}
                count, new = self._counts.with_new(volumes, driver, nodes, rows[limited])
                rejected[limited] |= (new > 0) & (count > limits[limited])
        codes: Codes = rejected * np.int8(Code.UNSCHEDULABLE)
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        left = np.ones(len(rows), dtype=np.bool_)
        wanted = self._attachable.of_new_pod(pod)
        reasons: list[Reason] = []
        if wanted.untranslatable:
            left = ~self._csi_nodes.existing()[rows]
            reasons.append(Reason(wanted.untranslatable, ~left))
        if wanted.problem is not None:
            return [*reasons, Reason(wanted.problem.text, left)]
        for driver in self._required_drivers(wanted):
            missing_here = self._missing(driver, wanted, rows) & left
            reasons.append(Reason(f"{driver} CSI driver is not installed on the node", missing_here))
            left = left & ~missing_here
        return [*reasons, Reason(_EXCEEDED, left)]

    def _required_drivers(self, wanted: WantedVolumes) -> list[str]:
        """Return the drivers that must be on the pod's node, by name; kube-scheduler names any one that is missing."""
        if self._drivers is None:
            return []
        drivers = ((name, self._drivers.get(name)) for name in sorted({volume.driver for volume in wanted.volumes}))
        return [name for name, each in drivers if each is not None and each.spec.prevent_pod_scheduling_if_missing]

    def _missing(self, driver: str, wanted: WantedVolumes, rows: Rows) -> Mask:
        """Tell where a driver of the pod's volumes is not installed (upstream: checkCSIDriverOnNode)."""
        missing: Mask = ~self._csi_nodes.installed(driver)[rows]
        if all(is_migrated for volume, is_migrated in wanted.volumes.items() if volume.driver == driver):
            # Without a CSINode in-tree volumes do not count as the driver's.
            missing &= self._csi_nodes.existing()[rows]
        return missing

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(CSI_NODE_ADD),
            EventRegistration(CSI_NODE_UPDATE, hint(_can_attach_more, old=CSINode, new=CSINode)),
            EventRegistration(ASSIGNED_POD_DELETE, hint(_had_attachable_volumes, old=PodInfo)),
            EventRegistration(CLAIM_ADD, claim_hint(ephemeral_too=True)),
            EventRegistration(VOLUME_ATTACHMENT_DELETE, hint(_may_have_been_attached)),
        )


def _has_attachable_volumes(pod: PodInfo) -> bool:
    volumes = pod.pod.spec.volumes
    return volumes is not None and (has_claims(pod) or any(map(translate_inline_volume, volumes)))


def _can_attach_more(pod: PodInfo, old: CSINode, new: CSINode) -> bool:
    before = limits_of(old)
    return any(count > before.get(driver, 0) for driver, count in limits_of(new).items())


def _had_attachable_volumes(pod: PodInfo, old: PodInfo, new: object) -> bool:
    return _has_attachable_volumes(old)


def _may_have_been_attached(pod: PodInfo, old: object, new: object) -> bool:
    """Return whether the pod names a claim or has a disk of the detached volume's driver; ephemeral ones do not count.

    A volume of which nothing is known may be any.
    """
    attacher = old.spec.attacher if isinstance(old, VolumeAttachment) else None
    for volume in pod.pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return True
        translation = translate_inline_volume(volume)
        if translation is not None and (translation.problem or attacher in (None, translation.driver)):
            return True
    return False


class AttachableVolumes:
    """Resolves claims and inline volumes to volumes as CSI drivers count them.

    In-tree volumes count as volumes of the driver that succeeded their plugin. A claim without a volume counts as a
    volume of its class's provisioner that nobody else uses.
    """

    def __init__(self, listers: Listers) -> None:
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)

    def of_new_pod(self, pod: PodInfo) -> WantedVolumes:
        """Return the volumes of a pod that is to be scheduled, in order (upstream: csi.go filterAttachableVolumes)."""
        found: dict[CSIVolume, bool] = {}
        untranslatable = ""
        for volume in pod.pod.spec.volumes or ():
            reference = claim_reference(pod.pod, volume)
            if reference is None:
                translation = translate_inline_volume(volume)
                if translation is None:
                    continue
                if translation.problem and not untranslatable:
                    untranslatable = f"converting volume({volume.name}) from inline to csi: {translation.problem}"
                if translation.csi is not None:
                    found.setdefault(translation.csi, True)
                continue
            claim = self._claims.get(f"{pod.namespace}/{reference.name}")
            if (problem := _problem(pod, reference, claim)) is not None or claim is None:
                return WantedVolumes({}, untranslatable, problem)
            counted, is_migrated = self._resolved(claim)
            if counted is not None:
                found[counted] = found.get(counted, True) and is_migrated
        return WantedVolumes(found, untranslatable)

    def of_claim(self, claim: PersistentVolumeClaim) -> CSIVolume | None:
        """Return the volume a claim has or will have; None if no driver counts it."""
        return self._resolved(claim)[0]

    def _resolved(self, claim: PersistentVolumeClaim) -> tuple[CSIVolume | None, bool]:
        """Return that volume, and whether a driver counts it only because it succeeded an in-tree plugin."""
        name = claim.spec.volume_name
        volume = self._volumes.get(name) if name else None
        if volume is None:
            counted, is_migrated = self._of_class(claim)
        elif volume.spec.csi is not None:
            counted, is_migrated = CSIVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle), False
        else:
            translation = translate_volume(volume)
            counted, is_migrated = None if translation is None else translation.csi, True
        return (counted if counted is not None and counted.driver and counted.handle else None), is_migrated

    def _of_class(self, claim: PersistentVolumeClaim) -> tuple[CSIVolume | None, bool]:
        storage_class = self._classes.get(claim_class(claim))
        if storage_class is None:
            return None, False
        driver = driver_of(storage_class.provisioner)
        # No driver gives a handle with blanks, so this equals no real one.
        handle = f"to be made for {claim.metadata.namespace}/{claim.metadata.name}"
        return (CSIVolume(driver, handle) if driver else None), driver != storage_class.provisioner


def _problem(pod: PodInfo, reference: ClaimReference, claim: PersistentVolumeClaim | None) -> ClaimProblem | None:
    """Why a claim of a pod that is to be scheduled cannot be counted, if so."""
    if not reference.name:
        return ClaimProblem("PersistentVolumeClaim had no name")
    if claim is None:
        text = f"looking up PVC {pod.namespace}/{reference.name}: {claim_not_found(reference.name)}"
        return ClaimProblem(text, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    text = ownership_problem(pod, claim) if reference.ephemeral else ""
    return ClaimProblem(text) if text else None
