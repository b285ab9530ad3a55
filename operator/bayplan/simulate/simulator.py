"""The scheduler without an API server: the same queue, attempts and cache on objects from files."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from bayplan.api.claim_objects import ResourceClaimTemplate
from bayplan.api.objects import Node
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.group_members import GroupSource
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import SchedulerConfiguration
from bayplan.explain.trace import ExplanationTooLargeError
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, NODE_DELETE, node_changes
from bayplan.framework.nominator import Nominator
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.queued_pod_group import QueuedPodGroup
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import AttemptRunner, Failed, Result
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, Outcome
from bayplan.scheduler.group_attempts import GroupAttempt
from bayplan.simulate.admission import created_at, latest_times
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.effects import Effects
from bayplan.simulate.looked_up import allocations, with_claims
from bayplan.simulate.released_claims import Claim, release
from bayplan.simulate.report import PodReport, Report
from bayplan.simulate.step import (
    UNREAD,
    Given,
    Reader,
    Reading,
    Step,
    gated_report,
    is_gated,
    pod_report,
    tell_of_room,
)

logger = logging.getLogger(__name__)

_ATTEMPTS_WITHOUT_CHANGE: Final = 20
_MOST_TRACES: Final = 64
"""Of how many members of a group the verdicts of all nodes are told: they are there all at once."""


class Simulator:
    """Schedules the pending pods among the objects it is given, one decision a time, as `bayplan run` would.

    Pods are ordered by their own creation times. A pod that did not fit is tried again only when an event may help it,
    as soon as no other pod is to be tried first. What `run` has the API server do is done at once: nominations and
    conditions are on the pods, victims are gone as if their grace were over, and budgets allow that much less. The
    clock stands at the latest time that any pod names. So the same objects always give the same report, but for the
    measured times, which `clock` (seconds) gives.

    It always ends. Pods are placed and evicted a limited number of times; when all that wait were tried twenty times
    each since the last of these, as only a plugin from outside can bring about, nothing more is tried.

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
        cache: Cache | None = None,
        nominator: Nominator | None = None,
        moment: float = 0.0,
        reports: bool = True,
    ) -> None:
        self._clock = clock
        self._unchanged = self._changes = 0
        self._changes_at_round: int | None = None
        """At the end of the first round that failed since groups were last let try again."""
        self._most_unchanged = _ATTEMPTS_WITHOUT_CHANGE
        self.seconds = 0.0
        """How long all decisions so far took together."""
        self.cache = Cache() if cache is None else cache
        self._moment = moment
        self._keeps_reports = reports
        self._nominator = nominator = Nominator() if nominator is None else nominator
        self.groups = PodGroups(self.cache)
        self.frameworks = build_frameworks(
            configuration,
            self.cache.nodes,
            self.cache.listers,
            nominator,
            lambda: self._moment,
            afterwards=lambda exchange: self._effects.changing_claims(exchange.assume),
            groups=self.groups,
        )
        self._now = 0.0
        self._between_pods = 1.0
        """Seconds between two pods that come, by the queue's clock; 0 once the caller sets that clock."""
        # Whether the CRD is installed is known by its objects; a pod's own field is there only where it counts.
        self.groups.serve(GroupSource.NATIVE)
        self.queue = SchedulingQueue(
            clock=lambda: self._now,
            settings=queue_settings(self.frameworks),
            nominator=nominator,
            groups=self.groups,
        )
        self.cycle = SchedulingCycle(self.cache.nodes, nominator, self.frameworks.values(), tell_reasons=reports)
        self._attempts = AttemptRunner(
            self.cache, self.queue, self.cycle, self.frameworks, lambda: self._now, decided=self._decided
        )
        self.reader: Reader | None = None
        """What reads each decision for the step that it is part of."""
        self._read: dict[str, tuple[Outcome, Reading]] = {}
        # Nobody else asks for these.
        self.cache.listers.of(ResourceClaimTemplate)
        self._given, self._steps = Given(), deque[Step]()
        self._pending: dict[str, PodInfo] = {}
        self._reports: dict[str, PodReport] = {}
        self._effects = Effects(self.cache, self.queue, self._reports, self._changed, keeps_conditions=reports)

    @property
    def keeps_room(self) -> bool:
        """Whether room is kept for pods that are nominated to a node."""
        return self._nominator.count() > 0

    def add(self, objects: ClusterObjects) -> None:
        """Take in nodes, pods and what plugins look up, before or between decisions.

        Pods that wait are queued by priority, then creation time, then in the order given. Nodes are new.
        """
        self.cache.listers.fill(objects.looked_up)
        self._add_groups(objects)
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
        self._changed()
        self._most_unchanged = _ATTEMPTS_WITHOUT_CHANGE * (len(self._pending) + 1)

    def _add_groups(self, objects: ClusterObjects) -> None:
        for source in sorted(objects.group_sources | {group.key.source for group in objects.pod_groups}):
            if self.groups.serve(source):
                self.queue.regroup()
        for group in objects.pod_groups:
            self.queue.set_group(group)

    def _changed(self) -> None:
        """Take that something happened that may help who waits."""
        self._unchanged = 0
        self._changes += 1

    def advance(self, seconds: float) -> None:
        """Set the queue's clock, which only the caller moves from then on; pods whose back-off is over are tried.

        As in `bayplan run`, a rejected pod has those like it wait for news, or for the end of their back-off.
        """
        self._now, self._between_pods = seconds, 0.0
        self._moment = max(self._moment, seconds)
        self._attempts.decides_by_kind = True
        self._changed()
        self.queue.flush(seconds)

    def depart(self, uid: str) -> Sequence[Claim]:
        """Have a pod go, whether it has a node or waits: its room is free, and no report tells of it any more.

        Its claims are as controllers leave them; returned is how they were.
        """
        # The version with the node is what tells waiting pods that room is there now.
        placed = self.cache.pod(uid)
        gone = placed or self._pending.get(uid)
        self.queue.delete(uid)
        if placed is not None:
            self.cache.remove_pod(uid)
            self.queue.move_all(ASSIGNED_POD_DELETE, placed, None)
        self._pending.pop(uid, None)
        self._reports.pop(uid, None)
        self._changed()
        return () if gone is None else self._effects.changing_claims(partial(release, self.cache.listers, gone))

    def remove_node(self, node: Node) -> None:
        """Have a node go."""
        self.cache.remove_node(node.metadata.name)
        self.queue.move_all(NODE_DELETE, node, None)
        self._changed()

    def update_node(self, node: Node) -> None:
        """Have a node, of which there is one of this name, be as it is given; pods that this may help are tried."""
        before = self.cache.nodes.node(node.metadata.name)
        self.cache.set_node(node)
        for event in node_changes(before or node, node):
            self.queue.move_all(event, before, node)
        self._changed()

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
        self._read.clear()
        attempt = self._attempts.run()
        if attempt is None and self._wait_for_groups():
            attempt = self._attempts.run()
        if attempt is None:
            return None
        if isinstance(attempt, QueuedPodGroup):
            group_attempt = GroupAttempt(attempt, self._attempts)
            self._steps.extend(self._follow_up(each) for each in group_attempt.run())
            if self._changes_at_round is None and self.queue.groups_back_off_until() is not None:
                self._changes_at_round = self._changes
            if group_attempt.nominated is not None:
                tell_of_room(self._steps, group_attempt.nominated)
                self._effects.evict_for_group(group_attempt.nominated)
            self.seconds += self._clock() - started
            return self.step()
        step = self._follow_up(attempt)
        self.seconds += self._clock() - started
        return self._reported(step)

    def _wait_for_groups(self) -> bool:
        """Let the back-off of groups pass, if something happened since their rounds; whether it was done."""
        until = self.queue.groups_back_off_until()
        if until is None or self._changes == self._changes_at_round or not self._between_pods:
            return False
        self._changes_at_round = None
        self._now = max(self._now, until)
        while self.queue.flush(self._now):
            pass
        return True

    def _reported(self, step: Step) -> Step:
        if self._keeps_reports:
            report = self._reports.get(step.pod.uid)
            if report is None:
                report = self._reports[step.pod.uid] = pod_report(step.pod)
            report.attempts.append(step.attempt())
        return step

    def _decided(self, decision: Decision) -> None:
        if self.reader is not None:
            read = self.reader(decision)
            if decision.pod.uid not in self._read and len(self._read) >= _MOST_TRACES:
                read = replace(read, trace=None)
            self._read[decision.pod.uid] = decision.outcome, read

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
        held = [queued for queued in untried if queued is not None]
        gated = [gated_report(each) for each in held if is_gated(each)]
        waiting = [gated_report(each) for each in held if not is_gated(each)]
        for uid, report in self._reports.items():
            claims = allocations(self.cache.listers, self._pending[uid])
            if claims or self._pending[uid].pod.spec.resource_claims:
                report.claims = claims
        pods = [*self._reports.values(), *waiting, *gated]
        on_nodes = sum(pod.attempts[-1].node is not None for pod in pods)
        attempts = sum(len(report.attempts) for report in self._reports.values())
        rate = round(attempts / self.seconds, 1) if self.seconds > 0 else 0.0
        return Report(
            pods,
            self._given.summary(
                self.cache,
                pods=len(pods),
                scheduled=on_nodes + len(self._effects.evicted & self._reports.keys()),
                gated=len(gated),
                preempted=len(self._effects.evicted),
                decisions_per_second=rate,
                seconds=round(self.seconds, 6),
            ),
        )

    def _tell_of_circles(self) -> None:
        """Say, once, that the pods that wait are tried over and over, and nothing changes."""
        if self._unchanged == self._most_unchanged and self.queue.has_ready():
            self._unchanged += 1
            logger.warning(
                "simulation ended: plugins have pods tried again without end pods=%d", len(self.queue.uids())
            )

    def _follow_up(self, attempt: Result) -> Step:
        if isinstance(attempt, Failed) and isinstance(attempt.exception, ExplanationTooLargeError):
            raise attempt.exception
        self._unchanged += 1
        step = self._effects.perform(attempt)
        outcome, read = self._read.get(step.pod.uid, (None, UNREAD))
        if step.outcome is outcome:
            step.read = read
        elif step.outcome is not None or (isinstance(attempt, Failed) and attempt.in_round):
            # A plugin rejected the chosen node, or it was given back: what nodes said before that stays true.
            step.read = Reading(trace=read.trace)
        return step
