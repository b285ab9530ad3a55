import asyncio
import json
import logging
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.client import ApiResponse
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.scheduler import dispatcher as dispatcher_module
from bayplan.scheduler.api_calls import ApiCall
from bayplan.scheduler.dispatcher import Dispatcher


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch):
    monkeypatch.setattr(dispatcher_module, "_RETRY_DELAYS_SECONDS", (0.0, 0.0, 0.0))


class Client:
    """Answers what it is told to, 200 otherwise; a closed gate holds every request."""

    def __init__(self):
        self.started = []
        self.done = []
        self.answers = defaultdict(list)
        self.gate = asyncio.Event()
        self.gate.set()
        self.now = 0
        self.most = 0

    async def request(self, method, path, *, body=None, content_type=None):
        self.started.append(path)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            answer = self.answers[path].pop(0) if self.answers[path] else 200
            if isinstance(answer, BaseException):
                raise answer
            self.done.append((path, body and json.loads(body)["status"]["v"].encode()))
            return ApiResponse(answer, b"")
        finally:
            self.now -= 1


class Scene:
    def __init__(self, **workers):
        self.client, self.events = Client(), Client()
        self.dispatcher = Dispatcher(self.client, self.events, **workers)
        self.lost = []

    def send(self, path):
        self.dispatcher.send(ApiCall("POST", path, None, "x", path))

    def patch(self, uid, body=b""):
        call = ApiCall("PATCH", uid, json.dumps({"status": {"v": body.decode()}}).encode(), "x", uid)
        self.dispatcher.patch(uid, call, lambda done: done or self.lost.append((uid, body)))

    async def drain(self, binds_seconds=30, calls_seconds=30):
        await self.dispatcher.drain(binds_seconds=binds_seconds, calls_seconds=calls_seconds)


