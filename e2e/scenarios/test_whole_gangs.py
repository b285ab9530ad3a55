"""Gangs by the label and the CRD of scheduler-plugins run whole or not at all, whatever happens."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT, install_bayplan
from e2e.controlplane.objects import node
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.replicas import bayplan_replica, holder_of
from e2e.controlplane.service_account import request_token
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import GROUPS, group, install_crd, member, mpi_job, put, ray_cluster
from e2e.gangs.rounds import layout, play
from e2e.gangs.wholeness import Gang, longest, parts
from e2e.scenarios.faulty_proxy import FaultyProxy
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    configuration,
    nodes_bound,
    overcommitted,
    profile,
    wait_bound,
    wait_metric,
)
from tests.faults.faults import Refuse

pytestmark = pytest.mark.controlplane

ROUNDS = 3
GANGS, SIZE = 24, 8
WHOLE_SECONDS = 60.0
LEASE = "bayplan"
ELECTION = {"leaderElect": True, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
RAY_SCHEDULER = "scheduler-plugins-scheduler"


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane with the CRD."""
    plane = start_control_plane(ControlPlaneOptions())
    install_crd(plane)
    return plane


@pytest.fixture
def admin(plane: ControlPlane) -> Iterator[ApiClient]:
    """The admin's client; the cluster is empty again after the test."""
    yield plane.client
    plane.client.delete_all("pods", "default")
    plane.client.delete_all(GROUPS, "default")
    plane.client.delete_all("nodes")


@pytest.fixture(scope="module")
def identity(plane: ControlPlane) -> Path:
    return install_bayplan(plane)


def scheduler(directory: Path, kubeconfig: Path, name: str = "bayplan") -> BayplanProcess:
    """Bayplan for its own pods and for those of KubeRay."""
    document = configuration(profile(), profile(RAY_SCHEDULER))
    return BayplanProcess(directory, config=document, kubeconfig=kubeconfig, name=name)


def put_gangs(client: ApiClient) -> tuple[dict[str, Gang], list[str]]:
    """Gangs that fill the nodes to the last CPU; returns them and the UIDs of their pods."""
    client.create_all("nodes", [node(f"n{index:02}", cpu="8") for index in range(GANGS)])
    names = [f"gang-{index:02}" for index in range(GANGS)]
    client.create_all(GROUPS, [group(name, "default", SIZE) for name in names])
    pods = [
        member(f"{name}-{index}", "default", name, requests={"cpu": "1"}) for name in names for index in range(SIZE)
    ]
    created = client.create_all("pods", pods)
    gangs = {name: Gang(SIZE, frozenset(f"default/{name}-{index}" for index in range(SIZE))) for name in names}
    return gangs, [each["metadata"]["uid"] for each in created]


def wait_whole(recorder: PodRecorder, count: int) -> None:
    wait_until(
        lambda: len(recorder.bound_at()) >= count,
        f"binding of {count} pods",
        timeout_seconds=WHOLE_SECONDS,
        detail=lambda: f"{len(recorder.bound_at())} are bound",
    )


