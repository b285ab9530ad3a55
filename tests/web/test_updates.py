"""What open pages are told, and when."""

import asyncio
import json

import pytest

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.web.updates import KEPT_POINTS, SHOWN_DECISIONS, Updates


class Source:
    """Answers with what stands in it."""

    def __init__(self):
        self.used, self.last, self.refusal, self.identity = 3, 0, None, "x"
        self.time = 0

    def _checked(self, answer):
        if self.refusal is not None:
            raise RefusedQuestionError(503, self.refusal)
        self.time += 1
        return json.dumps({"time": f"t{self.time}", **answer}, separators=(",", ":")).encode()

    async def summary(self):
        cpu = {"resource": "cpu", "requested": 1, "allocatable": 4, "stranded": 0}
        packing = cpu | {"nodesUsed": self.used, "lowerBound": 2, "largestFree": 1}
        queue = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        who = {"version": "1", "identity": self.identity, "leading": True, "profiles": [], "nodes": 4, "pods": 5}
        return self._checked(who | {"queue": queue, "packing": [packing]})

    async def nodes(self):
        return self._checked({"names": ["a"]})

    async def queue_page(self, start, limit):
        return self._checked({"total": 0, "items": []})

    async def decisions(self, after, limit):
        items = [
            {"seq": number, "time": "t", "namespace": "n", "name": "p", "node": "a", "score": 1, "runnerUp": None}
            | {"feasible": 1, "evaluated": 1, "milliseconds": 0.1, "message": None, "preempted": []}
            for number in range(max(after, self.last - 4096) + 1, self.last + 1)
        ]
        return self._checked({"last": self.last, "dropped": False, "items": items[:limit]})


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def updates(source):
    return Updates(source, page={"mode": "live"})


class Page:
    """Reads events as a browser does."""

    def __init__(self, updates):
        self.stream = updates.events()

    async def read(self, count):
        found = []
        for _ in range(count):
            async with asyncio.timeout(5):
                event = (await anext(self.stream)).decode()
            topic, data = event.removesuffix("\n\n").split("\n")
            found.append((topic.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        return dict(found)


async def test_a_page_that_opens_late_is_told_everything(source, updates):
    source.last = 2
    await updates.refresh(1.0, running=True)
    found = await Page(updates).read(7)
    assert found["nodes"]["names"] == ["a"]
    assert [each["seq"] for each in found["decisions"]["items"]] == [1, 2]
    assert found["history"] == [{"at": 1.0, "nodesUsed": 3, "lowerBound": 2, "shares": {"cpu": 0.25}}]


async def test_only_what_changed_is_told_again(source, updates):
    await updates.refresh(1.0, running=True)
    page = Page(updates)
    await page.read(7)
    source.used = 4
    await updates.refresh(2.0, running=True)
    assert (await page.read(2)).keys() == {"summary", "history"}


async def test_a_page_that_reads_slowly_is_told_the_newest_alone(source, updates):
    page = Page(updates)
    for number in range(50):
        source.used = number
        await updates.refresh(float(number), running=True)
    found = await page.read(7)
    assert found["summary"]["packing"][0]["nodesUsed"] == 49


async def test_a_source_that_does_not_answer_is_told_of_and_what_was_known_stays(source, updates):
    await updates.refresh(1.0, running=True)
    source.refusal = "the scheduler does not answer"
    await updates.refresh(2.0, running=True)
    await updates.sample(3.0)
    found = await Page(updates).read(7)
    assert found["state"] == {"running": True, "error": "the scheduler does not answer"}
    assert found["nodes"]["names"] == ["a"]
    source.refusal = None
    await updates.refresh(4.0, running=True)
    assert (await Page(updates).read(7))["state"]["error"] is None


async def test_the_last_decisions_are_kept_and_no_more(source, updates):
    for last in (10, 5000, 5003, 5003):
        source.last = last
        await updates.refresh(1.0, running=True)
    items = (await Page(updates).read(7))["decisions"]["items"]
    assert [each["seq"] for each in items] == [*range(5003 - SHOWN_DECISIONS + 1, 5004)]


@pytest.mark.parametrize(("identity", "last"), [("x", 3), ("y", 3), ("y", 95)])
async def test_the_decisions_of_another_process_take_the_place_of_those_before(source, updates, identity, last):
    source.last = 90
    await updates.refresh(1.0, running=True)
    source.identity, source.last = identity, last
    await updates.refresh(2.0, running=True)
    decisions = (await Page(updates).read(7))["decisions"]
    assert (decisions["last"], [each["seq"] for each in decisions["items"]]) == (last, [*range(1, last + 1)])


async def test_the_packing_over_time_has_a_bound(updates):
    for number in range(5 * KEPT_POINTS):
        await updates.sample(float(number))
    points = (await Page(updates).read(3))["history"]
    assert KEPT_POINTS / 2 <= len(points) <= KEPT_POINTS
    assert points[0]["at"] == 0.0
    assert points[-1]["at"] >= 5 * KEPT_POINTS - 16


async def test_closing_ends_every_stream(updates):
    await updates.refresh(1.0, running=True)
    page = Page(updates)
    await page.read(7)
    reading = asyncio.create_task(anext(page.stream, None))
    await asyncio.sleep(0)
    await updates.close()
    assert await reading is None
