import asyncio
import gc
import itertools
import threading
import time
from collections import Counter

import kopf
import pytest
from tests.controller.kubernetes_api import PODS, pod
from tests.faults.faults import StreamBytes
from tests.waiting import Sleeps, until

from bayplan.api.credentials import Credentials
from bayplan.controller.operator_thread import KopfSessions, OperatorThread, configure, field_selector


class FakeOperator:
    """In the place of kopf's operator: ends as told, then runs until its stop flag is set."""

    def __init__(self, monkeypatch, *endings):
        self.endings = list(endings)
        self.starts = []
        self.running = False
        monkeypatch.setattr(kopf, "operator", self.operate)

    async def operate(self, *, stop_flag, **options):
        self.starts.append(options)
        assert threading.current_thread() is not threading.main_thread()
        if self.endings:
            ending = self.endings.pop(0)
            if ending is not None:
                raise ending
            return
        self.running = True
        while not stop_flag.is_set():  # noqa: ASYNC110  it is another thread's
            await asyncio.sleep(0.001)
        self.running = False


class Scene:
    """An operator thread, what it tells, and how it waits."""

    def __init__(self, server="http://127.0.0.1:1", **options):
        self.events = []
        self.lists = []
        self.sleep = Sleeps()
        self.thread = OperatorThread(
            {"bayplan"},
            KopfSessions(Credentials(server=server)),
            take=self.events.append,
            on_list=lambda: self.lists.append(len(self.events)),
            **{"sleep": self.sleep, **options},
        )
        self.task = asyncio.create_task(self.thread.run())

    def told(self):
        return [(event.type, event.identity.name) for event in self.events]

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def kopf_threads():
    return [thread for thread in threading.enumerate() if thread.name == "kopf"]


async def test_an_operator_runs_in_a_thread_of_its_own_until_the_task_is_cancelled(monkeypatch):
    fake = FakeOperator(monkeypatch)
    scene = Scene()
    await until(lambda: fake.running)
    (options,) = fake.starts
    assert (options["clusterwide"], options["standalone"]) == (True, True)
    await scene.stop()
    assert (fake.running, scene.thread.restarts) == (False, 0)
    await until(lambda: not kopf_threads())


@pytest.mark.parametrize("ending", [RuntimeError("boom"), None, asyncio.CancelledError()], ids=repr)
async def test_an_operator_that_ends_however_is_started_again_with_new_handlers(monkeypatch, ending, caplog):
    fake = FakeOperator(monkeypatch, ending, ending)
    scene = Scene()
    await until(lambda: fake.running)
    assert scene.thread.restarts == 2
    assert len({id(options["registry"]) for options in fake.starts}) == 3
    await scene.stop()
    assert caplog.text.count("kopf operator ended and is started again") == 2


@pytest.mark.parametrize(
    ("times", "delays"),
    [
        ([0.0] * 14, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        ([0.0, 1.0, 10.0, 11.0, 20.0, 200.0], [1.0, 2.0, 1.0]),
    ],
    ids=["up to a bound", "begins anew after a long run"],
)
async def test_the_pause_between_starts_doubles(monkeypatch, times, delays):
    clock = iter([*times, 300.0])
    fake = FakeOperator(monkeypatch, *[RuntimeError("boom")] * len(delays))
    scene = Scene(clock=lambda: next(clock))
    await until(lambda: fake.running)
    assert scene.sleep.delays == delays
    await scene.stop()


async def test_a_stop_during_the_pause_is_heeded_at_once(monkeypatch):
    fake = FakeOperator(monkeypatch, RuntimeError("boom"))
    scene = Scene(sleep=lambda seconds: asyncio.sleep(3600))
    await until(lambda: scene.thread.restarts)
    await scene.stop()
    assert len(fake.starts) == 1


async def test_a_pause_ends_when_the_api_server_is_back_and_the_next_one_is_short(monkeypatch):
    fake = FakeOperator(monkeypatch, *[RuntimeError("boom")] * 4)
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)
        await asyncio.sleep(3600 if len(pauses) == 3 else 0)

    scene = Scene(sleep=sleep)
    await until(lambda: len(pauses) == 3)
    scene.thread.end_pause()
    await until(lambda: fake.running)
    assert pauses == [1.0, 2.0, 4.0, 1.0]
    scene.thread.end_pause()
    await scene.stop()


