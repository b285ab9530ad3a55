"""One namespace's broken webhook holds nobody else up, whatever calls it fails and however it does.

The API server's flow control is on: calls that hang in one namespace must leave seats to others as well.
"""

from collections.abc import Iterator
from http import HTTPStatus

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.failing_webhook import (
    BINDING,
    DEFAULT_TIMEOUT_SECONDS,
    DELETION,
    HANGS_31,
    REFUSED,
    STATUS,
    failing_admission,
)
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    configuration,
    events_of,
    metric,
    wait_bound,
)

pytestmark = pytest.mark.controlplane

CRITICAL = "system-cluster-critical"
OTHERS_SECONDS = 5.0
"""For what takes a few milliseconds when no namespace is bad: the machine may be busy."""
AFTER_SECONDS = 30.0
"""Pods that were refused back off for ten seconds at most."""


@pytest.fixture
def bad(client: ApiClient, namespace: str) -> str:
    """A namespace beside `namespace`; its pods go with those of all others."""
    name = f"{namespace}-bad"
    client.create("namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def bayplan(run_bayplan: RunBayplan) -> Iterator[BayplanProcess]:
    """A scheduler of the test's own that does not hold itself back."""
    process = run_bayplan(configuration())
    yield process
    assert_alive_without_a_traceback(process)


def _create(client: ApiClient, namespace: str, count: int, **fields: object) -> list[str]:
    names = [f"pod-{index}" for index in range(count)]
    client.create_all("pods", [pod(name, namespace, **fields) for name in names])  # type: ignore[arg-type]  # names of the spec, or of the builder
    return names


def test_binds_that_hang_in_one_namespace_keep_no_other_from_being_bound(
    control_plane: ControlPlane, client: ApiClient, namespace: str, bad: str, bayplan: BayplanProcess
) -> None:
    client.create_all("nodes", [node(f"n{index}") for index in range(10)])
    with failing_admission(control_plane, bad, BINDING, HANGS_31):
        hanging = _create(client, bad, 250)
        client.create("pods", pod("critical", namespace, priorityClassName=CRITICAL))
        wait_bound(client, namespace, ["critical"], timeout_seconds=OTHERS_SECONDS)
        wait_bound(client, namespace, _create(client, namespace, 10), timeout_seconds=OTHERS_SECONDS)
        assert bayplan.get("/readyz")[0] == HTTPStatus.OK
        assert "cannot reach the API server" not in bayplan.log()
    wait_bound(client, bad, hanging, timeout_seconds=AFTER_SECONDS)


def test_binds_refused_in_one_namespace_delay_no_other_and_their_pods_are_told_why(
    control_plane: ControlPlane, client: ApiClient, namespace: str, bad: str, bayplan: BayplanProcess
) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="100", memory="200Gi", pods="500") for index in range(4)])
    with failing_admission(control_plane, bad, BINDING, REFUSED):
        refused = _create(client, bad, 1000)
        wait_bound(client, namespace, _create(client, namespace, 10), timeout_seconds=OTHERS_SECONDS)
        wait_until(
            lambda: any("failed calling webhook" in event["note"] for event in _failed(client, bad, refused[0])),
            "an Event with the API server's text",
        )
        refusals = "bayplan_admission_refusals_total"
        # One that was refused first may be told of before the last was.
        wait_until(
            lambda: metric(bayplan, refusals, method="POST", resource="pods/binding", namespace=bad) >= len(refused),
            "a refusal of each pod",
        )
        assert metric(bayplan, refusals, namespace=namespace) == 0
        of_binds = f"resource=pods/binding namespace={bad!r}"
        assert bayplan.log().count(f"admission refuses writes, and the Events of the pods say why {of_binds}") == 1
    wait_bound(client, bad, refused, timeout_seconds=AFTER_SECONDS)


def test_a_webhook_that_hangs_for_the_time_it_has_by_default_is_named_to_the_pod(
    control_plane: ControlPlane, client: ApiClient, bad: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1"))
    with failing_admission(control_plane, bad, BINDING, HANGS_31, timeout_seconds=DEFAULT_TIMEOUT_SECONDS):
        (name,) = _create(client, bad, 1)
        wait_until(
            lambda: any('webhook "webhook.failing.example"' in event["note"] for event in _failed(client, bad, name)),
            "an Event that names the webhook",
        )
    assert metric(bayplan, "bayplan_admission_refusals_total", resource="pods/binding", namespace=bad) >= 1
    assert metric(bayplan, "bayplan_bind_ambiguous_total") == 0


def test_conditions_that_hang_in_one_namespace_are_written_in_others(
    control_plane: ControlPlane, client: ApiClient, namespace: str, bad: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1"))
    with failing_admission(control_plane, bad, STATUS, HANGS_31):
        _create(client, bad, 100, requests={"cpu": "5"})
        wanted = set(_create(client, namespace, 10, requests={"cpu": "5"}))

        def told() -> bool:
            found = client.list("pods", namespace)
            return {each["metadata"]["name"] for each in found if condition_of(each)} == wanted

        wait_until(told, "the conditions of other pods", timeout_seconds=OTHERS_SECONDS)


@pytest.mark.usefixtures("priority_classes")
def test_victims_whose_deletion_hangs_in_one_namespace_keep_no_other_from_preempting(
    control_plane: ControlPlane, client: ApiClient, namespace: str, bad: str, bayplan: BayplanProcess
) -> None:
    _fill(client, bad, 40)
    _fill(client, namespace, 5)
    with failing_admission(control_plane, bad, DELETION, HANGS_31):
        _preempt(client, bad, 40)
        waiting = _preempt(client, namespace, 5)
        wait_bound(client, namespace, waiting, timeout_seconds=OTHERS_SECONDS)


def _fill(client: ApiClient, namespace: str, nodes: int) -> None:
    """Nodes of one CPU, each full of a pod of low priority that ends at once when it is told to."""
    names = [f"{namespace}-{index}" for index in range(nodes)]
    client.create_all("nodes", [node(name, cpu="1") for name in names])
    victims = [
        pod_of_class(f"low-{name}", namespace, "low", scheduler="another", node_name=name, grace_seconds=0)
        for name in names
    ]
    client.create_all("pods", victims)


def _preempt(client: ApiClient, namespace: str, nodes: int) -> list[str]:
    names = [f"high-{index}" for index in range(nodes)]
    only = [{"kubernetes.io/hostname": f"{namespace}-{index}"} for index in range(nodes)]
    pairs = zip(names, only, strict=True)
    client.create_all("pods", [pod_of_class(name, namespace, "high", nodeSelector=where) for name, where in pairs])
    return names


def _failed(client: ApiClient, namespace: str, name: str) -> list[Object]:
    return events_of(client, namespace, name, "FailedScheduling")
