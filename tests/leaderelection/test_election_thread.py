import asyncio
import contextlib
import logging
import random
import threading
import time

import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import BlackHole, Refuse

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.leaderelection.election_thread import ElectionThread
from bayplan.leaderelection.elector import Elector, LeaseLostError, LeaseTiming
from bayplan.leaderelection.lease import LeaseLock
from bayplan.leaderelection.lease_client import LeaseClient
from bayplan.leaderelection.write_gate import NotLeadingError, WriteGate, boot_clock
from bayplan.scheduler.api_calls import utc_now

LEASES = "/apis/coordination.k8s.io/v1/leases"
EVENTS = "/apis/events.k8s.io/v1/events"
KEY = "kube-system/bayplan"
QUICK = LeaseTiming(lease_duration=3.0, renew_deadline=2.0, retry_period=0.1)


class Elsewhere:
    """An API server in a thread of its own, so that nothing the test does keeps it from answering."""

    def __init__(self):
        self.server = FakeApiServer()
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)
        self._loop.close()

    def _run(self):
        self._loop.run_until_complete(self._serve())

    async def _serve(self):
        self._end = asyncio.Event()
        async with self.server:
            self._ready.set()
            await self._end.wait()

    def do(self, call, *arguments, **named):
        """Have the server's own thread do something, and wait for that."""

        async def done():
            return call(*arguments, **named)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(20)

    @property
    def spec(self):
        return self.do(lambda: dict(self.server.objects[LEASES][KEY]["spec"]))

    def edit(self, **spec):
        lease = self.do(lambda: self.server.objects[LEASES][KEY])
        self.do(self.server.put, LEASES, {**lease, "spec": {**lease["spec"], **spec}})

    def notes(self):
        return self.do(lambda: [event["note"] for event in self.server.objects.get(EVENTS, {}).values()])

    def writes(self):
        return self.do(
            lambda: [(seen.method, seen.path.rpartition("/")[2]) for seen in self.server.requests if seen.body]
        )


@pytest.fixture
def elsewhere():
    with Elsewhere() as running:
        yield running


class Running:
    """An election thread and what it said."""

    def __init__(self, url, timing=QUICK, identity="me"):
        self.leading, self.ended = threading.Event(), threading.Event()
        self.end = "not yet"
        self.elector = Elector(
            identity=identity,
            timing=timing,
            gate=WriteGate(),
            clock=boot_clock,
            now=utc_now,
            random=random.random,
            on_new_leader=lambda holder: None,
        )
        credentials = Credentials(server=url)
        lock = LeaseLock("kube-system", "bayplan")
        self.thread = ElectionThread(
            self.elector,
            lambda: LeaseClient(ApiClient(credentials.twin()), lock),
            on_leading=self.leading.set,
        )
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        self.end = self.thread.run()
        self.ended.set()


@pytest.fixture
def start(elsewhere):
    with contextlib.ExitStack() as stack:

        def run(**options):
            made = Running(elsewhere.server.url, **options)

            def end():
                made.thread.stop(0.5)
                assert made.ended.wait(20)

            stack.callback(end)
            return made

        yield run


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_leads_tells_so_and_gives_the_lease_up_when_told(elsewhere, start):
    running = start()
    assert running.leading.wait(20)
    assert running.elector.gate.is_open
    wait_for(lambda: elsewhere.notes() == ["me became leader"])
    running.thread.stop(5.0)
    assert running.ended.wait(20)
    assert running.end is None
    assert not running.elector.gate.is_open
    assert (elsewhere.spec["holderIdentity"], elsewhere.spec["leaseDurationSeconds"]) == ("", 1)
    assert elsewhere.notes() == ["me became leader", "me stopped leading"]
    assert elsewhere.writes()[-2:] == [("PUT", "bayplan"), ("POST", "events")], "the release waits for nothing"


