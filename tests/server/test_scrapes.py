import asyncio

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text
from tests.server.samples import observed

from bayplan.server.metrics import KEPT_SECONDS, Scrapes


class Counting:
    """A collector of three gauges that counts how often it is asked, and may fail."""

    def __init__(self):
        self.asked = 0
        self.error = None

    def collect(self):
        self.asked += 1
        if self.error is not None:
            raise self.error
        for name in ("one", "two", "three"):
            yield GaugeMetricFamily(name, "A number.", value=self.asked)


class Scene:
    def __init__(self):
        self.counting = Counting()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self.counting)
        self.counting.asked = 0
        self.now = 0.0
        self.scrapes = Scrapes(registry, clock=lambda: self.now)

    async def text(self, *, openmetrics=False):
        return (await self.scrapes.text(openmetrics=openmetrics))[0]


@pytest.fixture
def scene():
    return Scene()


async def test_a_hundred_who_ask_at_once_share_one_text(scene):
    texts = await asyncio.gather(*(scene.text() for _ in range(100)))
    assert len(set(texts)) == 1
    assert scene.counting.asked == 1


async def test_the_text_is_kept_for_a_second_and_no_longer(scene):
    first = await scene.text()
    scene.now = KEPT_SECONDS - 0.01
    assert await scene.text() == first
    scene.now = KEPT_SECONDS
    assert await scene.text() != first
    assert scene.counting.asked == 2


async def test_each_format_is_worked_out_by_itself(scene):
    assert not (await scene.text()).endswith(b"# EOF\n")
    assert (await scene.text(openmetrics=True)).endswith(b"# EOF\n")
    assert scene.counting.asked == 2


async def test_who_asked_first_may_leave_and_the_others_are_answered(scene):
    first = asyncio.create_task(scene.text())
    second = asyncio.create_task(scene.text())
    await asyncio.sleep(0)
    first.cancel()
    assert b"three 1.0" in await second
    assert scene.counting.asked == 1


async def test_the_loop_turns_between_metrics(scene):
    turns = 0
    asking = asyncio.create_task(scene.text())
    while not asking.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 3


async def test_a_collector_that_fails_is_asked_again_after_a_second(scene):
    scene.counting.error = RuntimeError("boom")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="boom"):
            await scene.text()
    assert scene.counting.asked == 1
    scene.counting.error = None
    scene.now = KEPT_SECONDS
    assert b"one 2.0" in await scene.text()


async def test_the_texts_are_what_the_whole_registry_gives():
    scrapes = Scrapes(observed().registry)
    for wanted, parse in ((False, plain_text), (True, openmetrics)):
        body, content_type = await scrapes.text(openmetrics=wanted)
        assert content_type.startswith("application/openmetrics-text" if wanted else "text/plain")
        names = [family.name for family in parse(body.decode())]
        assert "bayplan_build_info" in names
        assert len(names) == len(set(names)) > 20
