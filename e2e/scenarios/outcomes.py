"""What a scheduler did, read from the API server: placements, verdicts, Events, and the room that is left."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError, Object, Objects
from e2e.controlplane.objects import node, pod_of_class
from e2e.controlplane.process import Process
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until

WAIT_SECONDS = 40.0

_SUFFIXES: dict[str, int | Fraction] = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
_AMOUNT = re.compile(r"(\d+)([a-zA-Z]*)")
_RECORD = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (?=[DIWEC] )", re.MULTILINE)
_SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def node_of(client: ApiClient, namespace: str, name: str) -> str:
    """The node a pod is bound to, or nothing."""
    found: str = client.get("pods", name, namespace)["spec"].get("nodeName", "")
    return found


def nodes_bound(client: ApiClient, namespace: str) -> dict[str, str]:
    """The node of every bound pod of a namespace, by the pod's name."""
    bound = client.list("pods", namespace, fieldSelector="spec.nodeName!=")
    return {found["metadata"]["name"]: found["spec"]["nodeName"] for found in bound}


def wait_bound(
    client: ApiClient, namespace: str, names: Iterable[str], *, timeout_seconds: float = WAIT_SECONDS
) -> dict[str, str]:
    """Waits until all the named pods have nodes, and returns them."""
    wanted = set(names)

    def bound() -> dict[str, str] | None:
        nodes = nodes_bound(client, namespace)
        return {name: nodes[name] for name in wanted} if nodes.keys() >= wanted else None

    return wait_until(
        bound,
        f"binding of {len(wanted)} pods",
        timeout_seconds=timeout_seconds,
        detail=lambda: f"{sorted(wanted - nodes_bound(client, namespace).keys())}"[:500],
    )