def test_gangs_that_compete_for_room_run_whole_or_not_at_all(
    admin: ApiClient, identity: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with scheduler(tmp_path, identity) as process:
        for number in range(ROUNDS):
            with PodRecorder(admin) as recorder:
                (played,) = play(admin, recorder, [layout(request.config.getoption("--seed"), number, "default")])
            assert played.is_good, f"round {number}: {played}"
            assert played.whole, f"round {number}: no gang ran"
        assert_alive_without_a_traceback(process)


def test_gangs_are_whole_although_the_scheduler_is_killed_in_the_middle(
    admin: ApiClient, identity: Path, tmp_path: Path
) -> None:
    gangs, uids = put_gangs(admin)
    with PodRecorder(admin) as recorder:
        for number, bound in enumerate((20, 100)):
            process = scheduler(tmp_path, identity, f"killed-{number}")
            wait_whole(recorder, bound)
            process.kill()
            process.wait(STOP_SECONDS)
        with scheduler(tmp_path, identity) as last:
            wait_whole(recorder, len(uids))
            events = recorder.catch_up()
            assert_each_bound_once(recorder, uids)
            assert_alive_without_a_traceback(last)
    until = events[-1].arrived
    assert [part for part in parts(events, gangs, until + WHOLE_SECONDS) if part.ended > until] == []
    assert overcommitted(admin) == {}


@pytest.mark.parametrize("code", [409, 500])
def test_gangs_are_whole_although_a_tenth_of_the_binds_is_refused(
    plane: ControlPlane, admin: ApiClient, identity: Path, tmp_path: Path, code: int
) -> None:
    numbers = itertools.count(1)

    def is_tenth_bind(request: web.BaseRequest) -> bool:
        return request.path.endswith("/binding") and next(numbers) % 10 == 0

    gangs, uids = put_gangs(admin)
    with FaultyProxy(plane) as proxy, PodRecorder(admin) as recorder:
        proxy.inject(Refuse(code), is_tenth_bind, times=2**31)
        kubeconfig = proxy.kubeconfig(tmp_path / "proxied", request_token(admin, NAMESPACE, SERVICE_ACCOUNT))
        with scheduler(tmp_path, kubeconfig) as process:
            wait_whole(recorder, len(uids))
            events = recorder.catch_up()
            assert_each_bound_once(recorder, uids)
            assert_alive_without_a_traceback(process)
    assert next(numbers) > len(uids)
    assert [part for part in parts(events, gangs, float("inf")) if part.ended == float("inf")] == []
    assert overcommitted(admin) == {}


def test_gangs_are_whole_although_the_lease_is_lost_in_the_middle_of_binds(
    plane: ControlPlane, admin: ApiClient, identity: Path, tmp_path: Path
) -> None:
    assert identity.exists()
    gangs, uids = put_gangs(admin)
    # The binds of all take some seconds.
    settings = {**configuration(qps=60), "leaderElection": ELECTION}
    with PodRecorder(admin) as recorder:
        replicas = [bayplan_replica(plane, tmp_path / name, settings) for name in ("first", "second")]
        try:
            wait_whole(recorder, 10)
            held = holder_of(plane, LEASE)
            admin.patch("leases", LEASE, {"spec": {"holderIdentity": "somebody"}}, namespace=NAMESPACE)
            wait_until(lambda: holder_of(plane, LEASE) not in ("somebody", held), "another leader")
            assert 10 <= len(recorder.bound_at()) < len(uids)
            wait_whole(recorder, len(uids))
            events = recorder.catch_up()
            assert_each_bound_once(recorder, uids)
            assert sorted(each.process.exit_code is None for each in replicas) == [False, True]
        finally:
            stop_all([each.process for each in replicas], 5.0)
    assert [part for part in parts(events, gangs, float("inf")) if part.ended == float("inf")] == []
    assert overcommitted(admin) == {}
    if holder_of(plane, LEASE):
        admin.delete("leases", LEASE, namespace=NAMESPACE)


def test_a_gang_whose_group_and_members_come_and_go_while_it_is_tried_ends_whole(
    admin: ApiClient, identity: Path, tmp_path: Path
) -> None:
    names = [f"again-{index:02}" for index in range(40)]
    settings = {**configuration(), "podMaxBackoffSeconds": 1}
    with BayplanProcess(tmp_path, config=settings, kubeconfig=identity) as process:
        process.wait_ready()
        with PodRecorder(admin) as recorder:
            pods = [member(name, "default", "again", requests={"cpu": "1"}) for name in names]
            put(admin, [group("again", "default", len(names))], pods)
            for number, name in enumerate(names[:4]):
                # Each has the gang tried, and there is never room for all.
                admin.create("nodes", node(f"small-{number}", cpu="4"))
                admin.delete(GROUPS, "again", namespace="default")
                admin.delete("pods", name, namespace="default")
                admin.create(GROUPS, group("again", "default", len(names)))
                admin.create("pods", pods[number])
            # Its back-off is over, and nothing happens any more.
            wait_metric(process, 1, "scheduler_queued_entities", type="podgroup", queue="unschedulable")
            assert recorder.bound_at() == {}
            created = time.monotonic()
            admin.create("nodes", node("large", cpu="24"))
            wait_bound(admin, "default", names)
            events = recorder.catch_up()
            # One second to be tried in, and one for what a busy machine does besides.
            assert min(recorder.bound_at().values()) - created < 2.0
            gang = Gang(len(names), frozenset(f"default/{name}" for name in names))
            assert longest(parts(events, {"again": gang}, float("inf"))) < 2.0
        assert_alive_without_a_traceback(process)


@pytest.mark.parametrize("of", [mpi_job, ray_cluster])
def test_what_controllers_make_of_their_samples_runs_when_there_is_room_for_all(
    admin: ApiClient, identity: Path, tmp_path: Path, of: object
) -> None:
    assert callable(of)
    made, pods = of("sample", "default", 2)
    small: Object = node("small", cpu="2", memory="8Gi")
    admin.create("nodes", small)
    with scheduler(tmp_path, identity) as process, PodRecorder(admin) as recorder:
        put(admin, [made], pods)
        names = [each["metadata"]["name"] for each in pods]
        wait_until(
            lambda: any(event["reason"] == "FailedScheduling" for event in admin.list("events", "default")),
            "a word about what is missing",
        )
        assert nodes_bound(admin, "default") == {}
        admin.create("nodes", node("late", cpu="1500m", memory="8Gi"))
        wait_bound(admin, "default", names)
        gangs = {"sample": Gang(len(names), frozenset(f"default/{name}" for name in names))}
        (part,) = parts(recorder.catch_up(), gangs, float("inf"))
        assert part.seconds < 2
        assert_alive_without_a_traceback(process)
        admin.delete_all("events", "default")
