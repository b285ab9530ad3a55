import asyncio
import logging
import os
import signal
import socket

import kopf
import pytest
from tests.cache_checks import assert_adds_up
from tests.controller.kubernetes_api import CLAIMS, NODES, PODS, claim, node, pod
from tests.faults.faults import Delay, StreamBytes, StreamError

from bayplan import __version__
from bayplan.logs.formats import V4


async def test_it_starts_becomes_ready_binds_and_exits_0_when_told(cluster):
    cluster.start("n1", pods=["waiting"])
    await cluster.until_ready()
    await cluster.until(lambda: cluster.node_of("waiting") == "n1")
    cluster.server.put(PODS, pod("next"))
    cluster.server.put(PODS, pod("huge", cpu="64"))
    cluster.server.put(PODS, pod("stranger", scheduler="default-scheduler"))
    await cluster.until(lambda: cluster.node_of("next") == "n1" and cluster.condition_of("huge") == "Unschedulable")
    cluster.server.put(NODES, node("big", cpu="128"))
    await cluster.until(lambda: cluster.node_of("huge") == "big")
    await cluster.until(lambda: cluster.app.parts.scheduler.cache.sizes().assumed_pods == 0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0
    assert cluster.node_of("stranger") is None
    assert {"Successfully assigned default/waiting to n1", "Successfully assigned default/huge to big"} <= set(
        cluster.notes()
    )
    assert any(note.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ") for note in cluster.notes())
    assert cluster.app.parts.scheduler.queue.uids() == set()
    assert_adds_up(cluster.app.parts.scheduler.cache)


async def test_its_first_line_tells_version_server_profiles_and_replica(cluster, caplog):
    caplog.set_level(logging.INFO)
    cluster.start("n1")
    await cluster.until_ready()
    identity = cluster.app.parts.leadership
    assert caplog.messages[0] == (
        f"bayplan starts version={__version__} server={cluster.server.url}"
        f" profiles='bayplan MostAllocated(cpu 1, memory 1)'"
        f" identity={socket.gethostname() if identity is None else identity.identity}"
    )


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_that_it_was_told_to_stop_and_ended_is_in_the_log(cluster, caplog, signum):
    caplog.set_level(logging.INFO)
    cluster.start("n1")
    await cluster.until_ready()
    os.kill(os.getpid(), signum)
    assert await cluster.exit_code() == 0
    assert f"told to stop, ending signal={signum.name}" in caplog.messages
    assert caplog.messages[-1] == "ended"


async def test_a_bind_under_way_is_finished_before_it_exits(cluster):
    cluster.start("n1")
    await cluster.until_ready()
    cluster.server.inject(Delay(0.3), method="POST", path="/binding")
    cluster.server.put(PODS, pod("a"))
    await cluster.until(cluster.bindings)
    os.kill(os.getpid(), signal.SIGINT)
    assert await cluster.exit_code() == 0
    assert cluster.node_of("a") == "n1"
    assert cluster.notes() == ["Successfully assigned default/a to n1"]


async def test_a_stop_before_the_caches_are_filled_is_heeded(cluster):
    cluster.start("n1")
    cluster.server.inject(Delay(3600), path=NODES, times=100)
    await cluster.until(lambda: cluster.server.requests)
    assert not await cluster.ready()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), asyncio.CancelledError(), None], ids=["raises", "is cancelled by itself", "returns"]
)
async def test_it_exits_1_when_a_part_that_must_not_end_does(cluster, monkeypatch, caplog, error):
    cluster.start("n1")

    async def end():
        if error is not None:
            raise error

    monkeypatch.setattr(cluster.app.parts.scheduler, "run", end)
    assert await cluster.exit_code() == 1
    assert "ending because a part failed" in caplog.text
    assert (repr(error) if isinstance(error, Exception) else "scheduler ended") in caplog.text


@pytest.mark.parametrize("part", ["scheduler", "assumed", "intake list", "kopf", "nodes"])
async def test_it_exits_1_when_a_part_is_cancelled_by_whomever(cluster, caplog, part):
    cluster.start("n1")
    await cluster.until_ready()
    (task,) = (each for each in asyncio.all_tasks() if each.get_name() == part)
    task.cancel()
    assert await cluster.exit_code() == 1
    assert "ending because a part failed" in caplog.text


async def test_each_watch_is_logged_by_its_name(cluster, caplog):
    caplog.set_level(V4)
    cluster.server.inject(StreamError(500), method="WATCH", path=PODS, times=6)
    cluster.start("n1")
    for line in ("listed watch=nodes ", "listed watch=pods ", "listed watch=nominations "):
        await cluster.until(lambda line=line: line in caplog.text)
    for line in ("watch interrupted watch=pods ", "watch interrupted watch=nominations "):
        await cluster.until(lambda line=line: line in caplog.text)


async def test_pods_that_waited_are_placed_by_priority_although_kopf_does_not_start(cluster, monkeypatch):
    async def hang(*, stop_flag, **_):
        while not stop_flag.is_set():  # noqa: ASYNC110  it is another thread's
            await asyncio.sleep(0.01)

    monkeypatch.setattr(kopf, "operator", hang)
    cluster.start("n1")
    for number in range(20):
        cluster.server.put(PODS, pod(f"p{number:02}", priority=number))
    await cluster.until(lambda: len(cluster.notes()) >= 4)
    bound = {name for name in (f"p{number:02}" for number in range(20)) if cluster.node_of(name)}
    assert bound == {"p16", "p17", "p18", "p19"}
    assert not await cluster.ready()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0


async def test_kopf_that_ends_is_survived_and_a_deletion_meanwhile_is_found(cluster):
    cluster.start("n1", pods=["fits"])
    cluster.server.put(PODS, pod("huge", cpu="64"))
    await cluster.until(lambda: cluster.condition_of("huge") == "Unschedulable" and cluster.node_of("fits") == "n1")
    await cluster.until_ready()
    watches = cluster.server.watches(PODS)
    cluster.server.inject(StreamBytes(b"garbage\n"), method="WATCH", path=PODS, times=3)
    cluster.server.end_watches()
    await cluster.until(lambda: cluster.app.parts.operator.restarts)
    cluster.server.delete(PODS, "default/huge")
    await cluster.until(
        lambda: cluster.app.parts.scheduler.queue.uids() == set() and cluster.server.watches(PODS) > watches
    )
    cluster.server.put(PODS, pod("next"))
    await cluster.until(lambda: cluster.node_of("next") == "n1")


async def test_a_pod_is_bound_once_the_claim_it_waits_for_is_there(cluster):
    cluster.server.put("/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": {}})
    cluster.server.put(CLAIMS, claim("early", volume="pv"))
    cluster.server.inject(Delay(0.2), path=CLAIMS)
    for name in ("early", "late"):
        cluster.server.put(PODS, pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]))
    cluster.start("n1")
    missing = 'persistentvolumeclaim "late" not found'
    await cluster.until(lambda: cluster.node_of("early") == "n1" and any(missing in note for note in cluster.notes()))
    cluster.server.put(CLAIMS, claim("late", volume="pv"))
    await cluster.until(lambda: cluster.node_of("late") == "n1")
    assert not any('"early" not found' in note for note in cluster.notes()), "decided before the claims were known"
