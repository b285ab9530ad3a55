"""Two instances share a lease: one schedules, the other goes on when the first ends, is killed, or is stopped."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.client import ApiClient
from e2e.controlplane.installation import NAMESPACE, install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import stop_all
from e2e.controlplane.replicas import Replica, bayplan_replica, holder_of
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import configuration, nodes_bound, wait_bound

# A request that passed the gate may still wait for a CPU when its leader is stopped, and leaves when that goes on.
# Beside other scenarios one run of three saw that.
pytestmark = [pytest.mark.controlplane, pytest.mark.alone]

LEASE = "bayplan"
# A third of the defaults, so that the takeovers of this file take a minute and not three.
DURATION, DEADLINE = 5.0, 4.0
IN_FLIGHT_SECONDS = 0.5
"""By when the HTTP client's thread has sent what it held when the process was stopped."""
ELECTION = {"leaderElect": True, "leaseDuration": "5s", "renewDeadline": "4s", "retryPeriod": "700ms"}
PODS = 300

Start = Callable[[], Replica]


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    install_bayplan(plane)
    plane.client.create_all("nodes", [node(f"n{index}", cpu="64", pods="500") for index in range(4)])
    return plane


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[ApiClient]:
    yield plane.client
    plane.client.delete_all("pods", "default")


@pytest.fixture
def start(plane: ControlPlane, client: ApiClient, tmp_path: Path) -> Iterator[Start]:
    """Starts instances that are ready when they are returned; the first one leads."""
    running: list[Replica] = []

    def run() -> Replica:
        settings = {**configuration(), "leaderElection": ELECTION}
        replica = bayplan_replica(plane, tmp_path / str(len(running)), settings)
        running.append(replica)
        replica.process.wait_ready()
        wait_until(lambda: holder_of(plane, LEASE), "somebody leading", detail=replica.process.log_tail)
        return replica

    yield run
    for replica in running:
        replica.process.resume()
    stop_all([replica.process for replica in running], 5.0)
    if holder_of(plane, LEASE):
        client.delete("leases", LEASE, namespace=NAMESPACE)


@pytest.fixture
def pair(plane: ControlPlane, start: Start) -> tuple[Replica, Replica]:
    """The leader and its standby."""
    leader = start()
    held = holder_of(plane, LEASE)
    standby = start()
    # Long enough for the standby to have seen whose lease it is.
    wait_until(lambda: "the lease is held by another" in standby.process.log(), "the standby's first look")
    assert holder_of(plane, LEASE) == held
    return leader, standby


def put_pods(client: ApiClient, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}-{index}" for index in range(count)]
    client.create_all("pods", [pod(name, "default", requests={"cpu": "10m"}) for name in names])
    return names


def next_leader(plane: ControlPlane, held: str) -> float:
    """Waits until somebody else leads, and returns how long that took."""
    started = time.monotonic()
    wait_until(lambda: holder_of(plane, LEASE) not in {held, "", "somebody"}, "another leader")
    return time.monotonic() - started


def assert_only_the_leader_wrote(events: list[AuditEvent], first: Replica, second: Replica) -> None:
    """No write of the first came after its deadline, and none of the second before its lease."""
    assert first.late_writes(events, DEADLINE) == []
    acquired = min(event.received for event in second.renewals(events))
    assert [event for event in second.writes(events) if event.received < acquired] == []
    last = max((event.received for event in first.writes(events)), default=0.0)
    assert last < acquired


