"""Pods that come to ask for less wake those that wait for the room, from what a watch tells in JSON on."""

import asyncio

import pytest
from tests.controller.kubernetes_api import NODES, PODS, node, pod
from tests.scheduler.scene import Scene
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.api.watch_event import pod_event
from bayplan.controller.watches import Watches
from bayplan.queue.queued_pod import SubQueue


class Followed(Scene):
    """A scheduler whose nodes and assigned pods come from the watches of a fake API server."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.watches = Watches(
            Credentials(server=server.url),
            self.cache,
            self.queue,
            self.metrics,
            on_gone=lambda uid: None,
        )

    async def start(self):
        self.tasks = [asyncio.create_task(work) for work in self.watches.work().values()]
        await until(lambda: self.watches.synced)

    async def end(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def pending_pod(self, version, cpu, **spec):
        """kopf's watch tells of the pod in this version."""
        body = pod("waiting", cpu=cpu, **spec)
        body["metadata"] |= {"uid": "waiting", "resourceVersion": str(version)}
        self.pending.watched(pod_event({"type": "MODIFIED", "object": body}))

    async def told(self, assigned):
        """The watch of assigned pods has told of this version."""
        version = self.server.put(PODS, assigned)["metadata"]["resourceVersion"]
        uid = "assigned"

        def seen():
            held = self.cache.pod(uid)
            return held is not None and held.pod.metadata.resource_version == version

        await until(seen)


@pytest.fixture
async def scene(server):
    server.put(NODES, node("n1", cpu="4"))
    made = Followed(server)
    await made.start()
    yield made
    await made.end()


def assigned(cpu, *, container=None, whole=None, resize=None):
    """A pod on the node; the kubelet's report of its container, of the whole pod, and of the state of its resize."""
    body = pod("assigned", cpu=cpu, nodeName="n1")
    body["metadata"]["uid"] = "assigned"
    if container is not None:
        requests = {"cpu": container}
        statuses = [{"name": "c", "allocatedResources": requests, "resources": {"requests": requests}}]
        body["status"]["containerStatuses"] = statuses
    if whole is not None:
        body["spec"]["resources"] = {"requests": {"cpu": cpu}}
        body["status"] |= {"allocatedResources": {"cpu": whole}, "resources": {"requests": {"cpu": whole}}}
    if resize is not None:
        body["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": resize}]
    return body


async def waiting_beside(scene, *versions, cpu="2"):
    """The pod was tried beside the assigned one in these versions, and waits."""
    for version in versions:
        await scene.told(version)
    scene.pending_pod(1, cpu)
    scene.step()
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        ([assigned("1", container="3")], assigned("1", container="1")),
        ([assigned("1", whole="3")], assigned("1", whole="1")),
        ([assigned("3", container="1")], assigned("3", container="1", resize="Infeasible")),
    ],
    ids=["of a container", "of the whole pod", "what the kubelet will never do"],
)
async def test_a_scale_down_that_only_the_status_tells_wakes_the_pod_that_waits_for_the_room(scene, asked, done):
    await waiting_beside(scene, *asked)
    await scene.told(done)
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF
    assert await scene.attempt()
    assert scene.cache.node_of("waiting") == "n1"


async def test_what_is_asked_for_and_not_done_yet_wakes_nobody(scene):
    await waiting_beside(scene, assigned("3", container="3"))
    await scene.told(assigned("1", container="3"))
    await scene.told(assigned("1", container="3", resize="Deferred"))
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE


async def test_a_pending_pod_that_is_scaled_down_is_tried_again(scene):
    await waiting_beside(scene, assigned("3"))
    scene.pending_pod(2, "1")
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF


async def test_a_pending_pod_that_is_scaled_down_while_it_is_tried_is_tried_again(scene):
    await scene.told(assigned("3"))
    scene.pending_pod(1, "2")
    queued = scene.queue.pop()
    scene.pending_pod(2, "1")
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset({"NodeResourcesFit"}), error=False)
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF


async def test_a_pod_scaled_down_while_it_was_bound_wakes_those_that_wait_for_the_rest_of_its_room(scene):
    bound = pod("assigned", cpu="3")
    bound["metadata"] |= {"uid": "assigned", "resourceVersion": "1"}
    scene.pending.watched(pod_event({"type": "ADDED", "object": bound}))
    await scene.attempt()
    scene.pending_pod(1, "2")
    scene.step()
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE
    await scene.told(assigned("1"))
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF


@pytest.mark.parametrize("in_flight", [False, True], ids=["waiting", "being tried"])
async def test_a_nominated_pod_that_is_scaled_down_wakes_those_that_wait_for_the_room_kept(scene, in_flight):
    def nominated(version, cpu):
        body = pod("nominated", cpu=cpu, priority=10)
        body["metadata"] |= {"uid": "nominated", "resourceVersion": str(version)}
        body["status"]["nominatedNodeName"] = "n1"
        scene.pending.watched(pod_event({"type": "MODIFIED", "object": body}))

    await scene.told(assigned("2"))
    nominated(1, "3")
    queued = scene.queue.pop()
    if not in_flight:
        scene.queue.add_unschedulable(queued, rejector_plugins=frozenset({"NodeResourcesFit"}), error=False)
    scene.pending_pod(1, "1")
    scene.step()
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE
    nominated(2, "4")
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE
    nominated(3, "1")
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF
