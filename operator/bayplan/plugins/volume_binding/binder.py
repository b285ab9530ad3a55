"""Finds on which nodes a pod's claims can be bound (upstream: volumebinding/binder.go)."""

from dataclasses import dataclass, field

import numpy as np

from bayplan.api.quantity import value_of_milli
from bayplan.api.storage_objects import CSIDriver, PersistentVolumeClaim, StorageClass
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volume_binding.assume_cache import AssumeCaches
from bayplan.plugins.volume_binding.capacity import StorageCapacities
from bayplan.plugins.volume_binding.class_volumes import VolumesByClass, requested_storage
from bayplan.plugins.volume_binding.matching import MatchedClaim, find_matching_volumes
from bayplan.plugins.volume_binding.node_topology import Mask, NodeTopology
from bayplan.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeError,
    annotations,
    claim_class,
    claim_references,
    is_fully_bound,
    ownership_problem,
)
from bayplan.plugins.volumes.csi_migration import migrated_node_affinity, translate_volume
from bayplan.plugins.volumes.csi_nodes import CSINodeColumns

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class ProvisionedClaim:
    """A claim that gets a new volume at the positions `where`, `(positions,) bool`.

    `capacity` is what its driver has there for new volumes, in bytes, `(positions,) int64`; None if it does not say.
    """

    claim: PersistentVolumeClaim
    where: Mask
    capacity: Column | None


@dataclass(slots=True)
class PodVolumeClaims:
    """The claims of a pod by what is left to do (upstream: PodVolumeClaims)."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    unbound_delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    """They wait for the pod: their class binds when the first consumer is placed."""
    unbound_immediate: list[PersistentVolumeClaim] = field(default_factory=list)
    """The volume controller is to bind them before any pod can use them."""


class FoundVolumes:
    """What `find_pod_volumes` found on each row: what keeps the pod away, and what would be bound there.

    Attributes:
        rows: The rows that were asked about.
        affinity_conflict: Where a bound volume cannot be used, `(positions,) bool` as the masks below.
        no_match: Where a claim gets no volume and none may be made.
        no_space: Where a volume may be made, but no capacity is large enough.
        volume_missing: Where a bound claim's volume does not exist.
        untranslated: Where a bound in-tree volume cannot be translated for its CSI driver, which is an error.
        problem: What that error is.
        matched: The claims that get volumes at hand, the smallest request first.
        provisioned: The claims that get new volumes.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        masks = np.zeros((5, len(rows)), dtype=np.bool_)
        self.affinity_conflict, self.no_match, self.no_space, self.volume_missing, self.untranslated = masks
        self.problem = ""
        self.matched: list[MatchedClaim] = []
        self.provisioned: list[ProvisionedClaim] = []

    @property
    def rejected(self) -> Mask:
        """Where the pod cannot run."""
        return self.affinity_conflict | self.no_match | self.no_space | self.volume_missing

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        masks = 5 * len(self.no_match) + sum(each.where.nbytes for each in self.provisioned)
        capacities = sum(each.capacity.nbytes for each in self.provisioned if each.capacity is not None)
        return masks + capacities + sum(each.slots.nbytes for each in self.matched)


