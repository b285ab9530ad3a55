import contextlib
import json
from datetime import UTC, datetime

import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import BlackHole, Delay, DropReply, Garbage, Refuse
from tests.waiting import Sleeps

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.leaderelection.elector import Create, Missing, Problem, Read, Update
from bayplan.leaderelection.lease import Lease, LeaseLock, LeaseRecord, new_lease, record_of_holder
from bayplan.leaderelection.lease_client import LeaseClient

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEASES = "/apis/coordination.k8s.io/v1/leases"
EVENTS = "/apis/events.k8s.io/v1/events"
RECORD = record_of_holder("me", 15, NOON, transitions=0)


@pytest.fixture
async def server():
    async with FakeApiServer() as running:
        yield running


@contextlib.asynccontextmanager
async def calling(url, lock=None):
    client = ApiClient(Credentials(server=url), sleep=Sleeps())
    made = LeaseClient(client, lock or LeaseLock("kube-system", "bayplan"))
    yield made
    await made.close()


@pytest.fixture
async def lease_client(server):
    async with calling(server.url) as made:
        yield made


async def test_a_lease_is_created_read_and_updated(server, lease_client):
    assert await lease_client.perform(Read(5.0)) == Missing()
    created = await lease_client.perform(Create(RECORD, 5.0))
    assert isinstance(created, Lease)
    assert created == await lease_client.perform(Read(5.0))
    updated = await lease_client.perform(Update(created, LeaseRecord("other", 1), 5.0))
    assert updated.record.holder_identity == "other"
    assert server.objects[LEASES]["kube-system/bayplan"]["spec"]["holderIdentity"] == "other"
    assert [(seen.method, seen.path.rpartition("/")[2]) for seen in server.requests] == [
        ("GET", "bayplan"),
        ("POST", "leases"),
        ("GET", "bayplan"),
        ("PUT", "bayplan"),
    ]


async def test_what_changed_meanwhile_is_not_overwritten(server, lease_client):
    first = await lease_client.perform(Create(RECORD, 5.0))
    assert "AlreadyExists" in (await lease_client.perform(Create(RECORD, 5.0))).reason
    await lease_client.perform(Update(first, LeaseRecord("other", 15), 5.0))
    answer = await lease_client.perform(Update(first, RECORD, 5.0))
    assert isinstance(answer, Problem)
    assert answer.reason.startswith("status 409: Conflict")
    assert server.objects[LEASES]["kube-system/bayplan"]["spec"]["holderIdentity"] == "other"


async def test_an_update_of_what_was_deleted_is_a_problem_and_not_a_missing_lease(server, lease_client):
    first = await lease_client.perform(Create(RECORD, 5.0))
    server.delete(LEASES, "kube-system/bayplan")
    assert isinstance(await lease_client.perform(Update(first, RECORD, 5.0)), Problem)


async def test_a_role_that_lacks_the_right_is_told_with_what_to_do(server, lease_client):
    server.inject(Refuse(403, "Forbidden"))
    answer = await lease_client.perform(Read(5.0))
    assert answer.forbidden
    assert "grant get, create and update on leases" in answer.reason


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(503), Garbage(), Garbage(b"{}"), DropReply()], ids=repr)
async def test_whatever_else_is_answered_is_a_problem(server, lease_client, fault):
    server.inject(fault)
    answer = await lease_client.perform(Read(5.0))
    assert isinstance(answer, Problem)
    assert answer.reason
    assert not answer.forbidden


async def test_without_a_server_it_is_a_problem_too():
    async with calling("http://127.0.0.1:1") as lease_client:
        assert isinstance(await lease_client.perform(Read(1.0)), Problem)


async def test_a_request_ends_in_its_time_and_the_next_does_not_wait_on_its_connection(server, lease_client):
    await lease_client.perform(Read(5.0))
    server.inject(BlackHole())
    answer = await lease_client.perform(Read(0.1))
    assert isinstance(answer, Problem)
    assert await lease_client.perform(Read(5.0)) == Missing()


