"""Who may be a victim of a pod or of a group, who is spared first, and which disruption budgets forbid to end them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from weakref import WeakKeyDictionary

import numpy as np

from bayplan.api.meta_objects import key_of
from bayplan.api.selectors import LabelMatcher, compile_label_selector
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.affinity_terms import Anchor, anchors, that_may_match
from bayplan.cache.change_log import Rows
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.listers import Lister
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate, start_time
from bayplan.groups.pod_groups import PodGroup, PodGroups

_ROWS_AT_ONCE = 128


@dataclass(slots=True, eq=False)
class _Selected:
    """The newest version of a budget, and whom its selector matches; `number` is its place in the lister."""

    budget: PodDisruptionBudget
    matcher: LabelMatcher
    number: int


@dataclass(slots=True, eq=False)
class _Namespace:
    """The budgets of a namespace, and by which of them each pod was found to be selected."""

    index: InvertedIndex[Anchor, _Selected] = field(default_factory=InvertedIndex)
    matches: WeakKeyDictionary[PodInfo, tuple[_Selected, ...]] = field(default_factory=WeakKeyDictionary)


class Budgets:
    """The disruption budgets of a lister; whom they select is found once for a pod, until a selector changes.

    What budgets allow changes with every pod that comes or goes, so that is read anew and nothing else is. A pod is
    compared with the budgets whose label it has, not with all of its namespace.

    To kube-scheduler's preemption an empty selector covers no pod, and no selector covers a pod without labels. With
    `as_evicted` it is as for the Eviction API: an empty selector covers all pods of its namespace, and a pod of several
    budgets cannot be evicted.

    Upstream: framework/preemption/util.go FilterVictimsWithPDBViolation, which looks at budgets in any order, and
    registry/core/pod/storage/eviction.go getPodDisruptionBudgets.
    """

    def __init__(self, lister: Lister[PodDisruptionBudget], *, as_evicted: bool = False) -> None:
        self._lister = lister
        self._as_evicted = as_evicted
        self._changes = lister.follower()
        self._version = 0
        self._known: dict[str, _Selected] = {}
        self._by_namespace: dict[str, _Namespace] = {}

    @property
    def version(self) -> int:
        """Grows whenever a budget covers other pods, or allows more or fewer disruptions."""
        self._catch_up()
        return self._version

    def split_by_violation(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Split `pods`, most important first, into those whose eviction would violate a budget and the others.

        Both keep their order. A pod takes from the budgets it matches until one is overdrawn, and that one counts too;
        so of pods under one budget the least important are the violating ones. One that cannot be evicted takes nothing
        and is violating.
        """
        self._catch_up()
        if not self._by_namespace:
            return [], list(pods)
        taken: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            violates = self.is_refused(pod)
            for budget in () if violates else self._covering(pod):
                taken[id(budget)] = used = taken.get(id(budget), 0) + 1
                if used > budget.status.disruptions_allowed:
                    violates = True
                    break
            (violating if violates else others).append(pod)
        return violating, others

    def is_refused(self, pod: PodInfo) -> bool:
        """Whether the Eviction API refuses to evict the pod whatever its budgets allow, where that is asked."""
        return self._as_evicted and len(self._covering(pod)) > 1

    def covering(self, pod: PodInfo) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that the pod takes from when it is evicted."""
        self._catch_up()
        return self._covering(pod)

    def _covering(self, pod: PodInfo) -> tuple[PodDisruptionBudget, ...]:
        namespace = self._by_namespace.get(pod.namespace)
        if namespace is None:
            return ()
        selected = namespace.matches.get(pod)
        if selected is None:
            selected = namespace.matches[pod] = self._selected(pod, namespace.index)
        return tuple([each.budget for each in selected if pod.name not in (each.budget.status.disrupted_pods or ())])

    def _selected(self, pod: PodInfo, index: InvertedIndex[Anchor, _Selected]) -> tuple[_Selected, ...]:
        labels = pod.pod.metadata.labels
        if not (labels or self._as_evicted):
            return ()
        found = [each for each in that_may_match(index, labels) if each.matcher.matches(labels)]
        return tuple(sorted(found, key=lambda each: each.number))

    def _catch_up(self) -> None:
        namespaces: dict[str, None] = {}
        for key in self._changes.follow(self._known):
            known, budget = self._known.get(key), self._lister.get(key)
            if known is not None and budget is not None and _select_alike(known.budget, budget):
                self._version += not _allow_alike(known.budget, budget)
                known.budget = budget
                continue
            if known is not None:
                namespaces[known.budget.metadata.namespace] = None
                del self._known[key]
            if budget is not None:
                namespaces[budget.metadata.namespace] = None
        self._version += len(namespaces)
        for name in namespaces:
            self._read_namespace(name)

    def _read_namespace(self, name: str) -> None:
        """Compile the selectors of a namespace anew, in the order of its budgets; its pods are compared again."""
        namespace, has_any = _Namespace(), False
        for number, budget in enumerate(self._lister.in_namespace(name)):
            matcher = compile_label_selector(budget.spec.selector)
            each = self._known[key_of(budget.metadata)] = _Selected(budget, matcher, number)
            if not matcher.is_nothing and (self._as_evicted or not matcher.is_everything):
                namespace.index.set(each, anchors(budget.spec.selector))
                has_any = True
        self._by_namespace.pop(name, None)
        if has_any:
            self._by_namespace[name] = namespace


def _select_alike(before: PodDisruptionBudget, now: PodDisruptionBudget) -> bool:
    """Whether two versions under one key are the same budget with the same selector."""
    return before.metadata.uid == now.metadata.uid and before.spec.selector == now.spec.selector


def _allow_alike(before: PodDisruptionBudget, now: PodDisruptionBudget) -> bool:
    """Whether two versions of a budget allow as many disruptions, of the same pods; the rest of a status is counts."""
    return (before.status.disruptions_allowed, before.status.disrupted_pods) == (
        now.status.disruptions_allowed,
        now.status.disrupted_pods,
    )


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sort the most important pod first: by priority, then by who has run longest (upstream: MoreImportantVictim)."""
    return -pod.priority, start_time(pod)


