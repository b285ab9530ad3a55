"""How often the condition of a pod that waits is written when only its text changes."""

import asyncio
import json

import pytest
from tests.builders import make_node, make_pod_info
from tests.waiting import until

from bayplan.api.objects import Condition
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.pod_conditions import KEPT_BYTES, PodConditions


class Scene:
    """Conditions on a clock that tests move by hand, and the texts that were written."""

    def __init__(self):
        self.now = 100.0
        self.pods = {"p": make_pod_info("p", uid="p")}
        self.writes = []
        self.conditions = PodConditions(self._send, self.pods.get, lambda: self.now)

    def _send(self, uid, call, ended, **options):
        status = json.loads(call.body)["status"]
        (condition,) = status["conditions"]
        message = condition["message"]
        self.writes.append((message, status["nominatedNodeName"]) if "nominatedNodeName" in status else message)

    def shows(self, message, uid="p"):
        """The watch shows a version of the pod with this condition."""
        said = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        self.pods[uid] = make_pod_info(uid=uid, conditions=[said])

    def fail(self, message, *, uid="p", reason="Unschedulable", nomination=None, backs_off=1.0):
        until = None if backs_off is None else self.now + backs_off
        return self.conditions.failed(self.pods[uid], reason, message, nomination=nomination, backs_off_until=until)

    def wait(self, seconds):
        """Time passes; what was written by then, as whoever makes Events of it is told."""
        self.now += seconds
        return [(pod.uid, message) for pod, message in self.conditions.flush(self.now)]

    def new_writes(self):
        writes, self.writes = self.writes, []
        return writes


@pytest.fixture
def told():
    """A pod of which it was written that nodes are full."""
    made = Scene()
    made.fail("full")
    assert made.new_writes() == ["full"]
    return made


def test_a_new_text_is_written_once_the_attempt_after_the_back_off_has_not_changed_it(told):
    told.fail("tainted", backs_off=2.0)
    told.wait(2.0)
    told.fail("tainted", backs_off=4.0)
    assert told.new_writes() == []
    assert told.conditions.next_deadline() == 103.0
    assert told.wait(1.0) == [("p", "tainted")]
    assert told.new_writes() == ["tainted"]
    assert told.conditions.next_deadline() is None


def test_whoever_reports_an_attempt_hears_whether_its_text_waits(told):
    assert told.fail("tainted") is True
    assert told.fail("full") is False, "that was written before"
    assert told.fail("no answer", reason="SchedulerError") is False, "that is written at once"


def test_of_texts_that_change_while_they_wait_the_newest_is_written(told):
    for number in range(6):
        told.fail(f"{number} tainted", backs_off=2.0)
        told.wait(0.5)
    assert told.new_writes() == ["5 tainted"]


def test_texts_of_many_pods_are_written_a_few_in_a_second(told):
    many(told, 100)
    written = []
    for _ in range(25):
        told.wait(1.0)
        written.append(len(told.new_writes()))
    assert (max(written), sum(written)) == (5, 100)


def test_texts_of_very_many_pods_are_all_written_within_five_minutes(told):
    many(told, 3000)
    written = []
    for _ in range(300):
        told.wait(1.0)
        written.append(len(told.new_writes()))
    assert sum(written) == 3000
    assert max(written) < 100


def many(told, number):
    """So many pods have another text at once."""
    for serial in range(number):
        told.shows("full", uid=f"{serial}")
        told.fail("tainted", uid=f"{serial}")


def test_a_text_that_became_what_it_was_is_not_written(told):
    told.fail("tainted")
    told.fail("full")
    assert told.conditions.next_deadline() is None
    told.wait(10.0)
    assert told.new_writes() == []


def test_texts_wait_no_longer_than_five_minutes_however_long_pods_back_off(told):
    told.fail("tainted", backs_off=3600.0)
    told.wait(300.0)
    assert told.new_writes() == ["tainted"]


def test_a_pod_that_does_not_back_off_is_written_on_at_once(told):
    told.fail("tainted", backs_off=None)
    assert told.new_writes() == ["tainted"]


def test_another_reason_is_written_at_once_and_takes_the_place_of_a_text_that_waits(told):
    told.fail("tainted")
    told.fail("no answer", reason="SchedulerError")
    assert told.new_writes() == ["no answer"]
    told.wait(10.0)
    assert told.new_writes() == []


def test_the_end_of_a_nomination_is_written_at_once_with_the_newest_text(told):
    told.fail("tainted")
    told.fail("full again", nomination="")
    told.wait(10.0)
    assert told.new_writes() == [("full again", None)]


