"""InterPodAffinity: which pods a pod must be near, must not be near, and would like to be near or not."""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Node
from bayplan.api.workload_objects import Namespace
from bayplan.cache.affinity_terms import NO_TERMS, AffinityTerm
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Lister
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import UsedOfLate
from bayplan.config.types import InterPodAffinityArgs
from bayplan.framework.causes import AffinityUnmet, Cause, Detail, listed, told
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_LABEL,
    NODE_ADD,
    NODE_LABEL,
    TARGET_POD_LABEL,
    EventRegistration,
    hint,
)
from bayplan.framework.interface import CycleState, PreFilterResult, Scores
from bayplan.framework.nominated_table import NominatedPods
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Normalize, Reads, Reason, Status, Traits
from bayplan.plugins.inter_pod_affinity.filter_and_score import PreferredTerms, RequiredTerms, normalize
from bayplan.plugins.inter_pod_affinity.placed_terms import TermKind
from bayplan.plugins.inter_pod_affinity.terms import Amounts, ClusterView, ExistingPodsTerms

_AFFINITY = "node(s) didn't match pod affinity rules"
_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"

_KEPT_TABLES = 8

_SKIPPED = PreFilterResult(SKIP)
_PASSED = PreFilterResult(SUCCESS)

_SCORED = "InterPodAffinity/scored"
_AMOUNTS = "InterPodAffinity/amounts"


