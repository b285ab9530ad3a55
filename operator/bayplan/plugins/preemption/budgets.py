"""Disruption budgets: which of the possible victims would violate one (upstream: filterPodsWithPDBViolation)."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bayplan.api.selectors import LabelMatcher, compile_label_selector
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.listers import Lister
from bayplan.cache.pod_info import PodInfo


class Budgets:
    """The disruption budgets of a lister; selectors are compiled once, and matches kept until a budget changes."""

    def __init__(self, lister: Lister[PodDisruptionBudget]) -> None:
        self._lister = lister
        self._version = -1
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, LabelMatcher]]] = {}
        self._matches: WeakKeyDictionary[PodInfo, tuple[PodDisruptionBudget, ...]] = WeakKeyDictionary()

    @property
    def version(self) -> int:
        """Grows whenever a budget changes."""
        return self._lister.version

    def split_by_violation(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Split `pods`, most important first, into those whose eviction would violate a budget and the others.

        Both keep their order. A pod takes from every budget it matches, also when that makes it a violation; so of
        pods under one budget the least important are the violating ones.
        """
        self._catch_up()
        if not self._by_namespace:
            return [], list(pods)
        taken: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            violates = False
            for budget in self._of(pod):
                taken[id(budget)] = used = taken.get(id(budget), 0) + 1
                violates |= used > budget.status.disruptions_allowed
            (violating if violates else others).append(pod)
        return violating, others

    def _of(self, pod: PodInfo) -> tuple[PodDisruptionBudget, ...]:
        matches = self._matches.get(pod)
        if matches is None:
            labels = pod.pod.metadata.labels
            matches = tuple(
                budget
                for budget, matcher in (self._by_namespace.get(pod.namespace, ()) if labels else ())
                if matcher.matches(labels) and pod.name not in (budget.status.disrupted_pods or ())
            )
            self._matches[pod] = matches
        return matches

    def _catch_up(self) -> None:
        if self._version == self._lister.version:
            return
        self._version = self._lister.version
        self._matches = WeakKeyDictionary()
        self._by_namespace = {}
        for budget in self._lister.objects.values():
            matcher = compile_label_selector(budget.spec.selector)
            # To preemption a selector that is empty, missing or invalid matches nothing.
            if not (matcher.is_everything or matcher.is_nothing):
                self._by_namespace.setdefault(budget.metadata.namespace, []).append((budget, matcher))
