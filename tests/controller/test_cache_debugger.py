import asyncio

import pytest
from tests.builders import make_node, make_pod
from tests.controller.kubernetes_api import NODES, PODS, Meanwhile, node, pod
from tests.faults.faults import Delay, Garbage, HalfReply, Refuse
from tests.scheduler.handler_scene import HandlerScene
from tests.waiting import Sleeps

from bayplan.api.credentials import Credentials
from bayplan.api.workload_objects import Service
from bayplan.scheduler.cache_comparison import ListError
from bayplan.scheduler.cache_debugger import CacheDebugger

SERVICES = "/api/v1/services"


class Debugged(HandlerScene):
    """A cache with one node, as the API server has it, and what compares the two."""

    def __init__(self, server):
        super().__init__()
        self.server, self.sleeps, self.told = server, Sleeps(), []
        stored = server.put(NODES, node("a"))
        offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        meta = stored["metadata"]
        self.node_a = make_node("a", uid=meta["uid"], resource_version=meta["resourceVersion"], allocatable=offered)
        self.cache.set_node(self.node_a)
        self.debugger = CacheDebugger(
            Credentials(server=server.url),
            self.cache,
            self.queue,
            frozenset({"bayplan"}),
            on_compared=self.told.append,
            sleep=self.sleeps,
        )

    async def differing(self):
        found = await self.debugger.compare()
        return {(each.kind, each.key) for each in found.differences}

    def put_pod(self, name, *, held=True, **fields):
        """A pod that the API server has, and the cache too, or not."""
        stored = self.server.put(PODS, pod(name, **fields))["metadata"]
        same = {"uid": stored["uid"], "resource_version": stored["resourceVersion"], "cpu": "1"}
        if held and "nodeName" in fields:
            self.assigned.on_add(make_pod(name, node=fields["nodeName"], **same))
        elif held:
            self.pending.changed(make_pod(name, **same))
        return stored["uid"]


@pytest.fixture
async def debugged(server):
    return Debugged(server)


async def test_a_cache_that_equals_the_cluster_is_looked_at_once(debugged):
    debugged.put_pod("bound", nodeName="a")
    debugged.put_pod("waits")
    found = await debugged.debugger.compare()
    assert list(found.differences) == []
    assert found.compared == {"nodes": 1, "nominations": 0, "pending": 1, "pods": 1}
    assert debugged.sleeps.delays == []
    assert debugged.told == [{}]
    assert debugged.server.lists(PODS) == 1


async def test_what_is_missing_and_what_is_too_much_is_found_after_a_second_look(debugged):
    missed = debugged.put_pod("missed", nodeName="a", held=False)
    debugged.pending.changed(make_pod("ghost", uid="ghost"))
    assert await debugged.differing() == {("pods", missed), ("pending", "ghost")}
    assert debugged.sleeps.delays == [5.0]
    assert debugged.told == [{"pending": 1, "pods": 1}]


async def test_what_a_watch_tells_between_the_two_looks_is_no_difference(debugged):
    late = debugged.put_pod("late", nodeName="a", held=False)

    async def watched(_):
        debugged.assigned.on_add(make_pod("late", uid=late, node="a", cpu="1"))

    debugged.debugger.sleep = watched
    assert await debugged.differing() == set()


async def test_kinds_that_plugins_look_up_are_compared_and_no_others(debugged):
    debugged.server.put(SERVICES, {"metadata": {"name": "s", "namespace": "default"}})
    assert await debugged.differing() == set()
    debugged.cache.listers.of(Service)
    assert await debugged.differing() == {("services", "default/s")}


async def test_a_kind_that_is_not_served_is_left_out(debugged):
    debugged.cache.listers.of(Service).set(Service(metadata=make_pod("s").metadata))
    debugged.server.inject(Refuse(404), path=SERVICES, times=2)
    assert await debugged.differing() == set()


async def test_a_list_of_many_pages_is_read_to_its_end(debugged):
    for number in range(501):
        debugged.put_pod(f"p{number}")
    assert await debugged.differing() == set()
    assert debugged.server.lists(PODS) == 2


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(403), HalfReply(), Garbage()])
async def test_without_a_list_nothing_is_said(debugged, fault):
    debugged.server.inject(fault, path=NODES)
    with pytest.raises(ListError, match="nodes: "):
        await debugged.debugger.compare()
    assert debugged.told == []
    assert await debugged.differing() == set()


async def test_who_asks_during_a_comparison_gets_its_answer(debugged):
    debugged.server.inject(Delay(0.05), path=NODES)
    first, second = await asyncio.gather(debugged.debugger.compare(), debugged.debugger.compare())
    assert first is second
    assert debugged.server.lists(NODES) == 1


async def test_an_object_that_cannot_be_read_is_no_difference(debugged):
    odd = pod("odd", nodeName="a")
    odd["spec"]["containers"] = "nonsense"
    debugged.server.put(PODS, odd)
    assert await debugged.differing() == set()


async def test_a_pod_that_is_bound_while_the_lists_are_read_is_no_difference(debugged):
    uid = debugged.put_pod("moves")

    def bind():
        debugged.put_pod("moves", nodeName="a")
        debugged.pending.gone(uid)

    debugged.server.inject(Meanwhile(bind), path=PODS)
    assert await debugged.differing() == set()
