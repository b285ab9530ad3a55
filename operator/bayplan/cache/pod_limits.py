"""What a pod may use at most, and what it asks for, exact: for reports, never for decisions."""

from collections.abc import Mapping

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import PodSpec, ResourceRequirements
from bayplan.cache.container_requests import NOTHING, ContainerRequests, Nanos, nanos, plus, spec_requests
from bayplan.cache.resources import is_supported_pod_level_resource


def exact_requests(spec: PodSpec) -> Nanos:
    """Return the requests of a pod, by its spec (component-helpers resource/helpers.go, PodRequests).

    Raises:
        QuantityError: a quantity cannot be read; the message names its field.
    """
    total = spec_requests(spec).total() | _pod_level(spec.resources.requests if spec.resources else None, "requests")
    return plus(total, nanos(spec.overhead, "spec.overhead"))


def exact_limits(spec: PodSpec) -> Nanos:
    """Return the limits of a pod, by its spec (component-helpers resource/helpers.go, PodLimits).

    The overhead counts for resources that are limited.

    Raises:
        QuantityError: a quantity cannot be read; the message names its field.
    """
    total = ContainerRequests(
        [_limits(each.resources, f"spec.containers[{i}]") for i, each in enumerate(spec.containers)],
        [
            (_limits(each.resources, f"spec.initContainers[{i}]"), each.restart_policy == "Always")
            for i, each in enumerate(spec.init_containers or ())
        ],
    ).total() | _pod_level(spec.resources.limits if spec.resources else None, "limits")
    overhead = nanos(spec.overhead, "spec.overhead")
    return plus(total, {name: amount for name, amount in overhead.items() if total.get(name)})


def _limits(resources: ResourceRequirements | None, path: str) -> Nanos:
    return NOTHING if resources is None else nanos(resources.limits, f"{path}.resources.limits")


def _pod_level(quantities: Mapping[str, Quantity] | None, field: str) -> Nanos:
    amounts = nanos(quantities, f"spec.resources.{field}")
    return {name: amount for name, amount in amounts.items() if is_supported_pod_level_resource(name)}
