"""Attempts on pod groups: the round, and what follows from it for each member (upstream: schedule_one_podgroup.go)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.cache.pod_info import PodInfo
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.preemption.default_preemption import DefaultPreemption
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queued_pod_group import QueuedPodGroup
from bayplan.scheduler.attempt import AttemptRunner, Failed, MemberResult, Reserved, Result, return_to_queue
from bayplan.scheduler.pod_group_preemption import PodGroupPreemption
from bayplan.scheduler.pod_group_round import GroupPreemption, PodGroupRound, RoundResult, RoundStatus

logger = logging.getLogger(__name__)

_NOT_ENOUGH = "pod group is unschedulable, minCount ({}) cannot be satisfied: {} scheduled, 0 remaining"


@dataclass(frozen=True, slots=True, eq=False)
class GroupNominated:
    """A group for which room is kept on `nodes`, by UID of its members, and the `preemption` that makes it.

    `lead` stands for the group. `displaced` are the pods of lower priority whose nominations there ended. The group is
    held in the queue until whoever ends the victims calls `PreemptingGroups.end`.
    """

    group: PodGroup
    lead: PodInfo
    nodes: Mapping[str, str]
    displaced: Sequence[PodInfo]
    preemption: GroupPreemption


@dataclass(eq=False)
class GroupAttempt:
    """A popped group and its round; the loop takes `step` after `step` and decides nothing else meanwhile.

    In the end every member is bound by the caller, which gets its `Reserved`, or is back in the queue, and so is the
    group, whatever raises on the way.
    """

    queued: QueuedPodGroup
    attempts: AttemptRunner
    on_round: Callable[[PodGroup, RoundResult], None] | None = None
    nominated: GroupNominated | None = field(default=None, init=False)
    """Whose victims are to end for the group, once the round is over."""
    _nodes: dict[str, str] = field(default_factory=dict, init=False)
    _round: PodGroupRound = field(init=False)

    def __post_init__(self) -> None:
        attempts, group, members = self.attempts, self.queued.group, list(self.queued.members.values())
        preemption = PodGroupPreemption(group, members, attempts.emptied, attempts.frameworks, attempts.clock)
        self._round = PodGroupRound(
            group,
            members,
            cache=attempts.cache,
            cycle=attempts.cycle,
            frameworks=attempts.frameworks,
            clock=attempts.clock,
            on_placed=attempts.queue.placed,
            decided=attempts.decided,
            preempt=preemption.run,
        )

    def run(self) -> list[Reserved | Failed]:
        """Go through the whole round; returns what it came to for each member that the queue still knows."""
        while (results := self.step()) is None:
            pass
        return results

    def step(self) -> list[Reserved | Failed] | None:
        """Try the next member; what the round came to for each of them once it is over."""
        try:
            result = self._round.step()
        except Exception as error:  # noqa: BLE001  as in AttemptRunner.run
            return self.abandon(error)
        return None if result is None else self._conclude(result)

    def abandon(self, error: BaseException) -> list[Reserved | Failed]:
        """Give back all that the round holds, and have the group back off after an error."""
        return self._conclude(self._round.abandon(error))

    def _conclude(self, result: RoundResult) -> list[Reserved | Failed]:
        queue, status = self.attempts.queue, result.status
        for skipped in result.skipped:
            queue.done(skipped.uid)
        if status is RoundStatus.SCHEDULED:
            result = self._without_those_gone(result)
            status = result.status
        there = [each for each in result.members if not self._is_gone(each.queued)]
        if result.preemption is not None and result.preemption.nodes:
            self._nominate(result.preemption, there)
        results = [self._follow(each) for each in there]
        failed = status in (RoundStatus.UNSCHEDULABLE, RoundStatus.ERROR)
        waits = status is RoundStatus.UNSCHEDULABLE and self._waits_for_news
        queue.finish_round(self.queued, failed=failed, error=status is RoundStatus.ERROR, waits=waits)
        if self.on_round is not None:
            try:
                self.on_round(self._newest, result)
            except Exception:
                logger.exception("a round was not told of group=%r", str(self.queued.group.key))
        return results

    @property
    def _newest(self) -> PodGroup:
        """The group as it is now, which may have been made anew under its name in mid-round."""
        return self.attempts.queue.groups.get(self.queued.group.key) or self.queued.group

    @property
    def _waits_for_news(self) -> bool:
        """Whether another round would end alike as long as nothing happens."""
        frameworks = {self.attempts.frameworks[each.profile] for each in self.queued.members.values()}
        plugins = [each.plugins.get(DefaultPreemption.name) for each in frameworks]
        depends_on_time = any(isinstance(each, DefaultPreemption) and each.depends_on_time for each in plugins)
        return self.attempts.decides_by_kind and not depends_on_time

    def _nominate(self, preemption: GroupPreemption, members: Sequence[MemberResult]) -> None:
        """Keep the room that victims leave for the members, and hold the group while they are told to end."""
        displaced: dict[str, PodInfo] = {}
        for member in members:
            pod, node_name = member.pod, preemption.nodes.get(member.queued.uid)
            if node_name is not None:
                displaced |= {each.uid: each for each in self.attempts.nominate(pod, node_name, preemption.victims)}
                self._nodes[pod.uid] = node_name
        if preemption.victims and self._nodes:
            self.attempts.queue.preempting.begin(self.queued.group.key, [each.uid for each in preemption.victims])
            lead = self.queued.pod_info
            self.nominated = GroupNominated(self.queued.group, lead, self._nodes, list(displaced.values()), preemption)

    def _without_those_gone(self, result: RoundResult) -> RoundResult:
        """Drop who was deleted or bound by somebody else in mid-round; if too few are left, none is bound.

        How many are enough may have been changed in mid-round as well.
        """
        for member in reversed(result.members):
            if member.placement is not None and self._is_gone(member.queued, held=True):
                self._round.give_back(member)
                member.placement = None
        least, placed = self._newest.least, len(self.attempts.cache.members.of(self.queued.group.key))
        if placed >= least:
            return result
        self._round.undo()
        message = _NOT_ENOUGH.format(least, placed)
        for member in result.members:
            if member.placement is not None:
                member.placement, member.message = None, message
        return RoundResult(RoundStatus.UNSCHEDULABLE, message, result.members, result.skipped)

    def _is_gone(self, queued: QueuedPodInfo, *, held: bool = False) -> bool:
        """Whether the queue knows the member no more; it is let go of then, unless its room is `held` still."""
        cache, queue = self.attempts.cache, self.attempts.queue
        is_elsewhere = cache.node_of(queued.uid) is not None and not cache.is_assumed(queued.uid)
        if not queue.is_alive(queued.uid) or is_elsewhere:
            if not held:
                queue.done(queued.uid)
            return True
        return False

    def _follow(self, member: MemberResult) -> Reserved | Failed:
        """Have a placed member bound, and return another one to the queue."""
        node_name = self._nodes.get(member.queued.uid)
        if member.placement is None:
            failed = return_to_queue(
                self.attempts.queue,
                member,
                member.message,
                error=member.is_error,
                ends_nomination=node_name is None,
                exception=member.exception,
            )
            failed.in_round, failed.fit_error = True, member.fit_error
            failed.nomination = failed.nomination if node_name is None else node_name
            return failed
        try:
            permitted = self.attempts.permit(member, member.placement)
        except Exception as error:  # noqa: BLE001  as in AttemptRunner.run
            self._round.give_back(member)
            return self.attempts.fail(member, error)
        if isinstance(permitted, Reserved):
            permitted.sampled = member.sampled
            return permitted
        self._round.give_back(member)
        return self.attempts.rejected(member, permitted)


@dataclass(eq=False)
class GroupRounds:
    """The round that is under way, if there is one; while it is, the loop decides nothing else.

    `follow_up` has a member bound, or its failure reported, and `preempt` has victims end. `ended` is called after each
    round. `on_round` hears what each round came to, if anybody wants to.
    """

    attempts: AttemptRunner
    follow_up: Callable[[Result], None]
    ended: Callable[[], None]
    preempt: Callable[[GroupNominated], None]
    on_round: Callable[[PodGroup, RoundResult], None] | None = None
    _attempt: GroupAttempt | None = field(default=None, init=False)

    @property
    def is_under_way(self) -> bool:
        """Whether a round was begun that is not over."""
        return self._attempt is not None

    def begin(self, group: QueuedPodGroup) -> None:
        """Begin the round of a group that was popped."""
        self._attempt = GroupAttempt(group, self.attempts, self.on_round)

    def go_on(self, seconds: float) -> bool:
        """Go on with the round, if there is one, for about so long; True if it is over.

        The binds of all its members start in one turn.
        """
        until = self.attempts.clock() + seconds
        while self._attempt is not None:
            results = self._attempt.step()
            if results is not None:
                nominated, self._attempt = self._attempt.nominated, None
                for each in results:
                    self.follow_up(each)
                if nominated is not None:
                    self._preempt(nominated)
                self.ended()
            elif self.attempts.clock() >= until:
                return False
        return True

    def _preempt(self, nominated: GroupNominated) -> None:
        """Have victims end; whatever raises, the group is held no longer."""
        try:
            self.preempt(nominated)
        except Exception:
            logger.exception("victims were not ended for group=%r", str(nominated.group.key))
            self.attempts.queue.preempting.end(nominated.group.key)

    def abandon(self) -> None:
        """End a round that is under way, as if it had failed."""
        if self._attempt is not None:
            self._attempt.abandon(RuntimeError("scheduling ends"))
            self._attempt = None
