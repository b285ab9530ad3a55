"""VolumeBinding: run a pod where its volumes can be used, and bind the claims that wait for it on its node."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from bayplan.api.storage_objects import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.framework.cluster_event import (
    CLAIM_ADD_OR_UPDATE,
    CSI_DRIVER_UPDATE,
    CSI_NODE_ADD_OR_UPDATE,
    NODE_ADD,
    NODE_LABEL,
    STORAGE_CAPACITY_ADD_OR_UPDATE,
    STORAGE_CLASS_ADD_OR_UPDATE,
    VOLUME_ADD_OR_UPDATE,
    EventRegistration,
    hint,
    hint_of_change,
)
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult, Scores
from bayplan.framework.status import (
    SCORES_ZERO,
    SKIP,
    SUCCESS,
    Code,
    Codes,
    Conversation,
    EffectError,
    Exchange,
    Reads,
    Reason,
    Status,
    Traits,
    wait_until,
)
from bayplan.plugins.node_resources.resource_scoring import shape_table
from bayplan.plugins.volume_binding.assume_cache import AssumeCaches
from bayplan.plugins.volume_binding.binder import FoundVolumes, PodVolumeClaims, VolumeBinder
from bayplan.plugins.volume_binding.capacity import volume_limit
from bayplan.plugins.volume_binding.pod_volumes import BindingCheck, PodVolumes
from bayplan.plugins.volume_binding.scorer import storage_scores
from bayplan.plugins.volumes.claims import (
    VolumeError,
    claim_hint,
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

_FILTERED = "VolumeBinding's filter"
"""The key of what the filter found on the rows it was asked about last, in the state of a cycle."""
_SCORED = "VolumeBinding's score"
"""The key that says that some pod of the shape had claims to score."""


class VolumeBinding:
    """Rejects nodes where a claim of the pod has no volume and can get none, and binds what waits for the pod.

    Reserve assumes the decision, so that no other pod gets the same volume. PreBind writes it before the pod is bound.
    With `scores` (the feature gate StorageCapacityScoring, on by default) nodes score by how full storage would be; all
    score 0 for pods whose claims are bound. Upstream: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go.
    """

    name: ClassVar[str] = "VolumeBinding"
    # What a pod's claims need is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(
        reads=Reads.CLUSTER,
        reads_feasible=False,
        signs_less=True,
        without_pre_filter="not found",
        reads_pre_filter_later=True,
    )

    def __init__(
        self, args: VolumeBindingArgs, nodes: NodeTable, index: NodeIndex, listers: Listers, *, scores: bool = True
    ) -> None:
        self._table = shape_table(args.shape) if scores else None
        self._timeout_seconds = float(args.bind_timeout_seconds)
        self._nodes = nodes
        self._claims = listers.of(PersistentVolumeClaim)
        self._assumed = listers.shared(AssumeCaches)
        self._binder = VolumeBinder(nodes, index, listers, self._assumed)
        self._bindings = BindingCheck(nodes, listers)
        self._reserved: dict[str, PodVolumes] = {}
        """What is assumed, by the UID of the pod."""

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return has_claims(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not has_claims(pod):
            return NOT_CONCERNED
        problem = self._claim_problem(pod)
        if not problem:
            claims = self._claims_of(pod)
            state[self.name] = claims
            if not claims.unbound_immediate:
                return PreFilterResult(SUCCESS)
            problem = _IMMEDIATE
        return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (problem,)))

    def explain_rejection(self, pod: PodInfo) -> str:
        """Name the StorageClass that is missing, which kube-scheduler's message leaves out; otherwise empty."""
        for reference in claim_references(pod.pod):
            claim = self._claims.get(f"{pod.namespace}/{reference.name}")
            missing = None if claim is None else self._binder.missing_class(claim)
            if missing is not None:
                return f'claim "{reference.name}" asks for StorageClass "{missing}", which does not exist'
        return ""

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        found = state[_FILTERED] = self._find(state, pod, nodes, rows)
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
        if self._table is None:
            return SKIP
        claims: PodVolumeClaims | None = state.get(self.name)
        if claims is None or not (claims.unbound_delayed or _SCORED in state):
            return SCORES_ZERO
        # Once a pod of this shape is scored all are, as going from one to the other takes longer than scoring 0.
        state[_SCORED] = True
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        found: FoundVolumes | None = state.get(_FILTERED)
        if self._table is None or found is None:
            return np.zeros(len(rows), dtype=np.int64)
        # All rows are filtered before all are scored, as both read the cluster.
        return storage_scores(found if found.rows is rows else self._find(state, pod, nodes, rows), self._table)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Assume what is to be bound for the pod on the node.

        The volumes are searched again for the one node. Nothing changes between a decision and its Reserve, so this
        finds what the filter found.
        """
        if not has_claims(pod):
            return SUCCESS
        row = self._nodes.row(node_name)
        try:
            claims = self._binder.get_pod_volume_claims(pod)
            if row is None or not (claims.unbound_delayed or claims.unbound_immediate):
                return SUCCESS
            found = self._binder.find_pod_volumes(claims, self._nodes, np.array([row], dtype=np.intp))
            volumes = PodVolumes.of(found, node_name)
            volumes.assume(self._assumed)
        except VolumeError as error:
            return Status(Code.ERROR, (str(error),))
        self._reserved[pod.uid] = volumes
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give back what was assumed; what was written stays, and the next attempt finds it."""
        volumes = self._reserved.pop(pod.uid, None)
        if volumes is not None:
            volumes.revert(self._assumed)

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Exchange | None:
        """Return the writes that bind the pod's claims, and the wait until their volumes are there."""
        volumes = self._reserved.get(pod.uid)
        if volumes is None:
            return None
        # Where nothing is written it stays assumed.
        about = f"volumes of pod {pod.key}"
        return Exchange(partial(self._bind, volumes, pod, node_name), lambda: None, about, waits=True)

    def _bind(self, volumes: PodVolumes, pod: PodInfo, node_name: str) -> Conversation:
        for write in volumes.writes():
            answer = yield write
            if answer is None:
                raise EffectError(f"writing {write.about}: no answer from the API server")
            if answer.status >= 300:
                raise EffectError(f"writing {write.about}: status {answer.status}: {answer.problem}")
        are_bound = partial(self._bindings.are_bound, volumes, node_name)
        try:
            yield from wait_until(are_bound, self._timeout_seconds, "binding volumes")
        except VolumeError as error:
            raise EffectError(f"binding volumes: {error}") from error
        if self._reserved.get(pod.uid) is volumes:
            # The listers have what was assumed.
            del self._reserved[pod.uid]
            volumes.revert(self._assumed)

    def events_to_register(self) -> Sequence[EventRegistration]:
        topologies = hint_of_change(lambda each: each.allowed_topologies or [], StorageClass)
        capacity = hint(_has_room_for_larger_volumes, old=CSIStorageCapacity, new=CSIStorageCapacity)
        return (
            EventRegistration(STORAGE_CLASS_ADD_OR_UPDATE, topologies),
            EventRegistration(CLAIM_ADD_OR_UPDATE, claim_hint(ephemeral_too=True)),
            EventRegistration(VOLUME_ADD_OR_UPDATE),
            EventRegistration(NODE_ADD),
            EventRegistration(NODE_LABEL),
            EventRegistration(CSI_NODE_ADD_OR_UPDATE, hint_of_change(_migrated_plugins, CSINode)),
            EventRegistration(CSI_DRIVER_UPDATE, hint(_checks_capacity_no_more, old=CSIDriver, new=CSIDriver)),
            EventRegistration(STORAGE_CAPACITY_ADD_OR_UPDATE, capacity),
        )

    def _find(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> FoundVolumes:
        claims: PodVolumeClaims = state.get(self.name) or self._claims_of(pod)
        try:
            return self._binder.find_pod_volumes(claims, nodes, rows)
        except VolumeError as error:
            raise VolumeError(f'running "{self.name}" filter plugin: {error}') from error

    def _claims_of(self, pod: PodInfo) -> PodVolumeClaims:
        try:
            return self._binder.get_pod_volume_claims(pod)
        except VolumeError as error:
            raise VolumeError(f'running PreFilter plugin "{self.name}": {error}') from error

    def _claim_problem(self, pod: PodInfo) -> str:
        """Say why a claim of the pod keeps it from running anywhere, or return "" (upstream: podHasPVCs)."""
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


def _migrated_plugins(csi_node: CSINode) -> str:
    annotations = csi_node.metadata.annotations
    return "" if annotations is None else annotations.migrated_plugins or ""


def _checks_capacity_no_more(pod: PodInfo, old: CSIDriver, new: CSIDriver) -> bool:
    """Return whether the driver of an own volume of the pod no longer wants the capacity to be checked."""
    is_inline = any(
        volume.csi is not None and volume.csi.get("driver") == new.metadata.name
        for volume in pod.pod.spec.volumes or ()
    )
    return is_inline and bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def _has_room_for_larger_volumes(pod: PodInfo, old: CSIStorageCapacity, new: CSIStorageCapacity) -> bool:
    before, now = volume_limit(old), volume_limit(new)
    return now is not None and (before is None or now > before)
