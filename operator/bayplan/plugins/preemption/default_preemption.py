"""DefaultPreemption: makes room for a pod by evicting pods of lower priority from one node."""

from collections.abc import Callable, Sequence
from math import inf
from typing import ClassVar, Final
from zlib import crc32

from bayplan.api.meta_objects import parse_time
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.listers import Lister
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import DefaultPreemptionArgs, PDBPolicy
from bayplan.framework.candidate import choose
from bayplan.framework.interface import CycleState, PostFilterResult, Rejections
from bayplan.framework.nominator import Nominator
from bayplan.framework.status import SUCCESS, Code, Diagnosis, Status, Traits
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.preemption.dry_run import (
    SEVERAL_BUDGETS,
    STRICT,
    DryRun,
    Findings,
    rows_where_preemption_might_help,
)
from bayplan.plugins.preemption.victims import Budgets, VictimRule

_BUDGETS_SECONDS: Final = 10.0
"""How often pods whose victims are under strict budgets look again: a changed budget wakes nobody."""


class DefaultPreemption:
    """Decides whom to evict where; whoever runs the cycle evicts them and keeps the nomination.

    The search starts at a node that depends on the pod alone, where kube-scheduler draws a random one. So the same
    cluster always gives the same answer. `clock` is in seconds since the epoch.

    Upstream: plugins/defaultpreemption/default_preemption.go and framework/preemption/preemption.go.
    """

    name: ClassVar[str] = "DefaultPreemption"
    traits: ClassVar[Traits] = Traits()

    def __init__(
        self,
        args: DefaultPreemptionArgs,
        nodes: NodeTable,
        budgets: Lister[PodDisruptionBudget],
        nominator: Nominator,
        clock: Callable[[], float],
        *,
        groups: PodGroups,
    ) -> None:
        self._args = args
        self._nominator = nominator
        self._clock = clock
        self.strict = args.pdb_policy is PDBPolicy.STRICT
        """Whether victims end through the Eviction API, and no budget is violated."""
        self.delay = args.preemption_delay_seconds
        """For how many seconds after its creation a pod does not preempt."""
        self.rule = VictimRule(args.minimum_runtime_seconds, clock)
        """Who may be evicted."""
        self.budgets = Budgets(budgets, as_evicted=self.strict)
        """The disruption budgets that it minds."""
        self._dry_run = DryRun(nodes, self.budgets, self.rule, groups, strict=self.strict)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Let every pod in: one that preempts is no pod of the queue until its victims have been told to end.

        The scheduling loop keeps it in flight for so long, where kube-scheduler holds it here with "waiting for the
        preemption for this pod to be finished" (upstream: IsPodRunningPreemption).
        """
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        reason = why_not_eligible(pod, self._nominator.nominated_or_named_node(pod), nodes, rejections)
        if reason is not None:
            return _no(reason, None)
        delay = self.delay
        if wait := seconds_until_allowed(pod, delay, self._clock()):
            text = f"not eligible before preemptionDelaySeconds={delay} have passed since the pod was created."
            return _no(text, None, wait)
        rows = rows_where_preemption_might_help(rejections)
        start = crc32(pod.uid.encode(errors="replace")) % len(rows) if len(rows) else 0
        wanted = self._calculate_num_candidates(len(rows))
        findings = self._dry_run.run(pod, rejections, rows, start=start, wanted=wanted)
        if not findings.candidates and findings.errors:
            return PostFilterResult(Status(Code.ERROR, (f"preemption: {_aggregate(findings.errors)}",)))
        if not findings.candidates:
            reasons = {text: held for text, held in findings.reasons.items() if held}
            return _no(Diagnosis(len(rejections.rows), reasons).message, "", self._retry_after(findings))
        best = choose(findings.candidates)
        candidates = tuple(findings.candidates)
        status = Status(Code.SUCCESS, (best.announcement,))
        return PostFilterResult(status, best.node_name, best.victims, candidates, evicts=self.strict)

    @property
    def depends_on_time(self) -> bool:
        """Whether it may find victims later although nothing happened that wakes pods; budgets wake nobody."""
        return bool(self.strict or self.delay or self.rule.minimum_runtime)

    def release_unused(self) -> None:
        """Let go of the pods that no dry run has looked at since the last call."""
        self._dry_run.release_unused()

    def _retry_after(self, findings: Findings) -> float | None:
        """Return in how many seconds there may be a candidate although no event wakes the pod."""
        waits = []
        if findings.reasons[STRICT] or findings.reasons[SEVERAL_BUDGETS]:
            waits.append(_BUDGETS_SECONDS)
        if findings.evictable_from < inf:
            waits.append(max(findings.evictable_from - self._clock(), 0.0))
        return min(waits, default=None)

    def _calculate_num_candidates(self, count: int) -> int:
        """Return how many candidates are enough (upstream: calculateNumCandidates)."""
        args = self._args
        share = count * args.min_candidate_nodes_percentage // 100
        return min(max(share, args.min_candidate_nodes_absolute), count)


def _no(reason: str, nominated_node_name: str | None, retry_after: float | None = None) -> PostFilterResult:
    status = Status(Code.UNSCHEDULABLE, (f"preemption: {reason}",))
    return PostFilterResult(status, nominated_node_name, retry_after=retry_after)


def _aggregate(errors: Sequence[str]) -> str:
    """Join errors into one text (upstream: apimachinery util/errors Aggregate)."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def why_not_eligible(pod: PodInfo, nominated_node: str, nodes: NodeTable, rejections: Rejections) -> str | None:
    """Return why `pod` may not preempt now, in kube-scheduler's words; None if it may.

    Upstream: PodEligibleToPreemptOthers.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    row = nodes.row(nominated_node) if nominated_node else None
    if row is None:
        return None
    if Code.UNSCHEDULABLE_AND_UNRESOLVABLE in rejections.codes[rejections.rows == row]:
        return None
    if any(is_terminating_by_preemption(each) and each.priority < pod.priority for each in nodes.pods[row].values()):
        return "not eligible due to a terminating pod on the nominated node."
    return None


def is_terminating_by_preemption(pod: PodInfo) -> bool:
    """Return whether a scheduler is evicting the pod for another one (upstream: podTerminatingByPreemption)."""
    if not pod.is_terminating:
        return False
    for condition in pod.pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def seconds_until_allowed(pod: PodInfo, delay: int, now: float) -> float:
    """Return for how long a pod may not preempt yet that may do so `delay` seconds after its creation; 0 if it may."""
    if not delay:
        return 0.0
    try:
        created = parse_time(pod.pod.metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
    # With a clock behind the API server's it must not wait for longer than the delay.
    return min(max(created + delay - now, 0.0), delay)
