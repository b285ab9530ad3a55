"""What VolumeBinding finds out: a pod's claims by what is left to do, and the nodes where it can be done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bayplan.api.quantity import value_of_nano
from bayplan.api.storage_objects import (
    CSIDriver,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volume_binding.assumptions import AssumedVolumes
from bayplan.plugins.volume_binding.capacity import StorageSpace
from bayplan.plugins.volume_binding.class_volumes import NO_VOLUME
from bayplan.plugins.volume_binding.matching import Choice, choose_volumes, requested_storage
from bayplan.plugins.volume_binding.node_topology import Mask, VolumeReach
from bayplan.plugins.volume_binding.volumes_by_class import VolumeStock
from bayplan.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeError,
    annotations,
    claim_class,
    claim_references,
    is_fully_bound,
    ownership_problem,
)
from bayplan.plugins.volumes.csi_migration import in_tree_plugin, migrated_node_affinity, translation_problem
from bayplan.plugins.volumes.csi_nodes import CSINodeColumns

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class PodClaims:
    """A pod's claims: those with a volume, those that wait for the pod, and those that others should have bound."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    immediate: list[PersistentVolumeClaim] = field(default_factory=list)


@dataclass(slots=True)
class NodeVolumes:
    """What stands against each row, and what would be bound there; masks are `(rows,) bool`."""

    affinity_conflict: Mask
    no_match: Mask
    no_space: Mask
    volume_missing: Mask
    untranslated: Mask
    """Where a bound volume cannot be named in the words of its driver, which is an error."""
    problem: str
    """What that error is."""
    choices: list[Choice]
    provisions: list[tuple[PersistentVolumeClaim, Mask]]

    @property
    def rejected(self) -> Mask:
        """Where the pod cannot run."""
        return self.affinity_conflict | self.no_match | self.no_space | self.volume_missing