async def settle():
    """Lets everything run that can without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


def warnings(caplog):
    return [r for r in caplog.records if r.levelno >= logging.WARNING]


async def test_binds_run_at_once_up_to_their_limit():
    scene = Scene(bind_workers=3)
    scene.dispatcher.start()
    release, running, most = asyncio.Event(), 0, 0

    async def job():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1

    for _ in range(10):
        scene.dispatcher.submit(job)
    await settle()
    assert (running, scene.dispatcher.jobs_in_flight) == (3, 10)
    release.set()
    await scene.drain()
    assert (most, running, scene.dispatcher.jobs_in_flight) == (3, 0, 0)


async def test_calls_run_at_once_up_to_their_limit():
    scene = Scene(call_workers=2)
    scene.dispatcher.start()
    for i in range(9):
        scene.send(f"e{i}")
    await scene.drain()
    assert scene.events.most == 2
    assert len(scene.events.done) == 9


async def test_a_full_house_of_events_does_not_hold_up_a_bind():
    scene = Scene(call_workers=2, bind_workers=1)
    scene.events.gate.clear()
    scene.client.gate.clear()
    scene.dispatcher.start()
    for i in range(50):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    await settle()
    bound = asyncio.Event()

    async def job():
        bound.set()

    scene.dispatcher.submit(job)
    await settle()
    assert bound.is_set()
    scene.events.gate.set()
    scene.client.gate.set()
    await scene.drain()


async def test_what_is_submitted_before_the_start_is_done_after_it():
    scene = Scene()
    scene.send("e")
    scene.patch("u")
    scene.dispatcher.start()
    await scene.drain()
    assert [path for path, _ in scene.events.done] == ["e"]
    assert [path for path, _ in scene.client.done] == ["u"]


async def test_events_and_patches_have_a_client_each_and_patches_go_first():
    scene = Scene(call_workers=1)
    scene.send("e")
    scene.patch("u")
    scene.events.gate.clear()
    scene.dispatcher.start()
    await settle()
    assert scene.client.done == [("u", b"")]
    assert scene.events.done == []
    scene.events.gate.set()
    await scene.drain()
    assert scene.events.done == [("e", None)]


async def test_waiting_patches_of_one_pod_are_sent_as_one_and_the_latest_counts():
    scene = Scene()
    scene.client.gate.clear()
    scene.dispatcher.start()
    scene.patch("u", b"1")
    await settle()
    for body in (b"2", b"3", b"4"):
        scene.patch("u", body)
    scene.patch("v", b"1")
    await settle()
    assert scene.client.started == ["u", "v"]
    scene.client.gate.set()
    await scene.drain()
    assert sorted(scene.client.done) == [("u", b"1"), ("u", b"4"), ("v", b"1")]
    assert scene.lost == []


async def test_a_patch_that_joins_a_waiting_one_takes_nothing_back_and_both_are_told():
    scene = Scene()
    told = []
    scene.dispatcher.start()
    bodies = ({"nominatedNodeName": "n1", "conditions": [1]}, {"conditions": [2]})
    scene.client.gate.clear()
    scene.patch("u")
    await settle()
    sent = []

    async def request(method, path, *, body=None, content_type=None):
        sent.append(json.loads(body)["status"])
        return ApiResponse(200, b"")

    scene.client.request = request
    for status in bodies:
        body = json.dumps({"metadata": {"uid": "u"}, "status": status}).encode()
        scene.dispatcher.patch("u", ApiCall("PATCH", "u", body, "x", "u"), told.append)
    scene.client.gate.set()
    await scene.drain()
    assert sent == [{"nominatedNodeName": "n1", "conditions": [2]}]
    assert told == [True, True]


async def test_preemptions_have_workers_of_their_own_and_are_waited_for_at_the_end():
    scene = Scene(preemption_workers=2)
    scene.dispatcher.start()
    gate = asyncio.Event()
    done = []

    async def preemption():
        await gate.wait()
        done.append("preemption")

    async def bind():
        done.append("bind")

    for _ in range(3):
        scene.dispatcher.preempt(preemption)
    await settle()
    scene.dispatcher.submit(bind)
    await settle()
    assert (done, scene.dispatcher.jobs_in_flight) == (["bind"], 0)
    asyncio.get_running_loop().call_later(0.01, gate.set)
    await scene.drain()
    assert done == ["bind"] + ["preemption"] * 3


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_request_gives_the_last_answer_and_none_if_there_was_none(method):
    scene = Scene()
    scene.client.answers["v"] = [503, AmbiguousError("lost"), 429]
    scene.client.answers["w"] = [AmbiguousError("lost")] * 4
    scene.client.answers["x"] = [409]
    answers = [await scene.dispatcher.request(ApiCall(method, path, None, "x", path)) for path in ("v", "w", "x")]
    assert [answer and answer.status for answer in answers] == [429, None, 409]
    assert scene.client.started == ["v"] * 3 + ["w"] * 4 + ["x"]


@pytest.mark.parametrize("problem", [409, 500, 503, 504, AmbiguousError("lost"), UnreachableError("refused")], ids=repr)
async def test_a_patch_is_sent_again_after_what_may_pass(problem):
    scene = Scene()
    scene.dispatcher.start()
    scene.client.answers["u"] = [problem] * 3
    scene.patch("u")
    await scene.drain()
    assert scene.client.started == ["u"] * 4
    assert scene.lost == []


@pytest.mark.parametrize("problem", [400, 401, 403, 404, 422, 429, 507])
async def test_a_patch_is_given_up_at_once_after_what_does_not_pass(problem, caplog):
    scene = Scene()
    scene.dispatcher.start()
    scene.client.answers["u"] = [problem] * 9
    scene.patch("u", b"1")
    await scene.drain()
    assert scene.client.started == ["u"]
    assert scene.lost == [("u", b"1")]
    # A pod that is gone or was recreated is nothing to worry about.
    assert len(warnings(caplog)) == (0 if problem in {404, 422} else 1)


async def test_a_call_is_given_up_after_four_tries(caplog):
    scene = Scene()
    scene.dispatcher.start()
    scene.events.answers["e"] = [503] * 9
    scene.client.answers["u"] = [AmbiguousError("lost")] * 9
    scene.send("e")
    scene.patch("u", b"1")
    await scene.drain()
    assert (scene.events.started, scene.client.started) == (["e"] * 4, ["u"] * 4)
    assert scene.lost == [("u", b"1")]
    assert sorted("lost" in r.message for r in warnings(caplog)) == [False, True]


async def test_an_event_that_exists_already_was_created_by_a_try_whose_answer_was_lost(caplog):
    scene = Scene()
    scene.dispatcher.start()
    scene.events.answers["e"] = [AmbiguousError("lost"), 409]
    scene.send("e")
    await scene.drain()
    assert scene.events.started == ["e", "e"]
    assert warnings(caplog) == []


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError()], ids=repr)
async def test_a_job_that_raises_costs_no_worker(error, caplog):
    scene = Scene(bind_workers=1, call_workers=1)
    scene.dispatcher.start()
    done = []

    async def bad():
        raise error

    async def good():
        done.append(1)

    scene.client.answers["u"] = [error]
    for job in (bad, good, bad, good):
        scene.dispatcher.submit(job)
    scene.patch("u")
    scene.send("e")
    await scene.drain()
    assert done == [1, 1]
    assert scene.lost == [("u", b"")]
    assert [path for path, _ in scene.events.done] == ["e"]
    assert len(warnings(caplog)) == 3


async def test_when_very_many_events_wait_the_oldest_are_dropped_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr(dispatcher_module, "_MAX_WAITING_CALLS", 3)
    scene = Scene()
    for i in range(10):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    scene.dispatcher.start()
    await scene.drain()
    assert [path for path, _ in scene.events.done] == ["e7", "e8", "e9"]
    assert len(scene.client.done) == 10
    assert len(warnings(caplog)) == 1


async def test_a_drain_finishes_binds_before_it_stops_waiting_for_calls():
    scene = Scene()
    scene.events.gate.clear()
    scene.dispatcher.start()
    done = []

    async def job():
        await settle()
        done.append(1)
        # What a bind says at its end is still sent.
        scene.send("bound")
        scene.events.gate.set()

    for _ in range(100):
        scene.dispatcher.submit(job)
    await scene.drain()
    assert len(done) == 100
    assert len(scene.events.done) == 100


async def test_a_drain_ends_in_time_whatever_hangs(caplog):
    scene = Scene(bind_workers=2, call_workers=1)
    scene.events.gate.clear()
    scene.dispatcher.start()
    stopped = []

    async def hang():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    for _ in range(5):
        scene.dispatcher.submit(hang)
        scene.send("e")
    await settle()
    await scene.drain(binds_seconds=0.01, calls_seconds=0.01)
    assert stopped == [1, 1]
    assert "left=9" in warnings(caplog)[0].message
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_a_drain_without_work_ends_at_once():
    scene = Scene()
    await scene.drain()
    scene.dispatcher.start()
    await scene.drain()


class RandomRun(Scene):
    """Performs steps by name and remembers what must come of them."""

    def __init__(self, bind_workers, call_workers):
        super().__init__(bind_workers=bind_workers, call_workers=call_workers)
        self.expected = defaultdict(list)
        self.binds = []
        self.patches = defaultdict(list)

    async def step(self, number, kind, value):
        self.expected[kind].append(number)
        if kind == "bind":
            self.dispatcher.submit(lambda: self.job(number, value))
        elif kind == "send":
            self.send(f"e{number}")
        elif kind == "patch":
            body = str(number).encode()
            self.patches[f"u{value}"].append(body)
            self.patch(f"u{value}", body)
        elif kind == "close":
            self.client.gate.clear()
            self.events.gate.clear()
        elif kind == "open":
            self.open()
        for _ in range(value if kind == "yield" else 0):
            await asyncio.sleep(0)

    def open(self):
        self.client.gate.set()
        self.events.gate.set()

    async def job(self, number, pauses):
        for _ in range(pauses):
            await asyncio.sleep(0)
        self.binds.append(number)

    def check(self):
        assert sorted(self.binds) == self.expected["bind"]
        assert sorted(path for path, _ in self.events.done) == sorted(f"e{n}" for n in self.expected["send"])
        sent = defaultdict(list)
        for uid, body in self.client.done:
            sent[uid].append(body)
        assert sent.keys() == self.patches.keys()
        for uid, bodies in sent.items():
            assert bodies == [body for body in self.patches[uid] if body in bodies], "doubled or out of order"
            assert bodies[-1] == self.patches[uid][-1]
        assert self.lost == []


KINDS = st.sampled_from(["bind", "send", "patch", "patch", "yield", "close", "open"])


@settings(max_examples=60)
@given(st.lists(st.tuples(KINDS, st.integers(0, 4)), max_size=60), st.integers(1, 4), st.integers(1, 4))
def test_nothing_is_lost_doubled_or_out_of_order_whatever_the_schedule(steps, bind_workers, call_workers):
    async def run():
        scene = RandomRun(bind_workers, call_workers)
        scene.dispatcher.start()
        for number, (kind, value) in enumerate(steps):
            await scene.step(number, kind, value)
        scene.open()
        await scene.drain()
        scene.check()

    asyncio.run(run())
