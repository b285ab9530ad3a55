"""Tries out whom evicting, anywhere in the cluster, would make a pod group fit."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.preemption.default_preemption import (
    DefaultPreemption,
    is_terminating_by_preemption,
    seconds_until_allowed,
)
from bayplan.plugins.preemption.victims import VictimUnit, in_order_of_sparing, units_below
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.attempt import MemberResult
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Placement
from bayplan.scheduler.emptied_nodes import KeptEmptiedNodes
from bayplan.scheduler.pod_group_round import GroupPreemption, PodGroupRound, RoundResult, RoundStatus

_Steps = Generator[None, None, GroupPreemption]

_PREFIX: Final = "pod group preemption: "
_NO_VICTIMS: Final = f"{_PREFIX}No preemption victims found for incoming preemptor"
_CLAIMS: Final = "deallocation and deletion of ResourceClaims completed, "
_MEMBERS_AT_ONCE: Final = 64
_UNITS_AT_ONCE: Final = 256
STRICT: Final = "no victims can be found without violating a PodDisruptionBudget"


@dataclass(eq=False)
class PodGroupPreemption:
    """Finds the victims of one group whose round failed; the round relies on it to leave cache and queue as they are.

    All pods of lower priority are taken off a copy of the nodes, and the group is placed there once. Then they are
    given back, those that a budget protects first, and of those the most important, as long as every member still
    passes the filters on the node it has. Those that are not are the victims. Several that come one after the other are
    given back at once where all of them may stay; so the work grows with the victims and not with all pods.

    First it is asked whether the group would fit at all, on nodes that are `kept` without those pods for all groups of
    the priority: most groups that wait would not, and so cost little more than their round.

    To be made before the round, which ends nominations. Between two steps the caller may let watches run.
    Upstream: framework/preemption/podgrouppreemption.go.
    """

    group: PodGroup
    members: Sequence[QueuedPodInfo]
    kept: KeptEmptiedNodes
    frameworks: Mapping[str, Framework]
    clock: Callable[[], float]
    _nominated: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        nodes = {each.uid: self.kept.nominator.nominated_or_named_node(each.pod_info) for each in self.members}
        self._nominated = {uid: node for uid, node in nodes.items() if node}

    @property
    def priority(self) -> int:
        """The group's own, or that of its most important member if it has none."""
        if self.group.priority is not None:
            return self.group.priority
        return max(each.pod_info.priority for each in self.members)

    def run(self) -> _Steps:
        """Yield now and then, and return whom to evict for which places, or why nobody is evicted."""
        framework = self.frameworks[self.members[0].profile]
        plugin = framework.plugins.get(DefaultPreemption.name)
        if not isinstance(plugin, DefaultPreemption) or plugin not in framework.post_filters:
            return GroupPreemption("")
        reason = self._why_not_eligible(plugin)
        if reason:
            return self._none(reason)
        if self._is_under_way():
            return GroupPreemption(f"{_PREFIX}ongoing preemption on nominated nodes", self._nominated)
        in_vain = yield from self._in_vain(plugin)
        if in_vain is not None:
            return in_vain
        emptied = self.kept.source.beside(self.group.key)
        units: list[VictimUnit] = []
        for found in units_below(self.priority, emptied.nodes, self.kept.groups, plugin.rule, self.group.key):
            units = found or units
            yield
        if not units:
            return GroupPreemption(_NO_VICTIMS)
        for number, unit in enumerate(units):
            for pod, row in zip(unit.pods, unit.rows, strict=True):
                emptied.nodes.remove_pod(pod, row)
            if number % _UNITS_AT_ONCE == 0:
                yield
        return (yield from self._place(emptied, units, plugin))

    def _why_not_eligible(self, plugin: DefaultPreemption) -> str:
        pods = [each.pod_info for each in self.members]
        if any(pod.pod.spec.preemption_policy == "Never" for pod in pods):
            return "not eligible due to preemptionPolicy=Never."
        delay, now = plugin.delay, plugin.rule.now()
        if any(seconds_until_allowed(pod, delay, now) for pod in pods):
            return f"not eligible before preemptionDelaySeconds={delay} have passed since its pods were created."
        return ""

    def _is_under_way(self) -> bool:
        """Whether somebody of lower priority is being evicted from a node that a member is nominated to."""
        nodes, priority = self.kept.source.nodes, self.priority
        rows = (nodes.row(name) for name in set(self._nominated.values()))
        return any(
            pod.priority < priority and is_terminating_by_preemption(pod)
            for row in rows
            if row is not None
            for pod in nodes.pods[row].values()
        )

    def _none(self, reason: str) -> GroupPreemption:
        """Say why nobody is evicted; dynamicresources' PodGroupPostFilter has its say before."""
        is_native = self.group.is_native and "DynamicResources" in self.frameworks[self.members[0].profile].plugins
        return GroupPreemption(f"{_CLAIMS if is_native else ''}{_PREFIX}{reason}")

    def _in_vain(self, plugin: DefaultPreemption) -> Generator[None, None, GroupPreemption | None]:
        """Say why evictions would not do, None if they may; also where the kept nodes are not the group's to ask.

        They are not where time decides who may end, or where pods of the group itself run or are nominated.
        """
        if plugin.rule.minimum_runtime or self._nominated or self.kept.source.members.of(self.group.key):
            return None
        emptied = self.kept.take(self.priority, self.frameworks)
        yield from emptied.follow()
        if emptied.is_all:
            self.kept.give_back(emptied)
            return GroupPreemption(_NO_VICTIMS)
        trial = self._trial(emptied.cache, emptied.cycle)
        try:
            result = yield from _result_of(trial)
            yield from trial.undo_in_steps()
        finally:
            trial.undo()
        self.kept.give_back(emptied)
        return None if result.status is RoundStatus.SCHEDULED else self._none(result.message)

    def _trial(self, emptied: Cache, cycle: SchedulingCycle) -> PodGroupRound:
        return PodGroupRound(
            self.group, self.members, cache=emptied, cycle=cycle, frameworks=self.frameworks, clock=self.clock
        )

    def _place(self, emptied: Cache, units: list[VictimUnit], plugin: DefaultPreemption) -> _Steps:
        cycle = SchedulingCycle(emptied.nodes, self._others_nominated(), self.frameworks.values(), tell_reasons=False)
        trial = self._trial(emptied, cycle)
        try:
            result = yield from _result_of(trial)
            placed = [(each, each.placement) for each in result.members if each.placement is not None]
            if result.status is not RoundStatus.SCHEDULED or not placed:
                return self._none(result.message)
            ended = yield from _Sparing(emptied, cycle, placed).run(in_order_of_sparing(units, plugin.budgets))
            yield from trial.undo_in_steps()
        finally:
            trial.undo()
        nodes = {member.queued.uid: placement.node_name for member, placement in placed}
        return self._chosen(nodes, ended, plugin)

    def _chosen(self, nodes: dict[str, str], ended: list[VictimUnit], plugin: DefaultPreemption) -> GroupPreemption:
        ranked = [pod for unit in sorted(ended, key=lambda unit: unit.importance) for pod in unit.pods]
        violations = len(plugin.budgets.split_by_violation(ranked)[0])
        if plugin.strict and violations:
            return self._none(STRICT)
        # Meanwhile some may have ended, and others begun to.
        victims = tuple(now for pod in ranked if (now := self.kept.source.pod(pod.uid)) is not None)
        text = f"{_PREFIX}found a placement for podgroup, preempting {len(victims)} victims"
        there = {uid: node for uid, node in nodes.items() if self.kept.source.has_node(node)}
        return GroupPreemption(text, there, victims, plugin.strict, violations)

    def _others_nominated(self) -> Nominator:
        """The nominations of all but the group's own pods, which are about to be placed anew."""
        others, own = Nominator(), {each.uid for each in self.members}
        for node in self.kept.nominator.nodes():
            for pod in self.kept.nominator.nominated_pods_for_node(node):
                if pod.uid not in own:
                    others.add(pod, node)
        return others