def unit_importance(pods: Sequence[PodInfo], priority: int, *, is_grouped: bool) -> tuple[int, bool, int, float]:
    """Sort the most important of pods that end together first: of those of one priority groups before pods, then more.

    Upstream: framework/preemption/util.go MoreImportantVictim.
    """
    return -priority, not is_grouped, -len(pods), min(map(start_time, pods))


@dataclass(frozen=True, slots=True)
class VictimRule:
    """Which pods of lower priority may be evicted: those that have run long enough.

    `minimum_runtime` is in seconds, 0 spares nobody; `now` gives seconds since the epoch.
    """

    minimum_runtime: int
    now: Callable[[], float]

    def evictable_from(self, victim: PodInfo) -> float:
        """Return when the pod has run long enough, in seconds since the epoch; inf for one that has not started."""
        started = start_time(victim)
        return started if started == inf else started + self.minimum_runtime

    def has_run_long_enough(self, victim: PodInfo, now: float) -> bool:
        """Whether the pod may be evicted."""
        return not self.minimum_runtime or self.evictable_from(victim) <= now


@dataclass(slots=True)
class VictimSelection:
    """The victims on a row, most important first, and how many violate a budget; or why evictions do not help.

    It has neither victims nor reasons on a node that rejected the pod and then takes it with nobody evicted, and an
    `error` where a filter could not answer. `candidate` is the last one made of the selection.
    """

    row: int
    victims: list[PodInfo] = field(default_factory=list)
    violations: int = 0
    reasons: Sequence[str] | None = None
    error: str = ""
    candidate: Candidate | None = None


