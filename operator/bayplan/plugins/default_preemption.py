"""DefaultPreemption: makes room for a pod by evicting pods of lower priority from one node."""

from collections.abc import Callable
from typing import ClassVar
from zlib import crc32

from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.listers import Lister
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import DefaultPreemptionArgs, PDBPolicy
from bayplan.framework.candidate import choose
from bayplan.framework.interface import CycleState, PostFilterResult, Rejections
from bayplan.framework.status import SUCCESS, Code, Diagnosis, Status
from bayplan.plugins.preemption.budgets import Budgets
from bayplan.plugins.preemption.dry_run import DryRun, potential_rows
from bayplan.plugins.preemption.eligibility import ineligible, too_early
from bayplan.plugins.preemption.importance import VictimRule
from bayplan.queue.nominator import Nominator


class DefaultPreemption:
    """Decides whom to evict where; whoever runs the cycle evicts them and keeps the nomination.

    Upstream: plugins/defaultpreemption/default_preemption.go and framework/preemption/preemption.go. The search
    starts at a node that depends on the pod alone, where kube-scheduler rolls dice, so that the same cluster always
    gives the same answer. `clock` is in seconds since the epoch.
    """

    name: ClassVar[str] = "DefaultPreemption"

    def __init__(
        self,
        args: DefaultPreemptionArgs,
        nodes: NodeTable,
        budgets: Lister[PodDisruptionBudget],
        nominator: Nominator,
        clock: Callable[[], float],
    ) -> None:
        self._args = args
        self._nominator = nominator
        self._clock = clock
        self._rule = VictimRule(args.minimum_runtime_seconds, clock)
        strict = args.pdb_policy is PDBPolicy.STRICT
        self._dry_run = DryRun(nodes, Budgets(budgets), self._rule, strict=strict)

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        nominated = self._nominator.nominated_node(pod.uid) or pod.pod.status.nominated_node_name
        reason = ineligible(pod, nominated, nodes, rejections) or too_early(
            pod, self._args.preemption_delay_seconds, self._clock()
        )
        if reason is not None:
            return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {reason}",)))
        count = len(potential_rows(rejections))
        start = crc32(pod.uid.encode(errors="replace")) % count if count else 0
        findings = self._dry_run.run(pod, rejections, start=start, wanted=self._wanted(count))
        if not findings.candidates:
            reasons = {text: held for text, held in findings.reasons.items() if held}
            message = Diagnosis(len(rejections.rows), reasons).message
            return PostFilterResult(Status(Code.UNSCHEDULABLE, (f"preemption: {message}",)), nominated_node_name="")
        best = choose(findings.candidates)
        return PostFilterResult(SUCCESS, best.node_name, best.victims, tuple(findings.candidates))

    def _wanted(self, count: int) -> int:
        """How many candidates are enough (upstream: calculateNumCandidates)."""
        args = self._args
        share = count * args.min_candidate_nodes_percentage // 100
        return min(max(share, args.min_candidate_nodes_absolute), count)