class InterPodAffinity:
    """Filters by required terms of the pod and required anti-affinity of others; scores preferred terms of both.

    Upstream: plugins/interpodaffinity.
    """

    name: ClassVar[str] = "InterPodAffinity"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.CLUSTER,
        reads_feasible=False,
        normalize=Normalize.CUSTOM,
        without_pre_filter='error reading "PreFilterInterPodAffinity" from cycleState: not found',
        without_pre_score='failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    )

    def __init__(
        self, args: InterPodAffinityArgs, nodes: NodeTable, index: NodeIndex, namespaces: Lister[Namespace]
    ) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_others = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = namespaces
        self._index = index
        self._cluster = ClusterView(nodes, index, namespaces)
        self._views_of_other_tables: UsedOfLate[int, ClusterView] = UsedOfLate(_KEPT_TABLES)
        # Each pod of a crowd may be a shape of its own, too large to be kept: what the next one shares stays.
        self._scored_last: ExistingPodsTerms | None = None

    def sign_inputs(self, pod: PodInfo) -> int:
        """What grows when terms on nodes read other labels of pods than before."""
        self._cluster.placed.catch_up()
        return self._cluster.placed.label_keys_version

    def sign_pod(self, pod: PodInfo) -> Hashable:
        terms, placed = pod.affinity_terms, self._cluster.placed
        if terms is NO_TERMS and not placed:
            return ()
        return (terms.text, pod.namespace, tuple(sorted(placed.labels_read(pod).items())))

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        terms, placed = pod.affinity_terms, self._view_of(nodes).placed
        placed.catch_up()
        if terms is NO_TERMS and not placed.kinds[TermKind.REQUIRED_ANTI_AFFINITY]:
            return _SKIPPED
        if terms.error:
            text = f"parsing pod: {terms.error}"
            return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,)))
        return _PASSED if self._required(state, pod, nodes).may_reject(pod) else _SKIPPED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        required = self._required(state, pod, nodes)
        return _codes(len(rows), required.too_near(rows), required.affinity_fails(pod, rows))

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, nominated: NominatedPods
    ) -> Codes:
        required = self._required(state, pod, nodes)
        near, more = required.added_near(pod, nominated), required.added_matches(nominated)
        already_near = required.too_near(nominated.rows)
        if already_near is not None:
            near = near | already_near
        return _codes(len(nominated.rows), near, required.affinity_fails(pod, nominated.rows, more))

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        required = self._required(state, pod, nodes)
        left = np.ones(len(rows), dtype=np.bool_)
        reasons = []
        for text, fails in (
            (_AFFINITY, required.affinity_fails(pod, rows)),
            (_ANTI_AFFINITY, required.too_near(rows, theirs=False)),
            (_OTHERS, required.too_near(rows, own=False)),
        ):
            if fails is not None:
                # Only the first of a node's reasons is given.
                reasons.append(Reason(text, fails & left))
                left &= ~fails
        return reasons

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        required = self._required(state, pod, nodes)
        keys = listed({term.topology_key for term in pod.affinity_terms.required_affinity})

        def tell(text: str, places: NDArray[np.intp]) -> Cause:
            blocked = required.blocked_by(pod, rows[places], theirs=text == _OTHERS)
            return AffinityUnmet(keys) if text == _AFFINITY else blocked or told(text)

        for reason in self.reasons(state, pod, nodes, rows):
            yield Detail(reason.holds, partial(tell, reason.text))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        preferred, placed = pod.affinity_terms.preferred, self._view_of(nodes).placed
        if not preferred:
            placed.catch_up()
            if self._ignores_others or not placed:
                return SKIP
        amounts = state[_AMOUNTS] = self._scored(state, pod, nodes)
        return SUCCESS if amounts else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        amounts: dict[str, Amounts] | None = state.get(_AMOUNTS)
        if amounts is None:
            amounts = self._scored(state, pod, nodes)
        scored: PreferredTerms = state[_SCORED]
        return scored.score(amounts, rows)

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        return normalize(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        # Namespaces that a term selects by label are not looked up, as upstream.
        return (
            *(
                EventRegistration(each, hint(_helps_as_assigned))
                for each in (ASSIGNED_POD_ADD, ASSIGNED_POD_LABEL, ASSIGNED_POD_DELETE)
            ),
            EventRegistration(TARGET_POD_LABEL),
            *(EventRegistration(each, hint(_is_in_another_topology, new=Node)) for each in (NODE_ADD, NODE_LABEL)),
        )

    def release_unused(self) -> None:
        """Let go of the tables of preemption and nominations that were not asked about since the last call."""
        self._views_of_other_tables.release_unused()
        self._cluster.placed.forget_changes()

    def _view_of(self, nodes: NodeTable) -> ClusterView:
        """Return what is counted of a table: the real one, or one that preemption or nominations try pods out on."""
        if nodes is self._cluster.nodes:
            return self._cluster
        others = self._views_of_other_tables
        known = others.get(id(nodes))
        if known is None:
            # It holds the table, so that no other can get its id.
            known = others.put(id(nodes), ClusterView(nodes, self._index, self._namespaces))
        return known

    def _required(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> RequiredTerms:
        required: RequiredTerms | None = state.get(self.name)
        if required is None or required.nodes is not nodes:
            required = state[self.name] = RequiredTerms(self._view_of(nodes), pod)
        return required

    def _scored(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> dict[str, Amounts]:
        scored: PreferredTerms | None = state.get(_SCORED)
        if scored is None or scored.nodes is not nodes:
            scored = state[_SCORED] = PreferredTerms(self._view_of(nodes), pod, self._hard_weight)
            if nodes is self._cluster.nodes:
                self._scored_last = scored.existing
        return scored.amounts(pod)


def _codes(rows: int, too_near: NDArray[np.bool_] | None, too_far: NDArray[np.bool_] | None) -> Codes:
    codes = np.zeros(rows, dtype=np.int8)
    if too_near is not None:
        codes[too_near] = Code.UNSCHEDULABLE
    if too_far is not None:
        codes[too_far] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return codes


def _helps_as_assigned(pod: PodInfo, old: object, new: object) -> bool:
    """Return whether a pod that came, went or was relabelled on a node meets all terms it did not, or breaks fewer."""
    before, after = (each if isinstance(each, PodInfo) else None for each in (old, new))
    terms, anti = pod.affinity_terms, pod.affinity_terms.required_anti_affinity
    if after is not None:
        gained = _match_all(terms.required_affinity, after)
        if before is None:
            return gained
        lost = _match_any(anti, before) and not _match_any(anti, after)
        return lost or (gained and not _match_all(terms.required_affinity, before))
    others = () if before is None else before.affinity_terms.required_anti_affinity
    return before is None or _match_any(anti, before) or _match_any(others, pod)


def _is_in_another_topology(pod: PodInfo, old: Node | None, new: Node) -> bool:
    """Return whether a node joined a topology of the pod's affinity, changed it, or left one of its anti-affinity."""
    terms = pod.affinity_terms
    labels = new.metadata.labels or {}
    if old is None:
        joins = any(term.topology_key in labels for term in terms.required_affinity)
        return joins or bool(terms.required_anti_affinity)
    before = old.metadata.labels or {}
    changed = {key for key in labels.keys() | before if labels.get(key) != before.get(key)}
    return any(term.topology_key in changed and term.topology_key in labels for term in terms.required_affinity) or any(
        term.topology_key in changed and term.topology_key in before for term in terms.required_anti_affinity
    )


def _match_all(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, pod.pod.metadata.labels, None) for term in terms)


def _match_any(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return any(term.matches(pod.namespace, pod.pod.metadata.labels, None) for term in terms)
