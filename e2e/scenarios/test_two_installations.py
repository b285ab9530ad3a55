"""Two schedulers of the same pods: forced, both bind, and that is told; as a user starts a second, it stands by."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import configuration, metric, wait_bound

pytestmark = pytest.mark.controlplane

PODS = 300
# A namespace that `bayplan run` does not know: it finds the Lease because it may list those of all namespaces.
ELECTION = {"leaderElect": True, "resourceNamespace": "default", "resourceName": "installed"}
CONFLICTS = "bayplan_bind_conflicts_total"


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    plane.client.create_all("nodes", [node(f"n{index}", cpu="64", pods="500") for index in range(4)])
    return plane


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BayplanProcess]:
    """An installation that leads."""
    settings = {**configuration(), "leaderElection": ELECTION}
    directory = tmp_path_factory.mktemp("installed")
    with BayplanProcess(directory, config=settings, kubeconfig=plane.admin_kubeconfig) as process:
        process.wait_ready()
        wait_until(lambda: "leading lease=default/installed" in process.log(), "the installation leading")
        yield process


def start(plane: ControlPlane, directory: Path, *, elects: bool | None, heeds: bool) -> BayplanProcess:
    """A second scheduler of the same pods, as another user."""
    settings: dict[str, Any] = configuration()
    settings["leaderElection"] = {} if elects is None else {"leaderElect": elects}
    kubeconfig = plane.kubeconfig_for("second", groups=["system:masters"])
    return BayplanProcess(directory, config=settings, kubeconfig=kubeconfig, heeds_other_leases=heeds, name="second")


def put_pods(client: ApiClient, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}-{index}" for index in range(count)]
    client.create_all("pods", [pod(name, "default", requests={"cpu": "10m"}) for name in names])
    return names


def test_two_that_are_forced_count_their_conflicts_tell_of_them_and_write_one_scheduled_event_a_pod(
    plane: ControlPlane, installed: BayplanProcess, tmp_path: Path
) -> None:
    client = plane.client
    with ExitStack() as ending:
        second = ending.enter_context(start(plane, tmp_path, elects=False, heeds=False))
        second.wait_ready()
        wait_bound(client, "default", put_pods(client, "both", PODS))

        def told() -> bool:
            return any(event["reason"] == "BoundByAnother" for event in client.list("events", "default"))

        wait_until(told, "an Event about pods that the other bound")
        both = (installed, second)
        wait_until(lambda: len(scheduled(client)) >= PODS, "the Events about all pods")
        assert sum(metric(each, CONFLICTS) for each in both) > 0
        assert any("another scheduler binds our pods" in each.log() for each in both)
    assert len(scheduled(client)) == len({*scheduled(client)}) == PODS


def scheduled(client: ApiClient) -> list[str]:
    """The pods of the Events `Scheduled`, one for each Event."""
    return [event["regarding"]["name"] for event in client.list("events", "default") if event["reason"] == "Scheduled"]


def test_what_a_user_starts_beside_an_installation_stands_by_says_for_whom_and_writes_nothing(
    plane: ControlPlane, installed: BayplanProcess, tmp_path: Path
) -> None:
    before = len(writes_of_second(plane))
    with start(plane, tmp_path, elects=None, heeds=True) as second:
        second.wait_ready()
        wait_until(lambda: "the lease is held by another" in second.log(), "its look at the lease")
        (lease,) = plane.client.list("leases", "default")
        assert lease["metadata"]["annotations"] == {"bayplan.io/scheduler-names": "bayplan"}
        holder = lease["spec"]["holderIdentity"]
        assert "found the lease of a scheduler of the same pods lease=default/installed" in second.log()
        assert f"the lease is held by another lease=default/installed holder='{holder}'" in second.log()
        wait_bound(plane.client, "default", put_pods(plane.client, "standby", 20))
        assert second.is_ready()
    assert writes_of_second(plane)[before:] == []


def test_who_is_told_not_to_contend_beside_an_installation_is_refused(
    plane: ControlPlane, installed: BayplanProcess, tmp_path: Path
) -> None:
    # It ends before it is ready.
    second = start(plane, tmp_path, elects=False, heeds=True)
    try:
        assert second.wait() == 2, second.log_tail()
        assert "holds the lease default/installed and schedules pods of bayplan: " in second.log_tail()
    finally:
        second.stop(STOP_SECONDS)


def writes_of_second(plane: ControlPlane) -> list[str]:
    return [
        event.uri
        for event in plane.audit_events()
        if event.user == "second" and event.verb not in {"get", "list", "watch"} and "reviews" not in event.resource
    ]