def test_nothing_that_waits_is_written_on_a_pod_that_waits_no_more(told):
    told.fail("tainted")
    del told.pods["p"]
    told.wait(10.0)
    assert told.new_writes() == []


def test_what_somebody_else_wrote_meanwhile_is_not_written_again(told):
    told.fail("tainted")
    told.shows("tainted")
    assert told.wait(10.0) == []
    assert told.new_writes() == []


def test_nothing_that_waits_is_written_on_a_pod_that_is_forgotten(told):
    told.fail("tainted")
    told.conditions.forget_text("p")
    told.conditions.forget_text("unknown")
    told.wait(10.0)
    assert told.new_writes() == []


def test_texts_are_compared_as_they_are_cut(told):
    for _ in range(3):
        told.fail("x" * 100_000, backs_off=None)
    assert [len(message) for message in told.new_writes()] == [32 * 1024]


def test_the_texts_that_wait_have_a_bound_in_bytes_and_more_are_written_at_once(allocated):
    told = Scene()
    for number in range(2000):
        told.shows("full", uid=f"{number}")
    before = allocated()
    written = []
    for uid in map(str, range(2000)):
        told.fail(uid + "x" * 20_000, uid=uid)
        if told.new_writes():
            written.append(uid)
            del told.pods[uid]
    assert allocated() - before < KEPT_BYTES + 2**20
    assert 0 < len(written) < 2000
    told.wait(300.0)
    assert len(written) + len(told.new_writes()) == 2000


def refused_for_another_reason(scene):
    """A pod was refused by a small node and then, in other words, by two; the second text waits."""
    scene.node("small", cpu="1")
    scene.pod(cpu="2")
    scene.step()
    scene.node("closed", cpu="2", taints=["a:NoSchedule"])
    scene.now += 0.25
    assert scene.step() is not None
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    assert len(scene.dispatcher.patches) == 1


async def loop(scene, seconds):
    """The loop runs at this moment until it sleeps again."""
    scene.now += seconds
    task = asyncio.create_task(scene.scheduler.run())
    for _ in range(5):
        await asyncio.sleep(0)
    scene.scheduler.stop()
    await task


async def test_the_loop_writes_a_text_whose_time_has_come(scene):
    refused_for_another_reason(scene)
    await loop(scene, 15.0)
    assert [text.count("untolerated taint") for _, _, text in scene.dispatcher.patches] == [0, 1]


async def test_an_event_and_the_condition_say_the_same_at_the_same_time(scene):
    refused_for_another_reason(scene)
    assert len(scene.recorder.said) == 1
    await loop(scene, 15.0)
    assert [text for _, _, text in scene.recorder.said] == [text for _, _, text in scene.dispatcher.patches]


async def test_the_loop_wakes_by_itself_when_a_text_is_due(scene):
    refused_for_another_reason(scene)
    task = asyncio.create_task(scene.scheduler.run())
    await asyncio.sleep(0)
    scene.now = 3.999
    scene.news.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(scene.dispatcher.patches) == 1
    scene.now = 4.0
    await until(lambda: len(scene.dispatcher.patches) == 2)
    scene.scheduler.stop()
    await task


async def test_no_text_is_written_on_a_pod_that_got_a_node(scene):
    refused_for_another_reason(scene)
    scene.node("large")
    assert scene.step() is not None
    await scene.dispatcher.run()
    await loop(scene, 15.0)
    assert len(scene.dispatcher.patches) == 1


async def test_no_text_is_written_on_a_pod_that_is_gone(scene):
    refused_for_another_reason(scene)
    scene.pending.gone("p")
    await loop(scene, 15.0)
    assert len(scene.dispatcher.patches) == 1


async def test_while_taints_flap_a_pod_is_written_on_as_seldom_as_it_would_back_off(scene):
    """It is tried each time: an idle scheduler does not make it back off."""
    names = [f"n{number}" for number in range(50)]
    for name in names:
        scene.node(name, cpu="1", taints=["a:NoSchedule"])
    scene.pod(cpu="2")
    task = asyncio.create_task(scene.scheduler.run())
    for name in names:
        await asyncio.sleep(0)
        # One more node is tolerable now, and too small.
        scene.nodes.on_update(make_node(name, cpu="1", taints=["a:NoSchedule"]), make_node(name, cpu="1"))
        scene.now += 0.5
        scene.news.set()
    await asyncio.sleep(0)
    scene.scheduler.stop()
    await task
    assert len(scene.metrics.ended) == 51
    # At once, and then after 1, 2, 4, 8 and 10 seconds at the soonest, of the 25 that went by.
    assert len(scene.dispatcher.patches) <= 6
