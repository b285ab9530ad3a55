import asyncio
import gc
import json
import weakref
from datetime import UTC, datetime

from tests.builders import make_pod_info

from bayplan.api.objects import PodCondition
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.failure_reporter import PodConditions


class Sent:
    """Takes patches; `lose` gives the last one up."""

    def __init__(self):
        self.calls = []
        self.statuses = []
        self.losers = []

    def __call__(self, uid, call, lost):
        status = json.loads(call.body)["status"]
        message = status["conditions"][0]["message"] if "conditions" in status else None
        self.calls.append((uid, message))
        self.statuses.append((status.get("nominatedNodeName", "nothing"), message))
        self.losers.append(lost)

    def messages(self):
        return [message for _, message in self.calls]


def conditions():
    sent = Sent()
    return PodConditions(sent, now=lambda: datetime(2026, 1, 1, tzinfo=UTC)), sent


def pending_pod(message=None, **fields) -> PodInfo:
    said = [PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)]
    return make_pod_info(uid="u", conditions=said if message else (), **fields)


def test_the_same_reason_is_written_once_before_the_watch_shows_it():
    writer, sent = conditions()
    pod = pending_pod()
    for _ in range(3):
        writer.pending(pod, "Unschedulable", "no room")
    assert sent.calls == [("u", "no room")]
    writer.pending(pending_pod("no room"), "Unschedulable", "no room")
    assert len(sent.calls) == 1


def test_a_reason_that_goes_and_comes_back_is_written_each_time():
    writer, sent = conditions()
    pod = pending_pod("a")
    for message in ("b", "a", "a", "b"):
        writer.pending(pod, "Unschedulable", message)
    assert sent.messages() == ["b", "a", "b"]


def test_another_reason_with_the_same_message_is_written():
    writer, sent = conditions()
    pod = pending_pod()
    writer.pending(pod, "Unschedulable", "x")
    writer.pending(pod, "SchedulerError", "x")
    assert len(sent.calls) == 2


def test_a_condition_somebody_else_overwrote_is_written_again():
    writer, sent = conditions()
    writer.pending(pending_pod(), "Unschedulable", "no room")
    writer.pending(pending_pod("theirs"), "Unschedulable", "no room")
    assert sent.messages() == ["no room", "no room"]


def test_a_write_that_was_given_up_is_made_up_for_at_the_next_attempt():
    writer, sent = conditions()
    pod = pending_pod()
    writer.pending(pod, "Unschedulable", "no room")
    sent.losers[0](False)
    writer.pending(pod, "Unschedulable", "no room")
    assert sent.messages() == ["no room", "no room"]


def test_the_loss_of_an_older_write_does_not_repeat_the_newer_one():
    writer, sent = conditions()
    pod = pending_pod()
    writer.pending(pod, "Unschedulable", "a")
    writer.pending(pod, "Unschedulable", "b")
    sent.losers[0](False)
    writer.pending(pod, "Unschedulable", "b")
    assert sent.messages() == ["a", "b"]


async def test_a_nomination_is_written_with_the_condition_even_if_that_is_known_and_waits_for_the_answer():
    writer, sent = conditions()
    pod = pending_pod("no room")
    for done in (True, False):
        waiting = asyncio.ensure_future(writer.nominated(pod, "Unschedulable", "no room", "n1"))
        await asyncio.sleep(0)
        assert not waiting.done()
        sent.losers[-1](done)
        assert await waiting is done
    assert sent.statuses == [("n1", "no room")] * 2


async def test_a_nomination_no_path_can_name_is_not_written():
    writer, _ = conditions()
    assert not await writer.nominated(make_pod_info(".."), "Unschedulable", "no room", "n1")


def test_a_nomination_is_taken_back_with_the_condition_or_alone():
    writer, sent = conditions()
    writer.pending(pending_pod("no room"), "Unschedulable", "no room", nomination="")
    writer.nomination_ended(pending_pod())
    writer.nomination_ended(make_pod_info(".."))
    assert sent.statuses == [(None, "no room"), (None, None)]


def test_a_long_message_is_recognised_after_it_was_cut():
    writer, sent = conditions()
    pod = pending_pod()
    for _ in range(2):
        writer.pending(pod, "Unschedulable", "x" * 100_000)
    assert len(sent.calls) == 1


def test_a_pod_no_path_can_name_is_logged_and_left(caplog):
    writer, sent = conditions()
    for name in ("..", "", "\ud800"):
        writer.pending(make_pod_info(name), "Unschedulable", "no room")
    assert sent.calls == []
    assert len(caplog.records) == 3


def test_what_was_written_is_forgotten_with_the_version_of_the_pod():
    writer, sent = conditions()
    pod = pending_pod()
    gone = weakref.ref(pod)
    writer.pending(pod, "Unschedulable", "no room")
    sent.losers.clear()
    del pod
    gc.collect()
    assert gone() is None