_Placed = tuple[MemberResult, Placement]


@dataclass(eq=False)
class _Sparing:
    """Gives units back to nodes on which a group is `placed`, unless a member then fails on its node."""

    emptied: Cache
    cycle: SchedulingCycle
    placed: Sequence[_Placed]
    _by_row: dict[int, list[_Placed]] = field(default_factory=dict, init=False)
    _is_local: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        for each in self.placed:
            row = self.emptied.nodes.row(each[1].node_name)
            assert row is not None
            self._by_row.setdefault(row, []).append(each)

    def run(self, units: Sequence[VictimUnit]) -> Generator[None, None, list[VictimUnit]]:
        """Yield now and then, and return those that cannot stay.

        Where one fails, half as many are tried at once, and where all stay twice as many.
        """
        self._is_local = all(self.cycle.looks_at_one_node(member.pod, member.framework) for member, _ in self.placed)
        if self._is_local:
            units = [unit for unit in units if any(row in self._by_row for row in unit.rows)]
        ended: list[VictimUnit] = []
        at, size = 0, 1
        while at < len(units):
            some = units[at : at + size]
            self._move(some, self.emptied.nodes.add_pod)
            if (yield from self._all_fit(some)):
                at, size = at + len(some), 2 * size
                continue
            self._move(some, self.emptied.nodes.remove_pod)
            if len(some) == 1:
                ended += some
                at += 1
            size = max(len(some) // 2, 1)
        return ended

    def _move(self, units: Sequence[VictimUnit], move: Callable[[PodInfo, int], None]) -> None:
        for unit in units:
            for pod, row in zip(unit.pods, unit.rows, strict=True):
                move(pod, row)

    def _all_fit(self, units: Sequence[VictimUnit]) -> Generator[None, None, bool]:
        """Whether members pass on their nodes, each among those before it; yields now and then."""
        asked = self.placed
        if self._is_local:
            rows = {row for unit in units for row in unit.rows if row in self._by_row}
            asked = [each for row in rows for each in self._by_row[row]]
        for member, placement in reversed(asked):
            member.framework.run_unreserve(placement.state, member.pod, placement.node_name)
            self.emptied.forget_pod(member.queued.uid)
        fit = True
        for number, (member, placement) in enumerate(asked):
            fit = fit and self.cycle.fits(member.pod, member.framework, placement.node_name)
            self.emptied.assume_pod(member.pod, placement.node_name)
            member.framework.run_reserve(placement.state, member.pod, placement.node_name)
            if number % _MEMBERS_AT_ONCE == 0:
                yield
        return fit


def _result_of(trial: PodGroupRound) -> Generator[None, None, RoundResult]:
    while (result := trial.step()) is None:
        yield
    return result
