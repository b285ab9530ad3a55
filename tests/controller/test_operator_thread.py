import asyncio
import logging
import threading
from types import SimpleNamespace

import aiohttp
import kopf
import pytest
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.faults.faults import StreamBytes

from bayplan.controller import operator_thread as operator_thread_module
from bayplan.controller.intake import Access, build_registry, operator_settings
from bayplan.controller.operator_thread import OperatorThread


@pytest.fixture(autouse=True)
def _quiet_kopf():
    """kopf's loggers get their levels back."""
    names = ("kopf", "kopf.objects", "kopf.activities")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between starts, none of them waited for."""
    asked = []
    monkeypatch.setattr(operator_thread_module, "_FIRST_PAUSE_SECONDS", 0.0)

    class Event(threading.Event().__class__):
        def wait(self, timeout=None):
            if timeout is not None and threading.current_thread().name == "kopf":
                asked.append(timeout)
                timeout = 0.001
            return super().wait(timeout)

    monkeypatch.setattr(operator_thread_module.threading, "Event", Event)
    return asked


class Operator:
    """In the place of kopf.operator: fails as told, then runs until cancelled."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.starts = []
        self.running = threading.Event()
        self.cancelled = False

    async def __call__(self, **options):
        self.starts.append(options)
        options["ready_flag"].set()
        if self.failures:
            failure = self.failures.pop(0)
            if failure is None:
                return
            raise failure
        self.running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def make(monkeypatch, operator):
    monkeypatch.setattr(kopf, "operator", operator)
    return OperatorThread(lambda: f"registry {len(operator.starts)}", lambda: "settings")


async def wait(event):
    assert await asyncio.to_thread(event.wait, 10)


async def stop(thread):
    thread.stop()
    assert await thread.join(10)


async def test_the_operator_runs_in_a_thread_of_its_own_until_stopped(monkeypatch):
    operator = Operator()
    thread = make(monkeypatch, operator)
    assert not thread.ready
    thread.start()
    await wait(operator.running)
    assert thread.ready
    await stop(thread)
    assert (operator.cancelled, thread.ready, thread.restarts) == (True, False, 0)
    ((options),) = operator.starts
    assert (options["registry"], options["settings"]) == ("registry 0", "settings")
    assert (options["clusterwide"], options["standalone"]) == (True, True)


@pytest.mark.parametrize(
    "failure", [RuntimeError("boom"), None, asyncio.CancelledError(), SystemExit(3), KeyboardInterrupt()], ids=repr
)
async def test_an_operator_that_ends_however_is_started_again(monkeypatch, pauses, failure, caplog):
    operator = Operator(failure, failure)
    thread = make(monkeypatch, operator)
    thread.start()
    await wait(operator.running)
    assert thread.restarts == 2
    # Registries are made anew: what kopf remembers of the last run dies with it.
    assert [options["registry"] for options in operator.starts] == ["registry 0", "registry 1", "registry 2"]
    await stop(thread)
    assert caplog.text.count("kopf operator ended and is started again") == 2


async def test_the_pause_between_starts_doubles_up_to_a_bound(monkeypatch, pauses):
    monkeypatch.setattr(operator_thread_module, "_FIRST_PAUSE_SECONDS", 1.0)
    operator = Operator(*[RuntimeError("boom")] * 7)
    thread = make(monkeypatch, operator)
    thread.start()
    await wait(operator.running)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    await stop(thread)


async def test_an_operator_that_ran_well_for_long_is_started_again_soon(monkeypatch, pauses):
    monkeypatch.setattr(operator_thread_module, "_FIRST_PAUSE_SECONDS", 1.0)
    times = iter([0.0, 1.0, 10.0, 11.0, 20.0, 200.0, 300.0])
    monkeypatch.setattr(operator_thread_module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    operator = Operator(*[RuntimeError("boom")] * 3)
    thread = make(monkeypatch, operator)
    thread.start()
    await wait(operator.running)
    assert pauses == [1.0, 2.0, 1.0]
    await stop(thread)


async def test_a_stop_during_the_pause_is_heeded_at_once(monkeypatch):
    monkeypatch.setattr(operator_thread_module, "_FIRST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(operator_thread_module, "_MAX_PAUSE_SECONDS", 3600.0)
    operator = Operator(RuntimeError("boom"))
    thread = make(monkeypatch, operator)
    thread.start()
    async with asyncio.timeout(10):
        while not thread.restarts:  # noqa: ASYNC110  the thread has no event for tests
            await asyncio.sleep(0.001)
    await stop(thread)
    assert len(operator.starts) == 1


async def test_a_stop_before_the_operator_is_up_keeps_it_from_starting(monkeypatch):
    operator = Operator()
    thread = make(monkeypatch, operator)
    thread.stop()
    thread.start()
    assert await thread.join(10)
    assert operator.starts == []


async def test_a_thread_that_does_not_end_in_time_is_reported(monkeypatch):
    operator = Operator()
    thread = make(monkeypatch, operator)
    thread.start()
    await wait(operator.running)
    assert not await thread.join(0.001)
    await stop(thread)
    thread.stop()


async def test_kopf_itself_is_started_again_after_a_broken_line_and_stops_when_told(pauses):
    told = []

    async def session():
        return aiohttp.ClientSession()

    async with KubernetesApi() as server:
        server.put(PODS, pod("a"))
        server.inject(StreamBytes(b"garbage\n"), method="WATCH", path=PODS)
        access = Access(server.url, session)
        thread = OperatorThread(lambda: build_registry(access, told.append), lambda: operator_settings({"bayplan"}))
        thread.start()
        async with asyncio.timeout(30):
            while server.watches(PODS) < 2:  # noqa: ASYNC110  kopf has no event for tests
                await asyncio.sleep(0.005)
            server.put(PODS, pod("b"))
            while len(told) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert thread.restarts == 1
        assert [t.key for t in told] == ["default/a", "default/a", "default/b"]
        await stop(thread)