def test_the_second_leads_when_the_first_gives_up(elsewhere, start):
    first = start(identity="first")
    assert first.leading.wait(20)
    second = start(identity="second")
    time.sleep(0.3)
    assert not second.leading.is_set()
    with pytest.raises(NotLeadingError):
        second.elector.gate.seconds_left()
    first.thread.stop(5.0)
    assert second.leading.wait(20)
    assert elsewhere.spec["holderIdentity"] == "second"


def test_a_stop_before_it_began_is_heeded(start):
    running = start()
    running.thread.stop(0.1)
    assert running.ended.wait(20)
    assert running.end is None


def test_a_lease_taken_by_somebody_ends_it_with_the_reason(elsewhere, start, caplog):
    running = start()
    assert running.leading.wait(20)
    elsewhere.edit(holderIdentity="somebody", leaseDurationSeconds=3600)
    assert running.ended.wait(20)
    assert isinstance(running.end, LeaseLostError)
    assert str(running.end) == "'somebody' holds it"
    assert not running.elector.gate.is_open
    assert elsewhere.spec["holderIdentity"] == "somebody"
    assert elsewhere.notes() == ["me became leader", "me stopped leading"]


def test_an_api_server_that_refuses_all_ends_it_after_the_deadline(elsewhere, start, caplog):
    running = start()
    assert running.leading.wait(20)
    elsewhere.do(elsewhere.server.inject, Refuse(503), times=1000)
    assert running.ended.wait(20)
    # A machine that is busy at that moment may leave too little time for the last try.
    assert str(running.end).startswith(
        ("it was not renewed within 2 s: status 503", "it was not renewed within 2 s: no answer")
    )
    assert "the lease was not read or written problem=status 503" in caplog.text


def test_a_leader_tells_of_each_renewal_that_failed_and_not_of_the_look_at_the_lease_after_it(elsewhere, start, caplog):
    running = start()
    assert running.leading.wait(20)
    elsewhere.server.requests.clear()
    elsewhere.do(elsewhere.server.inject, Refuse(503), times=1000)
    assert running.ended.wait(20)
    renewals = sum(seen.method == "PUT" for seen in elsewhere.server.requests)
    assert 1 <= caplog.text.count("the lease was not read or written problem=status 503") <= renewals


def test_a_connection_that_answers_nothing_is_replaced_in_time(elsewhere, start):
    running = start()
    assert running.leading.wait(20)
    elsewhere.do(elsewhere.server.inject, BlackHole(), method="PUT")
    before = elsewhere.spec["renewTime"]
    wait_for(lambda: elsewhere.spec["renewTime"] != before)
    time.sleep(2.0)
    assert not running.ended.is_set()
    assert running.elector.gate.is_open


def test_a_contender_without_the_right_says_so_once_and_goes_on_when_it_has_it(elsewhere, start, caplog):
    caplog.set_level(logging.WARNING)
    elsewhere.do(elsewhere.server.inject, Refuse(403, "Forbidden"), times=5)
    running = start()
    assert running.leading.wait(20)
    assert caplog.text.count("permission missing, grant get, create and update on leases") == 1
    assert running.elector.problem is None


def test_a_defect_ends_it_with_the_gate_shut(elsewhere, caplog):
    running = Running(elsewhere.server.url)
    assert running.leading.wait(20)

    def explode():
        raise RuntimeError("bug")

    running.elector.now = explode
    assert running.ended.wait(20)
    assert repr(running.end) == "RuntimeError('bug')"
    assert not running.elector.gate.is_open


async def test_a_decision_that_keeps_the_loop_for_5_seconds_does_not_cost_the_lease(elsewhere, start):
    running = start(timing=LeaseTiming(lease_duration=4.0, renew_deadline=3.0, retry_period=0.2))
    await asyncio.to_thread(running.leading.wait, 20)
    before = len(elsewhere.writes())
    until = time.monotonic() + 5.0
    while time.monotonic() < until:
        sum(range(1000))
    assert running.elector.gate.is_open
    assert not running.ended.is_set()
    assert len(elsewhere.writes()) - before > 5
