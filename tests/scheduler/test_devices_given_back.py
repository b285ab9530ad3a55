"""Who waits for devices that another pod took and never got written is tried again once they are free."""

import asyncio

import pytest
from tests.devices.device_builders import make_class, make_gpus
from tests.plugins.dynamic_resources.device_scene import claim, claiming
from tests.scheduler.scene import Scene

from bayplan.api.response import ApiResponse
from bayplan.queue.queued_pod import SubQueue


class Answers:
    """A dispatcher that has each call wait until the test gives its answer."""

    def __init__(self):
        self.waiting = []

    async def request(self, call):
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append(answer)
        return await answer

    async def give(self, status):
        """Answer the only call that waits."""
        (answer,) = self.waiting
        answer.set_result(ApiResponse(status, b"{}"))
        await settle()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def scene():
    """The only device is p's, whose claim is being written; q waits for it."""
    made = Scene()
    made.answers = Answers()
    made.dispatcher.request = made.answers.request
    made.node("n1")
    for each in (make_class(), make_gpus("n1", 1), claim("c"), claim("d")):
        made.cache.listers.of(type(each)).set(each)
    made.pending.changed(claiming("c", name="p").pod)
    made.step()
    await settle()
    made.pending.changed(claiming("d", name="q").pod)
    made.step()
    assert made.sub_queue_of("q") is SubQueue.UNSCHEDULABLE
    return made


async def test_a_pod_is_tried_again_where_the_write_for_the_device_is_refused(scene):
    await scene.answers.give(403)
    scene.after(1)
    assert scene.step().uid == "q"
    assert scene.cache.node_of("q") == "n1"


async def test_a_pod_is_tried_again_once_the_last_request_of_a_pod_is_answered_that_is_gone(scene):
    scene.pending.gone("p")
    scene.after(1)
    while scene.step() is not None:
        assert scene.cache.node_of("q") is None, "the write may yet be carried out"
    await scene.answers.give(404)
    scene.after(10)
    assert scene.step().uid == "q"
    assert scene.cache.node_of("q") == "n1"
