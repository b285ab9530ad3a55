import asyncio
import logging

import pytest

from bayplan.server.health import STALL_SECONDS, HealthChecks, LoopTicker


@pytest.fixture
def health():
    return HealthChecks()


def broken():
    raise RuntimeError("secret detail")


def test_a_new_process_is_alive_and_ready(health):
    assert health.report("livez").healthy
    assert health.report("readyz").text == "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n"


def test_readiness_waits_for_the_caches_and_says_so(health):
    synced = []
    health.add_readiness("sched-handler-sync", lambda: None if synced else "waiting for nodes")
    assert health.report("readyz").text == (
        "[+]ping ok\n[+]shutdown ok\n[-]sched-handler-sync failed: waiting for nodes\nreadyz check failed\n"
    )
    assert not health.report("readyz").healthy
    synced.append(True)
    assert health.report("readyz").healthy


def test_a_process_that_shuts_down_is_alive_but_not_ready(health):
    health.begin_shutdown()
    assert health.report("livez").healthy
    assert "[-]shutdown failed: process is shutting down" in health.report("readyz").text


def test_a_check_that_breaks_fails_without_showing_why(health, caplog):
    health.add_readiness("caches", broken)
    report = health.report("readyz")
    assert not report.healthy
    assert "[-]caches failed: reason withheld" in report.text
    assert "secret" not in report.text
    assert "health check broke check=caches" in caplog.text


def test_an_excluded_check_does_not_count(health):
    health.add_readiness("caches", lambda: "empty")
    report = health.report("readyz", exclude=["caches"])
    assert report.healthy
    assert "[+]caches excluded: ok" in report.text


def test_a_check_that_cannot_be_excluded_is_told(health):
    report = health.report("readyz", exclude=["nodes", "caches", "ping"])
    assert report.healthy
    assert report.text == (
        "[+]ping excluded: ok\n[+]shutdown ok\n"
        'warn: some health checks cannot be excluded: no matches for "caches","nodes"\nreadyz check passed\n'
    )


def test_a_name_is_given_once(health):
    with pytest.raises(ValueError, match="'ping' exists already"):
        health.add_liveness("ping", lambda: None)


def test_only_a_change_is_logged(health, caplog):
    caplog.set_level(logging.INFO)
    problem = ["empty"]
    health.add_readiness("caches", lambda: problem[0])
    for _ in range(3):
        health.report("readyz")
    problem[0] = None
    health.report("readyz")
    assert [record.getMessage() for record in caplog.records] == [
        "health changed endpoint=readyz failing=caches",
        "health changed endpoint=readyz failing=none",
    ]


def test_who_leaves_checks_out_changes_nothing_in_the_log(health, caplog):
    caplog.set_level("INFO")
    health.add_readiness("kopf", lambda: "kopf is not running")
    health.report("readyz")
    caplog.clear()
    for _ in range(3):
        health.report("readyz", ["kopf"])
        health.report("readyz")
    assert caplog.records == []


def test_the_ticker_fails_only_after_the_stall_limit():
    now = [100.0]
    ticker = LoopTicker(clock=lambda: now[0])
    now[0] += STALL_SECONDS
    assert ticker.check() is None
    now[0] += 1
    assert ticker.check() == "event loop stalled for 21 s"


async def test_a_running_ticker_recovers_the_check():
    now = [100.0]
    ticker = LoopTicker(clock=lambda: now[0])
    now[0] += 60
    assert ticker.check() is not None
    task = asyncio.create_task(ticker.run())
    await asyncio.sleep(0)
    assert ticker.check() is None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
