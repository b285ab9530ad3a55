"""The spread constraints of a pod: its own, or the default ones with the selectors of what owns it."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement, controller_of
from bayplan.api.objects import TopologySpreadConstraint
from bayplan.api.selectors import Labels, compile_label_selector
from bayplan.api.workload_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from bayplan.cache.listers import Lister, Listers
from bayplan.cache.pod_info import PodInfo

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

_HONOR = "Honor"
_INT32: Final = 2**31 - 1

Requirement = tuple[str, str, tuple[str, ...]]
"""Key, operator and values of one expression."""


class PodSelector:
    """A label selector that can be compared, so that equal ones share their counts; None selects nothing.

    An invalid one selects nothing too. Its `requirements` are in an order of their own.
    """

    __slots__ = ("error", "is_nothing", "matches", "requirements")

    def __init__(self, requirements: Iterable[Requirement] | None) -> None:
        self.requirements = None if requirements is None else tuple(sorted(set(requirements)))
        matcher = compile_label_selector(_as_label_selector(self.requirements))
        self.error, self.is_nothing, self.matches = matcher.error, matcher.is_nothing, matcher.matches

    @property
    def is_empty(self) -> bool:
        """Whether it is there and requires nothing, so that it matches all labels."""
        return self.requirements == ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint as it applies to one pod (upstream: podtopologyspread/common.go topologySpreadConstraint).

    `self_match` is 1 if the pod itself is among the pods it counts.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: PodSelector
    self_match: int
    honors_affinity: bool
    honors_taints: bool

    @property
    def signature(self) -> Hashable:
        """Equal for constraints that mean the same for pods in the same namespace."""
        counted = (self.selector.requirements, self.self_match, self.honors_affinity, self.honors_taints)
        return self.topology_key, self.max_skew, self.min_domains, counted


@dataclass(frozen=True, slots=True)
class SpreadConstraints:
    """A pod's hard and soft constraints; they count pods of its namespace.

    With `requires_all_keys` nodes without one of the soft constraints' topology keys are left out of the score.
    """

    hard: tuple[SpreadConstraint, ...]
    soft: tuple[SpreadConstraint, ...]
    requires_all_keys: bool


def resolve(
    pod: PodInfo,
    constraints: Sequence[TopologySpreadConstraint],
    selector: PodSelector | None = None,
    *,
    requires_all_keys: bool = True,
    match_label_keys: bool = True,
) -> SpreadConstraints:
    """Return what `constraints` mean for the pod.

    They count what `selector` selects; without one what their own do, with the values of the pod's `matchLabelKeys`
    unless `match_label_keys` is off.
    """
    labels = pod.pod.metadata.labels or {}
    known = labels if match_label_keys else {}

    def applied(action: str) -> tuple[SpreadConstraint, ...]:
        own = of_action(constraints, action)
        return tuple(_resolved(each, selector or _with_label_keys(each, known), labels) for each in own)

    return SpreadConstraints(applied(DO_NOT_SCHEDULE), applied(SCHEDULE_ANYWAY), requires_all_keys)


def selected_in(namespace: str, selector: PodSelector) -> Callable[[PodInfo], bool]:
    """Return what tells the pods of a namespace that a selector selects, also those that end."""

    def selects(pod: PodInfo) -> bool:
        meta = pod.pod.metadata
        return meta.namespace == namespace and selector.matches(meta.labels)

    return selects


def of_action(constraints: Iterable[TopologySpreadConstraint], action: str) -> list[TopologySpreadConstraint]:
    """Return the constraints of one `whenUnsatisfiable`; an empty one is the API's default, DoNotSchedule."""
    return [each for each in constraints if (each.when_unsatisfiable or DO_NOT_SCHEDULE) == action]


def requirements_of_labels(labels: Mapping[str, str]) -> list[Requirement]:
    """Return requirements that hold for pods with all these labels."""
    return [(key, "In", (value,)) for key, value in labels.items()]


def requirements_of(selector: LabelSelector) -> list[Requirement]:
    """Return the requirements a label selector is made of."""
    expressions = selector.match_expressions or ()
    return requirements_of_labels(selector.match_labels or {}) + [
        (each.key, each.operator, tuple(sorted(set(each.values or ())))) for each in expressions
    ]


