import asyncio
import json

import pytest
from tests.scheduler.dispatcher_scene import Scene, call_to, settle, warnings

from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.response import ApiResponse


async def test_binds_run_at_once_up_to_their_limit():
    scene = Scene(binds=3)
    release, running, most = asyncio.Event(), 0, 0

    async def job():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1

    scene.submit(job, times=10)
    await settle()
    assert (running, scene.dispatcher.jobs_in_flight) == (3, 10)
    release.set()
    await scene.drain()
    assert (most, running, scene.dispatcher.jobs_in_flight) == (3, 0, 0)


async def test_calls_run_at_once_up_to_their_limit():
    scene = Scene(others=2)
    scene.send(*"abcdefghi")
    await scene.drain()
    assert (scene.events.most, len(scene.events.done)) == (2, 9)


async def test_an_urgent_patch_waits_for_no_other():
    scene = Scene()
    names = ["a0", "a1", "a2", "b", "c"]
    scene.client.closed = {"a0", "a1", "a2"}
    for name in [*names, "d"]:
        scene.patch(name)
    scene.patch("d", b"urgent", urgent=True)
    await settle()
    assert scene.client.done == [("d", b"urgent")]
    scene.open()
    await scene.drain()
    assert [name for name, _ in scene.client.done] == ["d", *names]


async def test_an_urgent_patch_waits_for_one_of_its_pod_and_for_no_other():
    scene = Scene(others=1)
    scene.client.closed = {"a"}
    scene.patch("a", b"1")
    scene.patch("b", b"1")
    await settle()
    scene.patch("a", b"2", urgent=True)
    await settle()
    assert scene.client.started == ["a"]
    scene.client.closed = set()
    await scene.drain()
    assert [each for each in scene.client.done if each[0] == "a"] == [("a", b"1"), ("a", b"2")]
    assert scene.lost == []


async def test_an_urgent_patch_that_raises_is_told_and_logged(caplog):
    scene = Scene()
    scene.client.answers["u"] = [RuntimeError("broken")]
    scene.patch("u", b"1", urgent=True)
    await scene.drain()
    assert scene.lost == [("u", b"1")]
    assert len(warnings(caplog)) == 1


async def test_waiting_patches_of_one_pod_are_sent_as_one_and_the_latest_counts():
    scene = Scene()
    scene.close()
    scene.patch("u", b"1")
    await settle()
    for body in (b"2", b"3", b"4"):
        scene.patch("u", body)
    scene.patch("v", b"1")
    await settle()
    assert scene.client.started == ["u", "v"]
    scene.open()
    await scene.drain()
    assert sorted(scene.client.done) == [("u", b"1"), ("u", b"4"), ("v", b"1")]
    assert scene.lost == []


async def test_a_patch_that_joins_a_waiting_one_takes_nothing_back_and_both_are_told():
    scene, sent, told = Scene(), [], []
    scene.close()
    scene.patch("u")
    await settle()

    async def request(method, path, *, body=None, **_):
        sent.append(json.loads(body)["status"])
        return ApiResponse(200, b"")

    scene.client.request = request
    for status in ({"nominatedNodeName": "n1", "conditions": [1]}, {"conditions": [2]}):
        body = json.dumps({"metadata": {"uid": "u"}, "status": status}).encode()
        scene.dispatcher.patch("u", call_to("u", method="PATCH", body=body), told.append)
    scene.open()
    await scene.drain()
    assert sent == [{"nominatedNodeName": "n1", "conditions": [2]}]
    assert told == [True, True]


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError()], ids=repr)
async def test_a_job_that_raises_costs_no_worker(error, caplog):
    scene = Scene(binds=1, others=1)
    done = []

    async def bad():
        raise error

    async def good():
        done.append(1)

    scene.client.answers["u"] = [RuntimeError("broken")]
    for job in (bad, good, bad, good):
        scene.submit(job)
    scene.patch("u")
    scene.send("e")
    await scene.drain()
    assert done == [1, 1]
    assert scene.lost == [("u", b"")]
    assert scene.events.done == [("e", None)]
    assert len(warnings(caplog)) == 3


async def test_what_finds_no_room_among_very_many_events_is_dropped_and_that_is_said(caplog):
    scene = Scene()
    scene.close()
    scene.send(*(f"e{number}" for number in range(30_000)))
    scene.patch("u")
    await settle()
    scene.open()
    await scene.drain()
    sent = len(scene.events.done)
    assert 15_000 < sent < 30_000
    assert scene.events.done[0] == ("e0", None)
    assert scene.client.done == [("u", b"")]
    assert len(warnings(caplog)) == 1 + (30_000 - sent) // 1000, "the first, and one in a thousand"