@pytest.mark.parametrize("fault", [Refuse(429, retry_after=20), Delay(30)], ids=repr)
async def test_a_server_that_asks_for_patience_gets_none_beyond_the_time_of_the_step(server, fault):
    client = ApiClient(Credentials(server=server.url))
    lease_client = LeaseClient(client, LeaseLock("kube-system", "bayplan"))
    server.inject(fault, times=100)
    assert (await lease_client.perform(Read(0.1))).reason
    await lease_client.close()


async def test_with_no_time_left_nothing_is_sent(server, lease_client):
    assert isinstance(await lease_client.perform(Create(RECORD, 0.0)), Problem)
    assert server.requests == []


async def test_an_event_about_the_lease_is_upstreams_in_todays_api(server, lease_client):
    await lease_client.announce("host_uuid", "became leader", NOON)
    (event,) = server.objects[EVENTS].values()
    assert event["metadata"]["namespace"] == "kube-system"
    assert event["metadata"]["name"].startswith("bayplan.")
    assert event["regarding"] == {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "namespace": "kube-system",
        "name": "bayplan",
    }
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "LeaderElection", "host_uuid became leader")
    assert event["reportingInstance"] == "host_uuid"
    assert event["eventTime"] == "2026-11-22T12:00:00.000000Z"


@pytest.mark.parametrize("fault", [Refuse(403), Refuse(500), DropReply()], ids=repr)
async def test_an_event_that_is_not_taken_is_logged_and_forgotten(server, lease_client, caplog, fault):
    server.inject(fault)
    await lease_client.announce("me", "became leader", NOON)
    assert "kube-system/bayplan" in caplog.text


async def test_names_that_no_request_can_carry_are_a_problem():
    async with calling("http://127.0.0.1:1", LeaseLock("..", "bayplan")) as lease_client:
        assert isinstance(await lease_client.perform(Read(1.0)), Problem)
        await lease_client.announce("me", "became leader", NOON)


def put_lease(server, namespace, *names):
    server.put(LEASES, json.loads(new_lease(LeaseLock(namespace, "bayplan", names), RECORD)))


@contextlib.asynccontextmanager
async def looking_for(server, *names):
    async with calling(server.url, LeaseLock("kube-system", "bayplan", names)) as made:
        yield made


async def test_leases_about_the_same_pods_are_found_in_all_namespaces_by_one_list(server):
    put_lease(server, "team-a", "bayplan", "packer")
    put_lease(server, "team-b", "spreader")
    server.put(LEASES, {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {}})
    async with looking_for(server, "packer", "other") as client:
        assert [str(each.lock) for each in await client.find()] == ["team-a/bayplan"]
    assert [(seen.path, seen.query) for seen in server.requests] == [
        (LEASES, {"labelSelector": "bayplan.io/leader-election"})
    ]


async def test_who_may_not_list_all_namespaces_is_shown_those_of_the_manifests(server):
    put_lease(server, "bayplan-system", "bayplan")
    server.inject(Refuse(403), path=LEASES)
    server.inject(Refuse(403), path="kube-system/leases")
    async with looking_for(server, "bayplan") as client:
        assert [str(each.lock) for each in await client.find()] == ["bayplan-system/bayplan"]


async def test_who_may_list_no_leases_at_all_is_told_so(server):
    server.inject(Refuse(403, "Forbidden"), times=3)
    async with looking_for(server, "bayplan") as client:
        answer = await client.find()
    assert isinstance(answer, Problem)
    assert answer.forbidden


@pytest.mark.parametrize("fault", [Refuse(500), Garbage(), DropReply()], ids=repr)
async def test_a_list_that_failed_is_a_problem_and_not_an_empty_list(server, fault):
    server.inject(fault, times=100)
    async with looking_for(server, "bayplan") as client:
        answer = await client.find()
    assert isinstance(answer, Problem)
    assert not answer.forbidden
