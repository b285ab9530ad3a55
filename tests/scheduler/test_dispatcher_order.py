"""The order of what is written about one pod: patches, its bind, its Events."""

import asyncio

import pytest
from tests.scheduler.dispatcher_scene import Scene, settle, warnings
from tests.waiting import until

from bayplan.api.errors import AmbiguousError


def binding(scene, uid="u"):
    """Submit the bind of a pod; the list is filled when it begins."""
    begun = []

    async def job():
        begun.append([path for path, _ in scene.client.on_its_way])

    scene.submit(job, uid=uid)
    return begun


async def test_patches_that_wait_are_dropped_when_their_pod_is_to_be_bound():
    scene = Scene(others=1)
    scene.close()
    scene.patch("other", b"1")
    await settle()
    scene.patch("u", b"1")
    scene.patch("u", b"2")
    scene.patch("v", b"1")
    begun = binding(scene)
    assert scene.lost == [("u", b"1"), ("u", b"2")]
    scene.open()
    await scene.drain()
    assert (begun, scene.client.done) == ([["other"]], [("other", b"1"), ("v", b"1")])


async def test_a_bind_waits_for_the_patch_of_its_pod_that_is_on_its_way():
    scene = Scene()
    scene.close()
    scene.patch("u", b"1")
    await settle()
    scene.patch("u", b"2")
    begun, other = binding(scene), binding(scene, "v")
    await settle()
    assert (begun, other, scene.lost) == ([], [["u"]], [("u", b"2")])
    scene.open()
    await settle()
    assert (begun, scene.client.done) == ([[]], [("u", b"1")])
    await scene.drain()


@pytest.mark.parametrize("urgent", [False, True])
async def test_a_bind_waits_for_no_second_try_of_a_patch(urgent):
    scene = Scene()
    scene.client.answers["u"] = [503, 503]
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(seconds):
        asleep.set()
        await awake.wait()

    scene.sleeps.instead = sleep
    scene.patch("u", b"1", urgent=urgent)
    await asleep.wait()
    begun = binding(scene)
    await settle()
    assert begun == [[]]
    awake.set()
    await scene.drain()
    assert (scene.client.started, scene.lost) == (["u"], [("u", b"1")])


async def test_what_comes_between_two_tries_of_a_patch_is_sent_with_the_next():
    scene = Scene()
    scene.client.answers["u"] = [503]

    async def sleep(seconds):
        scene.patch("u", b"2")

    scene.sleeps.instead = sleep
    scene.patch("u", b"1")
    await scene.drain()
    assert (scene.client.bodies, scene.lost) == ([("u", b"1"), ("u", b"2")], [])


async def test_a_patch_that_others_join_is_tried_no_longer_for_that():
    scene = Scene()
    scene.client.answers["u"] = [503] * 99

    async def sleep(seconds):
        scene.patch("u", b"more")

    scene.sleeps.instead = sleep
    scene.patch("u", b"1")
    await scene.drain()
    assert scene.client.started == ["u"] * 4
    assert scene.lost == [("u", b"1")] + [("u", b"more")] * 3


async def test_a_patch_that_fails_while_a_bind_waits_for_it_is_not_tried_again(caplog):
    scene = Scene()
    scene.client.answers["u"] = [AmbiguousError("lost")]
    scene.client.closed = {"u"}
    scene.patch("u", b"1")
    await settle()
    begun = binding(scene)
    scene.open()
    await scene.drain()
    assert (begun, scene.client.started, scene.sleeps.delays) == ([[]], ["u"], [])
    assert scene.lost == [("u", b"1")]
    assert warnings(caplog) == [], "nobody misses it"


async def test_a_drain_waits_for_a_bind_that_waits_for_a_patch():
    scene = Scene()
    scene.close()
    scene.patch("u")
    await settle()
    begun = binding(scene)
    asyncio.get_running_loop().call_later(0.01, scene.open)
    await scene.drain()
    assert begun == [[]]


async def test_a_patch_after_a_failed_bind_is_sent():
    scene = Scene()
    scene.patch("u", b"1")
    await settle()

    async def fail():
        scene.patch("u", b"failed")

    scene.submit(fail, uid="u")
    await scene.drain()
    assert scene.client.done == [("u", b"1"), ("u", b"failed")]


async def test_events_of_one_pod_follow_each_other_and_those_of_others_do_not_wait():
    scene = Scene()
    scene.events.answers["failed"] = [503, 503]
    scene.send("failed", "series", "scheduled", uid="u")
    scene.send("other", uid="v")
    await scene.drain()
    assert [path for path in scene.events.started if path != "other"] == [*["failed"] * 3, "series", "scheduled"]
    assert scene.events.started.index("other") < scene.events.started.index("series")


