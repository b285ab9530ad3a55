"""PodTopologySpread: pods that belong together lie evenly over zones, hosts or other domains."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Final, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from bayplan.api.objects import Node, TopologySpreadConstraint
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import MatchingPods, MatchingPodsOfScratch, PodCounts
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import ScratchTable
from bayplan.config.types import PodTopologySpreadArgs, PodTopologySpreadDefaulting
from bayplan.framework.causes import Detail
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_LABEL,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    TARGET_POD_LABEL,
    TARGET_POD_TOLERATION,
    EventRegistration,
    hint,
)
from bayplan.framework.interface import CycleState, PreFilterResult, Scores
from bayplan.framework.nominated_table import NominatedPods
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Normalize, Reads, Reason, Status, Traits
from bayplan.plugins.pod_topology_spread.constraints import (
    SCHEDULE_ANYWAY,
    DefaultSelectors,
    PodSelector,
    SpreadConstraint,
    SpreadConstraints,
    of_action,
    resolve,
    selected_in,
)
from bayplan.plugins.pod_topology_spread.filter_and_score import HardSpread, SoftSpread

_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)

_Spread = TypeVar("_Spread", HardSpread, SoftSpread)


class PodTopologySpread:
    """Filters by DoNotSchedule constraints and scores ScheduleAnyway ones; pods without any get the defaults.

    A pod's signature holds its constraints resolved, selectors of services and owners included, so what an evaluation
    once resolved holds for all its pods. `matchLabelKeys` count with `match_label_keys`, and tolerations with the
    operators Lt and Gt where it `compares`. Upstream: plugins/podtopologyspread.
    """

    name: ClassVar[str] = "PodTopologySpread"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.CLUSTER,
        pre_reads=Reads.NODE,
        normalize=Normalize.CUSTOM,
        without_pre_filter='reading "PreFilterPodTopologySpread" from cycleState: not found',
        without_pre_score='error reading "PreScorePodTopologySpread" from cycleState: not found',
    )

    def __init__(
        self,
        args: PodTopologySpreadArgs,
        index: NodeIndex,
        listers: Listers,
        *,
        match_label_keys: bool = True,
        compares: bool = False,
    ) -> None:
        self._index = index
        self._match_label_keys = match_label_keys
        self._compares = compares
        self._is_system = args.defaulting_type is PodTopologySpreadDefaulting.SYSTEM
        self._defaults = _SYSTEM_DEFAULTS if self._is_system else args.default_constraints
        self._selectors = DefaultSelectors(listers) if self._defaults else None
        self._has_hard_defaults = len(of_action(self._defaults, SCHEDULE_ANYWAY)) < len(self._defaults)
        self._own: WeakKeyDictionary[PodInfo, SpreadConstraints] = WeakKeyDictionary()
        # Shared by evaluations, which keep them alive; the table is part of what is counted.
        self._counts: WeakValueDictionary[tuple[int, str, PodSelector], PodCounts] = WeakValueDictionary()

    def sign_inputs(self, pod: PodInfo) -> Hashable:
        if self._selectors is None or pod.pod.spec.topology_spread_constraints:
            return None
        return self._selectors.inputs(pod)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        constraints = self._constraints(pod)
        all_ = constraints.hard + constraints.soft
        if not all_:
            return ()
        spec = pod.pod.spec
        affinity, tolerations = None, None
        if any(each.honors_affinity for each in all_) and (spec.affinity or spec.node_selector):
            required = repr(spec.affinity and spec.affinity.node_affinity)
            affinity = (tuple(sorted((spec.node_selector or {}).items())), required)
        if any(each.honors_taints for each in all_):
            tolerations = repr(spec.tolerations)
        hard, soft = ([each.signature for each in half] for half in (constraints.hard, constraints.soft))
        return pod.namespace, tuple(hard), tuple(soft), affinity, tolerations

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        hard = self._constraints_of(state, pod).hard
        if not hard:
            return PreFilterResult(SKIP)
        error = next((each.selector.error for each in hard if each.selector.error), "")
        if error:
            text = f"obtaining pod's hard topology spread constraints: {error}"
            return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,)))
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return self._hard_spread(state, pod, nodes).codes(rows)

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, nominated: NominatedPods
    ) -> Codes:
        return self._hard_spread(state, pod, nodes).codes_with_nominated(nominated)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return self._hard_spread(state, pod, nodes).reasons(rows)

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        return self._hard_spread(state, pod, nodes).details(rows)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS if self._constraints_of(state, pod).soft else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """Return nothing yet: scores depend on which nodes are feasible, and only `normalize_score` gets them all."""
        return np.zeros(len(rows), dtype=np.int64)

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        return self._soft_spread(state, pod, nodes).scores(rows)

    def events_to_register(self) -> Sequence[EventRegistration]:
        of_assigned = (ASSIGNED_POD_ADD, ASSIGNED_POD_LABEL, ASSIGNED_POD_DELETE)
        of_target = (TARGET_POD_LABEL, TARGET_POD_TOLERATION)
        of_nodes = (NODE_ADD, NODE_DELETE, NODE_LABEL, NODE_TAINT)
        return (
            *(EventRegistration(event, hint(self._is_counted_otherwise)) for event in of_assigned),
            *(EventRegistration(event, hint(self._counts_otherwise, old=PodInfo, new=PodInfo)) for event in of_target),
            *(EventRegistration(event, hint(self._is_in_other_domains)) for event in of_nodes),
        )

    def _is_counted_otherwise(self, pod: PodInfo, old: object, new: object) -> bool:
        changed = [each for each in (old, new) if isinstance(each, PodInfo)]
        if not changed:
            return True
        if any(each.namespace != pod.namespace for each in changed):
            return False
        constraints = self._hard_constraints(pod)
        if len(changed) == 1:
            labels = changed[0].pod.metadata.labels
            return any(each.selector.matches(labels) for each in constraints)
        return _is_relabelled(constraints, *changed)

    def _counts_otherwise(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
        constraints = self._hard_constraints(pod)
        has_other_tolerations = (old.pod.spec.tolerations or []) != (new.pod.spec.tolerations or [])
        if has_other_tolerations and any(each.honors_taints for each in constraints):
            return True
        return _is_relabelled(constraints, old, new)

    def _is_in_other_domains(self, pod: PodInfo, old: object, new: object) -> bool:
        before, after = (each if isinstance(each, Node) else None for each in (old, new))
        if before is None and after is None:
            return True
        keys = [each.topology_key for each in self._hard_constraints(pod)]
        was, now = _values(before, keys), _values(after, keys)
        if before is None or after is None or now is None:
            return was is not None or now is not None
        return was != now or (before.spec.taints or []) != (after.spec.taints or [])

    def _constraints(self, pod: PodInfo) -> SpreadConstraints:
        if pod.pod.spec.topology_spread_constraints:
            known = self._own.get(pod)
            if known is None:
                known = self._own[pod] = resolve(
                    pod, pod.pod.spec.topology_spread_constraints, match_label_keys=self._match_label_keys
                )
            return known
        selector = PodSelector(()) if self._selectors is None else self._selectors.selector(pod)
        # Without services or an owner there is nothing to count.
        applied = () if selector.is_empty else self._defaults
        return resolve(pod, applied, selector, requires_all_keys=not self._is_system)

    def _hard_constraints(self, pod: PodInfo) -> Sequence[SpreadConstraint]:
        if not pod.pod.spec.topology_spread_constraints and not self._has_hard_defaults:
            return ()
        return self._constraints(pod).hard

    def _constraints_of(self, state: CycleState, pod: PodInfo) -> SpreadConstraints:
        known: SpreadConstraints | None = state.get(self.name)
        if known is None:
            known = state[self.name] = self._constraints(pod)
        return known

    def _hard_spread(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> HardSpread:
        hard = self._constraints_of(state, pod).hard
        return self._spread(HardSpread, state, pod, nodes, hard, requires_all_keys=True)

    def _soft_spread(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> SoftSpread:
        own = self._constraints_of(state, pod)
        return self._spread(SoftSpread, state, pod, nodes, own.soft, requires_all_keys=own.requires_all_keys)

    def _spread(
        self,
        kind: type[_Spread],
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        constraints: Sequence[SpreadConstraint],
        *,
        requires_all_keys: bool,
    ) -> _Spread:
        """Return what the state keeps of the filter or of the score, made when first asked for."""
        known: _Spread | None = state.get(kind.__name__)
        if known is None or known.nodes is not nodes:
            known = state[kind.__name__] = kind(
                constraints,
                pod,
                nodes,
                self._index,
                [self._matching_pods(nodes, pod.namespace, each.selector) for each in constraints],
                requires_all_keys=requires_all_keys,
                compares=self._compares,
            )
        return known

    def _matching_pods(self, nodes: NodeTable, namespace: str, selector: PodSelector) -> PodCounts | None:
        if isinstance(nodes, ScratchTable):
            of_source = self._matching_pods(nodes.source, namespace, selector)
            assert not isinstance(of_source, MatchingPodsOfScratch)
            return MatchingPodsOfScratch(nodes, of_source, selected_in(namespace, selector))
        if selector.is_nothing or selector.is_empty:
            # An empty selector counts nobody who is there, although the pod itself matches it.
            return None
        key = (id(nodes), namespace, selector)
        known = self._counts.get(key)
        if known is None:
            selects = selected_in(namespace, selector)
            known = self._counts[key] = MatchingPods(nodes, lambda pod: not pod.is_terminating and selects(pod))
        return known


def _is_relabelled(constraints: Sequence[SpreadConstraint], old: PodInfo, new: PodInfo) -> bool:
    """Return whether a constraint counts the pod by its new labels and not by the old ones, or the other way."""
    was, now = old.pod.metadata.labels, new.pod.metadata.labels
    return any(each.selector.matches(was) != each.selector.matches(now) for each in constraints)


def _values(node: Node | None, keys: Sequence[str]) -> list[str] | None:
    """Return the node's domains; None if it is not there or lacks a key."""
    labels = {} if node is None else node.metadata.labels or {}
    if node is None or any(key not in labels for key in keys):
        return None
    return [labels[key] for key in keys]