def _with_label_keys(constraint: TopologySpreadConstraint, labels: Labels) -> PodSelector:
    if constraint.label_selector is None:
        return PodSelector(None)
    keys = [key for key in constraint.match_label_keys or () if key in labels]
    merged = requirements_of_labels({key: labels[key] for key in keys})
    return PodSelector(merged + requirements_of(constraint.label_selector))


def _resolved(constraint: TopologySpreadConstraint, selector: PodSelector, labels: Labels) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        # Both are int32 on the wire; a file may hold anything.
        max_skew=max(-_INT32, min(constraint.max_skew, _INT32)),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        selector=selector,
        self_match=int(selector.matches(labels)),
        honors_affinity=(constraint.node_affinity_policy or _HONOR) == _HONOR,
        honors_taints=constraint.node_taints_policy == _HONOR,
    )


def _as_label_selector(requirements: Iterable[Requirement] | None) -> LabelSelector | None:
    if requirements is None:
        return None
    return LabelSelector(
        match_expressions=[
            LabelSelectorRequirement(key=key, operator=operator, values=list(values) or None)
            for key, operator, values in requirements
        ]
    )


class DefaultSelectors:
    """Deduces selectors from Services, ReplicationControllers, ReplicaSets and StatefulSets.

    Making one makes these kinds wanted (upstream: plugins/helper/spread.go DefaultSelector).
    """

    def __init__(self, listers: Listers) -> None:
        self._services = listers.of(Service)
        self._workloads: dict[tuple[str, str], Lister[Any]] = {
            ("v1", "ReplicationController"): listers.of(ReplicationController),
            ("apps/v1", "ReplicaSet"): listers.of(ReplicaSet),
            ("apps/v1", "StatefulSet"): listers.of(StatefulSet),
        }
        self._selecting = _SelectingServices(self._services)

    def inputs(self, pod: PodInfo) -> tuple[int, object]:
        """Return what the pod's selector follows from besides the pod: equal while that is the same.

        Neither the status of these objects nor anything of another namespace is part of it.
        """
        return self._selecting.version_in(pod.namespace), self._selector_of_owner(pod)

    def selector(self, pod: PodInfo) -> PodSelector:
        """Return what the pod's services and its controller select together; empty if there is neither."""
        labels: dict[str, str] = {}
        own = pod.pod.metadata.labels or {}
        for service in self._services.in_namespace(pod.namespace):
            selected = service.spec.selector
            if selected and all(own.get(key) == value for key, value in selected.items()):
                labels.update(selected)
        return PodSelector(self._with_owner(pod, labels))

    def _with_owner(self, pod: PodInfo, labels: dict[str, str]) -> list[Requirement]:
        selector = self._selector_of_owner(pod)
        if isinstance(selector, Mapping):
            labels.update(selector)
            return requirements_of_labels(labels)
        requirements = requirements_of_labels(labels)
        # One that cannot be read adds nothing.
        if selector is not None and not compile_label_selector(selector).error:
            requirements += requirements_of(selector)
        return requirements

    def _selector_of_owner(self, pod: PodInfo) -> Mapping[str, str] | LabelSelector | None:
        owner = controller_of(pod.pod.metadata)
        if owner is None:
            return None
        workloads = self._workloads.get((owner.api_version, owner.kind))
        workload = None if workloads is None else workloads.get(f"{pod.namespace}/{owner.name}")
        selector: Mapping[str, str] | LabelSelector | None = None if workload is None else workload.spec.selector
        return selector


class _SelectingServices:
    """Tells when the services of a namespace came to select by other labels."""

    def __init__(self, services: Lister[Service]) -> None:
        self._services = services
        self._changes = services.follower()
        self._number = count(1)
        self._known: dict[str, dict[str, Mapping[str, str]]] = {}
        self._versions: dict[str, int] = {}

    def version_in(self, namespace: str) -> int:
        """Return a number that no other set of selectors of the namespace's services ever had; 0 for none."""
        for key in self._changes.follow(chain.from_iterable(self._known.values())):
            self._read(key)
        return self._versions.get(namespace, 0)

    def _read(self, key: str) -> None:
        namespace = key.rpartition("/")[0]
        known = self._known.get(namespace, {})
        service = self._services.get(key)
        selected = (service and service.spec.selector) or {}
        if selected == known.get(key, {}):
            return
        self._versions[namespace] = next(self._number)
        if selected:
            self._known.setdefault(namespace, {})[key] = selected
            return
        del known[key]
        if not known:
            del self._known[namespace], self._versions[namespace]