class VolumeBinder:
    """Looks at claims and volumes as they are assumed to be, and answers for all nodes at once."""

    def __init__(self, nodes: NodeTable, index: NodeIndex, listers: Listers, assumed: AssumeCaches) -> None:
        self._assumed = assumed
        self._classes = listers.of(StorageClass)
        self._drivers = listers.of(CSIDriver)
        self._csi_nodes = CSINodeColumns(nodes, listers)
        self._topology = NodeTopology(index, nodes)
        self._capacities = StorageCapacities(nodes, listers, self._topology)
        self._volumes = VolumesByClass(assumed.volumes)

    def get_pod_volume_claims(self, pod: PodInfo) -> PodVolumeClaims:
        """Return the pod's claims (upstream: GetPodVolumeClaims).

        Raises:
            VolumeError: a claim is missing or not the pod's, or its class does not say when to bind.
        """
        found = PodVolumeClaims()
        for reference in claim_references(pod.pod):
            key = f"{pod.namespace}/{reference.name}"
            claim = self._assumed.claims.get(key)
            if claim is None:
                raise VolumeError(f'error getting PVC "{key}": persistentvolumeclaims "{key}" not found')
            if reference.ephemeral and (problem := ownership_problem(pod, claim)):
                raise VolumeError(problem)
            if is_fully_bound(claim):
                found.bound.append(claim)
            elif self._is_delayed(claim) and not claim.spec.volume_name:
                found.unbound_delayed.append(claim)
            else:
                found.unbound_immediate.append(claim)
        return found

    def find_pod_volumes(self, claims: PodVolumeClaims, nodes: NodeTable, rows: Rows) -> FoundVolumes:
        """Find what can be bound on each row for the pod's claims (upstream: FindPodVolumes).

        Raises:
            VolumeError: a claim cannot be read, or its class is gone.
        """
        found = FoundVolumes(rows)
        self._check_bound_claims(claims.bound, rows, found)
        to_match: list[PersistentVolumeClaim] = []
        to_provision: list[tuple[PersistentVolumeClaim, Mask]] = []
        for claim in claims.unbound_delayed:
            selected_node = annotations(claim).selected_node
            if selected_node is None:
                to_match.append(claim)
                continue
            row = nodes.row(selected_node)
            is_selected: Mask = rows == (-1 if row is None else row)
            found.no_match |= ~is_selected
            to_provision.append((claim, is_selected))
        to_match.sort(key=requested_storage)
        found.matched = find_matching_volumes(to_match, self._volumes, self._topology, rows)
        to_provision += [(each.claim, ~each.is_matched) for each in found.matched]
        for claim, unbound in to_provision:
            self._check_provisioning(claim, unbound, rows, found)
        return found

    def missing_class(self, claim: PersistentVolumeClaim) -> str | None:
        """The StorageClass that a claim without a volume asks for, where there is none of that name."""
        name = claim_class(claim)
        return name if name and not claim.spec.volume_name and self._classes.get(name) is None else None

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        class_name = claim_class(claim)
        storage_class = self._classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise VolumeError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _check_bound_claims(self, claims: list[PersistentVolumeClaim], rows: Rows, found: FoundVolumes) -> None:
        """Note where a bound volume cannot be used; on each row only the first claim with a problem is noted."""
        for claim in claims:
            volume = self._assumed.volumes.get(claim.spec.volume_name)
            if volume is None:
                found.volume_missing = ~(found.affinity_conflict | found.untranslated)
                return
            is_usable = self._topology.matching_affinity(volume.spec.node_affinity)[rows]
            translation = translate_volume(volume)
            if translation is not None:
                is_migrated = self._csi_nodes.migrated(translation.plugin)[rows]
                if is_migrated.any():
                    if translation.problem:
                        found.problem = found.problem or f"could not translate pv: {translation.problem}"
                        found.untranslated |= is_migrated & ~found.affinity_conflict
                    affinity = migrated_node_affinity(volume, translation.plugin)
                    is_usable = np.where(is_migrated, self._topology.matching_affinity(affinity)[rows], is_usable)
            found.affinity_conflict |= ~is_usable & ~found.untranslated

    def _check_provisioning(self, claim: PersistentVolumeClaim, unbound: Mask, rows: Rows, found: FoundVolumes) -> None:
        """Note where a volume is made for the claim, and where none can be (upstream: checkVolumeProvisions)."""
        where = unbound & ~found.no_match & ~found.no_space
        if not where.any():
            return
        class_name = claim_class(claim)
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            raise VolumeError(f'failed to find storage class "{class_name}"')
        is_allowed = np.zeros(len(rows), dtype=np.bool_)
        if storage_class.provisioner not in ("", _NO_PROVISIONER):
            is_allowed = self._topology.matching_topologies(storage_class.allowed_topologies)[rows]
        found.no_match |= where & ~is_allowed
        capacity = None
        if self._capacity_counts(claim, storage_class):
            space = self._capacities.of_class(class_name)
            capacity = space.total[rows]
            # A capacity must be enough for this claim alone (upstream: hasEnoughCapacity).
            is_enough = space.largest_volume[rows] >= value_of_milli(requested_storage(claim))
            found.no_space |= where & is_allowed & ~is_enough
        found.provisioned.append(ProvisionedClaim(claim, where, capacity))

    def _capacity_counts(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
        """Tell whether the class's driver says what it has space for, and the claim how much it wants."""
        driver = self._drivers.get(storage_class.provisioner)
        is_asked_for = "storage" in (claim.spec.resources.requests or {})
        return is_asked_for and driver is not None and bool(driver.spec.storage_capacity)
