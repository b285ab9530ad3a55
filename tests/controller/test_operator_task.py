import asyncio
import logging
from types import SimpleNamespace

import aiohttp
import kopf
import pytest
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.faults.faults import StreamBytes

from bayplan.controller import operator_task as operator_task_module
from bayplan.controller.intake import Access, build_registry, operator_settings
from bayplan.controller.operator_task import OperatorTask


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

    async def sleep(seconds):
        asked.append(seconds)

    monkeypatch.setattr(operator_task_module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return asked


class Operator:
    """In the place of kopf's operator: fails as told, then runs until cancelled."""

    def __init__(self, monkeypatch, *failures):
        self.failures = list(failures)
        self.starts = []
        self.running = asyncio.Event()
        self.cancelled = False
        self.signals_kept = 0
        monkeypatch.setattr(kopf, "spawn_tasks", self.spawn)
        monkeypatch.setattr(kopf, "run_tasks", self.run)

    async def spawn(self, **options):
        self.starts.append(options)
        return []

    async def run(self, tasks, *, ignored):
        assert self.signals_kept == len(self.starts), "signals are taken back before anything else happens"
        self.starts[-1]["ready_flag"].set()
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

    def task(self):
        def keep_signals():
            self.signals_kept += 1

        return OperatorTask(lambda: f"registry {len(self.starts)}", lambda: "settings", keep_signals=keep_signals)


def real_task(access, deliver):
    return OperatorTask(
        lambda: build_registry(access, deliver), lambda: operator_settings({"bayplan"}), keep_signals=lambda: None
    )


async def wait(event):
    async with asyncio.timeout(10):
        await event.wait()


async def stop(task):
    task.stop()
    assert await task.join(10)


async def test_the_operator_runs_until_stopped(monkeypatch):
    operator = Operator(monkeypatch)
    task = operator.task()
    assert not task.ready
    task.start()
    await wait(operator.running)
    assert task.ready
    await stop(task)
    assert (operator.cancelled, task.ready, task.restarts) == (True, False, 0)
    ((options),) = operator.starts
    assert (options["registry"], options["settings"]) == ("registry 0", "settings")
    assert (options["clusterwide"], options["standalone"]) == (True, True)


@pytest.mark.parametrize("failure", [RuntimeError("boom"), None, asyncio.CancelledError()], ids=repr)
async def test_an_operator_that_ends_however_is_started_again(monkeypatch, pauses, failure, caplog):
    operator = Operator(monkeypatch, failure, failure)
    task = operator.task()
    task.start()
    await wait(operator.running)
    assert task.restarts == 2
    # Registries are made anew: what kopf remembers of the last run dies with it.
    assert [options["registry"] for options in operator.starts] == ["registry 0", "registry 1", "registry 2"]
    await stop(task)
    assert caplog.text.count("kopf operator ended and is started again") == 2


async def test_the_pause_between_starts_doubles_up_to_a_bound(monkeypatch, pauses):
    monkeypatch.setattr(operator_task_module, "_FIRST_PAUSE_SECONDS", 1.0)
    operator = Operator(monkeypatch, *[RuntimeError("boom")] * 7)
    task = operator.task()
    task.start()
    await wait(operator.running)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    await stop(task)


async def test_an_operator_that_ran_well_for_long_is_started_again_soon(monkeypatch, pauses):
    monkeypatch.setattr(operator_task_module, "_FIRST_PAUSE_SECONDS", 1.0)
    times = iter([0.0, 1.0, 10.0, 11.0, 20.0, 200.0, 300.0])
    monkeypatch.setattr(operator_task_module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    operator = Operator(monkeypatch, *[RuntimeError("boom")] * 3)
    task = operator.task()
    task.start()
    await wait(operator.running)
    assert pauses == [1.0, 2.0, 1.0]
    await stop(task)


async def test_a_stop_during_the_pause_is_heeded_at_once(monkeypatch):
    monkeypatch.setattr(operator_task_module, "_FIRST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(operator_task_module, "_MAX_PAUSE_SECONDS", 3600.0)
    operator = Operator(monkeypatch, RuntimeError("boom"))
    task = operator.task()
    task.start()
    async with asyncio.timeout(10):
        while not task.restarts:  # noqa: ASYNC110  the task has no event for tests
            await asyncio.sleep(0.001)
    await stop(task)
    assert len(operator.starts) == 1


async def test_a_stop_before_the_operator_is_up_keeps_it_from_starting(monkeypatch):
    operator = Operator(monkeypatch)
    task = operator.task()
    task.stop()
    task.start()
    assert await task.join(10)
    assert operator.starts == []


async def test_a_task_that_does_not_end_in_time_is_reported(monkeypatch):
    operator = Operator(monkeypatch)
    task = operator.task()
    task.start()
    await wait(operator.running)
    assert not await task.join(0.001)
    await stop(task)
    task.stop()


async def test_no_object_is_remembered_between_its_events(monkeypatch):
    operator = Operator(monkeypatch)
    task = operator.task()
    task.start()
    await wait(operator.running)
    memories = operator.starts[0]["memories"]
    body = {"metadata": {"uid": "u1"}}
    assert await memories.recall(body, noticed_by_listing=True) is not await memories.recall(body)
    assert list(memories.iter_all_memories()) == []
    await memories.forget(body)
    await stop(task)


async def test_kopf_itself_is_started_again_after_a_broken_line_and_stops_when_told(pauses):
    told = []

    async def session():
        return aiohttp.ClientSession()

    async with KubernetesApi() as server:
        server.put(PODS, pod("a"))
        server.inject(StreamBytes(b"garbage\n"), method="WATCH", path=PODS)
        access = Access(server.url, session)
        task = real_task(access, told.append)
        task.start()
        # kopf cancels what was born on the loop since it started; what is not its own must go on.
        stranger = asyncio.create_task(asyncio.Event().wait())
        async with asyncio.timeout(30):
            while server.watches(PODS) < 2:  # noqa: ASYNC110  kopf has no event for tests
                await asyncio.sleep(0.005)
            server.put(PODS, pod("b"))
            while len(told) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert task.restarts == 1
        assert [t.key for t in told] == ["default/a", "default/a", "default/b"]
        await stop(task)
        assert not stranger.done()
        stranger.cancel()
        assert asyncio.get_running_loop().get_task_factory() is None
        assert [t for t in asyncio.all_tasks() if "/kopf/" in t.get_coro().cr_code.co_filename] == []


async def test_a_pod_that_breaks_its_taker_does_not_end_kopf(caplog):
    told = []

    async def session():
        return aiohttp.ClientSession()

    def take(pending):
        told.append(pending.key)
        if pending.key == "default/a":
            raise RuntimeError("boom")

    async with KubernetesApi() as server:
        server.put(PODS, pod("a"))
        server.put(PODS, pod("b"))
        task = real_task(Access(server.url, session), take)
        task.start()
        try:
            async with asyncio.timeout(30):
                while len(told) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        finally:
            await stop(task)
        assert task.restarts == 0
        assert "a pod was not taken pod='default/a'" in caplog.text


async def test_kopf_is_told_to_leave_alone_every_task_but_its_own():
    mine = asyncio.create_task(asyncio.Event().wait())
    with operator_task_module._births_marked():
        kopfs = asyncio.create_task(asyncio.Event().wait())
    others = operator_task_module._AllOthers()
    try:
        assert mine in others
        assert kopfs not in others
        assert "no task" not in others
        assert set(others) == {mine, asyncio.current_task()}
        assert len(others) == 2
    finally:
        for task in (mine, kopfs):
            task.cancel()
        await asyncio.gather(mine, kopfs, return_exceptions=True)
