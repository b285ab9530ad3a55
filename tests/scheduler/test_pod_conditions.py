import asyncio
import gc
import json
import weakref
from datetime import UTC, datetime

import pytest
from tests.builders import make_pod_info

from bayplan.api.objects import Condition
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.pod_conditions import PodConditions


class Scene:
    """The writer of conditions, and the patches it sent."""

    def __init__(self):
        self.writer = PodConditions(self._send, {}.get, lambda: 0.0, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.statuses = []
        self.losers = []
        self.urgent = []

    def _send(self, uid, call, lost, **options):
        status = json.loads(call.body)["status"]
        message = status["conditions"][0]["message"] if "conditions" in status else None
        self.statuses.append((status.get("nominatedNodeName", "nothing"), message))
        self.losers.append(lost)
        self.urgent.append(options.get("urgent", False))

    def say(self, pod, message="no room", reason="Unschedulable", **options):
        self.writer.pending(pod, reason, message, **options)

    def messages(self):
        return [message for _, message in self.statuses]


@pytest.fixture
def scene():
    return Scene()


def pending_pod(message=None, **fields) -> PodInfo:
    said = [Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)]
    return make_pod_info(uid="u", conditions=said if message else (), **fields)


UNSCHEDULABLE, ERROR = "Unschedulable", "SchedulerError"


@pytest.mark.parametrize(
    ("known", "said", "written"),
    [
        (None, [(UNSCHEDULABLE, "a")] * 3, ["a"]),
        ("a", [(UNSCHEDULABLE, "b"), (UNSCHEDULABLE, "a"), (UNSCHEDULABLE, "a")], ["b", "a"]),
        (None, [(UNSCHEDULABLE, "a"), (ERROR, "a")], ["a", "a"]),
        (None, [(UNSCHEDULABLE, "x" * 100_000)] * 2, ["x" * 32 * 1024]),
    ],
    ids=["the same is written once", "what comes back is written", "another reason is written", "the same, cut"],
)
def test_a_condition_is_written_when_it_differs_from_the_last_one_written(scene, known, said, written):
    pod = pending_pod(known)
    for reason, message in said:
        scene.say(pod, message, reason)
    assert scene.messages() == written


@pytest.mark.parametrize(("shown", "written"), [("no room", 1), ("theirs", 2)], ids=["ours", "somebody else's"])
def test_what_the_watch_shows_counts_instead_of_what_was_written(scene, shown, written):
    scene.say(pending_pod())
    scene.say(pending_pod(shown))
    assert len(scene.statuses) == written


def test_a_write_that_was_given_up_is_made_up_for_at_the_next_attempt(scene):
    pod = pending_pod()
    scene.say(pod)
    scene.losers[0](False)
    scene.say(pod)
    assert scene.messages() == ["no room", "no room"]


def test_the_loss_of_an_older_write_does_not_repeat_the_newer_one(scene):
    pod = pending_pod()
    scene.say(pod, "a")
    scene.say(pod, "b")
    scene.losers[0](False)
    scene.say(pod, "b")
    assert scene.messages() == ["a", "b"]


async def test_a_nomination_is_written_with_the_condition_even_if_that_is_known_and_waits_for_the_answer(scene):
    pod = pending_pod("no room")
    for done in (True, False):
        waiting = asyncio.ensure_future(scene.writer.nominated(pod, "Unschedulable", "no room", "n1"))
        await asyncio.sleep(0)
        assert not waiting.done()
        scene.losers[-1](done)
        assert await waiting is done
    assert scene.statuses == [("n1", "no room")] * 2


async def test_a_nomination_no_path_can_name_is_not_written(scene):
    assert not await scene.writer.nominated(make_pod_info(".."), "Unschedulable", "no room", "n1")


def test_a_nomination_is_taken_back_with_the_condition_or_alone(scene):
    scene.say(pending_pod("no room"), nomination="")
    scene.writer.nomination_ended(pending_pod())
    scene.writer.nomination_ended(make_pod_info(".."))
    assert scene.statuses == [(None, "no room"), (None, None)]


def test_a_pod_no_path_can_name_is_logged_and_left(scene, caplog):
    for name in ("..", "", "\ud800"):
        scene.say(make_pod_info(name))
    assert scene.statuses == []
    assert len(caplog.records) == 3


def test_what_was_written_is_forgotten_with_the_version_of_the_pod(scene):
    pod = pending_pod()
    gone = weakref.ref(pod)
    scene.say(pod)
    scene.losers.clear()
    del pod
    gc.collect()
    assert gone() is None


async def test_the_node_of_a_pod_that_is_about_to_be_bound_waits_for_no_condition(scene):
    announcing = asyncio.create_task(scene.writer.expected_on(make_pod_info(uid="p"), "n1"))
    await asyncio.sleep(0)
    scene.losers[0](True)
    assert await announcing
    assert (scene.statuses, scene.urgent) == ([("n1", None)], [True])