class LowerPriorityPods(UsageView):
    """The possible victims of a pod of `priority` on every row, most important first, and the sums of their requests.

    `counts` is how many, `requested` what they take of each resource that the table counts; both `(capacity,) int64`.
    Rows are read again only when their pods changed, or when a pod that had not run long enough has by now:
    `evictable_from` is when the first one will have, in seconds since the epoch, or inf.
    """

    def __init__(self, nodes: NodeTable, priority: int, rule: VictimRule) -> None:
        super().__init__(nodes)
        self._priority = priority
        self._rule = rule
        self.evictable_from = inf
        self._start_over()

    def is_old_enough(self, pod: PodInfo) -> bool:
        """Whether the pod has run long enough to be evicted."""
        return self._rule.has_run_long_enough(pod, self._rule.now())

    def follow(self) -> None:
        """Bring everything up to date with the node table and the clock."""
        self.catch_up()
        other_columns = self.requested.keys() != self._nodes.requested.keys()
        if other_columns or (self._rule.minimum_runtime and self._rule.now() >= self.evictable_from):
            self._read_all()

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self.evictable_from = inf
        self.victims: list[tuple[PodInfo, ...]] = [()] * capacity
        self.counts: Column = np.zeros(capacity, dtype=np.int64)
        self.requested: dict[str, Column] = {name: np.zeros(capacity, dtype=np.int64) for name in self._nodes.requested}

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._read_row(row)

    def _read_row(self, row: int) -> None:
        priority, rule = self._priority, self._rule
        lower = [pod for pod in self._nodes.pods[row].values() if pod.priority < priority]
        if rule.minimum_runtime:
            now = rule.now()
            later = [at for at in map(rule.evictable_from, lower) if at > now]
            self.evictable_from = min([self.evictable_from, *later])
            lower = [pod for pod in lower if rule.evictable_from(pod) <= now]
        lower.sort(key=importance)
        self.victims[row] = tuple(lower)
        self.counts[row] = len(lower)
        for taken in self.requested.values():
            taken[row] = 0
        if row in self._nodes.clamped_rows:
            # Columns of such rows are no sums, so differences mean nothing; they are tried pod by pod.
            return
        for pod in lower:
            for name, amount in pod.placed.amounts.items():
                if name in self.requested:
                    self.requested[name][row] += amount


@dataclass(frozen=True, slots=True, eq=False)
class VictimUnit:
    """Pods that end together or stay together: one pod, or all of a group of disruption mode `all`.

    `rows` are those of its pods. `is_grouped` is whether they are of a pod group of Kubernetes' own kind, whose
    priority counts then. Upstream: framework/preemption/types.go Victim.
    """

    pods: tuple[PodInfo, ...]
    rows: tuple[int, ...]
    priority: int
    is_grouped: bool

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sort the most important unit first."""
        return unit_importance(self.pods, self.priority, is_grouped=self.is_grouped)


def units_below(
    priority: int, nodes: NodeTable, groups: PodGroups, rule: VictimRule, besides: PodGroupKey
) -> Iterator[list[VictimUnit] | None]:
    """Give None now and then, and at last the units of lower priority that have run long enough.

    Pods of the group `besides`, which is to get the room, are none, and neither is a group one of whose pods is spared
    by the rule.
    """
    # Of equally important units the first on its node is spared first.
    units: dict[PodGroupKey | str, tuple[list[tuple[PodInfo, int]], int, bool]] = {}
    now = rule.now()
    for number, row in enumerate(nodes.rows().tolist(), 1):
        for pod in nodes.pods[row].values():
            key = groups.of(pod)
            group = None if key is None else groups.get(key)
            own = priority_in_group(pod, group)
            if own >= priority or key == besides:
                continue
            if key is not None and group is not None and group.evicted_as_one:
                units.setdefault(key, ([], own, True))[0].append((pod, row))
            else:
                units[pod.uid] = [(pod, row)], own, pod.pod.spec.scheduling_group is not None
        if not number % _ROWS_AT_ONCE:
            yield None
    found: list[VictimUnit] = []
    for members, own, is_grouped in units.values():
        pods, rows = zip(*members, strict=True)
        if all(rule.has_run_long_enough(pod, now) for pod in pods):
            found.append(VictimUnit(pods, rows, own, is_grouped))
    yield found


def priority_in_group(pod: PodInfo, group: PodGroup | None) -> int:
    """Return the priority by which group preemption counts a pod: its group's, or its own where there is none."""
    return pod.priority if group is None or group.priority is None else group.priority


def in_order_of_sparing(units: Sequence[VictimUnit], budgets: Budgets) -> list[VictimUnit]:
    """Return the units in the order in which they are given back: those first whose end would violate a budget.

    One pod that would is enough for its unit (upstream: FilterVictimsWithPDBViolation).
    """
    ranked = sorted(units, key=lambda unit: unit.importance)
    violating = {id(pod) for pod in budgets.split_by_violation([pod for unit in ranked for pod in unit.pods])[0]}
    return sorted(ranked, key=lambda unit: not any(id(pod) in violating for pod in unit.pods))
