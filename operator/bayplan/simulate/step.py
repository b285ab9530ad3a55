"""What came of one step of a simulation and of all in sum, and how it is reported."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from bayplan.cache.cache import Cache
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import Explanation
from bayplan.explain.trace import Trace, trace_of
from bayplan.plugins.dynamic_resources.claim_cache import StrandedDevices
from bayplan.plugins.dynamic_resources.dynamic_resources import DynamicResources
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queued_pod_group import GANG_SCHEDULING
from bayplan.scheduler.decision import Decision, FitError, Outcome, Placement
from bayplan.scheduler.group_attempts import GroupNominated
from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.drain import DrainedNode
from bayplan.simulate.report import AttemptReport, PodReport, Summary, cluster_use, preemption


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a decision before its pod was assumed; the rest nobody wanted."""

    explanation: Explanation | None = None
    trace: Trace | None = None
    scores: dict[str, int] | None = None


UNREAD = Reading()

Reader = Callable[[Decision], Reading]
"""Reads of each decision what its simulator is asked for."""


def explaining(nodes: NodeTable) -> Reader:
    """Return what explains the decisions over a node table, and tells the scores."""
    explain = Explainer(nodes).explain
    return lambda decision: Reading(explain(decision), scores=decision.scores)


def tracing(nodes: NodeTable) -> Reader:
    """Return what explains the decisions over a node table, and tells the verdict of every node."""
    explain = Explainer(nodes).explain
    return lambda decision: Reading(explain(decision), trace_of(decision))


def scoring(decision: Decision) -> Reading:
    """Tell what each plugin gave the chosen node."""
    return Reading(scores=decision.scores)


@dataclass(slots=True)
class Step:
    """One attempt on one pod; without an outcome no decision could be made. `message` says why there is no node.

    Where preemption makes room, `nominated_node_name` is where, and `victims` are whom it ends.
    """

    pod: PodInfo
    outcome: Outcome | None
    message: str | None = None
    read: Reading = UNREAD
    nominated_node_name: str | None = None
    victims: Sequence[PodInfo] = ()

    def __post_init__(self) -> None:
        """Take what the pod's own preemption came to; that of its group is not known yet."""
        if isinstance(self.outcome, FitError):
            made = self.outcome.post_filter
            self.nominated_node_name, self.victims = made.nominated_node_name or None, made.victims

    def attempt(self) -> AttemptReport:
        """The step as it is reported, without what was read."""
        outcome = self.outcome
        if isinstance(outcome, Placement):
            return AttemptReport(outcome.node_name, None, [], None, outcome.feasible_nodes)
        victims = [victim.key for victim in self.victims]
        return AttemptReport(None, self.nominated_node_name, victims, self.message, 0)

    def explained_attempt(self) -> AttemptReport:
        """The step as it is reported, with the explanation and the trace that were read."""
        told, outcome, read = self.attempt(), self.outcome, self.read
        if read.explanation is not None:
            told.explanation = read.explanation
        if read.trace is not None:
            told.nodes = read.trace
            if isinstance(outcome, FitError) and outcome.post_filter.candidates:
                told.preemption = preemption(outcome.post_filter.candidates)
        return told


def tell_of_room(steps: Iterable[Step], nominated: GroupNominated) -> None:
    """Have the steps of a group's round say where its preemption makes room; the first of them says whom it ends."""
    victims: Sequence[PodInfo] = nominated.preemption.victims
    for step in steps:
        if node := nominated.nodes.get(step.pod.uid):
            step.nominated_node_name, step.victims = node, victims
            victims = ()


def pod_report(pod: PodInfo) -> PodReport:
    """The report of a pod that was not tried yet."""
    return PodReport(pod.namespace, pod.name, pod.pod.spec.scheduler_name, [])


def is_gated(queued: QueuedPodInfo) -> bool:
    """Whether a pod that is held is meant to be: that its gang, a pod of that or a claim is missing is a fault."""
    return queued.gating_plugin not in (GANG_SCHEDULING, DynamicResources.name)


def gated_report(queued: QueuedPodInfo) -> PodReport:
    """The report of a pod that is held and was not tried."""
    report = pod_report(queued.pod_info)
    report.attempts.append(AttemptReport(None, None, [], queued.gating_message, 0))
    return report


@dataclass(slots=True)
class Given:
    """Counted for the summary, which relies on it."""

    running: int = 0
    finished: int = 0
    other_schedulers: int = 0
    skipped: list[SkippedPod] = field(default_factory=list)
    ignored_kinds: dict[str, int] = field(default_factory=dict)
    drained: list[DrainedNode] = field(default_factory=list)

    def take(self, objects: ClusterObjects) -> None:
        """Take in all but the pods, which are counted by what becomes of them."""
        self.skipped.extend(objects.skipped)
        self.drained.extend(objects.drained)
        for kind, count in objects.ignored_kinds.items():
            self.ignored_kinds[kind] = self.ignored_kinds.get(kind, 0) + count

    def summary(
        self,
        cache: Cache,
        *,
        pods: int,
        scheduled: int,
        gated: int,
        preempted: int,
        decisions_per_second: float,
        seconds: float,
    ) -> Summary:
        """Tell of the cluster as it stands, and of `pods` that named a profile."""
        use = cluster_use(cache.nodes, ExtendedResources(cache.listers).classes)
        stranded = StrandedDevices(cache.listers).by_driver()
        skipped = sum(each.pods for each in self.skipped)
        return Summary(
            nodes=len(cache.nodes),
            nodes_in_use=use.nodes_in_use,
            overcommitted_nodes=use.overcommitted_nodes,
            lower_bound_nodes=use.lower_bound_nodes,
            pods=self.running + self.finished + self.other_schedulers + pods + skipped,
            running=self.running,
            finished=self.finished,
            other_schedulers=self.other_schedulers,
            on_unknown_nodes=sum(map(len, cache.without_node.values())),
            scheduled=scheduled,
            unschedulable=pods - scheduled - gated,
            gated=gated,
            preempted=preempted,
            skipped=self.skipped,
            drained=self.drained,
            ignored_kinds=dict(sorted(self.ignored_kinds.items())),
            allocation=use.allocation,
            decisions_per_second=decisions_per_second,
            seconds=seconds,
            stranded_devices=round(sum(stranded.values()), 6) if stranded else UNSET,
        )
