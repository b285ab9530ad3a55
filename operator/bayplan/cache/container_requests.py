"""What a pod's containers ask for, or have by their kubelet's report, and the sums over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements
from bayplan.api.quantity import QuantityError, milli

Millis = dict[str, int]
"""Amounts by resource name, in thousandths."""

NOTHING: Millis = {}


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """The requests of each container, and those of each init container with whether it is a sidecar."""

    containers: list[Millis]
    inits: list[tuple[Millis, bool]]

    def total(self, defaults: Millis = NOTHING) -> Millis:
        """Return the peak of what runs at once: containers and sidecars, or an init container and earlier sidecars.

        Each container that leaves out a name of `defaults` counts with the default.
        """
        if not self.inits and len(self.containers) == 1 and defaults.keys() <= self.containers[0].keys():
            return self.containers[0]
        running: Millis = {}
        for amounts in self.containers:
            _add_to(running, defaults | amounts)
        sidecars: Millis = {}
        peak: Millis = {}
        for amounts, is_sidecar in self.inits:
            wanted = defaults | amounts
            if is_sidecar:
                _add_to(running, wanted)
                _add_to(sidecars, wanted)
            else:
                _raise_to(peak, plus(wanted, sidecars))
        _raise_to(running, peak)
        return running


def spec_requests(spec: PodSpec) -> ContainerRequests:
    """Return what the spec asks for.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    return ContainerRequests(
        [requests_of(c.resources, "spec.containers", i) for i, c in enumerate(spec.containers)],
        [
            (requests_of(c.resources, "spec.initContainers", i), c.restart_policy == "Always")
            for i, c in enumerate(spec.init_containers or ())
        ],
    )


def reported_requests(
    pod: Pod, wanted: ContainerRequests, *, infeasible: bool
) -> tuple[ContainerRequests, ContainerRequests]:
    """Return what the kubelet has actuated, and what it has allocated; `wanted` is what the spec asks for.

    A container without a report of its own counts as its spec has it, or as nothing after an infeasible resize; what
    is allocated stands in for what is actuated (upstream: containerActuatedRequests, containerAllocatedRequests).

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    status = pod.status
    reports: dict[str, tuple[ContainerStatus, str]] = {}
    for path, statuses in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for index, each in enumerate(statuses or ()):
            reports.setdefault(each.name, (each, f"{path}[{index}]"))

    def read(container: Container, of_spec: Millis) -> tuple[Millis, Millis]:
        unreported = NOTHING if infeasible else of_spec
        if container.name not in reports:
            return unreported, unreported
        report, path = reports[container.name]
        asked = None if container.resources is None else container.resources.requests
        given = None if report.resources is None else report.resources.requests
        # A kubelet mostly repeats the spec, so that little is read twice.
        if not report.allocated_resources:
            allocated = unreported
        elif report.allocated_resources == asked:
            allocated = of_spec
        else:
            allocated = millis(report.allocated_resources, f"{path}.allocatedResources")
        if not given:
            return allocated, allocated
        return of_spec if given == asked else millis(given, f"{path}.resources.requests"), allocated

    spec = pod.spec
    mains = [read(*each) for each in zip(spec.containers, wanted.containers, strict=True)]
    inits = [
        (*read(container, of_spec), is_sidecar)
        for container, (of_spec, is_sidecar) in zip(spec.init_containers or (), wanted.inits, strict=True)
    ]
    return (
        ContainerRequests([each[0] for each in mains], [(each[0], each[2]) for each in inits]),
        ContainerRequests([each[1] for each in mains], [(each[1], each[2]) for each in inits]),
    )


def reports_repeat_spec(pod: Pod) -> bool:
    """Whether the kubelet reports of each container what the spec asks, or nothing: then nothing of it need be read."""
    spec, status = pod.spec, pod.status
    reports = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    if not any(each.allocated_resources or each.resources is not None for each in reports):
        return True
    containers = [*spec.containers, *(spec.init_containers or ())]
    asked = {each.name: None if each.resources is None else each.resources.requests for each in containers}
    return len(asked) == len(containers) and all(
        told == asked[each.name]
        for each in reports
        if each.name in asked
        for told in (each.allocated_resources, None if each.resources is None else each.resources.requests)
        if told
    )


def requests_of(resources: ResourceRequirements | None, path: str, index: int | None = None) -> Millis:
    """Return the requests of one container, or of a whole pod, that stand at `path`.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    if resources is None or not resources.requests:
        return NOTHING
    try:
        return {name: milli(quantity) for name, quantity in resources.requests.items()}
    except QuantityError:
        where = path if index is None else f"{path}[{index}]"
        return millis(resources.requests, f"{where}.resources.requests")


def millis(quantities: Mapping[str, Quantity] | None, path: str) -> Millis:
    """Return the amounts that stand at `path`.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    amounts: Millis = {}
    for name, quantity in (quantities or {}).items():
        try:
            amounts[name] = milli(quantity)
        except QuantityError as error:
            shown = name if name.isascii() and name.isprintable() else ascii(name)
            raise QuantityError(f"{path}[{shown[:64]}]: {error}") from None
    return amounts


def plus(left: Millis, right: Millis) -> Millis:
    """Return the sums by name."""
    if not right:
        return left
    result = dict(left)
    _add_to(result, right)
    return result


def largest(lists: Sequence[Millis]) -> Millis:
    """Return the largest amount by name."""
    if len(lists) == 1:
        return lists[0]
    result: Millis = {}
    for amounts in lists:
        _raise_to(result, amounts)
    return result


def _add_to(target: Millis, amounts: Millis) -> None:
    for name, amount in amounts.items():
        target[name] = target.get(name, 0) + amount


def _raise_to(target: Millis, amounts: Millis) -> None:
    for name, amount in amounts.items():
        if amount > target.get(name, -1):
            target[name] = amount


ANY_IP = "0.0.0.0"  # noqa: S104  # the API's word for every address; nothing is bound here


class HostPort(NamedTuple):
    """A port on an address of the node; `0.0.0.0` stands for all its addresses, `::` does not."""

    port: int
    protocol: str
    ip: str


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars, sorted, each once (upstream: pkg/scheduler/util GetHostPorts)."""
    spec = pod.spec
    holders = [container for container in spec.containers if container.ports]
    if spec.init_containers:
        holders += [each for each in spec.init_containers if each.ports and each.restart_policy == "Always"]
    if not holders:
        return ()
    return tuple(
        sorted(
            {
                HostPort(port.host_port, port.protocol or "TCP", port.host_ip or ANY_IP)
                for container in holders
                for port in container.ports or ()
                if port.host_port > 0
            }
        )
    )
