"""What the API server fills in where a pod says what it takes as a whole, so that a scheduler reads one sum."""

from collections.abc import Sequence

from msgspec import structs

from bayplan.api.objects import Container, PodSpec, ResourceRequirements
from bayplan.api.quantity import QuantityError
from bayplan.cache.container_requests import Nanos, spec_requests
from bayplan.cache.resources import CPU, MEMORY, is_hugepages, is_supported_pod_level_resource


def with_pod_level_requests(spec: PodSpec) -> ResourceRequirements | None:
    """Complete the requests of a pod that has any pod-level requests or limits, and none of others.

    What is missing are the sums over its containers, then the pod-level limits; hugepages come from limits alone.
    The containers have their defaults already. Unreadable quantities are left for whoever reads the pod's requests
    (upstream: pkg/api/pod/util.go DefaultPodLevelResources; pod-level limits matter to no scheduler).
    """
    own = spec.resources
    if own is None or not (own.requests or own.limits):
        return own
    try:
        summed = spec_requests(spec).total()
        limited = spec_requests(_with_limits_as_requests(spec)).total()
    except QuantityError:
        return own
    requests = own.requests or {}
    huge = _written({name: amount for name, amount in limited.items() if is_hugepages(name) and name not in requests})
    limits = {name: each for name, each in (huge | (own.limits or {})).items() if is_supported_pod_level_resource(name)}
    of_containers = _written({name: amount for name, amount in summed.items() if name in (CPU, MEMORY)})
    return structs.replace(own, requests=limits | of_containers | requests)


def _with_limits_as_requests(spec: PodSpec) -> PodSpec:
    return structs.replace(
        spec, containers=_asking_for_limits(spec.containers), init_containers=_asking_for_limits(spec.init_containers)
    )


def _asking_for_limits(containers: Sequence[Container] | None) -> list[Container]:
    return [
        structs.replace(each, resources=each.resources and ResourceRequirements(requests=each.resources.limits))
        for each in containers or ()
    ]


def _written(amounts: Nanos) -> dict[str, str]:
    return {name: f"{amount}n" for name, amount in amounts.items()}
