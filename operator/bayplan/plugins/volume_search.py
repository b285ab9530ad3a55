"""What VolumeBinding finds out: a pod's claims by what is left to do, and the nodes where it can be done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import QuantityError, value, value_of_nano
from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volume_assumptions import AssumedVolumes
from bayplan.plugins.volume_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    VolumeError,
    annotations,
    claim_class,
    claim_references,
    is_fully_bound,
    ownership_problem,
    volume_class,
)
from bayplan.plugins.volume_matching import NO_VOLUME, Choice, choose_volumes, requested_storage
from bayplan.plugins.volume_migration import in_tree_plugin, is_migrated_on, migrated_node_affinity, translation_problem
from bayplan.plugins.volume_reach import NodeReach, Places

_Mask = NDArray[np.bool_]

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

    affinity_conflict: _Mask
    no_match: _Mask
    no_space: _Mask
    volume_missing: _Mask
    untranslated: _Mask
    """Where a bound volume cannot be named in the words of its driver, which is an error."""
    problem: str
    """What that error is."""
    choices: list[Choice]
    provisions: list[tuple[PersistentVolumeClaim, _Mask]]

    @property
    def rejected(self) -> _Mask:
        """Where the pod cannot run."""
        return self.affinity_conflict | self.no_match | self.no_space | self.volume_missing


class VolumeSearch:
    """Looks at claims and volumes as they are assumed to be (upstream: volumebinding/binder.go)."""

    def __init__(self, index: NodeIndex, listers: Listers, assumed: AssumedVolumes) -> None:
        self._index = index
        self._assumed = assumed
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)
        self._csi_nodes = listers.of(CSINode)
        self._drivers = listers.of(CSIDriver)
        self._capacities = listers.of(CSIStorageCapacity)
        self._by_class: dict[str, list[PersistentVolume]] = {}
        self._by_class_at = -1

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
        reach = NodeReach(self._index, nodes, rows)
        conflict, missing, untranslated, problem = self._check_bound(claims.bound, reach, nodes, rows)
        no_match = np.zeros(len(rows), dtype=np.bool_)
        to_match: list[PersistentVolumeClaim] = []
        # Which rows still need a volume made, by claim, in the order they are looked at.
        to_provision: list[tuple[PersistentVolumeClaim, _Mask]] = []
        for claim in claims.delayed:
            selected = annotations(claim).selected_node
            if selected is None:
                to_match.append(claim)
                continue
            row = nodes.row(selected)
            is_selected: _Mask = rows == (-1 if row is None else row)
            no_match |= ~is_selected
            to_provision.append((claim, is_selected))
        to_match.sort(key=requested_storage)
        choices = choose_volumes(to_match, self._of_class, reach, len(rows))
        to_provision += [(choice.claim, choice.chosen == NO_VOLUME) for choice in choices]
        provisions, unmade, no_space = self._check_provisions(to_provision, ~no_match, reach)
        return NodeVolumes(conflict, no_match | unmade, no_space, missing, untranslated, problem, choices, provisions)

    def _waits_for_pod(self, claim: PersistentVolumeClaim) -> bool:
        class_name = claim_class(claim)
        storage_class = self._classes.get(class_name) if class_name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise VolumeError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _check_bound(
        self, claims: Sequence[PersistentVolumeClaim], reach: NodeReach, nodes: NodeTable, rows: Rows
    ) -> tuple[_Mask, _Mask, _Mask, str]:
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
            migrated = self._migrated(volume, nodes, rows)
            if trouble := translation_problem(volume) if migrated.any() else "":
                problem = problem or f"could not translate pv: {trouble}"
                untranslated |= migrated & ~conflict
            usable = np.zeros(len(rows), dtype=np.bool_)
            usable[self._usable_at(volume, reach, migrated)] = True
            conflict |= ~usable & ~untranslated
        return conflict, missing, untranslated, problem

    def _migrated(self, volume: PersistentVolume, nodes: NodeTable, rows: Rows) -> _Mask:
        """Where the kubelet leaves an in-tree volume to its driver."""
        plugin = in_tree_plugin(volume)
        if plugin is None:
            return np.zeros(len(rows), dtype=np.bool_)
        names = nodes.names
        return np.array(
            [is_migrated_on(plugin, self._csi_nodes.get(names[row])) for row in rows.tolist()], dtype=np.bool_
        )

    def _usable_at(self, volume: PersistentVolume, reach: NodeReach, migrated: _Mask) -> Places:
        places = reach.of_affinity(volume.spec.node_affinity)
        plugin = in_tree_plugin(volume)
        if plugin is None:
            return places
        there = reach.of_affinity(migrated_node_affinity(volume, plugin))
        return np.concatenate([places[~migrated[places]], there[migrated[there]]])

    def _check_provisions(
        self, wanted: Sequence[tuple[PersistentVolumeClaim, _Mask]], open_rows: _Mask, reach: NodeReach
    ) -> tuple[list[tuple[PersistentVolumeClaim, _Mask]], _Mask, _Mask]:
        """What would be made where, where something cannot be made, and where it has no space."""
        unmade = np.zeros(len(open_rows), dtype=np.bool_)
        no_space = np.zeros(len(open_rows), dtype=np.bool_)
        provisions: list[tuple[PersistentVolumeClaim, _Mask]] = []
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
                allowed[reach.of_topologies(storage_class.allowed_topologies)] = True
            unmade |= where & ~allowed
            no_space |= where & allowed & ~self._has_space(claim, storage_class, reach, len(open_rows))
        return provisions, unmade, no_space

    def _has_space(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, reach: NodeReach, row_count: int
    ) -> _Mask:
        """Where some capacity of the class is enough for this claim alone (upstream: hasEnoughCapacity)."""
        driver = self._drivers.get(storage_class.provisioner)
        is_asked_for = "storage" in (claim.spec.resources.requests or {})
        if not is_asked_for or driver is None or not driver.spec.storage_capacity:
            return np.ones(row_count, dtype=np.bool_)
        size = value_of_nano(requested_storage(claim))
        enough = np.zeros(row_count, dtype=np.bool_)
        for capacity in self._capacities.objects.values():
            if capacity.storage_class_name == storage_class.metadata.name:
                limit = volume_limit(capacity)
                if limit is not None and limit >= size:
                    enough[reach.of_labels(capacity.node_topology)] = True
        return enough

    def _of_class(self, class_name: str) -> list[PersistentVolume]:
        if self._by_class_at != self._volumes.version:
            self._by_class_at = self._volumes.version
            self._by_class = {}
            for volume in self._volumes.objects.values():
                self._by_class.setdefault(volume_class(volume), []).append(volume)
        return [self._assumed.volumes.current(volume) for volume in self._by_class.get(class_name, ())]


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; None if nothing, or nothing legible, is said."""
    quantity = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if quantity is None else value(quantity)
    except QuantityError:
        return None