async def test_a_drain_finishes_binds_before_it_stops_waiting_for_calls():
    scene = Scene()
    scene.close()

    async def job():
        await settle()
        # What a bind says at its end is still sent.
        scene.send("bound")
        scene.open()

    scene.submit(job, times=100)
    await scene.drain()
    assert scene.events.done == [("bound", None)] * 100


async def test_a_drain_ends_in_time_whatever_hangs(caplog):
    scene = Scene(binds=2, others=1)
    scene.close()
    stopped = []

    async def hang():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    scene.submit(hang, times=5)
    scene.send(*"abcde")
    await settle()
    await scene.drain(binds_seconds=0.01, calls_seconds=0.01)
    assert stopped == [1, 1]
    assert "left=10" in warnings(caplog)[0].message
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_what_the_server_answers_to_a_patch_is_told_if_it_took_it():
    scene = Scene()
    scene.client.answers["refused"] = [404]
    scene.patch("taken")
    scene.patch("refused")
    scene.send("event")
    await scene.drain()
    assert scene.patched == [b"taken"]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_request_gives_the_last_answer_and_none_if_there_was_none(method):
    scene = Scene()
    scene.client.answers["v"] = [503, AmbiguousError("lost"), 429]
    scene.client.answers["w"] = [AmbiguousError("lost")] * 4
    scene.client.answers["x"] = [409]
    answers = [await scene.dispatcher.request(call_to(path, method=method)) for path in ("v", "w", "x")]
    assert [answer and answer.status for answer in answers] == [429, None, 409]
    assert scene.client.started == ["v"] * 3 + ["w"] * 4 + ["x"]


PASSING = [409, 500, 502, 503, 504, AmbiguousError("lost"), UnreachableError("refused"), asyncio.CancelledError()]


@pytest.mark.parametrize("problem", PASSING, ids=repr)
async def test_a_patch_is_sent_again_after_what_may_pass(problem):
    scene = Scene()
    scene.client.answers["u"] = [problem] * 3
    scene.patch("u")
    await scene.drain()
    assert scene.client.started == ["u"] * 4
    assert scene.sleeps.delays == [0.1, 0.5, 2.0]
    assert scene.lost == []


@pytest.mark.parametrize("problem", [400, 401, 403, 404, 422, 429, 507])
async def test_a_patch_is_given_up_at_once_after_what_does_not_pass(problem, caplog):
    scene = Scene()
    scene.client.answers["u"] = [problem] * 9
    scene.patch("u", b"1")
    await scene.drain()
    assert scene.client.started == ["u"]
    assert scene.lost == [("u", b"1")]
    # A pod that is gone or was recreated is nothing to worry about.
    assert len(warnings(caplog)) == (0 if problem in {404, 422} else 1)


async def test_a_call_is_given_up_after_four_tries(caplog):
    scene = Scene()
    scene.events.answers["e"] = [503] * 9
    scene.client.answers["u"] = [AmbiguousError("lost")] * 9
    scene.send("e")
    scene.patch("u", b"1")
    await scene.drain()
    assert (scene.events.started, scene.client.started) == (["e"] * 4, ["u"] * 4)
    assert scene.lost == [("u", b"1")]
    assert sorted("lost" in r.message for r in warnings(caplog)) == [False, True]


async def test_an_event_that_exists_already_was_created_by_a_try_whose_answer_was_lost(caplog):
    scene = Scene()
    scene.events.answers["e"] = [AmbiguousError("lost"), 409]
    scene.send("e")
    await scene.drain()
    assert scene.events.started == ["e", "e"]
    assert warnings(caplog) == []


async def test_the_log_says_which_call_is_given_up_and_what_the_server_answered(caplog):
    scene = Scene()
    words = 'Internal error occurred: failed calling webhook "w": ' + 1000 * "x"
    scene.events.answers["e"] = [ApiResponse(500, json.dumps({"message": words}).encode())]
    scene.send("e")
    await scene.drain()
    (line,) = [each.getMessage() for each in warnings(caplog)]
    assert f"path={call_to('e').path} " in line
    assert """'status 500: Internal error occurred: failed calling webhook "w": xxx""" in line
    assert len(line) < 500


async def test_what_admission_refuses_is_not_sent_again_but_for_patches():
    scene = Scene()
    refusal = ApiResponse(500, b'{"message": "Internal error occurred: failed calling webhook \\"w\\": EOF"}')
    for client in (scene.client, scene.events):
        client.answers["a"] = [refusal] * 9
    scene.send("a")
    await scene.dispatcher.request(call_to("a"))
    await scene.drain()
    assert (scene.events.started, scene.client.started) == (["a"], ["a"])
    scene.patch("a", patient=True)
    await scene.drain()
    assert scene.client.started == ["a"] * 5
    assert scene.lost == [("a", b"")]
