"""PodTopologySpread: pods that belong together lie evenly over zones, hosts or other domains."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from bayplan.api.objects import TopologySpreadConstraint
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.matching_pods import MatchingPods, MatchingPodsOfShadow
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shadow_table import ShadowTable
from bayplan.config.types import PodTopologySpreadArgs, PodTopologySpreadDefaulting
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.interface import CycleState, PreFilterResult, Scores
from bayplan.framework.nominated_table import NominatedPods
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reason, Status
from bayplan.framework.traits import Normalize, Reads, Traits
from bayplan.plugins.pod_topology_spread.constraints import (
    SCHEDULE_ANYWAY,
    PodSelector,
    SpreadConstraint,
    SpreadConstraints,
    of_action,
    resolve_defaults,
    resolve_own,
)
from bayplan.plugins.pod_topology_spread.defaults import DefaultSelectors
from bayplan.plugins.pod_topology_spread.domains import SpreadDomains
from bayplan.plugins.pod_topology_spread.filter import HardSpread
from bayplan.plugins.pod_topology_spread.hints import SpreadHints
from bayplan.plugins.pod_topology_spread.score import SoftSpread

_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key="kubernetes.io/hostname", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5
    ),
)


class PodTopologySpread:
    """Filters by DoNotSchedule constraints and scores ScheduleAnyway ones; pods without any get the defaults.

    A pod's signature holds its constraints resolved, selectors of services and owners included, so what an evaluation
    once resolved holds for all its pods. Upstream: plugins/podtopologyspread.
    """

    name: ClassVar[str] = "PodTopologySpread"
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER, pre_reads=Reads.NODE, normalize=Normalize.CUSTOM)

    def __init__(self, args: PodTopologySpreadArgs, index: NodeIndex, listers: Listers) -> None:
        self._index = index
        self._is_system = args.defaulting_type is PodTopologySpreadDefaulting.SYSTEM
        self._defaults = _SYSTEM_DEFAULTS if self._is_system else args.default_constraints
        self._selectors = DefaultSelectors(listers) if self._defaults else None
        self._has_hard_defaults = len(of_action(self._defaults, SCHEDULE_ANYWAY)) < len(self._defaults)
        self._own: WeakKeyDictionary[PodInfo, SpreadConstraints] = WeakKeyDictionary()
        # Shared by evaluations, which keep them alive; the table is part of what is counted.
        self._counts: WeakValueDictionary[tuple[int, str, PodSelector], MatchingPods] = WeakValueDictionary()
        self._hints = SpreadHints(self._hard_constraints)

    @property
    def sign_version(self) -> int:
        """Grows when pods may get other default constraints, so that signatures must be worked out again."""
        return 0 if self._selectors is None else self._selectors.version

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
        return constraints.namespace, tuple(hard), tuple(soft), affinity, tolerations

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

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS if self._constraints_of(state, pod).soft else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """Return nothing yet: scores depend on which nodes are feasible, and only `normalize_score` gets them all."""
        return np.zeros(len(rows), dtype=np.int64)

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        return self._soft_spread(state, pod, nodes).scores(rows)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return self._hints.registrations()

    def _constraints(self, pod: PodInfo) -> SpreadConstraints:
        if pod.pod.spec.topology_spread_constraints:
            known = self._own.get(pod)
            if known is None:
                known = self._own[pod] = resolve_own(pod)
            return known
        selector = PodSelector(()) if self._selectors is None else self._selectors.selector(pod)
        return resolve_defaults(self._defaults, selector, pod, requires_all_keys=not self._is_system)

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
        key = "PodTopologySpread/hard"
        known: HardSpread | None = state.get(key)
        if known is None or known.nodes is not nodes:
            hard = self._constraints_of(state, pod).hard
            domains = self._domains(hard, pod, nodes, requires_all_keys=True)
            known = state[key] = HardSpread(hard, nodes, domains)
        return known

    def _soft_spread(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> SoftSpread:
        key = "PodTopologySpread/soft"
        known: SoftSpread | None = state.get(key)
        if known is None or known.nodes is not nodes:
            constraints = self._constraints_of(state, pod)
            all_keys = constraints.requires_all_keys
            domains = self._domains(constraints.soft, pod, nodes, requires_all_keys=all_keys)
            known = state[key] = SoftSpread(constraints.soft, nodes, domains, requires_all_keys=all_keys)
        return known

    def _domains(
        self, constraints: Sequence[SpreadConstraint], pod: PodInfo, nodes: NodeTable, *, requires_all_keys: bool
    ) -> SpreadDomains:
        def count_pods(selector: PodSelector) -> MatchingPods | None:
            return self._matching_pods(nodes, pod.namespace, selector)

        return SpreadDomains(constraints, pod, nodes, self._index, count_pods, requires_all_keys=requires_all_keys)

    def _matching_pods(self, nodes: NodeTable, namespace: str, selector: PodSelector) -> MatchingPods | None:
        if selector.is_empty or selector.is_nothing:
            # An empty selector counts nobody, although the pod itself matches it.
            return None

        def selects(other: PodInfo) -> bool:
            meta = other.pod.metadata
            return meta.namespace == namespace and selector.matches(meta.labels)

        def counts(other: PodInfo) -> bool:
            return other.pod.metadata.deletion_timestamp is None and selects(other)

        key = (id(nodes), namespace, selector)
        known = self._counts.get(key)
        if known is None:
            if isinstance(nodes, ShadowTable):
                known = MatchingPodsOfShadow(nodes, counts, selects)
            else:
                known = MatchingPods(nodes, counts)
            self._counts[key] = known
        return known
