"""The PriorityClasses of the cluster, read for a question."""

import asyncio

import pytest
from tests.faults.faults import Garbage, HalfReply, Refuse

from bayplan.api.credentials import Credentials
from bayplan.api.watch_source import WatchSource
from bayplan.live.simulation import PATH, PriorityClassList


def priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | fields


def listing(server):
    return PriorityClassList(Credentials(server=server.url))


async def test_all_classes_are_read(server):
    server.put(PATH, priority_class("urgent", 1000, preemptionPolicy="Never"))
    server.put(PATH, priority_class("usual", 5, globalDefault=True))
    known = await listing(server).read()
    assert known.problem == ""
    found = {each.metadata.name: (each.value, each.global_default, each.preemption_policy) for each in known.classes}
    assert found == {"urgent": (1000, False, "Never"), "usual": (5, True, None)}


async def test_a_class_that_cannot_be_read_is_left_out(server):
    server.put(PATH, priority_class("odd", "much"))
    server.put(PATH, priority_class("urgent", 1000))
    assert [each.metadata.name for each in (await listing(server).read()).classes] == ["urgent"]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Refuse(403), "the API server answers 403 to who lists them"),
        (Garbage(), "the API server does not answer"),
        (HalfReply(), "the API server does not answer"),
    ],
)
async def test_where_they_cannot_be_listed_it_is_said_why(server, fault, problem):
    server.inject(fault, path=PATH, times=2)
    assert await listing(server).read() == ((), problem)


async def test_questions_that_come_together_share_one_list(server):
    server.put(PATH, priority_class("urgent", 1000))
    opened = []

    def open_source(*arguments, **timeouts):
        opened.append(arguments)
        return WatchSource(*arguments, **timeouts)

    listed = PriorityClassList(Credentials(server=server.url), open_source=open_source)
    answers = await asyncio.gather(*(listed.read() for _ in range(20)))
    assert [len(each.classes) for each in answers] == [1] * 20
    assert len(opened) == 1
    server.put(PATH, priority_class("usual", 5))
    assert len((await listed.read()).classes) == 2


async def test_who_goes_away_takes_the_answer_from_nobody(server):
    server.put(PATH, priority_class("urgent", 1000))
    listed = listing(server)
    gone = asyncio.create_task(listed.read())
    stays = asyncio.create_task(listed.read())
    await asyncio.sleep(0)
    gone.cancel()
    assert len((await stays).classes) == 1
