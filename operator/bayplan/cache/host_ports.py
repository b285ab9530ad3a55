"""The ports a pod takes on its node's own addresses."""

from typing import NamedTuple

from bayplan.api.objects import Pod

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
