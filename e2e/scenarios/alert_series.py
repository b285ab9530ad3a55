"""What a promtool case is made of: the series of a replica, a standby and a stranger, and what is said of them."""

import json
from dataclasses import dataclass, field

OURS = 'job="bayplan", instance="a:1", namespace="kube-system"'
OTHER_REPLICA = OURS.replace("a:1", "b:1")
OTHER_INSTALLATION = OURS.replace("kube-system", "batch")
STRANGER = 'job="kube-scheduler", instance="k:1", namespace="kube-system"'
GIB = 1024**3


@dataclass(frozen=True)
class Case:
    """Series, a minute a value in promtool's notation, and what an alert says of them at a minute; "" is nothing."""

    alert: str
    what: str
    minute: int
    series: dict[str, str]
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)


def series(metric: str, labels: str = OURS, /, **more: str) -> str:
    return f"{metric}{{{', '.join([labels, *(f'{key}={json.dumps(value)}' for key, value in more.items())])}}}"


def attempts(result: str, labels: str = OURS) -> str:
    return series("scheduler_schedule_attempts_total", labels, result=result, profile="bayplan")


def pending(queue: str, labels: str = OURS) -> str:
    return series("scheduler_pending_pods", labels, queue=queue)


def refusals(namespace: str, labels: str = OURS) -> str:
    return series(
        "bayplan_admission_refusals_total",
        labels,
        method="POST",
        resource="pods/binding",
        exported_namespace=namespace,
    )


def leads(labels: str = OURS) -> str:
    return series("leader_election_master_status", labels, name="bayplan")


def checked(name: str, labels: str = OURS, type: str = "readyz") -> str:  # noqa: A002  the label's name
    return series("kubernetes_healthcheck", labels, name=name, type=type, metrics_path="/metrics/slis")


INSTALLATION = {"job": "bayplan", "namespace": "kube-system"}
REPLICA = {**INSTALLATION, "instance": "a:1"}
LEASE = {**INSTALLATION, "name": "bayplan"}
