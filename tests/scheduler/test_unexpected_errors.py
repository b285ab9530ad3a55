"""Whatever raises on the way of a pod costs that pod an attempt: it is tried again, and the others go on."""

import asyncio
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from types import SimpleNamespace as Hook

import pytest
from tests.scheduler.scene import Scene
from tests.waiting import until

from bayplan.framework.interface import Wait
from bayplan.framework.status import SUCCESS
from bayplan.queue.queued_pod import SubQueue


class InjectedError(Exception):
    """What is injected."""


def once(holder, name, error=None, *, whoever=False):
    """Have a method raise the first time that it is called for the pod "p", or at all."""
    works, left = getattr(holder, name), [error or InjectedError("injected")]

    def call(*args, **options):
        if left and (whoever or not args or any("p" in _uids(each) for each in args)):
            raise left.pop()
        return works(*args, **options)

    setattr(holder, name, call)
    return left


def _uids(value):
    """The UIDs that an argument may stand for: its own, or that of the pod it is about."""
    return {
        value if isinstance(value, str) else None,
        getattr(value, "uid", None),
        getattr(getattr(value, "pod", None), "uid", None),
    }


class Injected(Scene):
    """A scheduler whose loop runs; every job is done as soon as it is submitted."""

    def __init__(self):
        super().__init__()
        self.bound, self.jobs = [], []
        self.framework.post_binds = [Hook(name="Told", post_bind=lambda pod, _: self.bound.append(pod.uid))]
        self.framework.reserves = [Hook(name="Takes", reserve=lambda *_: SUCCESS, unreserve=lambda *_: None)]
        self.dispatcher.submit = lambda uid, namespace, job, *_, **__: self._start(partial(job, nullcontext()))
        self.dispatcher.preempt = self._start
        self.dispatcher.request = self._no_answer

    def _start(self, job):
        self.jobs.append(asyncio.create_task(job()))

    async def _no_answer(self, call):
        return None

    @asynccontextmanager
    async def running(self):
        loop = asyncio.create_task(self.scheduler.run())
        try:
            yield
        finally:
            assert not loop.done(), "the loop ended"
            self.scheduler.stop()
            async with asyncio.timeout(10):
                await loop

    def let_go(self):
        for each in self.framework.waiting_pods:
            each.allow("W")

    async def settle(self):
        for _ in range(50):
            await asyncio.sleep(0)
            self.let_go()
        self.check()

    async def becomes_bound(self):
        """Time passes, and the pod is bound by that."""
        for _ in range(5):
            self.after(20)
            self.news.set()
            await self.settle()
        assert "p" in self.bound
        assert self.queue.uids() == set()


@pytest.fixture
def scene():
    return Injected()


def a_bind_that_fails(scene):
    """p's bind fails the first time, which has its plugins asked to give back what they took."""
    once(scene.binder, "bind")
    return once(scene.framework.reserves[0], "unreserve", whoever=True)


def a_wait(scene):
    """p has to wait for a Permit plugin, which lets it go soon."""
    scene.framework.permits = [Hook(name="W", permit=lambda state, pod, node: Wait(60) if pod.uid == "p" else SUCCESS)]


WAYS_TO_A_BIND = {
    "the queue's pop": lambda s: once(s.queue, "pop"),
    "the look at a popped pod": lambda s: once(s.cache, "node_of"),
    "the signature": lambda s: once(s.framework, "signature"),
    "the measure of the decision": lambda s: once(s.metrics.algorithm_seconds, "observe", whoever=True),
    "assume": lambda s: once(s.cache, "assume_pod"),
    "reserve": lambda s: once(s.framework, "run_reserve"),
    "permit": lambda s: once(s.framework, "run_permit"),
    "the choice of the Bind plugin": lambda s: once(s.framework, "run_bind"),
    "pre-bind": lambda s: once(s.framework, "run_pre_bind"),
    "the end of its nomination": lambda s: once(s.queue, "placed"),
    "the begin of the bind": lambda s: once(s.dispatcher, "submit"),
    "the bind": lambda s: once(s.binder, "bind"),
    "the bind, cancelled from within": lambda s: once(s.binder, "bind", asyncio.CancelledError()),
    "giving back what was reserved": a_bind_that_fails,
    "the begin of the bind after a wait": lambda s: a_wait(s) or once(s.dispatcher, "submit"),
    "the Event of the bound pod": lambda s: once(s.recorder, "scheduled"),
    "the end of its series": lambda s: once(s.recorder, "forget"),
    "a PostBind plugin": lambda s: once(s.framework.post_binds[0], "post_bind"),
    "the sweep of Events": lambda s: once(s.recorder, "sweep"),
}


@pytest.mark.parametrize("step", WAYS_TO_A_BIND)
async def test_a_pod_is_bound_in_the_end_although_something_raised_on_its_way(scene, step, caplog):
    scene.node(cpu="100")
    scene.pod("p", priority=1)
    scene.pod("q")
    left = WAYS_TO_A_BIND[step](scene)
    async with scene.running():
        await until(lambda: "q" in scene.bound)
        await until(lambda: scene.let_go() or not left)
        await scene.settle()
        if step == "a PostBind plugin":
            assert scene.cache.node_of("p") == "n1"
            scene.bound.append("p")
        elif "p" not in scene.bound:
            assert scene.sub_queue_of("p") is SubQueue.ERROR_BACKOFF
            assert scene.cache.node_of("p") is None
        await scene.becomes_bound()
    assert any(record.exc_info for record in caplog.records)
    assert step in {"the queue's pop", "the sweep of Events"} or "default/p" in caplog.text


def a_condition_that_fails(scene):
    """The first patch that comes to the dispatcher fails."""
    scene.dispatcher.patches = Hook(append=lambda _: None)
    return once(scene.dispatcher.patches, "append", whoever=True)


WAYS_TO_THE_QUEUE = {
    "PostFilter": lambda s: once(s.framework, "run_post_filter"),
    "the hand-back": lambda s: once(s.queue, "add_unschedulable"),
    "the Event of the failure": lambda s: once(s.recorder, "failed_scheduling"),
    "the condition": a_condition_that_fails,
}


@pytest.mark.parametrize("step", WAYS_TO_THE_QUEUE)
async def test_a_rejected_pod_is_in_the_queue_although_something_raised_on_its_way(scene, step, caplog):
    scene.node(cpu="10")
    scene.pod("p", cpu="64", priority=1)
    scene.pod("q")
    left = WAYS_TO_THE_QUEUE[step](scene)
    async with scene.running():
        await until(lambda: "q" in scene.bound and not left)
        await scene.settle()
        assert scene.sub_queue_of("p") in {SubQueue.ERROR_BACKOFF, SubQueue.UNSCHEDULABLE}
        scene.node("n2", cpu="100")
        await scene.becomes_bound()
    assert "default/p" in caplog.text
