import asyncio
import gc
import json
import os
import signal
import time
import weakref
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.controller.kubernetes_api import NODES, PODS, node, pod
from tests.faults.faults import Delay, Refuse, Reset

from bayplan.api.errors import UnreachableError
from bayplan.config.connections import LeaderElection
from bayplan.config.load import default_configuration
from bayplan.controller import app

LEASES = "/apis/coordination.k8s.io/v1/leases"
KEY = "kube-system/bayplan"
METRIC = 'leader_election_master_status{name="bayplan"} '


def electing(**fields):
    return replace(default_configuration(), leader_election=LeaderElection(leader_elect=True, **fields))


SHORT = {
    "lease_duration": timedelta(seconds=3),
    "renew_deadline": timedelta(seconds=2),
    "retry_period": timedelta(seconds=0.2),
}


def held_by(name, seconds=3600):
    return {
        "metadata": {"name": "bayplan", "namespace": "kube-system"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds, "leaseTransitions": 4},
    }


def released():
    moment = "2026-11-22T12:00:00.000000Z"
    lease = held_by("", 1)
    return {**lease, "spec": {**lease["spec"], "acquireTime": moment, "renewTime": moment}}


def spec_of(cluster):
    return cluster.server.objects[LEASES][KEY]["spec"]


def writes(cluster):
    return [seen for seen in cluster.server.requests if seen.method != "GET"]


def may_write(cluster):
    """Whether the process has seen that the lease is its own; the API server knows before."""
    try:
        cluster.app.parts.leadership.admit()
    except UnreachableError:
        return False
    return True


async def metric(cluster):
    _, text = await cluster.get("/metrics")
    return text.partition(METRIC)[2].partition("\n")[0]


@pytest.fixture
async def standby(cluster):
    cluster.server.put(LEASES, held_by("another"))
    cluster.start("n1", pods=["waiting"], configuration=electing())
    await cluster.until_ready()
    return cluster


@pytest.fixture
async def leader(cluster):
    cluster.start("n1", configuration=electing())
    await cluster.until(lambda: may_write(cluster))
    await cluster.until_ready()
    return cluster


async def test_a_standby_is_ready_keeps_its_queue_and_writes_nothing(standby):
    queue = standby.app.parts.scheduler.queue
    await standby.until(lambda: len(queue.uids()) == 1)
    standby.server.put(PODS, pod("next"))
    standby.server.put(NODES, node("n2"))
    await standby.until(lambda: len(queue.uids()) == 2 and len(standby.app.parts.scheduler.cache.nodes) == 2)
    await asyncio.sleep(1.0)
    assert await standby.ready()
    assert await metric(standby) == "0.0"
    assert writes(standby) == []


async def test_a_standby_decides_at_once_when_the_lease_is_given_up(standby, caplog):
    caplog.set_level("INFO")
    await standby.until(lambda: any(seen.path.endswith("leases/bayplan") for seen in standby.server.requests))
    standby.server.put(LEASES, released())
    await standby.until(lambda: standby.node_of("waiting") == "n1")
    spec = spec_of(standby)
    assert spec["leaseTransitions"] == 5
    assert spec["holderIdentity"].count("_") >= 1
    assert await metric(standby) == "1.0"
    assert f"leading lease={KEY} identity={spec['holderIdentity']}" in caplog.text
    await standby.until(lambda: any(note.endswith("became leader") for note in standby.notes()))


class Cycle:
    """What only a collection of its generation finds."""

    def __init__(self):
        self.itself = self


def old_garbage():
    """A reference to a cycle that is old and that nobody uses."""
    cycle = Cycle()
    gc.collect()
    return weakref.ref(cycle)


async def test_a_standby_finds_old_garbage_and_a_leader_decides_in_its_place(cluster, monkeypatch):
    monkeypatch.setattr(app, "_COLLECT_SECONDS", 0.05)
    monkeypatch.setattr(app, "_COLLECT_SHARE", 1.0)
    cluster.server.put(LEASES, held_by("another"))
    cluster.start("n1", configuration=electing())
    await cluster.until_ready()
    garbage = old_garbage()
    await cluster.until(lambda: garbage() is None)
    cluster.server.put(LEASES, released())
    await cluster.until(lambda: may_write(cluster))
    garbage = old_garbage()
    await asyncio.sleep(1.0)
    assert garbage() is not None


async def test_a_standby_that_is_told_to_stop_leaves_the_lease_alone(standby, caplog):
    caplog.set_level("INFO")
    os.kill(os.getpid(), signal.SIGTERM)
    assert await standby.exit_code() == 0
    assert spec_of(standby)["holderIdentity"] == "another"
    assert writes(standby) == []
    assert "giving the lease up" not in caplog.text


async def test_the_lease_is_given_up_after_the_last_write(leader, caplog):
    caplog.set_level("INFO")
    await leader.until(lambda: any(note.endswith("became leader") for note in leader.notes()))
    leader.server.inject(Delay(0.3), method="POST", path="/binding")
    leader.server.put(PODS, pod("a"))
    await leader.until(leader.bindings)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await leader.exit_code() == 0
    assert leader.node_of("a") == "n1"
    assert (spec_of(leader)["holderIdentity"], spec_of(leader)["leaseDurationSeconds"]) == ("", 1)
    assert "Successfully assigned default/a to n1" in leader.notes()
    assert "giving the lease up" in caplog.text
    released, last = writes(leader)[-2:]
    assert (released.method, json.loads(released.body)["spec"]["holderIdentity"]) == ("PUT", "")
    assert json.loads(last.body)["note"].endswith("stopped leading")


async def test_an_api_server_that_takes_its_time_is_told_all_the_same_who_leads_no_more(leader):
    leader.server.inject(Delay(1.2), path="leases", times=100)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await leader.exit_code() == 0
    assert spec_of(leader)["holderIdentity"] == ""


