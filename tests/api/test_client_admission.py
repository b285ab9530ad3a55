"""Writes that are admitted at the moment before they leave, or not sent."""

import asyncio

import pytest
from tests.api.clients import BINDING, POD, calling, put_pod
from tests.faults.faults import BlackHole, Delay, Refuse
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.token_source import StaticToken


@pytest.fixture
def server(server):
    """An API server with pod a."""
    return put_pod(server)


class Gate:
    """Lets so many writes pass, and gives each so much time."""

    def __init__(self, passes=0, seconds=60.0):
        self.passes, self.seconds, self.asked = passes, seconds, 0

    def __call__(self):
        self.asked += 1
        if self.asked > self.passes:
            raise UnreachableError("closed")
        return self.seconds


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_that_is_not_admitted_is_not_sent(server, method):
    async with calling(Credentials(server=server.url), admit=Gate()) as client:
        with pytest.raises(UnreachableError, match="closed"):
            await client.request(method, POD, body=b"{}")
    assert server.requests == []


async def test_reads_need_no_admission(server):
    gate = Gate()
    async with calling(Credentials(server=server.url), admit=gate) as client:
        assert (await client.request("GET", POD)).status == 200
    assert gate.asked == 0


async def test_each_try_of_a_write_is_admitted_by_itself(server):
    server.inject(Refuse(429, retry_after=1), times=100)
    gate = Gate(passes=2)
    async with calling(Credentials(server=server.url), admit=gate) as client:
        with pytest.raises(UnreachableError, match="closed"):
            await client.request("POST", f"{POD}/binding", body=BINDING)
    assert len(server.requests) == 2


async def test_a_write_that_waited_for_its_rate_is_admitted_afterwards(server):
    events = []

    async def sleep(seconds):
        events.append("waited")

    def admit():
        events.append("asked")
        return 60.0

    async with calling(Credentials(server=server.url), qps=1, burst=1, sleep=sleep, admit=admit) as client:
        for _ in range(2):
            await client.request("PATCH", f"{POD}/status", body=b"{}")
    assert events == ["asked", "waited", "asked"]


async def test_admission_is_the_last_thing_before_a_write_is_handed_over(server):
    events = []

    def clock():
        events.append("clock")
        return 0.0

    def admit():
        events.append("asked")
        return 60.0

    async with calling(Credentials(server=server.url), qps=0, clock=clock, admit=admit) as client:
        request = client.request("PATCH", f"{POD}/status", body=b"{}", on_send=lambda: events.append("leaves"))
        await request
    assert events[events.index("asked") - 1] == "clock"
    assert events.index("leaves") < events.index("asked")


async def test_a_write_that_waited_for_a_token_is_admitted_afterwards(server):
    events = []

    class Slow:
        min_interval = 0.0

        async def issue(self):
            events.append("token")
            return await StaticToken("t").issue()

    def admit():
        events.append("asked")
        return 60.0

    async with calling(Credentials(server=server.url, source=Slow()), admit=admit) as client:
        await client.request("PATCH", f"{POD}/status", body=b"{}")
    assert events == ["token", "asked"]


async def test_a_write_ends_in_the_time_it_was_admitted_for(server):
    server.inject(Delay(30), times=2)
    async with calling(Credentials(server=server.url), admit=Gate(passes=1, seconds=0.1)) as client:
        with pytest.raises(AmbiguousError):
            await client.request("POST", f"{POD}/binding", body=BINDING, timeout_seconds=20.0)


async def test_a_write_may_take_longer_than_writes_were_allowed_as_it_left_if_they_still_are(server):
    server.inject(Delay(0.5))
    async with calling(Credentials(server=server.url), admit=lambda: 0.1) as client:
        assert (await client.request("POST", f"{POD}/binding", body=BINDING)).status == 201


async def test_a_write_ends_without_its_answer_when_writes_are_not_allowed_any_more(server):
    def admit():
        left.append(None)
        if len(left) > 2:
            raise UnreachableError("no lease")
        return 0.1

    left = []
    server.inject(BlackHole())
    async with calling(Credentials(server=server.url), admit=admit) as client:
        with pytest.raises(AmbiguousError, match=f"POST {POD}/binding: no answer while this replica surely led"):
            await client.request("POST", f"{POD}/binding", body=BINDING)
        assert len(left) == 3
        assert asyncio.current_task().cancelling() == 0
        with pytest.raises(UnreachableError, match="no lease"):
            await client.request("POST", f"{POD}/binding", body=BINDING)
    assert len(server.requests) == 1


async def test_a_write_that_somebody_cancels_ends_cancelled_also_as_writes_are_not_allowed_any_more(server):
    def admit():
        if is_over:
            writing.cancel()
            raise UnreachableError("no lease")
        return 0.1

    is_over = []
    server.inject(BlackHole())
    async with calling(Credentials(server=server.url), admit=admit) as client:
        writing = asyncio.create_task(client.request("POST", f"{POD}/binding", body=BINDING))
        await until(lambda: server.requests)
        is_over.append(True)
        await asyncio.wait([writing])
        assert writing.cancelled()