def test_one_leads_and_the_other_is_ready_and_writes_nothing(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    names = put_pods(client, "both", 20)
    wait_bound(client, "default", names)
    # A bind is answered, and seen, a moment before its line is in the audit log.
    wait_until(lambda: len(leader.binds(plane.audit_events())) >= 20, "the binds in the audit log")
    events = plane.audit_events()
    assert len(leader.binds(events)) == 20
    assert standby.writes(events) == []
    assert standby.renewals(events) == []
    assert standby.process.is_ready()
    about = [event for event in client.list("events", NAMESPACE) if event["reason"] == "LeaderElection"]
    assert f"{holder_of(plane, LEASE)} became leader" in {event["note"] for event in about}


def test_sigterm_hands_over_after_the_last_write(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    held = holder_of(plane, LEASE)
    names = put_pods(client, "term", PODS)
    wait_until(lambda: len(nodes_bound(client, "default")) >= 30, "the first binds")
    leader.process.terminate()
    next_leader(plane, held)
    assert leader.process.wait() == 0, leader.process.log_tail()
    wait_bound(client, "default", names)
    events = plane.audit_events()
    assert_only_the_leader_wrote(events, leader, standby)
    assert len(leader.binds(events)) + len(standby.binds(events)) == PODS
    released = [e for e in events if e.resource == "leases" and e.document.get("spec", {}).get("holderIdentity") == ""]
    assert {event.credential for event in released} >= {leader.credential}
    gave_up = next(event.received for event in released if event.credential == leader.credential)
    assert [event for event in leader.writes(events) if event.received > gave_up] == []


def test_after_sigkill_the_standby_goes_on_when_the_lease_has_run_out(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    held = holder_of(plane, LEASE)
    leader.process.kill()
    names = put_pods(client, "kill", PODS)
    next_leader(plane, held)
    wait_bound(client, "default", names)
    events = plane.audit_events()
    assert_only_the_leader_wrote(events, leader, standby)
    last, first = leader.renewals(events)[-1], standby.renewals(events)[0]
    assert first.received - last.received >= DURATION
    assert first.document["spec"]["leaseTransitions"] == last.document["spec"]["leaseTransitions"] + 1


def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on_and_ends(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    held = holder_of(plane, LEASE)
    names = put_pods(client, "stop", PODS)
    wait_until(lambda: len(nodes_bound(client, "default")) >= 30, "the first binds")
    leader.process.suspend()
    next_leader(plane, held)
    names += put_pods(client, "more", 50)
    wait_bound(client, "default", names)
    resumed = time.time()
    leader.process.resume()
    assert leader.process.wait(10) == 1, leader.process.log_tail()
    assert leader.process.log().count("leader election lost, ending so that another replica takes over") == 1
    # What had passed the gate when the process was stopped is sent as it goes on, as docs/leader-election.md says:
    # that of one moment, and without effect on pods that the next leader has bound. Nothing is begun afterwards.
    events = plane.audit_events()
    in_flight = leader.late_writes(events, DEADLINE)
    assert [event for event in in_flight if event.received > resumed + IN_FLIGHT_SECONDS] == []
    bound_by_the_next = {event.name for event in standby.binds(events)}
    for event in in_flight:
        refused = (event.resource, event.code) == ("pods/binding", 409) and event.name in bound_by_the_next
        assert event.resource == "events" or refused, event
    assert_only_the_leader_wrote([event for event in events if event not in in_flight], leader, standby)
    # All are bound. A bind that a busy API server answered too late has 504 in the audit log, and was carried out.
    bound = [event.name for event in (*leader.binds(events), *standby.binds(events))]
    assert len(bound) == len({*bound})


def test_a_lease_deleted_under_the_leader_is_made_again_by_it(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    held = holder_of(plane, LEASE)
    client.delete("leases", LEASE, namespace=NAMESPACE)
    wait_until(lambda: holder_of(plane, LEASE), "the lease coming back")
    time.sleep(2.0)
    assert holder_of(plane, LEASE) == held
    assert leader.process.exit_code is None
    wait_bound(client, "default", put_pods(client, "deleted", 20))
    assert standby.writes(plane.audit_events()) == []


def test_a_lease_taken_by_hand_ends_the_leader_and_is_left_to_run_out(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    held = holder_of(plane, LEASE)
    client.patch("leases", LEASE, {"spec": {"holderIdentity": "somebody"}}, namespace=NAMESPACE)
    taken = time.monotonic()
    assert leader.process.wait(10) == 1, leader.process.log_tail()
    assert "'somebody' holds it" in leader.process.log()
    assert standby.writes(plane.audit_events()) == []
    next_leader(plane, held)
    assert time.monotonic() - taken >= DURATION - 1.0
    wait_bound(client, "default", put_pods(client, "taken", 20))


def test_an_api_server_that_is_away_for_longer_than_the_deadline_ends_the_leader_and_leaves_the_standby(
    plane: ControlPlane, client: ApiClient, pair: tuple[Replica, Replica]
) -> None:
    leader, standby = pair
    names = put_pods(client, "before", 20)
    wait_bound(client, "default", names)
    plane.stop_apiserver()
    try:
        assert leader.process.wait() == 1, leader.process.log_tail()
        assert standby.process.exit_code is None, standby.process.log_tail()
    finally:
        plane.start_apiserver()
    names += put_pods(client, "after", 20)
    wait_bound(client, "default", names)
    events = plane.audit_events()
    assert_only_the_leader_wrote(events, leader, standby)
    assert len(leader.binds(events)) + len(standby.binds(events)) == len(names)
    assert standby.process.is_ready()