def condition_of(pod: Object) -> Object:
    """The PodScheduled condition of a pod document, empty without one."""
    conditions: Objects = pod["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def wait_refused(client: ApiClient, namespace: str, name: str) -> Object:
    """Waits until a pod carries the scheduler's verdict that it cannot be placed, and returns the condition."""

    def refused() -> Object | None:
        condition = condition_of(client.get("pods", name, namespace))
        return condition if condition.get("reason") in {"Unschedulable", "SchedulerError"} else None

    return wait_until(
        refused,
        f"a verdict on {name}",
        timeout_seconds=WAIT_SECONDS,
        detail=lambda: str(client.get("pods", name, namespace)["status"]),
    )


def wait_nominated(client: ApiClient, namespace: str, name: str, node_name: str) -> Object:
    """Waits until a pod is nominated to a node, or to none, and returns it."""

    def nominated() -> Object | None:
        found = client.get("pods", name, namespace)
        return found if found["status"].get("nominatedNodeName", "") == node_name else None

    return wait_until(
        nominated,
        f"the nomination of {name} to become {node_name!r}",
        timeout_seconds=WAIT_SECONDS,
        detail=lambda: str(client.get("pods", name, namespace)["status"]),
    )


def terminating(client: ApiClient, namespace: str) -> dict[str, Object]:
    """The pods that are on their way out, by name."""
    found = client.list("pods", namespace)
    return {one["metadata"]["name"]: one for one in found if "deletionTimestamp" in one["metadata"]}


def end_pod(client: ApiClient, namespace: str, name: str) -> None:
    """What a kubelet does when a pod's containers have ended."""
    with contextlib.suppress(ApiError):
        client.delete("pods", name, namespace=namespace, grace_seconds=0)


def fill_nodes(
    client: ApiClient, namespace: str, *names: str, pods: int = 1, grace_seconds: int = 30, **fields: object
) -> list[str]:
    """Creates nodes of one CPU per pod, each full of pods `low-<node>-<index>` that another scheduler placed.

    `fields` are of the pods. Returns their names.
    """
    low = {f"low-{name}-{index}": name for name in names for index in range(pods)}
    placed: Object = {"scheduler": "another", "grace_seconds": grace_seconds, **fields}
    documents = [pod_of_class(each, namespace, "low", node_name=name, **placed) for each, name in low.items()]
    client.create_all("nodes", [node(name, cpu=str(pods)) for name in names])
    client.create_all("pods", documents)
    return list(low)


def delete_storage(client: ApiClient) -> None:
    """Deletes all volumes and storage classes."""
    client.delete_all("storageclasses")
    for found in client.list("persistentvolumes"):
        # No controller is there to let go of it.
        client.patch("persistentvolumes", found["metadata"]["name"], {"metadata": {"finalizers": None}})
    client.delete_all("persistentvolumes")


def events_of(client: ApiClient, namespace: str, name: str, reason: str = "") -> Objects:
    """The Events about a pod, oldest first.

    Others write Events in the same namespace: the API server's own about its ServiceCIDR can lack a name.
    """
    found = [
        event
        for event in client.list("events", namespace)
        if event["regarding"].get("name") == name and (not reason or event["reason"] == reason)
    ]
    return sorted(found, key=lambda event: str(event["eventTime"]))


def wait_event_counts(client: ApiClient, namespace: str, name: str, reason: str, counts: list[int]) -> None:
    """Waits until the Events of a reason about a pod, oldest first, are repeated so often.

    Counts are written twice a minute.
    """

    def found() -> bool:
        events = events_of(client, namespace, name, reason)
        return [event.get("series", {}).get("count", 1) for event in events] == counts

    wait_until(found, f"Events {reason} about {name} with the counts {counts}", timeout_seconds=60.0)


def wait_event(
    client: ApiClient,
    namespace: str,
    name: str,
    reason: str,
    *,
    accept: Callable[[Object], bool] = bool,
) -> Object:
    """Waits for the only Event of a reason about a pod to satisfy `accept`, and returns it."""

    def found() -> Object | None:
        events = events_of(client, namespace, name, reason)
        assert len(events) <= 1, events
        return events[0] if events and accept(events[0]) else None

    return wait_until(
        found,
        f"the Event {reason} about {name}",
        timeout_seconds=WAIT_SECONDS,
        detail=lambda: str(events_of(client, namespace, name)),
    )


def metric(process: BayplanProcess, name: str, **labels: str) -> float:
    """The sum of a metric's samples whose labels include these."""
    total = 0.0
    for line in process.metrics().splitlines():
        sample = _SAMPLE.fullmatch(line)
        if sample and sample[1] == name and labels.items() <= dict(_LABEL.findall(sample[2] or "")).items():
            total += float(sample[3])
    return total


def wait_metric(
    process: BayplanProcess, value: float, name: str, *, timeout_seconds: float = WAIT_SECONDS, **labels: str
) -> None:
    """Waits until `metric` gives this value."""
    wait_until(
        lambda: metric(process, name, **labels) == value,
        f"{name}{labels} reaching {value:g}",
        timeout_seconds=timeout_seconds,
        detail=lambda: f"is {metric(process, name, **labels):g}",
    )


def assert_alive_without_a_traceback(process: Process, *, but_of: str | None = None) -> None:
    """Fails when the process ended, or when its log holds an exception; those of logger `but_of` are allowed."""
    assert process.exit_code is None, process.log_tail()
    records = _RECORD.split(process.log())
    bad = [one for one in records if "Traceback" in one and not (but_of and one.split()[1].startswith(but_of))]
    assert not bad, bad[0][:3000]


def assert_each_bound_once(recorder: PodRecorder, uids: Iterable[str]) -> None:
    """Fails unless the record shows each of these pods on exactly one node."""
    nodes = recorder.nodes_by_uid()
    wrong = {uid: nodes.get(uid, []) for uid in uids if len(nodes.get(uid, [])) != 1}
    assert not wrong, wrong


def overcommitted(client: ApiClient) -> dict[str, dict[str, Fraction]]:
    """By node, the resources its unfinished pods request more of than it has, with the excess; exact.

    Knows pods with plain containers only.
    """
    requested: dict[str, Counter[str]] = {}
    for found in client.list("pods"):
        on = found["spec"].get("nodeName", "")
        if not on or found["status"].get("phase") in {"Succeeded", "Failed"}:
            continue
        sums = requested.setdefault(on, Counter())
        sums["pods"] += 1
        for container in found["spec"]["containers"]:
            for resource, quantity in container["resources"].get("requests", {}).items():
                sums[resource] += amount(quantity)  # type: ignore[assignment]  # a Counter of fractions
    excess: dict[str, dict[str, Fraction]] = {}
    for found in client.list("nodes"):
        name, allocatable = found["metadata"]["name"], found["status"]["allocatable"]
        over = {
            resource: total - amount(allocatable.get(resource, "0"))
            for resource, total in requested.get(name, Counter()).items()
            if total > amount(allocatable.get(resource, "0"))
        }
        if over:
            excess[name] = {resource: Fraction(value) for resource, value in over.items()}
    return excess


def amount(quantity: str) -> Fraction:
    """The exact value of a quantity as the API server prints those of these scenarios."""
    match = _AMOUNT.fullmatch(quantity)
    assert match, quantity
    return Fraction(int(match[1])) * _SUFFIXES[match[2]]


def profile(name: str = "bayplan", **fields: object) -> Object:
    """A profile of a KubeSchedulerConfiguration."""
    return {"schedulerName": name, **fields}


def configuration(*profiles: Mapping[str, object], qps: int = 5000) -> Object:
    """A KubeSchedulerConfiguration whose client does not hold itself back."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": qps},
        "profiles": [dict(one) for one in profiles or (profile(),)],
    }
