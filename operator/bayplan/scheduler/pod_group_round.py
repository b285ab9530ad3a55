"""One attempt on a pod group: all members that wait, one after the other, placed together or not at all."""

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bayplan.cache.cache import Cache
from bayplan.cache.change_log import Rows
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.topology_placement_generator import PlacementError, TopologyPlacementGenerator
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.attempt import MemberResult, rejection_of_node
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError, Placement
from bayplan.scheduler.placement_search import (
    UNSCHEDULABLE,
    NodeNames,
    Shortfall,
    Trial,
    resource_gap,
    search,
    shapes_of,
)

logger = logging.getLogger(__name__)

_OTHER_FAILED: Final = "failed to schedule other pod from a pod group"
_DEFAULT_POLICY: Final = "PreemptLowerPriority"
_UNDONE_AT_ONCE: Final = 256
"""How many members' room is given back in one step: about 20 ms."""
_SAME: Final = "all pods in a single pod group should have the same"


class RoundStatus(StrEnum):
    """What a round came to, as in metrics."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"
    SKIPPED = "skipped"
    """No member was left to try."""


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """What preemption says of a group that found no room, and whom it wants to end for it.

    `nodes` are the nodes that members are nominated to, by UID; none where nobody is evicted for the group. There are
    no `victims` where they end already. With `evicts` they end through the Eviction API. `violations` counts those
    whose end violates a budget.
    """

    text: str
    nodes: Mapping[str, str] = field(default_factory=dict)
    victims: tuple[PodInfo, ...] = ()
    evicts: bool = False
    violations: int = 0


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round came to; `message` is the text of the group's condition.

    `skipped` are the members that are on a node already or end: the queue is to let go of them. `preemption` is what
    preemption said, if it was asked.
    """

    status: RoundStatus
    message: str
    members: Sequence[MemberResult]
    skipped: Sequence[QueuedPodInfo] = ()
    preemption: GroupPreemption | None = None


