"""What the API server would have made of an object from a file before a scheduler saw it."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement, parse_time
from bayplan.api.objects import (
    Container,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from bayplan.api.quantity import QuantityError
from bayplan.api.storage_objects import PersistentVolumeSpec
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.container_requests import spec_requests
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, is_hugepages, is_supported_pod_level_resource
from bayplan.framework.candidate import start_time
from bayplan.simulate.admission_policies import SYSTEM_CLASSES, AdmissionPolicies
from bayplan.simulate.refusals import (
    AdmissionError,
    check_amounts,
    check_constraints,
    check_containers,
    check_name,
    stored,
    written,
)


def with_pod_level_requests(spec: PodSpec) -> ResourceRequirements | None:
    """Complete the requests of a pod that has any pod-level requests or limits, and none of others.

    What is missing are the sums over its containers, then the pod-level limits, which come first for huge pages.
    The containers have their defaults already, so that they request the huge pages that they are limited to.
    Unreadable quantities are left for whoever reads the pod's requests (upstream: pkg/api/pod/util.go
    DefaultPodLevelResources; other pod-level limits than those of huge pages matter to nobody here).
    """
    own = spec.resources
    if own is None or not (own.requests or own.limits):
        return own
    try:
        summed = spec_requests(spec).total()
    except QuantityError:
        return own
    of_containers = {name: written(amount) for name, amount in summed.items()}
    huge = {name: amount for name, amount in of_containers.items() if is_hugepages(name)}
    limits = {name: each for name, each in (own.limits or {}).items() if is_supported_pod_level_resource(name)}
    plain = {name: amount for name, amount in of_containers.items() if name in (CPU, MEMORY)}
    asked = own.requests or {}
    # Huge pages need a limit, which nobody makes up for those that the pod itself requests.
    most = {name: amount for name, amount in huge.items() if name not in asked} | (own.limits or {})
    return structs.replace(own, requests=huge | limits | plain | asked, limits=most or own.limits)


UNNAMED_SCHEDULER: Final = "default-scheduler"

NO_PRIORITY_CLASS: Final = "spec.priorityClassName: no PriorityClass with name"
"""How the refusal of a pod begins whose class is not among the objects."""

AZURE_KIND: Final = "Shared"
"""What kind of Azure disk it is that names none."""
_SECONDS: Final = lru_cache(maxsize=65536)(parse_time)
_NEW: Final = PodStatus()
_PREEMPTS: Final = "PreemptLowerPriority"
_NOT_READY: Final = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists", effect="NoExecute", toleration_seconds=300)
    for name in ("not-ready", "unreachable")
)
"""What pods put up with for a while unless they say otherwise."""


class Admission:
    """Defaults and checks for objects from files; objects taken from a live cluster pass unchanged.

    Pods without a resourceVersion are new. These tolerate nodes that are not ready for a while, and the labels that
    matchLabelKeys and mismatchLabelKeys name are written into their selectors: of others, one may have changed since.
    Added pods are created anew, without what only the API server says of them, and count for the scheduler
    `as_scheduler`, if there is one, whichever they name.
    """

    def __init__(
        self,
        priority_classes: Iterable[PriorityClass],
        as_scheduler: str | None = None,
        policies: AdmissionPolicies | None = None,
    ) -> None:
        self._as_scheduler = as_scheduler
        self._given = policies or AdmissionPolicies()
        self._values = dict(SYSTEM_CLASSES)
        self._policies: dict[str, str | None] = {}
        self._default: str | None = None
        for priority_class in priority_classes:
            name = priority_class.metadata.name
            self._values[name] = priority_class.value
            self._policies[name] = priority_class.preemption_policy
            # Of several global defaults the lowest counts (upstream: plugin/pkg/admission/priority).
            if priority_class.global_default and (
                self._default is None or priority_class.value < self._values[self._default]
            ):
                self._default = name

    def pod(self, pod: Pod, *, is_added: bool = False) -> Pod:
        """The pod as a scheduler would see it.

        Raises:
            AdmissionError: no valid name, a class that is not known, a creation time that is none, two spread
                constraints of a kind for one topology key, no containers or a negative amount of a new pod, or of an
                added one a priority that its class does not give or a Namespace that is being deleted.
        """
        meta, spec = pod.metadata, pod.spec
        if (own := stored(meta, "")) is not meta:
            pod, meta = structs.replace(pod, metadata=own), own
        created_at(pod)
        namespace = meta.namespace
        if is_added:
            self._given.check_namespace(namespace)
            pod = _created(pod)
        changes: dict[str, Any] = {}
        if not meta.resource_version:
            changes |= self._given.of_runtime(spec, namespace)
        named = (self._as_scheduler if is_added else None) or spec.scheduler_name or UNNAMED_SCHEDULER
        if named != spec.scheduler_name:
            changes["scheduler_name"] = named
        if spec.priority is None or (is_added and not meta.resource_version):
            changes |= self._priority(spec, is_new=not meta.resource_version)
        changes |= _completed_containers(spec)
        if any(each.azure_disk is not None for each in spec.volumes or ()):
            changes["volumes"] = list(map(with_azure_kind, spec.volumes or ()))
        if not meta.resource_version:
            changes |= self._given.limited(namespace, structs.replace(spec, **changes))
            changes |= merged_selectors(spec, meta.labels or {})
            changes["tolerations"] = _with_default_tolerations(changes.get("tolerations", spec.tolerations))
        if spec.resources is not None:
            changes["resources"] = with_pod_level_requests(structs.replace(spec, **changes))
        if not meta.resource_version:
            check_containers(structs.replace(spec, **changes))
        check_constraints(spec.topology_spread_constraints or ())
        return structs.replace(pod, spec=structs.replace(spec, **changes)) if changes else pod

    def node(self, node: Node) -> Node:
        """The node as a scheduler would see it: a node without allocatable offers its capacity.

        Raises:
            AdmissionError: no valid name, or a new node with a negative amount.
        """
        check_name(node.metadata.name)
        if not node.metadata.resource_version:
            check_amounts(node.status.capacity, "status.capacity")
            check_amounts(node.status.allocatable, "status.allocatable")
        if node.status.allocatable or not node.status.capacity:
            return node
        return structs.replace(node, status=structs.replace(node.status, allocatable=node.status.capacity))

    def priority_of(self, priority_class: str | None) -> int:
        """The priority of what names this class, or none; raises AdmissionError where there is no such class."""
        name = priority_class or self._default or ""
        if name and name not in self._values:
            raise AdmissionError(f"{NO_PRIORITY_CLASS} {name!r} was found")
        return self._values.get(name, 0)

    def _priority(self, spec: PodSpec, *, is_new: bool) -> dict[str, object]:
        name = spec.priority_class_name or self._default or ""
        value = self.priority_of(name)
        if spec.priority not in (None, value):
            raise AdmissionError(f"spec.priority: Forbidden: {spec.priority}; the PriorityClass gives {value}")
        changes: dict[str, object] = {"priority": value, "priority_class_name": name}
        policy = self._policies.get(name)
        if spec.preemption_policy is None:
            changes["preemption_policy"] = policy
        elif is_new and spec.preemption_policy != (policy or _PREEMPTS):
            text = f"{spec.preemption_policy[:64]}; the PriorityClass gives {policy or _PREEMPTS}"
            raise AdmissionError(f"spec.preemptionPolicy: Forbidden: {text}")
        return changes


def _created(pod: Pod) -> Pod:
    """The pod without what the API server says of it alone (upstream: registry/core/pod PrepareForCreate)."""
    meta = pod.metadata
    if not meta.creation_timestamp and not meta.deletion_timestamp and pod.status == _NEW:
        return pod
    return Pod(structs.replace(meta, creation_timestamp=None, deletion_timestamp=None), pod.spec)


def created_at(pod: Pod) -> float:
    """When the pod was created, in seconds since the epoch; pods that never were come after all others.

    Raises:
        AdmissionError: the text is no time.
    """
    text = pod.metadata.creation_timestamp
    if not text:
        return float("inf")
    try:
        return _SECONDS(text)
    except ValueError:
        raise AdmissionError(f"metadata.creationTimestamp: {text[:64]!a} is not a time") from None


def latest_times(pod: PodInfo) -> tuple[float, ...]:
    """When the pod was created and when it started, in seconds since the epoch, as far as it says so."""
    return tuple(each for each in (created_at(pod.pod), start_time(pod)) if each != float("inf"))


def _with_default_tolerations(tolerations: list[Toleration] | None) -> list[Toleration] | None:
    """What a pod gets that does not say how long it stays on a node that is lost.

    Upstream: plugin/pkg/admission/defaulttolerationseconds.
    """
    held = tolerations or []
    missing = [
        each
        for each in _NOT_READY
        if not any(own.key in ("", each.key) and own.effect in ("", each.effect) for own in held)
    ]
    return [*held, *missing] if missing else tolerations


def _completed_containers(spec: PodSpec) -> dict[str, object]:
    """The containers, if any of them gets requests from its limits, or ports of its host."""
    changes: dict[str, object] = {}
    for field, containers in (("containers", spec.containers), ("init_containers", spec.init_containers or [])):
        completed = [_completed(each, on_host=spec.host_network) for each in containers]
        if any(map(operator.is_not, completed, containers)):
            changes[field] = completed
    return changes


def _completed(container: Container, *, on_host: bool) -> Container:
    resources, ports = container.resources, container.ports
    if resources is not None and resources.limits and not resources.limits.keys() <= (resources.requests or {}).keys():
        requests = {**resources.limits, **(resources.requests or {})}
        container = structs.replace(container, resources=structs.replace(resources, requests=requests))
    if on_host and ports:
        # In the host's network a container listens on the host's ports of the same numbers.
        ports = [structs.replace(port, host_port=port.host_port or port.container_port) for port in ports]
        container = structs.replace(container, ports=ports)
    return container


_WithDisk = TypeVar("_WithDisk", Volume, PersistentVolumeSpec)


def with_azure_kind(volume: _WithDisk) -> _WithDisk:
    """Return what may have an Azure disk with the kind that the API server fills in."""
    if volume.azure_disk is None or volume.azure_disk.get("kind") is not None:
        return volume
    return structs.replace(volume, azure_disk={**volume.azure_disk, "kind": AZURE_KIND})


Rule = TypeVar("Rule", PodAffinityTerm, TopologySpreadConstraint)


def merged_selectors(spec: PodSpec, labels: Mapping[str, str]) -> dict[str, object]:
    """The fields that change as the labels of a new pod are written into its selectors.

    Schedulers look nowhere else for them (upstream: pkg/registry/core/pod/strategy.go
    applyMatchLabelKeysAndMismatchLabelKeys).

    Raises:
        AdmissionError: a selector has a label already that `matchLabelKeys` names.
    """
    changes: dict[str, object] = {}
    if (affinity := spec.affinity) is not None:
        near, far = (block and _block(block, labels) for block in (affinity.pod_affinity, affinity.pod_anti_affinity))
        changes["affinity"] = structs.replace(affinity, pod_affinity=near, pod_anti_affinity=far)
    if constraints := spec.topology_spread_constraints:
        changes["topology_spread_constraints"] = [_merged(each, labels) for each in constraints]
    return changes


def _block(block: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    required = block.required_during_scheduling_ignored_during_execution
    preferred = block.preferred_during_scheduling_ignored_during_execution
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=required and [_merged(term, labels) for term in required],
        preferred_during_scheduling_ignored_during_execution=preferred
        and [structs.replace(each, pod_affinity_term=_merged(each.pod_affinity_term, labels)) for each in preferred],
    )


def _merged(rule: Rule, labels: Mapping[str, str]) -> Rule:
    """The rule with one expression per key that the pod has; a selector that matches nothing stays that."""
    selector = rule.label_selector
    if selector is None:
        return rule
    for key in rule.match_label_keys or ():
        if key in labels and key in (selector.match_labels or ()):
            raise AdmissionError(f"spec: Invalid value: {key[:64]!a}: exists in both matchLabelKeys and labelSelector")
    return structs.replace(rule, label_selector=_with(selector, _wanted(rule, labels)))


def _with(selector: LabelSelector, wanted: Iterable[LabelSelectorRequirement]) -> LabelSelector:
    held = selector.match_expressions or []
    added = [each for each in wanted if each not in held]
    return structs.replace(selector, match_expressions=[*held, *added]) if added else selector


def _wanted(
    rule: PodAffinityTerm | TopologySpreadConstraint, labels: Mapping[str, str]
) -> Iterator[LabelSelectorRequirement]:
    unlike = rule.mismatch_label_keys if isinstance(rule, PodAffinityTerm) else None
    for relation, keys in (("In", rule.match_label_keys), ("NotIn", unlike)):
        yield from (LabelSelectorRequirement(key, relation, [labels[key]]) for key in keys or () if key in labels)