async def test_a_leader_that_the_api_server_does_not_answer_waits_for_little_at_its_end(leader, caplog, monkeypatch):
    parts, patience = leader.app.parts, []
    drain, give_up = parts.scheduler.dispatcher.drain, parts.leadership.give_up

    async def drain_and_note(**seconds):
        patience.extend(seconds.values())
        await drain(**seconds)

    async def give_up_and_note(seconds):
        patience.append(seconds)
        await give_up(seconds)

    monkeypatch.setattr(parts.scheduler.dispatcher, "drain", drain_and_note)
    monkeypatch.setattr(parts.leadership, "give_up", give_up_and_note)
    # Its watch of pods is open, so the next pod reaches it although nothing more is answered.
    leader.server.put(PODS, pod("early"))
    await leader.until(leader.bindings)
    leader.server.inject(Reset(), times=10_000)
    leader.server.put(PODS, pod("late"))
    await leader.until(lambda: parts.contact.is_lost)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await leader.exit_code() == 0
    assert "the API server does not answer, so what is under way has little time left to finish" in caplog.messages
    assert sum(patience) < 4


async def test_a_leader_that_was_told_to_stop_exits_0_although_its_last_renewals_are_refused(cluster, caplog):
    cluster.start("n1", configuration=electing(**SHORT))
    await cluster.until_ready()
    await cluster.until(lambda: may_write(cluster))
    # Nothing of the bind is known until it is too late to renew.
    cluster.server.inject(Delay(5.0), method="POST", path="/binding")
    cluster.server.put(PODS, pod("a"))
    await cluster.until(cluster.bindings)
    cluster.server.inject(Refuse(503), path="leases", times=10_000)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0
    assert "the lease was lost while ending reason=it was not renewed within 2 s" in caplog.text
    assert "leader election lost" not in caplog.text


async def until_closed(cluster):
    """Return as soon as no write may start, and have a pod come that could be bound."""
    await cluster.until(lambda: not may_write(cluster))
    cluster.server.put(PODS, pod("late"))


async def test_a_leader_whose_lease_is_taken_ends_with_1_and_binds_nothing_any_more(leader, caplog):
    leader.server.put(LEASES, held_by("somebody"))
    await until_closed(leader)
    assert await leader.exit_code() == 1
    assert leader.bindings() == []
    assert "leader election lost, ending so that another replica takes over reason='somebody' holds it" in caplog.text
    assert spec_of(leader)["holderIdentity"] == "somebody"


async def test_without_renewals_nothing_is_written_after_the_deadline_and_it_ends_with_1(cluster, caplog):
    cluster.start("n1", configuration=electing(**SHORT))
    await cluster.until_ready()
    await cluster.until(lambda: may_write(cluster))
    cluster.server.inject(Refuse(503), path="leases", times=10_000)
    await until_closed(cluster)
    assert await cluster.exit_code() == 1
    assert cluster.bindings() == []
    assert "it was not renewed within 2 s: status 503" in caplog.text


async def test_who_was_stopped_until_after_the_deadline_writes_nothing_before_it_has_heard_of_that(cluster, caplog):
    """The loop is kept, as by SIGSTOP, while a pod waits that it would bind in its next turn."""
    cluster.start("n1", configuration=electing(**SHORT))
    await cluster.until_ready()
    await cluster.until(lambda: may_write(cluster))
    cluster.server.put(PODS, pod("late"))
    # The API server is on this loop, too: nobody renews.
    time.sleep(3.0)  # noqa: ASYNC251
    assert await cluster.exit_code() == 1
    assert cluster.bindings() == []


async def test_a_role_without_leases_keeps_it_from_being_ready_and_says_so(cluster, caplog):
    cluster.server.inject(Refuse(403, "Forbidden"), path="leases", times=10_000)
    cluster.start("n1", pods=["waiting"], configuration=electing())
    await cluster.until(lambda: "permission missing, grant get, create and update on leases" in caplog.text)
    status, text = await cluster.get("/readyz?verbose")
    assert status == 500
    assert "[-]leaderElection failed: the role does not allow to get, create and update the lease" in text
    assert (await cluster.get("/livez"))[0] == 200
    assert cluster.node_of("waiting") is None


async def test_a_standby_that_does_not_get_a_free_lease_is_not_ready_and_says_why(cluster, caplog):
    cluster.server.put(LEASES, released())
    cluster.server.inject(Refuse(400), path="leases", method="PUT", times=10_000)
    cluster.start("n1", configuration=electing(**SHORT))
    await cluster.until_ready()
    async with asyncio.timeout(30):
        while await cluster.ready():  # noqa: ASYNC110  asked over HTTP
            await asyncio.sleep(0.05)
    _, text = await cluster.get("/readyz?verbose")
    assert "[-]leaderElection failed: the lease is free, and the API server does not let it be taken" in text
    assert "the lease was not read or written problem=status 400" in caplog.text


@pytest.mark.parametrize("elects", [None, False])
async def test_without_an_election_and_other_leases_ignored_no_lease_is_asked_for(cluster, elects):
    configuration = replace(default_configuration(), leader_election=LeaderElection(leader_elect=elects))
    cluster.start("n1", pods=["a"], configuration=configuration)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert not any("leases" in seen.path for seen in cluster.server.requests)
    assert METRIC not in (await cluster.get("/metrics"))[1]


async def test_a_thread_that_breaks_ends_the_process_with_1(leader, monkeypatch, caplog):
    def explode(*_):
        raise RuntimeError("bug")

    monkeypatch.setattr("bayplan.leaderelection.lease_client.LeaseClient.perform", explode)
    assert await leader.exit_code() == 1
    assert "RuntimeError('bug')" in caplog.text
