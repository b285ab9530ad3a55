"""The scenes of `e2e.bench.webhooks`: which call fails in one namespace, in which way, and the pods that need it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.failing_webhook import (
    BINDING,
    CALLS,
    DELETION,
    EVENTS,
    EVICTION,
    HANGS_31,
    POLICY,
    QUOTA,
    STATUS,
    WEBHOOK_FAILURES,
)
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.recorder import PodEvent

LOW, HIGH, CRITICAL = "webhooks-low", "webhooks-high", "system-cluster-critical"
_RESOURCES = {
    BINDING: "pods/binding",
    STATUS: "pods/status",
    DELETION: "pods",
    EVICTION: "pods/eviction",
    EVENTS: "events",
}
_SHARE = {BINDING: 1.0, EVENTS: 1.0, STATUS: 0.1, DELETION: 0.04, EVICTION: 0.04}
_RATE = {BINDING: 1.0, EVENTS: 1.0, STATUS: 1.0, DELETION: 0.1, EVICTION: 0.1}
_REFUSALS = {"Unschedulable", "SchedulerError"}


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of call that fails in one namespace; `critical` pods come in the others, fewer of them."""

    name: str
    call: str
    failure: str
    mutating: bool = False
    critical: bool = False

    @property
    def preempts(self) -> bool:
        """Whether every pod has to make room for itself, each on a node that holds one victim of its namespace."""
        return self.call in {DELETION, EVICTION}

    @property
    def resource(self) -> str:
        """What the audit log calls that which fails."""
        return _RESOURCES[self.call]

    def bad_pods(self, pods: int) -> int:
        """How many pods meet the failure where 1,000 would for a bind: fewer where each costs a node, or a decision."""
        return max(1, round(_SHARE[self.call] * pods * (0.9 if self.critical else 1)))

    def rate(self, rate: float) -> float:
        """How many pods a second come elsewhere."""
        return rate * (0.1 if self.critical else _RATE[self.call])

    def prepare(self, client: ApiClient, namespace: str, indices: Iterable[int]) -> None:
        """Creates what these pods need to find."""
        if not self.preempts:
            return
        names = [(_node_name(namespace, index), f"victim-{index}") for index in indices]
        client.create_all("nodes", [node(name, cpu="1") for name, _ in names])
        client.create_all(
            "pods",
            [
                pod_of_class(victim, namespace, LOW, scheduler="another", node_name=name, grace_seconds=0)
                for name, victim in names
            ],
        )

    def pod(self, namespace: str, index: int, *, elsewhere: bool) -> Object:
        """Returns a pod that needs the call; `elsewhere` tells that it is not in the namespace where it fails."""
        name = f"pod-{index}"
        if self.preempts:
            only = {"kubernetes.io/hostname": _node_name(namespace, index)}
            return pod_of_class(name, namespace, HIGH, scheduler=SCHEDULER_NAME, grace_seconds=0, nodeSelector=only)
        requests = {"cpu": "1000" if self.call == STATUS else "100m", "memory": "100Mi"}
        priority = {"priorityClassName": CRITICAL} if self.critical and elsewhere else {}
        return pod(name, namespace, scheduler=SCHEDULER_NAME, requests=requests, **priority)  # type: ignore[arg-type]  # names of the spec, or of the builder

    def done(self, events: Iterable[PodEvent]) -> dict[str, float]:
        """Returns when each pod got what it came for, by key: a node, a condition, or the end of its victim."""
        moments: dict[str, float] = {}
        for event in events:
            key = event.key.replace("/victim-", "/pod-")
            if self.preempts:
                is_done = "/victim-" in event.key and (event.type == "DELETED" or event.deleting)
            else:
                is_done = event.reason in _REFUSALS if self.call == STATUS else bool(event.node)
            if is_done:
                moments.setdefault(key, event.arrived)
        return moments


def _node_name(namespace: str, index: int) -> str:
    return f"{namespace}-{index}"


SCENES = {
    scene.name: scene
    for scene in (
        *(Scene(f"{call}-{failure}", call, failure) for call, failure in product(CALLS, (*WEBHOOK_FAILURES, POLICY))),
        Scene(f"{BINDING}-{HANGS_31}-critical", BINDING, HANGS_31, critical=True),
        Scene(f"{BINDING}-{HANGS_31}-mutating", BINDING, HANGS_31, mutating=True),
        Scene(f"{EVENTS}-{QUOTA}", EVENTS, QUOTA),
    )
}