def test_kopf_asks_for_ever_and_never_waits_long():
    settings = kopf.OperatorSettings()
    configure(settings, {"bayplan"})
    for _ in range(2):
        waits = list(itertools.islice(settings.networking.error_backoffs, 1000))
        assert (waits[:4], max(waits)) == ([0.5, 1.0, 2.0, 3.0], 3.0)
    assert settings.networking.connect_timeout == 10.0


async def test_a_kopf_that_does_not_end_holds_nobody_up(monkeypatch):
    release, is_stuck = threading.Event(), threading.Event()

    async def stuck(**_):
        is_stuck.set()
        release.wait(60)

    monkeypatch.setattr(kopf, "operator", stuck)
    scene = Scene()
    await until(is_stuck.is_set)
    started = time.monotonic()
    await scene.stop()
    assert time.monotonic() - started < 10
    (thread,) = kopf_threads()
    assert thread.daemon, "the interpreter does not wait for it"
    release.set()
    await until(lambda: not kopf_threads())


async def test_kopf_tells_of_our_pods_and_writes_nothing(server):
    server.put(PODS, pod("a"))
    server.put(PODS, pod("other", scheduler="default-scheduler"))
    scene = Scene(server.url)
    assert scene.thread.problem() == "kopf is not running"
    await until(lambda: server.watches(PODS))
    assert scene.thread.problem() is None
    server.put(PODS, pod("b"))
    await until(lambda: len(scene.events) == 1)
    server.put(PODS, pod("b", cpu="2"))
    await until(lambda: len(scene.events) == 2)
    server.delete(PODS, "default/a")
    await until(lambda: len(scene.events) == 3)
    await scene.stop()
    assert scene.told() == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
    assert scene.lists == [0], "the pods that were there are to be listed by others"
    assert Counter(seen.method for seen in server.requests).keys() == {"GET"}
    watched = [seen for seen in server.requests if "watch" in seen.query]
    assert {seen.query["fieldSelector"] for seen in watched} == {field_selector({"bayplan"})}
    assert {seen.path for seen in server.requests} <= {"/api", "/api/v1", "/apis", PODS}


async def test_that_kopf_watches_anew_by_itself_is_told_like_its_start(server):
    scene = Scene(server.url)
    await until(lambda: server.watches(PODS))
    server.compact()
    server.end_watches()
    await until(lambda: len(scene.lists) == 2)
    await scene.stop()
    assert scene.thread.restarts == 0


async def test_kopf_keeps_of_a_pod_what_names_it_and_we_what_decisions_read(server):
    bulk = "x" * 1000
    scene = Scene(server.url)
    await until(lambda: server.watches(PODS))
    gc.collect()
    gc.disable()
    try:
        for number in range(20):
            large = pod(f"p{number}")
            large["metadata"]["annotations"] = {"bulk": bulk}
            large["spec"]["containers"][0]["env"] = [{"name": "BULK", "value": bulk}]
            server.put(PODS, large)
        del large
        await until(lambda: len(scene.events) == 20)
        await scene.stop()
        the_servers = {id(change.obj["spec"]["containers"][0]) for change in server.history}
        containers = [each for each in gc.get_objects() if isinstance(each, dict) and isinstance(each.get("env"), list)]
        assert [each for each in containers if id(each) not in the_servers] == []
    finally:
        gc.enable()
    assert all(event.pod.spec.containers[0].resources.requests == {"cpu": "1"} for event in scene.events)


async def test_kopf_itself_is_started_again_after_a_broken_line_and_nothing_else_ends_with_it(server):
    server.put(PODS, pod("a"))
    server.inject(StreamBytes(b"garbage\n"), method="WATCH", path=PODS)
    scene = Scene(server.url)
    await until(lambda: server.watches(PODS))
    stranger = asyncio.create_task(asyncio.Event().wait())
    await until(lambda: server.watches(PODS) == 2)
    server.put(PODS, pod("b"))
    await until(lambda: len(scene.events) == 1)
    assert scene.thread.restarts == 1
    assert scene.lists == [0, 0], "told by each operator"
    assert scene.told() == [("ADDED", "b")]
    await scene.stop()
    assert not stranger.done()
    stranger.cancel()
