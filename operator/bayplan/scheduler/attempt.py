"""One attempt on one pod: popped, decided, and reserved on a node or returned to the queue. Nothing here waits."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Diagnosis, Exchange, Status
from bayplan.metrics.table import Metrics
from bayplan.queue.queued_pod import NO_PLUGINS, QueuedPodInfo
from bayplan.queue.queued_pod_group import QueuedPodGroup
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError, Placement
from bayplan.scheduler.emptied_nodes import KeptEmptiedNodes

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
"""The reasons of PodScheduled=False (upstream: api/core/v1 types.go)."""


class Attempt(msgspec.Struct, eq=False):
    """A popped pod with its profile, made for every pod; `started` is in seconds of the loop's clock."""

    queued: QueuedPodInfo
    framework: Framework
    started: float

    @property
    def pod(self) -> PodInfo:
        """The newest version of the pod that the queue knew when it last held it."""
        return self.queued.pod_info


class Skipped(Attempt, eq=False):
    """The pod is on a node already, or ends, and then `message` is set; the queue holds it no more."""

    message: str = ""


class Reserved(Attempt, eq=False):
    """The pod is assumed on a node and no Reserve or Permit plugin rejected it.

    `steps` are the exchanges of PreBind plugins by name, to be had before `binding` is posted. The pod stays in
    flight until it is bound, or until whoever binds it gives the room and the pod back. `permit_waits` are the Permit
    plugins that have it wait before all that, with the seconds each waits at most.
    """

    placement: Placement
    binding: Binding
    steps: Sequence[tuple[str, Exchange]]
    permit_waits: Mapping[str, float]
    has_expected_node: bool = False
    """Whether the node was written on the pod, which is to be taken back unless the pod is bound."""
    sampled: bool = False
    """Whether the plugins that are run from here on are measured one by one."""

    def unreserve(self) -> None:
        """Have the Reserve plugins give back what they took."""
        self.framework.run_unreserve(self.placement.state, self.pod, self.placement.node_name)


class Nominated(Attempt, eq=False):
    """No node fits, but one will once the victims are gone: its room is kept for the pod from now on.

    `displaced` are the pods of lower priority whose nominations to that node ended. The pod stays in flight until
    whoever ends the victims hands it back.
    """

    fit_error: FitError
    node_name: str
    displaced: Sequence[PodInfo]


class Failed(Attempt, eq=False):
    """The pod is back in the queue, unless it was deleted meanwhile (`gone`), and `message` is the user's.

    `nomination` is to be written on the pod: "" when its nomination ended, a node's name when its group makes room
    there. It is None where nothing changed. `fit_error`
    is set when a plugin rejected the pod, `exception` when one raised.
    """

    message: str
    error: bool
    gone: bool
    nomination: str | None
    fit_error: FitError | None = None
    exception: BaseException | None = None
    in_round: bool = False
    """Whether the pod was tried as a member of a group, whose back-off is not its own."""

    @property
    def reason(self) -> str:
        """What the condition calls it (upstream: schedule_one.go handleSchedulingFailure)."""
        return SCHEDULER_ERROR if self.error else UNSCHEDULABLE


class MemberResult(Attempt, eq=False):
    """What a round came to for one member of a group.

    Where the round placed the group, a member with a `placement` is assumed there and its Reserve plugins hold what it
    takes; every other member is to be told `message`. `fit_error` is why the member itself found no node. `sampled` is
    whether its plugins are measured one by one.
    """

    placement: Placement | None = None
    message: str = ""
    is_error: bool = False
    fit_error: FitError | None = None
    exception: BaseException | None = None
    sampled: bool = False


Result = Skipped | Reserved | Nominated | Failed
"""What one attempt came to."""