async def test_an_event_given_up_lets_the_next_of_its_pod_go():
    scene = Scene(others=1)
    scene.events.answers["a"] = [RuntimeError("broken")]
    scene.events.answers["b"] = [403]
    scene.send(*"abc", uid="u")
    await scene.drain()
    assert scene.events.started == [*"abc"]


async def test_a_series_whose_event_is_not_there_is_created():
    scene = Scene()
    scene.events.answers["series"] = [404]
    scene.send("series", uid="u", method="PATCH", if_missing="create")
    await scene.drain()
    assert scene.events.started == ["series", "create"]


async def test_an_event_that_came_late_after_all_is_patched_then(caplog):
    scene = Scene()
    scene.events.answers["series"] = [404]
    scene.events.answers["create"] = [409]
    scene.send("series", uid="u", method="PATCH", if_missing="create")
    await scene.drain()
    assert scene.events.started == ["series", "create", "series"]
    assert warnings(caplog) == []


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_a_series_is_created_only_where_its_event_is_missing(status):
    scene = Scene()
    scene.events.answers["series"] = [status] * 9
    scene.send("series", uid="u", method="PATCH", if_missing="create")
    await scene.drain()
    assert "create" not in scene.events.started


async def test_a_task_that_is_ended_from_outside_is_reported():
    scene = Scene()
    watching = asyncio.create_task(scene.dispatcher.run())
    scene.close()
    scene.patch("u")
    await settle()
    (call,) = (task for task in asyncio.all_tasks() if task.get_name() == "pod_status_patch")
    call.cancel()
    with pytest.raises(RuntimeError, match="a task of the dispatcher was ended"):
        await watching
    await scene.drain()


async def test_a_drain_is_no_such_end():
    scene = Scene(slow_seconds=0.0)
    watching = asyncio.create_task(scene.dispatcher.run())
    scene.submit(asyncio.Event().wait, times=40)
    await settle()
    await scene.drain(binds_seconds=0.01)
    await settle()
    assert not watching.done()
    watching.cancel()


async def test_a_patient_patch_is_tried_for_ten_minutes_and_holds_nobody_meanwhile():
    scene = Scene(others=1)
    scene.client.answers["u"] = [502] * 6
    scene.patch("u", b"1", patient=True)
    scene.patch("v", b"1")
    await until(lambda: len(scene.client.done) == 8)
    assert scene.sleeps.delays == [0.1, 0.5, 2.0, 5.0, 10.0, 30.0]
    assert scene.client.started.index("v") == 1
    scene.client.answers["u"] = [503] * 99
    scene.patch("u", b"2", patient=True)
    await until(lambda: scene.lost == [("u", b"2")])
    assert sum(scene.sleeps.delays[6:]) > 580


async def resting_scene():
    """A dispatcher whose patch of the pod "u" rests between two rounds of tries, and what ends the rest."""
    scene = Scene()
    rested = asyncio.Event()

    async def sleep(seconds):
        await (rested.wait() if seconds >= 5.0 else asyncio.sleep(0))

    scene.sleeps.instead = sleep
    scene.client.answers["u"] = [503] * 4
    scene.patch("u", b"1", patient=True)
    await until(lambda: 5.0 in scene.sleeps.delays)
    return scene, rested


async def test_a_newer_patch_takes_the_place_of_one_that_rests():
    scene, rested = await resting_scene()
    scene.patch("u", b"2", patient=True)
    await until(lambda: scene.client.done[-1] == ("u", b"2"))
    rested.set()
    await scene.drain()
    assert [body for _, body in scene.client.bodies] == [b"1"] * 4 + [b"2"]
    assert scene.lost == []


async def test_a_patch_that_rests_is_dropped_when_its_pod_is_to_be_bound():
    scene, rested = await resting_scene()
    begun = binding(scene)
    await until(lambda: begun)
    rested.set()
    await scene.drain()
    assert (scene.lost, scene.client.started) == ([("u", b"1")], ["u"] * 4)


async def test_a_patch_that_rests_a_second_time_rests_all_of_it():
    scene, rested = await resting_scene()
    second, first = asyncio.Event(), scene.sleeps.instead
    scene.sleeps.instead = lambda seconds: second.wait() if seconds == 10.0 else first(seconds)
    scene.client.answers["u"] = [503]
    scene.patch("u", b"2", patient=True)
    await until(lambda: 10.0 in scene.sleeps.delays)
    rested.set()
    await settle()
    assert len(scene.client.done) == 5
    second.set()
    await until(lambda: len(scene.client.done) == 6)
    await scene.drain()
