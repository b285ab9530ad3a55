import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families
from tests.builders import make_node, make_pod, make_pod_info
from tests.queue.scene import make_profile

from bayplan.cache.cache import Cache
from bayplan.queue.queue_settings import QueueSettings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.server.resource_metrics import resource_metrics_route


class Scene:
    """A cache, a queue, and what /metrics/resources says of them."""

    def __init__(self):
        self.cache = Cache()
        self.queue = SchedulingQueue(clock=lambda: 0.0, settings=QueueSettings({"bayplan": make_profile()}))
        self.leads = True

    async def text(self):
        app = web.Application()
        app.router.add_routes([resource_metrics_route(self.cache, self.queue, lambda: self.leads)])
        async with TestClient(TestServer(app)) as client:
            return await (await client.get("/metrics/resources")).text()

    async def series(self):
        families = text_string_to_metric_families(await self.text())
        return {
            (s.name.removeprefix("kube_pod_resource_"), s.labels["pod"], s.labels["node"], s.labels["resource"]): s
            for family in families
            for s in family.samples
        }


@pytest.fixture
def scene():
    return Scene()


async def test_requests_of_pods_on_nodes_and_of_pending_ones_are_told(scene):
    scene.cache.set_node(make_node("n1"))
    scene.cache.set_pod(make_pod_info("on", node="n1", requests={"cpu": "250m", "memory": "1Gi"}))
    scene.cache.set_pod(make_pod_info("lost", node="nowhere", requests={"cpu": "1"}))
    scene.queue.add(make_pod_info("waits", requests={"example.com/gpu": "2"}))
    found = await scene.series()
    assert {key: sample.value for key, sample in found.items()} == {
        ("request", "on", "n1", "cpu"): 0.25,
        ("request", "on", "n1", "memory"): 2.0**30,
        ("request", "lost", "nowhere", "cpu"): 1.0,
        ("request", "waits", "", "example.com/gpu"): 2.0,
    }
    cpu = found["request", "on", "n1", "cpu"].labels
    assert (cpu["unit"], found["request", "on", "n1", "memory"].labels["unit"]) == ("cores", "bytes")
    assert (cpu["namespace"], cpu["scheduler"]) == (
        make_pod("on").metadata.namespace,
        make_pod("on").spec.scheduler_name,
    )


async def test_a_standby_says_nothing(scene):
    scene.cache.set_node(make_node("n1"))
    scene.cache.set_pod(make_pod_info("on", node="n1", requests={"cpu": "1"}))
    scene.leads = False
    assert await scene.text() == ""


async def test_text_that_users_write_stays_within_its_label(scene):
    scene.cache.set_pod(make_pod_info("on", node='n"1\\\n', requests={"cpu": "1"}))
    ((_, _, node, _),) = await scene.series()
    assert node == 'n"1\\\n'
