"""The scheduler without an API server: the same queue, attempts and cache on objects from files."""

import logging
import time
from collections import deque
from collections.abc import Callable

from msgspec import structs

from bayplan.api.claim_objects import ResourceClaimTemplate
from bayplan.api.objects import Node
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import SchedulerConfiguration
from bayplan.explain.trace import ExplanationTooLargeError
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    node_changes,
)
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.preemption.victims import Budgets
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.queue.queued_groups import QueuedPodGroup
from bayplan.queue.queueing_hints import queue_profile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import UNSCHEDULABLE, AttemptRunner, Failed, Nominated, Reserved, Result, return_to_queue
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, Outcome
from bayplan.scheduler.group_attempts import GroupAttempt
from bayplan.simulate.admission import created_at, latest_times
from bayplan.simulate.claims import allocations, with_claims
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.given import Given
from bayplan.simulate.report import AttemptReport, PodReport, Report, Summary, cluster_use
from bayplan.simulate.step import UNREAD, Reader, Reading, Step, gated_report, pod_report
from bayplan.simulate.written_status import write_status

logger = logging.getLogger(__name__)


class Simulator:
    """Schedules the pending pods among the objects it is given, one decision a time, as `bayplan run` would.

    Pods are ordered by their own creation times. A pod that did not fit is tried again only when an event may help it,
    as soon as no other pod is to be tried first. What `run` has the API server do is done at once: nominations and
    conditions are on the pods, victims are gone as if their grace were over, and budgets allow that much less. The
    clock stands at the latest time that any pod names. So the same objects always give the same report, but for the
    measured times, which `clock` (seconds) gives.

    It always ends. Pods are placed and evicted a limited number of times; when all that wait were tried
    `attempts_without_change` times each since the last of these, as only a plugin from outside can bring about,
    nothing more is tried.

    It may begin with a cluster that is there already: `cache` and `nominator` are its own from then on, and the clock
    stands at `moment`, in seconds since the epoch, or later.

    Without `reports` it decides the same and keeps nothing that is told of decisions: a report has no attempts, a pod
    that found no node has no condition, and a step no reasons. Replays of days rely on it.

    Raises:
        ConfigurationError: a profile's plugin sets do not work out.
    """

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        *,
        clock: Callable[[], float] = time.perf_counter,
        attempts_without_change: int = 20,
        cache: Cache | None = None,
        nominator: Nominator | None = None,
        moment: float = 0.0,
        reports: bool = True,
    ) -> None:
        self._clock = clock
        self._attempts_without_change = attempts_without_change
        self._unchanged = 0
        self._most_unchanged = attempts_without_change
        self.seconds = 0.0
        """How long all decisions so far took together."""
        self.cache = Cache() if cache is None else cache
        self._moment = moment
        self._keeps_reports = reports
        self._nominator = nominator = Nominator() if nominator is None else nominator
        self.frameworks = build_frameworks(
            configuration, self.cache.nodes, self.cache.listers, nominator, lambda: self._moment
        )
        self._now, self._between_pods = 0.0, 1.0
        self.groups = PodGroups(self.cache)
        """Which kinds of pod group count, if any; the groups themselves come by `queue.set_group`."""
        self.queue = SchedulingQueue(
            clock=lambda: self._now,
            profiles={name: queue_profile(framework) for name, framework in self.frameworks.items()},
            sort_key=next(iter(self.frameworks.values())).queue_sort.sort_key,
            nominator=nominator,
            groups=self.groups,
        )
        self.cycle = SchedulingCycle(self.cache.nodes, nominator, self.frameworks.values(), tell_reasons=reports)
        self._attempts = AttemptRunner(
            self.cache, self.queue, self.cycle, self.frameworks, lambda: self._now, decided=self._decided
        )
        self.reader: Reader | None = None
        """What reads each decision for the step that it is part of."""
        self._read: tuple[Outcome | None, Reading] = None, UNREAD
        self._budget_lister = self.cache.listers.of(PodDisruptionBudget)
        # Nobody else asks for these.
        self.cache.listers.of(ResourceClaimTemplate)
        self._budgets = Budgets(self._budget_lister, as_evicted=True)
        self._evicted: set[str] = set()
        self._given, self._steps = Given(), deque[Step]()
        self._pending: dict[str, PodInfo] = {}
        self._reports: dict[str, PodReport] = {}

    @property
    def keeps_room(self) -> bool:
        """Whether room is kept for pods that are nominated to a node."""
        return self._nominator.count() > 0

    def add(self, objects: ClusterObjects) -> None:
        """Take in nodes, pods and what plugins look up, before or between decisions.

        Pods that wait are queued by priority, then creation time, then in the order given. Nodes are new.
        """
        self.cache.listers.fill(objects.looked_up)
        given = self._given
        given.take(objects)
        waiting: list[PodInfo] = []
        for pod in objects.pods:
            self._moment = max([self._moment, *latest_times(pod)])
            if is_finished(pod.pod):
                given.finished += 1
            elif pod.pod.spec.node_name:
                given.running += 1
                self.cache.set_pod(pod)
            elif pod.is_terminating:
                given.finished += 1
            elif pod.pod.spec.scheduler_name not in self.frameworks:
                given.other_schedulers += 1
                if pod.pod.status.nominated_node_name:
                    # Its room is kept, as `bayplan run` does.
                    self.queue.nominate(pod, pod.pod.status.nominated_node_name)
            else:
                waiting.append(pod)
        # After the pods that are on them: what these take is summed once for each node.
        for node in objects.nodes:
            self.cache.set_node(node)
            self.queue.move_all(NODE_ADD, None, node)
        for pod in sorted(with_claims(self.cache.listers, waiting), key=lambda pod: created_at(pod.pod)):
            self._now += self._between_pods
            self.queue.add(pod)
            self._pending[pod.uid] = pod
        self._unchanged = 0
        self._most_unchanged = self._attempts_without_change * (len(self._pending) + 1)

    def advance(self, seconds: float) -> None:
        """Set the queue's clock, which only the caller moves from then on; pods whose back-off is over are tried.

        As in `bayplan run`, a rejected pod has those like it wait for news, or for the end of their back-off.
        """
        self._now, self._between_pods = seconds, 0.0
        self._moment = max(self._moment, seconds)
        self._attempts.decides_by_kind = True
        self._unchanged = 0
        self.queue.flush(seconds)

    def depart(self, uid: str) -> None:
        """Have a pod go, whether it has a node or waits: its room is free, and no report tells of it any more."""
        # The version with the node is what tells waiting pods that room is there now.
        placed = self.cache.pod(uid)
        self.queue.delete(uid)
        if placed is not None:
            self.cache.remove_pod(uid)
            self.queue.move_all(ASSIGNED_POD_DELETE, placed, None)
        self._pending.pop(uid, None)
        self._reports.pop(uid, None)
        self._unchanged = 0

    def remove_node(self, node: Node) -> None:
        """Have a node go."""
        self.cache.remove_node(node.metadata.name)
        self.queue.move_all(NODE_DELETE, node, None)
        self._unchanged = 0

    def update_node(self, node: Node) -> None:
        """Have a node, of which there is one of this name, be as it is given; pods that this may help are tried."""
        row = self.cache.nodes.row(node.metadata.name)
        before = None if row is None else self.cache.nodes.nodes[row]
        self.cache.set_node(node)
        for event in node_changes(before or node, node):
            self.queue.move_all(event, before, node)
        self._unchanged = 0

    def step(self) -> Step | None:
        """Decide about the next pod, and count it on its node if one was found; None when no pod is worth trying.

        Raises:
            ExplanationTooLargeError: the `reader` needs more memory than it may take. Nothing is to be asked then.
        """
        if self._steps:
            return self._reported(self._steps.popleft())
        if self._unchanged >= self._most_unchanged:
            self._tell_of_circles()
            return None
        started = self._clock()
        self._read = None, UNREAD
        attempt = self._attempts.run()
        if attempt is None:
            return None
        if isinstance(attempt, QueuedPodGroup):
            self._steps.extend(self._follow_up(each) for each in GroupAttempt(attempt, self._attempts).run())
            self.seconds += self._clock() - started
            return self.step()
        if isinstance(attempt, Failed) and isinstance(attempt.exception, ExplanationTooLargeError):
            raise attempt.exception
        step, (outcome, read) = self._follow_up(attempt), self._read
        if step.outcome is outcome:
            step.read = read
        elif step.outcome is not None:
            # A plugin rejected the chosen node: what nodes said before that stays true.
            step.read = Reading(trace=read.trace)
        self.seconds += self._clock() - started
        return self._reported(step)

    def _reported(self, step: Step) -> Step:
        if self._keeps_reports:
            report = self._reports.get(step.pod.uid)
            if report is None:
                report = self._reports[step.pod.uid] = pod_report(step.pod)
            report.attempts.append(step.attempt())
        return step

    def _decided(self, decision: Decision) -> None:
        if self.reader is not None:
            self._read = decision.outcome, self.reader(decision)

    def report_of(self, pod: PodInfo) -> PodReport:
        """The attempts on a pod so far, of which there is at least one."""
        return self._reports[pod.uid]

    def run(self) -> Report:
        """Decide until no pod is worth trying, and report everything since the simulator was made."""
        while self.step() is not None:
            pass
        return self.report()

    def report(self) -> Report:
        """The attempts so far, and the cluster as it stands."""
        untried = (self.queue.get(uid) for uid in self._pending if uid not in self._reports)
        gated = [gated_report(queued) for queued in untried if queued is not None]
        for uid, report in self._reports.items():
            if self._pending[uid].pod.spec.resource_claims:
                report.claims = allocations(self.cache.listers, self._pending[uid])
        pods = [*self._reports.values(), *gated]
        return Report(pods, self._summary(pods, len(gated)))

    def _tell_of_circles(self) -> None:
        """Say, once, that the pods that wait are tried over and over, and nothing changes."""
        if self._unchanged == self._most_unchanged and self.queue.has_ready():
            self._unchanged += 1
            logger.warning(
                "simulation ended: plugins have pods tried again without end pods=%d", len(self.queue.uids())
            )

    def _follow_up(self, attempt: Result) -> Step:
        """Perform at once what `bayplan run` has the API server do: bind, end victims, write on pods."""
        pod = attempt.pod
        self._unchanged += 1
        if isinstance(attempt, Reserved):
            self._unchanged = 0
            self.queue.done(pod.uid)
            self.queue.move_all(ASSIGNED_POD_ADD, None, pod)
            return Step(pod, attempt.placement)
        if isinstance(attempt, Nominated):
            fit_error = attempt.fit_error
            for other in attempt.displaced:
                self._write_status(other, "")
            self._write_status(pod, attempt.node_name, (UNSCHEDULABLE, fit_error.message))
            return_to_queue(self.queue, attempt, fit_error.diagnosis, ends_nomination=False)
            for victim in fit_error.victims:
                self._evict(victim, pod)
            return Step(pod, fit_error, fit_error.message)
        if isinstance(attempt, Failed):
            if attempt.exception is not None:
                logger.debug("scheduling cycle failed pod=%r", pod.key, exc_info=attempt.exception)
            self._write_status(pod, attempt.nomination, (attempt.reason, attempt.message))
            return Step(pod, attempt.fit_error, attempt.message)
        return Step(pod, None, attempt.message)

    def _write_status(self, pod: PodInfo, nomination: str | None, condition: tuple[str, str] | None = None) -> None:
        # The scheduler itself reads of a status only the nomination.
        write_status(self.queue, pod, nomination, condition if self._keeps_reports else None)

    def _evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        self._unchanged = 0
        self.cache.remove_pod(victim.uid)
        self._evicted.add(victim.uid)
        self._charge_budgets(victim)
        report = self._reports.get(victim.uid)
        if report is not None:
            report.attempts.append(AttemptReport(None, None, [], f"evicted to make room for {preemptor.key}", 0))
        self.queue.move_all(ASSIGNED_POD_DELETE, victim, None)

    def _charge_budgets(self, victim: PodInfo) -> None:
        """Have the budgets that cover the pod allow one disruption less, as the API server does."""
        for budget in self._budgets.covering(victim):
            if budget.status.disruptions_allowed > 0:
                status = structs.replace(budget.status, disruptions_allowed=budget.status.disruptions_allowed - 1)
                self._budget_lister.set(structs.replace(budget, status=status))

    def _summary(self, pods: list[PodReport], gated: int) -> Summary:
        given, seconds = self._given, self.seconds
        evicted = len(self._evicted & self._reports.keys())
        scheduled = sum(pod.attempts[-1].node is not None for pod in pods) + evicted
        attempts = sum(len(report.attempts) for report in self._reports.values())
        use = cluster_use(self.cache.nodes)
        return Summary(
            nodes=len(self.cache.nodes),
            nodes_in_use=use.nodes_in_use,
            overcommitted_nodes=use.overcommitted_nodes,
            lower_bound_nodes=use.lower_bound_nodes,
            pods=given.running
            + given.finished
            + given.other_schedulers
            + len(pods)
            + sum(each.pods for each in given.skipped),
            running=given.running,
            finished=given.finished,
            other_schedulers=given.other_schedulers,
            on_unknown_nodes=sum(map(len, self.cache.without_node.values())),
            scheduled=scheduled,
            unschedulable=len(pods) - scheduled - gated,
            gated=gated,
            preempted=len(self._evicted),
            skipped=given.skipped,
            drained=given.drained,
            ignored_kinds=dict(sorted(given.ignored_kinds.items())),
            allocation=use.allocation,
            decisions_per_second=round(attempts / seconds, 1) if seconds > 0 else 0.0,
            seconds=round(seconds, 6),
        )
