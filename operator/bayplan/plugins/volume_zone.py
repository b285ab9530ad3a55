"""VolumeZone: run pods in the zones and regions that the labels of their volumes name."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    CLAIM_ADD_OR_UPDATE,
    NODE_ADD,
    NODE_LABEL,
    STORAGE_CLASS_ADD,
    VOLUME_ADD_OR_UPDATE,
    EventRegistration,
    hint,
    hint_of_change,
)
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reads, Reason, Status, Traits
from bayplan.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_hint,
    claim_not_found,
    named_claims,
)
from bayplan.plugins.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR

_CONFLICT = "node(s) had no available volume zone"

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_GA_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION}

_Topology = tuple[str, frozenset[str]]
"""A topology label of a volume, and the values of which a node must have one."""


class VolumeZone:
    """Rejects nodes outside the zones and regions that the pod's bound volumes are labelled with.

    Nodes without any such label pass: a cluster with a single zone may not label its nodes. Upstream:
    pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
    """

    name: ClassVar[str] = "VolumeZone"
    # Where a pod's volumes are is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER, signs_less=True)

    def __init__(self, index: NodeIndex, listers: Listers) -> None:
        self._index = index
        self._claims = listers.of(PersistentVolumeClaim)
        self._volumes = listers.of(PersistentVolume)
        self._classes = listers.of(StorageClass)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(named_claims(pod.pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        topologies = self._topologies(pod)
        if isinstance(topologies, str):
            return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (topologies,)))
        if not topologies:
            return PreFilterResult(SKIP) if named_claims(pod.pod) else NOT_CONCERNED
        state[self.name] = topologies
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        topologies = state.get(self.name)
        if topologies is None:
            topologies = self._topologies(pod)
            if isinstance(topologies, str):
                return np.full(len(rows), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
        conflicting = np.zeros(len(rows), dtype=np.bool_)
        for key, values in topologies:
            conflicting |= ~self._has_value(key, values, rows)
        conflicting &= self._has_topology(rows)
        return conflicting * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason(_CONFLICT, np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(STORAGE_CLASS_ADD, hint(_is_bound_when_consumed, new=StorageClass)),
            EventRegistration(NODE_ADD),
            EventRegistration(NODE_LABEL),
            EventRegistration(CLAIM_ADD_OR_UPDATE, claim_hint(ephemeral_too=False)),
            EventRegistration(VOLUME_ADD_OR_UPDATE, hint_of_change(_volume_topologies, PersistentVolume)),
        )

    def _topologies(self, pod: PodInfo) -> list[_Topology] | str:
        """Return the topologies of the pod's bound volumes, or say why it cannot run anywhere now."""
        topologies: list[_Topology] = []
        for claim_name in named_claims(pod.pod):
            if not claim_name:
                return "PersistentVolumeClaim had no name"
            claim = self._claims.get(f"{pod.namespace}/{claim_name}")
            if claim is None:
                return claim_not_found(claim_name)
            volume_name = claim.spec.volume_name
            if not volume_name:
                problem = self._unbound_problem(claim)
                if problem:
                    return problem
                continue
            volume = self._volumes.get(volume_name)
            if volume is None:
                return f'persistentvolume "{volume_name}" not found'
            topologies.extend(_volume_topologies(volume))
        return topologies

    def _unbound_problem(self, claim: PersistentVolumeClaim) -> str:
        """Say why a claim without a volume keeps the pod back, or return "" if the scheduler is to bind it."""
        class_name = claim_class(claim)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        if storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        return "" if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"

    def _has_topology(self, rows: Rows) -> NDArray[np.bool_]:
        present = np.zeros(len(rows), dtype=np.bool_)
        for key in _TOPOLOGY_LABELS:
            present |= self._index.labels.column(key).ids[rows] != 0
        return present

    def _has_value(self, key: str, values: frozenset[str], rows: Rows) -> NDArray[np.bool_]:
        column = self._index.labels.column(key)
        found: NDArray[np.bool_] = column.each(rows, values.__contains__, np.bool_)
        ga_key = _GA_LABELS.get(key)
        if ga_key is None:
            return found
        # A volume's beta label is met by the node's GA label where the node has no beta label.
        missing = column.ids[rows] == 0
        in_ga = self._index.labels.column(ga_key).each(rows, values.__contains__, np.bool_)
        return np.where(missing, in_ga, found)


def _volume_topologies(volume: PersistentVolume) -> list[_Topology]:
    """Return the volume's zone and region labels; a label that lists an empty zone is ignored."""
    topologies: list[_Topology] = []
    for key in _TOPOLOGY_LABELS:
        text = (volume.metadata.labels or {}).get(key)
        if text is None:
            continue
        values = frozenset(part.strip() for part in text.split(ZONE_SEPARATOR))
        if "" not in values:
            topologies.append((key, values))
    return topologies


def _is_bound_when_consumed(pod: PodInfo, old: object, new: StorageClass) -> bool:
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