@dataclass(eq=False)
class AttemptRunner:
    """Runs attempts one after the other; the scheduling loop and the simulator both rely on it.

    It changes the queue, the nominations, the cache and what plugins reserve, and performs no other effect: binding,
    ending victims and writing Events are the caller's. If it `decides_by_kind`, a pod that is rejected, and not for
    its claims, has those like it back off until there is news, and a group waits for news after its back-off: set it
    only where time passes, and no extender tells them apart. `decided` hears of each decision before its pod is
    assumed, when what it was read from is still that; what it raises fails the attempt.
    """

    cache: Cache
    queue: SchedulingQueue
    cycle: SchedulingCycle
    frameworks: Mapping[str, Framework]
    clock: Callable[[], float]
    metrics: Metrics | None = None
    decides_by_kind: bool = False
    decided: Callable[[Decision], None] | None = None
    emptied: KeptEmptiedNodes = field(init=False)

    def __post_init__(self) -> None:
        self.emptied = KeptEmptiedNodes(self.cache, self.queue.groups, self.queue.nominator)

    def run(self) -> Result | QueuedPodGroup | None:
        """Pop a pod and see its attempt through; None when no pod is ready. A group is the caller's to try."""
        attempt = self.pop()
        if attempt is None or isinstance(attempt, Skipped | Failed | QueuedPodGroup):
            return attempt
        try:
            decision = self.cycle.schedule(attempt.queued.pod_info, attempt.framework)
        except Exception as error:  # noqa: BLE001  whatever one pod makes a plugin do must not stop the others
            return self.fail(attempt, error)
        return self.conclude(attempt, decision)

    def pop(self) -> Attempt | Skipped | Failed | QueuedPodGroup | None:
        """Begin an attempt on the next pod; the caller decides and then calls `conclude` or `fail`."""
        queued = self.queue.pop()
        if queued is None or isinstance(queued, QueuedPodGroup):
            return queued
        framework = self.frameworks[queued.profile]
        framework.calls.begin()
        attempt = Attempt(queued, framework, self.clock())
        try:
            return self._skipped(attempt) or attempt
        except Exception as error:  # noqa: BLE001  as in `run`
            return self.fail(attempt, error)

    def _skipped(self, attempt: Attempt) -> Skipped | None:
        """Let go of a pod that is not to be scheduled any more; None if the pod is."""
        pod = attempt.queued.pod_info
        is_terminating = pod.is_terminating
        if is_terminating or self.cache.node_of(pod.uid) is not None:
            self.queue.done(pod.uid)
            message = f"skip schedule deleting pod: {pod.key}" if is_terminating else ""
            return Skipped(attempt.queued, attempt.framework, attempt.started, message)
        return None

    def conclude(self, attempt: Attempt, decision: Decision) -> Reserved | Nominated | Failed:
        """Reserve the node that was chosen, or nominate the pod, or return it to the queue."""
        try:
            if self.metrics is not None:
                self.metrics.algorithm_seconds.observe(self.clock() - attempt.started)
            if self.decided is not None:
                self.decided(decision)
            outcome = decision.outcome
            return self._no_fit(attempt, outcome) if isinstance(outcome, FitError) else self._reserve(attempt, outcome)
        except Exception as error:  # noqa: BLE001  as in `run`
            return self.fail(attempt, error)

    def fail(self, attempt: Attempt, error: BaseException) -> Failed:
        """Return the pod to the queue, to back off after an error."""
        message = str(error) or type(error).__name__
        return return_to_queue(self.queue, attempt, message, error=True, exception=error)

    def release_unused(self) -> None:
        """Let go of the copies of pods that no attempt needed since the last call; pods that are gone go with them."""
        self.cycle.release_unused()
        self.emptied.release_unused()
        for framework in self.frameworks.values():
            framework.release_unused()

    def _reserve(self, attempt: Attempt, placement: Placement) -> Reserved | Failed:
        """Assume the pod on its node and run Reserve, Permit and PreBind; undo all of it if one of them fails."""
        pod, node_name = attempt.pod, placement.node_name
        self.cache.assume_pod(pod, node_name)
        try:
            status = attempt.framework.run_reserve(placement.state, pod, node_name)
            permitted = self.permit(attempt, placement) if status.ok else status
            if isinstance(permitted, Reserved):
                return permitted
        except Exception:
            self._undo(attempt, placement)
            raise
        self._undo(attempt, placement)
        return self.rejected(attempt, permitted)

    def permit(self, attempt: Attempt, placement: Placement) -> Reserved | Status:
        """Run Permit and PreBind for a pod that is assumed and reserved; the status says which plugin rejects it."""
        framework, pod, node_name, state = attempt.framework, attempt.pod, placement.node_name, placement.state
        status, waits = framework.run_permit(state, pod, node_name)
        if not status.ok:
            return status
        binding = framework.run_bind(pod, node_name)
        steps = framework.run_pre_bind(state, pod, node_name)
        self.queue.placed(pod.uid, node_name)
        reserved = Reserved(attempt.queued, framework, attempt.started, placement, binding, steps, waits)
        if framework.calls.sampled:
            reserved.sampled = True
        return reserved

    def _undo(self, attempt: Attempt, placement: Placement) -> None:
        try:
            attempt.framework.run_unreserve(placement.state, attempt.pod, placement.node_name)
        finally:
            self.cache.forget_pod(attempt.pod.uid)

    def rejected(self, attempt: Attempt, status: Status) -> Failed:
        """Return a pod whose chosen node a Reserve or Permit plugin rejects; no other is tried, as in upstream."""
        if status.code is Code.ERROR:
            return return_to_queue(self.queue, attempt, status.message, error=True)
        return return_to_queue(self.queue, attempt, rejection_of_node(status))

    def _no_fit(self, attempt: Attempt, fit_error: FitError) -> Nominated | Failed:
        """Keep room for the pod where its victims leave some; otherwise it waits for an event, or for time to pass."""
        result = fit_error.post_filter
        if self.metrics is not None and "DefaultPreemption" in result.post_filtered:
            self.metrics.preemption_attempts.add()
        node_name = result.nominated_node_name
        if node_name:
            displaced = self.nominate(attempt.pod, node_name, result.victims)
            return Nominated(attempt.queued, attempt.framework, attempt.started, fit_error, node_name, displaced)
        retry_after = result.retry_after
        return return_to_queue(
            self.queue,
            attempt,
            fit_error,
            ends_nomination=node_name is not None,
            retry_at=None if retry_after is None else self.clock() + retry_after,
            as_its_kind=self.decides_by_kind
            and retry_after is None
            and attempt.framework.signs_less.isdisjoint(fit_error.diagnosis.rejector_plugins),
        )

    def nominate(self, pod: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> list[PodInfo]:
        """Keep the node's room for the pod and no more for pods of lower priority, which are returned.

        They keep theirs where all victims end already, as with kube-scheduler, which then has nothing to do (upstream:
        preemption/executor.go prepareCandidateAsync). Pods of other schedulers are theirs to move.
        """
        self.queue.nominate(pod, node_name)
        if all(victim.is_terminating for victim in victims):
            return []
        displaced = [
            other
            for other in self.queue.nominator.nominated_pods_for_node(node_name)
            if other.priority < pod.priority and self.queue.get(other.uid) is not None
        ]
        for other in displaced:
            self.queue.withdraw(other.uid, wake=True)
        return displaced


def rejection_of_node(status: Status) -> FitError:
    """Return why the one node that was chosen is rejected after all (upstream: schedule_one.go, FitError)."""
    rejectors = frozenset({status.plugin}) if status.plugin else NO_PLUGINS
    return FitError(Diagnosis(1, dict(Counter(status.reasons)), rejectors))


def return_to_queue(
    queue: SchedulingQueue,
    attempt: Attempt,
    why: FitError | str,
    *,
    error: bool = False,
    ends_nomination: bool = True,
    retry_at: float | None = None,
    as_its_kind: bool = False,
    exception: BaseException | None = None,
) -> Failed:
    """Return a pod in flight to the queue: rejected pods wait for an event, errors back off.

    A pod that no plugin rejected (there are no nodes) backs off as after an error, though it is called Unschedulable,
    as in kube-scheduler. Its nomination ends unless `ends_nomination` is false. At `retry_at`, in
    seconds of the queue's clock, a rejected pod is tried again without an event. `as_its_kind` is add_unschedulable's.
    """
    fit_error = None if isinstance(why, str) else why
    message, rejectors = (why, NO_PLUGINS) if isinstance(why, str) else (why.message, why.diagnosis.rejector_plugins)
    queued = attempt.queued
    gone = queue.get(queued.uid) is None
    held = queue.nominator.nominated_node(queued.uid) is not None
    queue.add_unschedulable(
        queued,
        rejector_plugins=rejectors,
        error=error,
        ends_nomination=ends_nomination,
        retry_at=retry_at,
        as_its_kind=as_its_kind,
    )
    named = bool(queued.pod_info.pod.status.nominated_node_name)
    is_written = named or (isinstance(attempt, Reserved) and attempt.has_expected_node)
    nomination = "" if ends_nomination and (held or is_written) else None
    return Failed(queued, attempt.framework, attempt.started, message, error, gone, nomination, fit_error, exception)
