"""What the running scheduler says of itself, its nodes, its queue and its decisions."""

import asyncio
import json
import threading

import pytest
from tests.live.live_scene import LiveScene
from tests.waiting import until

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.live.inspector import AnswerThread


async def told(question):
    return json.loads(await question)


@pytest.fixture
async def scene():
    made = LiveScene()
    for name, cpu in (("n10", "8"), ("n2", "4")):
        made.node(name, cpu=cpu, memory="8Gi", pods=10)
    for number in range(3):
        made.pod(f"p{number}", memory="1Gi")
        await made.attempt()
    return made


async def test_the_summary_says_who_schedules_and_how_full_the_cluster_is(scene):
    summary = await told(scene.inspector.summary())
    assert (summary["identity"], summary["leading"], summary["nodes"], summary["pods"]) == ("host_1", True, 2, 3)
    (profile,) = summary["profiles"]
    assert (profile["schedulerName"], profile["strategy"], profile["shape"]) == ("bayplan", "MostAllocated", None)
    assert profile["resources"] == [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    packing = {each["resource"]: each for each in summary["packing"]}
    assert packing["cpu"] == {
        "resource": "cpu",
        "requested": 3000,
        "allocatable": 12000,
        "stranded": 0,
        "nodesUsed": 1,
        "lowerBound": 1,
        "largestFree": 8000,
    }
    assert packing["pods"]["requested"] == 3


async def test_a_standby_answers_and_says_that_it_is_one(scene):
    scene.leading = False
    assert (await told(scene.inspector.summary()))["leading"] is False


async def test_nodes_come_in_columns_in_natural_order(scene):
    nodes = await told(scene.inspector.nodes())
    assert (nodes["names"], nodes["pods"], nodes["unschedulable"]) == (["n2", "n10"], [3, 0], [False, False])
    assert nodes["requested"]["cpu"] == [3000, 0]
    assert nodes["allocatable"]["memory"] == [8 << 30, 8 << 30]
    assert nodes["resources"] == ["cpu", "memory", "pods"]


async def test_a_node_tells_its_pods_and_how_sure_they_are(scene):
    scene.pod("waits", nominated="n2")
    node = await told(scene.inspector.node("n2"))
    assert [(pod["name"], pod["state"]) for pod in node["pods"]] == [
        ("p0", "assumed"),
        ("p1", "assumed"),
        ("p2", "assumed"),
        ("waits", "nominated"),
    ]
    assert node["requested"] == {"cpu": 3000, "memory": 3 << 30, "pods": 3}


async def test_a_node_that_is_not_there_is_not_found(scene):
    with pytest.raises(RefusedQuestionError, match="there is no node") as raised:
        await scene.inspector.node("n3\x1b")
    assert raised.value.status == 404


async def test_the_queue_comes_in_pages_active_pods_first_in_their_order(scene):
    scene.pod("big", cpu="99")
    await scene.attempt()
    for name, priority in (("a", 1), ("b", 5), ("c", 5)):
        scene.pod(name, priority=priority)
    scene.pod("held", gates=["x"])
    first = await told(scene.inspector.queue_page(0, 2))
    assert (first["total"], first["continue"]) == (5, "2")
    assert [(each["name"], each["position"]) for each in first["items"]] == [("b", 1), ("c", 2)]
    rest = await told(scene.inspector.queue_page(2, 10))
    assert [(each["name"], each["queue"], each["position"]) for each in rest["items"]] == [
        ("a", "active", 3),
        ("big", "unschedulable", None),
        ("held", "gated", None),
    ]
    assert rest["continue"] is None
    assert (await told(scene.inspector.queue_page(50, 10)))["items"] == []


async def test_a_pod_that_backs_off_says_when_it_is_tried_again(scene):
    scene.now = 100.0
    scene.pod("big", cpu="99")
    await scene.attempt()
    scene.node("n3", cpu="100")
    (item,) = (await told(scene.inspector.queue_page(0, 10)))["items"]
    assert item["queue"] == "backoff"
    assert item["nextRetry"] > item["waitingSince"]


async def test_decisions_are_told_from_a_number_on(scene):
    scene.pod("big", cpu="99")
    await scene.attempt()
    decisions = await told(scene.inspector.decisions(2, 10))
    assert (decisions["last"], decisions["dropped"]) == (4, False)
    assert [(each["seq"], each["name"], each["node"]) for each in decisions["items"]] == [
        (3, "p2", "n2"),
        (4, "big", None),
    ]
    assert decisions["items"][1]["message"].startswith("0/2 nodes are available")
    assert (await told(scene.inspector.decisions(99, 10)))["dropped"] is True


async def test_one_question_is_worked_out_at_a_time_and_too_many_are_told_to_come_again():
    thread = AnswerThread(most_waiting=3)
    go, running = threading.Event(), []

    def work(number):
        running.append(number)
        assert go.wait(20)
        return b"%d" % number

    asked = [asyncio.create_task(thread.answer(lambda number=number: number, work)) for number in range(3)]
    await until(lambda: running)
    with pytest.raises(RefusedQuestionError) as raised:
        await thread.answer(lambda: 9, work)
    assert (raised.value.status, raised.value.retry_after) == (429, 1)
    assert running == [0]
    go.set()
    assert await asyncio.gather(*asked) == [b"0", b"1", b"2"]
    assert await thread.answer(lambda: 4, work) == b"4"
    thread.stop()


async def test_who_gives_up_leaves_the_turn_to_the_next_only_when_the_work_is_done():
    thread = AnswerThread(seconds=0.05)
    go, ended = threading.Event(), []

    def slow(_):
        go.wait(20)
        ended.append("slow")
        return b""

    with pytest.raises(RefusedQuestionError, match=r"longer than 0\.05 s") as raised:
        await thread.answer(lambda: None, slow)
    assert raised.value.status == 503
    go.set()
    assert await thread.answer(lambda: ended[:], lambda seen: str(seen).encode()) == b"['slow']"
    thread.stop()


async def test_a_question_that_fails_gives_the_turn_back():
    thread = AnswerThread()

    def fail(_):
        raise KeyError("x")

    with pytest.raises(KeyError):
        await thread.answer(lambda: None, fail)
    with pytest.raises(KeyError):
        await thread.answer(lambda: fail(None), lambda _: b"")
    assert await thread.answer(lambda: None, lambda _: b"ok") == b"ok"
    thread.stop()