class VolumeSearch:
    """Looks at claims and volumes as they are assumed to be (upstream: volumebinding/binder.go)."""

    def __init__(self, nodes: NodeTable, index: NodeIndex, listers: Listers, assumed: AssumedVolumes) -> None:
        self._assumed = assumed
        self._classes = listers.of(StorageClass)
        self._drivers = listers.of(CSIDriver)
        self._csi_nodes = CSINodeColumns(nodes, listers)
        self._reach = VolumeReach(index, nodes)
        self._space = StorageSpace(nodes, listers, self._reach)
        self._stock = VolumeStock(assumed.volumes)

    def claims_of(self, pod: PodInfo) -> PodClaims:
        """The pod's claims (upstream: GetPodVolumeClaims).

        Raises:
            VolumeError: a claim is missing or not the pod's, or its class does not say when to bind.
        """
        found = PodClaims()
        for reference in claim_references(pod.pod):
            key = f"{pod.namespace}/{reference.name}"
            claim = self._assumed.claims.get(key)
            if claim is None:
                raise VolumeError(f'error getting PVC "{key}": persistentvolumeclaims "{key}" not found')
            if reference.ephemeral and (problem := ownership_problem(pod, claim)):
                raise VolumeError(problem)
            if is_fully_bound(claim):
                found.bound.append(claim)
            elif self._waits_for_pod(claim) and not claim.spec.volume_name:
                found.delayed.append(claim)
            else:
                found.immediate.append(claim)
        return found

    def find(self, claims: PodClaims, nodes: NodeTable, rows: Rows) -> NodeVolumes:
        """What each row says to the pod's claims (upstream: FindPodVolumes).

        Raises:
            VolumeError: a claim cannot be read, or its class is gone.
        """
        conflict, missing, untranslated, problem = self._check_bound(claims.bound, rows)
        no_match = np.zeros(len(rows), dtype=np.bool_)
        to_match: list[PersistentVolumeClaim] = []
        # Which rows still need a volume made, by claim, in the order they are looked at.
        to_provision: list[tuple[PersistentVolumeClaim, Mask]] = []
        for claim in claims.delayed:
            selected = annotations(claim).selected_node
            if selected is None:
                to_match.append(claim)
                continue
            row = nodes.row(selected)
            is_selected: Mask = rows == (-1 if row is None else row)
            no_match |= ~is_selected
            to_provision.append((claim, is_selected))
        to_match.sort(key=requested_storage)
        choices = choose_volumes(to_match, self._stock, self._reach, rows)
        to_provision += [(choice.claim, choice.chosen == NO_VOLUME) for choice in choices]
        provisions, unmade, no_space = self._check_provisions(to_provision, ~no_match, rows)
        return NodeVolumes(conflict, no_match | unmade, no_space, missing, untranslated, problem, choices, provisions)

    def _waits_for_pod(self, claim: PersistentVolumeClaim) -> bool:
        class_name = claim_class(claim)
        storage_class = self._classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise VolumeError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _check_bound(self, claims: Sequence[PersistentVolumeClaim], rows: Rows) -> tuple[Mask, Mask, Mask, str]:
        """Where a bound volume cannot be used, does not exist, or cannot be translated, and why it cannot.

        On each row the first claim with trouble tells.
        """
        conflict, missing, untranslated = (np.zeros(len(rows), dtype=np.bool_) for _ in range(3))
        problem = ""
        for claim in claims:
            volume = self._assumed.volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = ~(conflict | untranslated)
                break
            usable = self._reach.of_affinity(volume.spec.node_affinity)[rows]
            plugin = in_tree_plugin(volume)
            if plugin is not None:
                migrated = self._csi_nodes.migrated(plugin)[rows]
                if migrated.any():
                    if trouble := translation_problem(volume):
                        problem = problem or f"could not translate pv: {trouble}"
                        untranslated |= migrated & ~conflict
                    there = self._reach.of_affinity(migrated_node_affinity(volume, plugin))[rows]
                    usable = np.where(migrated, there, usable)
            conflict |= ~usable & ~untranslated
        return conflict, missing, untranslated, problem

    def _check_provisions(
        self, wanted: Sequence[tuple[PersistentVolumeClaim, Mask]], open_rows: Mask, rows: Rows
    ) -> tuple[list[tuple[PersistentVolumeClaim, Mask]], Mask, Mask]:
        """What would be made where, where something cannot be made, and where it has no space."""
        unmade = np.zeros(len(open_rows), dtype=np.bool_)
        no_space = np.zeros(len(open_rows), dtype=np.bool_)
        provisions: list[tuple[PersistentVolumeClaim, Mask]] = []
        for claim, unbound in wanted:
            where = unbound & open_rows & ~unmade & ~no_space
            if not where.any():
                continue
            provisions.append((claim, where))
            class_name = claim_class(claim)
            storage_class = self._classes.get(class_name)
            if storage_class is None:
                raise VolumeError(f'failed to find storage class "{class_name}"')
            allowed = np.zeros(len(open_rows), dtype=np.bool_)
            if storage_class.provisioner not in ("", _NO_PROVISIONER):
                allowed = self._reach.of_topologies(storage_class.allowed_topologies)[rows]
            unmade |= where & ~allowed
            no_space |= where & allowed & ~self._has_space(claim, storage_class, rows)
        return provisions, unmade, no_space

    def _has_space(self, claim: PersistentVolumeClaim, storage_class: StorageClass, rows: Rows) -> Mask:
        """Where some capacity of the class is enough for this claim alone (upstream: hasEnoughCapacity)."""
        driver = self._drivers.get(storage_class.provisioner)
        is_asked_for = "storage" in (claim.spec.resources.requests or {})
        if not is_asked_for or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(rows), dtype=np.bool_)
        size = value_of_nano(requested_storage(claim))
        enough: Mask = self._space.largest(storage_class.metadata.name)[rows] >= size
        return enough
