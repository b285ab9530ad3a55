"""VolumeBinding: a pod runs where its volumes can be used, and claims that wait for it are bound for the node."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.effects import Effect
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult, Scores
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reason, Status
from bayplan.framework.traits import Reads, Traits
from bayplan.plugins.volume_binding.assumptions import AssumedVolumes
from bayplan.plugins.volume_binding.events import volume_binding_events
from bayplan.plugins.volume_binding.reservation import BindingWatch, Reservation
from bayplan.plugins.volume_binding.search import NodeVolumes, PodClaims, VolumeSearch
from bayplan.plugins.volumes.claims import (
    VolumeError,
    claim_not_found,
    claim_references,
    has_claims,
    ownership_problem,
)

_AFFINITY_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
_NO_MATCH = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE = "node(s) did not have enough free storage"
_VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
_LOST = "Lost"


class VolumeBinding:
    """Rejects nodes where a claim of the pod has no volume and can get none, and binds what waits for the pod.

    A decision is assumed at Reserve, so that no other pod gets the same volume, and written before the pod is bound.
    The score belongs to a feature gate that is off by default (StorageCapacityScoring): it is skipped. Upstream:
    plugins/volumebinding.
    """

    name: ClassVar[str] = "VolumeBinding"
    # What a pod's claims need is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER, reads_feasible=False)

    def __init__(
        self,
        args: VolumeBindingArgs,
        nodes: NodeTable,
        index: NodeIndex,
        listers: Listers,
    ) -> None:
        self._timeout_seconds = float(args.bind_timeout_seconds)
        self._nodes = nodes
        self._listers = listers
        self._claims = listers.of(PersistentVolumeClaim)
        self._assumed = AssumedVolumes.over(listers)
        self._search = VolumeSearch(nodes, index, listers, self._assumed)
        self._reserved: dict[str, Reservation] = {}

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return has_claims(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not has_claims(pod):
            return NOT_CONCERNED
        problem = self._claim_problem(pod)
        if not problem:
            claims = self._claims_of(pod)
            state[self.name] = claims
            if not claims.immediate:
                return PreFilterResult(SUCCESS)
            problem = _IMMEDIATE
        return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (problem,)))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        found = self._find(state, pod, nodes, rows)
        codes = found.rejected * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        codes[found.untranslated] = Code.ERROR
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        found = self._find(state, pod, nodes, rows)
        return [
            Reason(_AFFINITY_CONFLICT, found.affinity_conflict),
            Reason(_NO_MATCH, found.no_match),
            Reason(_NO_SPACE, found.no_space),
            Reason(_VOLUME_MISSING, found.volume_missing),
            Reason(found.problem, found.untranslated),
        ]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.zeros(len(rows), dtype=np.int64)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Assume what is to be bound for the pod on the node.

        The search is repeated for the one node: nothing happens between a decision and its Reserve, so it finds what
        the filter found.
        """
        if not has_claims(pod):
            return SUCCESS
        row = self._nodes.row(node_name)
        try:
            claims = self._search.claims_of(pod)
            if row is None or not self._nodes.exists[row] or not (claims.delayed or claims.immediate):
                return SUCCESS
            found = self._search.find(claims, self._nodes, np.array([row], dtype=np.intp))
            reservation = Reservation.of(found, node_name)
            reservation.assume(self._assumed)
        except VolumeError as error:
            return Status(Code.ERROR, (str(error),))
        self._reserved[pod.uid] = reservation
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give back what was assumed; what was written stays, and the next attempt finds it."""
        reservation = self._reserved.pop(pod.uid, None)
        if reservation is not None:
            reservation.revert(self._assumed)

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Sequence[Effect]:
        """The writes that bind the pod's claims, and the wait until their volumes are there."""
        reservation = self._reserved.get(pod.uid)
        if reservation is None:
            return ()
        watch = BindingWatch(reservation, self._nodes, self._listers, node_name)

        def are_bound() -> Status | None:
            status = watch.check()
            if status is not None and status.ok and self._reserved.get(pod.uid) is reservation:
                # The listers have what was assumed.
                self.unreserve(state, pod, node_name)
            return status

        return reservation.effects(are_bound, self._timeout_seconds)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return volume_binding_events()

    def _find(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> NodeVolumes:
        claims: PodClaims = state.get(self.name) or self._claims_of(pod)
        try:
            return self._search.find(claims, nodes, rows)
        except VolumeError as error:
            raise VolumeError(f'running "{self.name}" filter plugin: {error}') from error

    def _claims_of(self, pod: PodInfo) -> PodClaims:
        try:
            return self._search.claims_of(pod)
        except VolumeError as error:
            raise VolumeError(f'running PreFilter plugin "{self.name}": {error}') from error

    def _claim_problem(self, pod: PodInfo) -> str:
        """Why a claim of the pod keeps it from running anywhere, or "" (upstream: podHasPVCs)."""
        for reference in claim_references(pod.pod):
            name = reference.name
            claim = self._claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                if reference.ephemeral:
                    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                return claim_not_found(name)
            if claim.status.phase == _LOST:
                volume = claim.spec.volume_name
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if reference.ephemeral and (problem := ownership_problem(pod, claim)):
                return problem
        return ""
