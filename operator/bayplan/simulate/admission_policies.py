"""What the API server's admission gives new pods by objects that administrators write: runtimes and limits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import Container, PodSpec, ResourceRequirements
from bayplan.api.workload_objects import LimitRange, LimitRangeItem, Namespace, PriorityClass, RuntimeClass
from bayplan.cache.container_requests import millis
from bayplan.simulate.refusals import DEFAULT_NAMESPACE, AdmissionError, check_name

Policy = PriorityClass | RuntimeClass | LimitRange
POLICIES: Final[Mapping[tuple[str, str], type[Policy]]] = {
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass,
    ("node.k8s.io/v1", "RuntimeClass"): RuntimeClass,
    ("v1", "LimitRange"): LimitRange,
}
"""By apiVersion and kind; pods are admitted by them, and no plugin looks them up."""

Amounts = Mapping[str, Quantity]
SERVERS_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that every cluster has."""
NO_RUNTIME_CLASS: Final = "spec.runtimeClassName: no RuntimeClass with name"
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST_OF_USERS: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"


class AdmissionPolicies:
    """What new pods get, and what they are refused for.

    Only what an API server gave is taken for all Namespaces that there are: in files of people few are written down.
    RuntimeClasses that are not among `objects` do not exist.
    """

    def __init__(self, objects: Iterable[object] = ()) -> None:
        given = [each for each in objects if isinstance(each, Policy | Namespace)]
        self.priority_classes = [each for each in given if isinstance(each, PriorityClass)]
        self._runtime_classes = {each.metadata.name: each for each in given if isinstance(each, RuntimeClass)}
        self._defaults: defaultdict[str, list[tuple[Amounts, Amounts]]] = defaultdict(list)
        for each in given:
            if isinstance(each, LimitRange):
                items = (item for item in each.spec.limits or () if item.type == "Container")
                self._defaults[each.metadata.namespace].extend(map(_defaults, items))
        spaces = [each.metadata for each in given if isinstance(each, Namespace)]
        are_all = any(each.resource_version for each in spaces)
        self._namespaces = SERVERS_NAMESPACES.union(each.name for each in spaces) if are_all else None
        self._ending = {each.name for each in spaces if each.deletion_timestamp is not None}

    def check_namespace(self, namespace: str) -> None:
        """Check that objects can be created in a namespace; raises AdmissionError if it is being deleted."""
        if namespace in self._ending:
            raise AdmissionError(f"metadata.namespace: Namespace {namespace!r} is being terminated")

    def of_runtime(self, spec: PodSpec, namespace: str) -> dict[str, object]:
        """Return the fields that the RuntimeClass of a new pod gives it (upstream: plugin/pkg/admission/runtimeclass).

        Raises:
            AdmissionError: the class or the namespace is not there, or the pod says otherwise than the class.
        """
        if self._namespaces is not None and namespace not in self._namespaces:
            raise AdmissionError(f"metadata.namespace: no Namespace with name {namespace!r} was found")
        name = spec.runtime_class_name
        found = self._runtime_classes.get(name or "")
        if found is None and name:
            raise AdmissionError(f"{NO_RUNTIME_CLASS} {name!r} was found")
        if found is None:
            return {}
        overhead, wanted = found.overhead.pod_fixed or {}, found.scheduling.node_selector or {}
        if spec.overhead and millis(spec.overhead, "spec.overhead") != millis(overhead, "overhead"):
            raise AdmissionError("spec.overhead: Forbidden: the RuntimeClass gives another")
        own = spec.node_selector or {}
        for key in wanted:
            if own.get(key, wanted[key]) != wanted[key]:
                raise AdmissionError(f"spec.nodeSelector[{key}]: Forbidden: the RuntimeClass asks for {wanted[key]!a}")
        tolerations = [*dict.fromkeys((*(spec.tolerations or ()), *(found.scheduling.tolerations or ())))]
        return {"overhead": overhead or None, "node_selector": {**own, **wanted}, "tolerations": tolerations}

    def limited(self, namespace: str, spec: PodSpec) -> dict[str, object]:
        """Return the containers with the defaults of the LimitRanges of a namespace, of which the first counts.

        Upstream: plugin/pkg/admission/limitranger, mergePodResourceRequirements.
        """
        if not (defaults := self._defaults.get(namespace)):
            return {}
        return {
            "containers": [_completed(each, defaults) for each in spec.containers],
            "init_containers": [_completed(each, defaults) for each in spec.init_containers or ()],
        }


def policy(obj: Policy, others: Iterable[Policy]) -> Policy:
    """Return the object as the API server would store it beside `others`.

    Raises:
        AdmissionError: it would be refused.
    """
    check_name(obj.metadata.name)
    if isinstance(obj, PriorityClass) and not obj.metadata.resource_version:
        _check_priority_class(obj, others)
    if isinstance(obj, LimitRange) and not obj.metadata.namespace:
        return structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=DEFAULT_NAMESPACE))
    return obj


def _check_priority_class(priority_class: PriorityClass, others: Iterable[Policy]) -> None:
    """Check a new class (upstream: apis/scheduling/validation and plugin/pkg/admission/priority)."""
    name, value = priority_class.metadata.name, priority_class.value
    if name.startswith(_SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value or priority_class.global_default:
            raise AdmissionError(f"metadata.name: names that begin with {_SYSTEM_PREFIX} are reserved for system use")
    elif value > _HIGHEST_OF_USERS:
        raise AdmissionError(f"value: {value} is above {_HIGHEST_OF_USERS}, the highest priority of users")
    for other in others if priority_class.global_default else ():
        if isinstance(other, PriorityClass) and other.global_default and other.metadata.name != name:
            told = f"PriorityClass {other.metadata.name} is the global default"
            raise AdmissionError(f"globalDefault: {told}, and there can be one only")


def _completed(container: Container, defaults: Iterable[tuple[Amounts, Amounts]]) -> Container:
    own = container.resources or ResourceRequirements()
    limits, requests = own.limits or {}, own.requests or {}
    for default_limits, default_requests in defaults:
        limits, requests = {**default_limits, **limits}, {**default_requests, **requests}
    return structs.replace(container, resources=structs.replace(own, limits=limits, requests=requests))


def _defaults(item: LimitRangeItem) -> tuple[Amounts, Amounts]:
    """Default limits and requests of containers (upstream: apis/core/v1/defaults.go SetDefaults_LimitRangeItem)."""
    limits = {**(item.max or {}), **(item.default or {})}
    return limits, {**(item.min or {}), **limits, **(item.default_request or {})}
