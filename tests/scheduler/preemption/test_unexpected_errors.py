"""Whatever raises while room is made for a pod costs the pod this attempt, and no other pod anything."""

import asyncio

import pytest
from tests.scheduler.preemption.scene import preempt

from bayplan.queue.queued_pod import SubQueue


class InjectedError(Exception):
    """What is injected."""


def once(holder, name):
    works, left = getattr(holder, name), [InjectedError("injected")]

    def call(*args, **options):
        if left:
            raise left.pop()
        return works(*args, **options)

    setattr(holder, name, call)


def answer(scene, call, error):
    scene.api.answers[call].append(error)


STEPS = {
    "the nomination in the queue": lambda s: once(s.queue, "nominate"),
    "the count of victims": lambda s: once(s.metrics.preemption_victims, "observe"),
    "the begin": lambda s: once(s.dispatcher, "preempt"),
    "the Event of the failure": lambda s: once(s.recorder, "failed_scheduling"),
    "the nomination on the pod": lambda s: answer(s, ("PATCH", "p"), InjectedError("injected")),
    "the condition of a victim": lambda s: answer(s, ("PATCH", "low-n1"), InjectedError("injected")),
    "the end of a victim": lambda s: answer(s, ("DELETE", "low-n1"), InjectedError("injected")),
    "the Event of a victim": lambda s: once(s.recorder, "preempted"),
    "the end, cancelled from within": lambda s: once_cancelled(s.dispatcher, "request"),
}


def once_cancelled(holder, name):
    works, left = getattr(holder, name), [1]

    async def call(*args):
        if left:
            left.pop()
            raise asyncio.CancelledError
        return await works(*args)

    setattr(holder, name, call)


@pytest.mark.parametrize("step", STEPS)
async def test_the_pod_is_in_the_queue_and_makes_room_at_its_next_attempt(scene, step, caplog):
    STEPS[step](scene)
    await preempt(scene)
    # What could not be said of the pod or of a victim does not keep it from its room.
    survives = step == "the Event of the failure"
    assert scene.sub_queue_of() is (SubQueue.UNSCHEDULABLE if survives else SubQueue.ERROR_BACKOFF)
    assert scene.nominated() == ("n1" if survives else None)
    assert "default/p" in caplog.text
    scene.after(100)
    if not survives:
        await scene.attempt()
    assert scene.api.deleted()[-1:] == ["low-n1"]
    assert scene.nominated() == "n1"
    scene.assigned.on_delete(scene.placed["low-n1"])
    await scene.attempt()
    assert scene.binder.bindings == [("p", "n1")]
