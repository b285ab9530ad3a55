"""`/metrics/resources`: what each pod asks for and may use (upstream: pkg/scheduler/metrics/resources/resources.go)."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from aiohttp import web

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import PodSpec, ResourceRequirements
from bayplan.api.quantity import QuantityError
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.container_requests import NOTHING, ContainerRequests, Millis, millis, plus, spec_requests
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_hugepages, pod_level_only
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.server.answers import HEADERS
from bayplan.server.metrics import TEXT_FORMAT


def exact_requests(spec: PodSpec) -> Millis:
    """Return the requests of a pod, by its spec (component-helpers resource/helpers.go, PodRequests).

    Raises:
        QuantityError: a quantity cannot be read; the message names its field.
    """
    total = spec_requests(spec).total() | _pod_level(spec.resources.requests if spec.resources else None, "requests")
    return plus(total, millis(spec.overhead, "spec.overhead"))


def exact_limits(spec: PodSpec) -> Millis:
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
    overhead = millis(spec.overhead, "spec.overhead")
    return plus(total, {name: amount for name, amount in overhead.items() if total.get(name)})


def _limits(resources: ResourceRequirements | None, path: str) -> Millis:
    return NOTHING if resources is None else millis(resources.limits, f"{path}.resources.limits")


def _pod_level(quantities: Mapping[str, Quantity] | None, field: str) -> Millis:
    return pod_level_only(millis(quantities, f"spec.resources.{field}"))


LONGEST_SECONDS = 60.0
"""How long one answer may take; a client that reads more slowly gets half of one."""
_PODS_AT_ONCE = 50
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_METRICS = (
    ("kube_pod_resource_request", "Resources that a pod requests, as scheduler and kubelet see them.", exact_requests),
    ("kube_pod_resource_limit", "Resources that a pod may use at most, as its kubelet sees them.", exact_limits),
)


def resource_metrics_route(
    cache: Cache, queue: SchedulingQueue, is_leading: Callable[[], bool] = lambda: True
) -> web.RouteDef:
    """Return the route of `/metrics/resources`: a series for each pod and resource; nothing from a standby.

    Pods on nodes count, and pending ones of our profiles: nothing is known of others. It is worked out while it is
    sent, some pods at a time, so that it takes no memory and decisions go on; one answer after the other.
    """
    turn = asyncio.Lock()

    async def resources(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS | {"Content-Type": f"{TEXT_FORMAT}; charset=utf-8"})
        async with turn, asyncio.timeout(LONGEST_SECONDS):
            await response.prepare(request)
            if is_leading():
                for name, documentation, amounts_of in _METRICS:
                    await response.write(f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode())
                    pods = iter(list(known_pods(cache, queue)))
                    while some := list(islice(pods, _PODS_AT_ONCE)):
                        await response.write("".join(_series(name, some, amounts_of)).encode())
                        await asyncio.sleep(0)
            await response.write_eof()
        return response

    return web.get("/metrics/resources", resources)


def known_pods(cache: Cache, queue: SchedulingQueue) -> Iterator[tuple[PodInfo, str]]:
    """All pods that are known and not finished, with their node's name, "" for pending ones."""
    table = cache.nodes
    for row, node in enumerate(table.names):
        if node:
            for pod in table.pods[row].values():
                yield pod, node
    for node, pods in cache.without_node.items():
        for pod in pods.values():
            yield pod, node
    for uid in queue.uids():
        waiting = queue.newest(uid)
        if waiting is not None and not is_finished(waiting.pod):
            yield waiting, ""


def _series(name: str, pods: Iterable[tuple[PodInfo, str]], amounts_of: Callable[..., dict[str, int]]) -> Iterator[str]:
    for pod, node in pods:
        spec = pod.pod.spec
        try:
            amounts = amounts_of(spec)
        except QuantityError:
            # It was reported when it came, and counts nowhere.
            continue
        priority = "" if spec.priority is None else str(spec.priority)
        labels = (
            f'namespace="{_escaped(pod.namespace)}",pod="{_escaped(pod.name)}",node="{_escaped(node)}",'
            f'scheduler="{_escaped(spec.scheduler_name)}",priority="{priority}"'
        )
        for resource, amount in amounts.items():
            if amount:
                unit = _unit(resource)
                yield f'{name}{{{labels},resource="{_escaped(resource)}",unit="{unit}"}} {amount / 1000!r}\n'


def _unit(resource: str) -> str:
    if resource in _UNITS:
        return _UNITS[resource]
    if is_hugepages(resource):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