@dataclass(eq=False)
class PodGroupRound:
    """Tries the members of a group in their order, each among those placed before it; the loop and simulations run it.

    It changes the cache and what plugins reserve, and nothing else. If the group is not placed, all of that is given
    back in reverse order before the result is there, also where a plugin raises. If it is placed, members stay assumed
    for whoever binds them. Between two steps the caller may let watches run, but nobody else may decide.

    Members count towards the group's least number as soon as they are on a node, whoever put them there. A member
    that finds no node is passed over, and the round ends early once too few are left. `on_placed` is called with UID
    and node of each member that is assumed: its nomination has served its purpose. `decided` is AttemptRunner's.
    `preempt` looks for room to make where there is none; without it nobody is asked.
    Upstream: schedule_one_podgroup.go, gangscheduling.go PlacementFeasible.
    """

    group: PodGroup
    members: Sequence[QueuedPodInfo]
    cache: Cache
    cycle: SchedulingCycle
    frameworks: Mapping[str, Framework]
    clock: Callable[[], float]
    on_placed: Callable[[str, str], None] | None = None
    decided: Callable[[Decision], None] | None = None
    preempt: Callable[[], Generator[None, None, GroupPreemption]] | None = None
    _tried: list[MemberResult] = field(default_factory=list, init=False)
    _held: dict[str, MemberResult] = field(default_factory=dict, init=False)
    _skipped: dict[str, QueuedPodInfo] = field(default_factory=dict, init=False)
    _names: NodeNames = field(init=False)
    _steps: Generator[RoundResult | None, None, None] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = self._round()

    def run(self) -> RoundResult:
        """Go through the whole round."""
        while (result := self.step()) is None:
            pass
        return result

    def step(self) -> RoundResult | None:
        """Try the next member; the result once there is one, after which no step is left."""
        return next(self._steps)

    def undo(self) -> None:
        """Give back what the round still holds, last first."""
        for _ in self.undo_in_steps():
            pass

    def undo_in_steps(self) -> Generator[None, None, None]:
        """Do the same a part at a time, and yield after each, as a large gang takes long."""
        for number, member in enumerate(reversed(list(self._held.values())), 1):
            self.give_back(member)
            if number % _UNDONE_AT_ONCE == 0:
                yield

    def give_back(self, member: MemberResult) -> None:
        """Free the room of one member that is not to be bound after all; a plugin that raises is logged."""
        placement, pod = self._held.pop(member.queued.uid).placement, member.pod
        if placement is None:
            return
        try:
            member.framework.run_unreserve(placement.state, pod, placement.node_name)
        except Exception:
            logger.exception("a Reserve plugin did not give back what it took pod=%r", pod.key)
        finally:
            self.cache.forget_pod(pod.uid)

    def abandon(self, error: BaseException) -> RoundResult:
        """Give back all that the round holds; the result of a round that an error ended from outside."""
        # What preemption tries holds volumes and devices as well.
        self._steps.close()
        self.undo()
        message = str(error) or type(error).__name__
        members = [self._untried(each, message, is_error=True) for each in self.members]
        for member in members:
            member.exception = error
        return RoundResult(RoundStatus.ERROR, message, members)

    def _round(self) -> Generator[RoundResult | None, None, None]:
        mismatch = self._mismatch()
        if mismatch:
            yield self._failed_by(mismatch, self.members)
            return
        waiting = [each for each in self.members if not self._is_skipped(each)]
        if not waiting:
            yield RoundResult(RoundStatus.SKIPPED, "", (), list(self._skipped.values()))
            return
        placed, by_devices = self.cache.members.of(self.group.key), ExtendedResources(self.cache.listers).classes
        gap = resource_gap(self.group, self.cache.nodes, placed.values(), by_devices)
        shortfall = Shortfall(gap, (), waiting) if gap else (yield from self._place(waiting))
        if shortfall is None:
            yield RoundResult(RoundStatus.SCHEDULED, "", self._tried, list(self._skipped.values()))
        else:
            self._tried = list(shortfall.tried)
            yield from self.undo_in_steps()
            if shortfall.is_error:
                yield self._failed_by(shortfall.text, shortfall.rest)
            else:
                yield from self._unschedulable(shortfall.text, shortfall.rest)

    def _place(self, waiting: Sequence[QueuedPodInfo]) -> Trial:
        """Place the members on the best set of nodes, if the profile of the first one tells several apart."""
        framework = self.frameworks[waiting[0].profile]
        generator: TopologyPlacementGenerator | None = framework.plugins.get(TopologyPlacementGenerator.name)
        if generator is None:
            return (yield from self._attempt(waiting, None))
        members = self.cache.members.of(self.group.key)
        placed = [(pod, self.cache.node_of(uid) or "") for uid, pod in members.items()]
        shapes = shapes_of(
            [(each.pod_info, self.frameworks[each.profile]) for each in waiting], self.cycle, self.cache.nodes
        )
        try:
            placements = generator.generate(self.group, shapes, placed, framework.plugins.get(NodeResourcesFit.name))
        except PlacementError as error:
            return Shortfall(str(error), (), waiting, is_error=True)
        if placements is None:
            return Shortfall("no feasible placements found", (), waiting)
        self._names = NodeNames(self.cache.nodes)
        return (
            yield from search(
                placements, lambda rows: self._attempt(waiting, rows), self.undo_in_steps, lambda: self._scheduled
            )
        )

    def _attempt(self, waiting: Sequence[QueuedPodInfo], within: Rows | None) -> Trial:
        """Try all members on the rows `within`, or on all; what is placed stays held, whatever comes of it."""
        self._tried = []
        verdict = self._infeasible(len(waiting))
        if verdict:
            return Shortfall(f"{UNSCHEDULABLE}, {verdict}", self._tried, waiting)
        with self.cycle.placed_together(each.pod_info for each in waiting):
            return (yield from self._try_all(waiting, within))

    def _try_all(self, waiting: Sequence[QueuedPodInfo], within: Rows | None) -> Trial:
        tried = self._tried
        for number, queued in enumerate(waiting, 1):
            # Somebody else may have bound it since the round began.
            if not self._is_skipped(queued):
                tried.append(self._try(queued, None if within is None else self._names.still(within)))
            if tried and tried[-1].is_error:
                return Shortfall(f"{_OTHER_FAILED}: {tried[-1].message}", tried, waiting[number:], is_error=True)
            verdict = self._infeasible(len(waiting) - number)
            if verdict:
                return Shortfall(verdict, tried, waiting[number:])
            if number < len(waiting):
                yield
        return None if self._held or not tried else Shortfall(UNSCHEDULABLE, tried, ())

    @property
    def _scheduled(self) -> int:
        """How many members are on nodes."""
        return len(self.cache.members.of(self.group.key))

    def _mismatch(self) -> str:
        """What members differ in that must not, "" if nothing (upstream: validatePodGroup).

        Groups of the CRD know no such rules: a launcher is often more important than its workers.
        """
        if not self.group.is_native:
            return ""
        priority, first, policy = self.group.priority or 0, "", ""
        for pod in (*(each.pod_info for each in self.members), *self.cache.members.of(self.group.key).values()):
            spec = pod.pod.spec
            name, own_policy = spec.scheduler_name, _policy_of(pod)
            first, policy = first or name, policy or own_policy
            if name != first:
                return f'{_SAME} .spec.schedulerName set, got: "{name}" and "{first}"'
            if pod.priority != priority:
                return f"{_SAME} priority as the pod group's priority, got {pod.priority} and {priority}"
            if own_policy != policy:
                return f"{_SAME} preemption policy, got {own_policy} and {policy}"
        return ""

    def _is_skipped(self, queued: QueuedPodInfo) -> bool:
        is_skipped = queued.pod_info.is_terminating or self.cache.node_of(queued.uid) is not None
        if is_skipped:
            self._skipped[queued.uid] = queued
        return is_skipped

    def _infeasible(self, remaining: int) -> str:
        """Why the group's least number cannot be reached any more, "" as long as it can."""
        least, scheduled = self.group.least, self._scheduled
        if remaining + scheduled >= least:
            return ""
        return f"minCount ({least}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"

    def _try(self, queued: QueuedPodInfo, within: Rows | None) -> MemberResult:
        """Find a node for one member and reserve it; what raises fails the round, and is no longer held."""
        framework = self.frameworks[queued.profile]
        member = MemberResult(queued, framework, self.clock())
        try:
            framework.calls.begin()
            member.sampled = framework.calls.sampled
            decision = self.cycle.schedule_member(queued.pod_info, framework, within)
            if self.decided is not None:
                self.decided(decision)
            outcome = decision.outcome
            if isinstance(outcome, FitError):
                member.fit_error, member.message = outcome, outcome.message
            else:
                self._reserve(member, outcome)
        except Exception as error:  # noqa: BLE001  whatever one pod makes a plugin do must not stop the others
            member.placement, member.is_error, member.exception = None, True, error
            member.message = str(error) or type(error).__name__
        return member

    def _reserve(self, member: MemberResult, placement: Placement) -> None:
        pod = member.pod
        self.cache.assume_pod(pod, placement.node_name)
        member.placement, self._held[pod.uid] = placement, member
        try:
            status = member.framework.run_reserve(placement.state, pod, placement.node_name)
        except Exception:
            self.give_back(member)
            raise
        if status.ok:
            if self.on_placed is not None:
                self.on_placed(pod.uid, placement.node_name)
            return
        self.give_back(member)
        member.placement, member.is_error = None, status.code is Code.ERROR
        member.message = status.message
        if not member.is_error:
            member.fit_error = rejection_of_node(status)
            member.message = member.fit_error.message

    def _unschedulable(self, verdict: str, rest: Sequence[QueuedPodInfo]) -> Generator[RoundResult | None, None, None]:
        """The result of a group that finds too little room.

        Members that had a place are told the group's text, those that had none their own, and the `rest`, whose turn
        never came, the verdict.
        """
        found = None if self.preempt is None else (yield from self.preempt())
        text = f"{verdict}, {found.text}" if found is not None and found.text else verdict
        waits = found is not None and bool(found.nodes)
        for member in self._tried:
            if member.placement is not None:
                member.placement, member.message = None, text if waits else f"{UNSCHEDULABLE}, {text}"
        members = [*self._tried, *(self._untried(each, verdict) for each in rest)]
        yield RoundResult(RoundStatus.UNSCHEDULABLE, text, members, list(self._skipped.values()), found)

    def _failed_by(self, message: str, rest: Sequence[QueuedPodInfo]) -> RoundResult:
        """The result of a round that an error ended: every member is told, the one that failed its own error."""
        for member in self._tried:
            if not member.is_error:
                member.placement, member.fit_error, member.is_error, member.message = None, None, True, message
        members = [*self._tried, *(self._untried(each, message, is_error=True) for each in rest)]
        return RoundResult(RoundStatus.ERROR, message, members, list(self._skipped.values()))

    def _untried(self, queued: QueuedPodInfo, message: str, *, is_error: bool = False) -> MemberResult:
        framework = self.frameworks[queued.profile]
        return MemberResult(queued, framework, self.clock(), message=message, is_error=is_error)


def _policy_of(pod: PodInfo) -> str:
    return pod.pod.spec.preemption_policy or _DEFAULT_POLICY
