"""The checks after a sequence find what they are for: each bug planted here breaks its promise within some seeds."""

import asyncio

import pytest
from tests.faults.memory_api import MemoryApi
from tests.faults.sequences import failure
from tests.faults.steps import Step, draw

from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.cache.cache import Cache
from bayplan.cache.node_table import NodeTable
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import binding_call, nomination_call, pod_scheduled_call
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.failure_reporter import FailureReporter
from bayplan.scheduler.pod_conditions import PodConditions
from bayplan.scheduler.preemption import PreemptionExecutor

SEEDS = range(1, 60)


def found(promise):
    """Whether some seed breaks the promise."""
    return any(each.startswith(f"{promise} ") for seed in SEEDS for each in failure(seed, draw(seed)))


def test_a_cache_that_does_not_forget_a_node_is_found(monkeypatch):
    monkeypatch.setattr(Cache, "remove_node", lambda self, name: None)
    assert found("P22")


def test_a_cache_that_counts_a_pod_twice_is_found(monkeypatch):
    add = NodeTable.add_pod

    def add_twice(self, pod, node_name):
        row = add(self, pod, node_name)
        self.non_zero_cpu[row] += 1
        return row

    monkeypatch.setattr(NodeTable, "add_pod", add_twice)
    assert found("P22")


def test_a_cache_that_forgets_what_is_assumed_is_found(monkeypatch):
    monkeypatch.setattr(NodeTable, "_count", lambda self, pod, row, sign: None)
    assert found("P3")


def test_a_binder_that_does_not_look_whether_the_node_is_there_is_found(monkeypatch):
    steps = [
        Step("node", {"name": "n1", "cpu": 3, "zone": "a"}, 1.0),
        Step("fault", {"fault": "429", "verb": "BIND", "times": 3}),
        Step("pod", {"name": "p1", "cpu": 1000}, 0.1),
        Step("drop_node", {"name": "n1"}),
    ]
    assert failure(1, steps) == []
    monkeypatch.setattr(Cache, "has_node", lambda self, name: True)
    (broken,) = failure(1, steps)
    assert broken == "P6 p1 was bound to n1, which was known to be gone"


def test_a_binder_that_takes_a_lost_answer_for_a_refusal_is_found(monkeypatch):
    async def bind(self, binding, turn):
        call = binding_call(binding)
        try:
            answer = await self.client.request("POST", call.path, body=call.body)
        except (AmbiguousError, UnreachableError) as error:
            raise BindError(str(error)) from error
        if answer.status != 201:
            raise BindError(f"status {answer.status}")
        return BindResult.BOUND

    monkeypatch.setattr(Binder, "bind", bind)
    assert found("P3")


def test_victims_that_are_not_told_why_are_found(monkeypatch):
    monkeypatch.setattr("bayplan.scheduler.preemption.disruption_target_call", lambda *_: None)
    assert found("P16")


def test_a_queue_that_hears_of_nothing_is_found(monkeypatch):
    monkeypatch.setattr(SchedulingQueue, "move_all", lambda self, *_, **__: None)
    assert found("P7")


ROOM_FOR_ONE = Step("node", {"name": "n1", "cpu": 2, "zone": "a"}, 1.0)
TOO_LARGE = [ROOM_FOR_ONE, Step("pod", {"name": "p1", "cpu": 3000}, 1.0)]
MAKES_ROOM = [
    ROOM_FOR_ONE,
    Step("pod", {"name": "low", "cpu": 2000, "grace": 20}, 1.0),
    Step("pod", {"name": "high", "cpu": 2000, "priority": 10}, 1.0),
]
LOSES_ITS_NODE = [*MAKES_ROOM, Step("drop_node", {"name": "n1"}, 1.0)]


@pytest.mark.parametrize("steps", [TOO_LARGE, MAKES_ROOM, LOSES_ITS_NODE], ids=["too large", "room", "no node"])
def test_without_a_bug_nothing_is_found(steps):
    assert failure(1, steps) == []


def post_twice(seconds):
    """A binder that sends each binding again after so long."""

    async def bind(self, binding, turn):
        call = binding_call(binding)
        await self.client.request("POST", call.path, body=call.body)
        await asyncio.sleep(seconds)
        await self.client.request("POST", call.path, body=call.body)
        return BindResult.BOUND

    return bind


class Forgetful(MemoryApi):
    """An API server that binds a pod again that is on a node."""

    def _bind(self, target, obj, body):
        return super()._bind(target, {**obj, "spec": {**obj["spec"], "nodeName": ""}}, body)


def test_a_pod_that_is_bound_twice_is_found(monkeypatch):
    monkeypatch.setattr(Binder, "bind", post_twice(0.0))
    monkeypatch.setattr("tests.faults.steps.MemoryApi", Forgetful)
    assert any(each.startswith("P1 ") for each in failure(1, MAKES_ROOM[:2]))


def test_a_binding_for_a_pod_that_was_seen_on_a_node_is_found(monkeypatch):
    monkeypatch.setattr(Binder, "bind", post_twice(1.0))
    assert any(each.startswith("P2 ") for each in failure(1, MAKES_ROOM[:2]))


def test_a_victim_of_a_pod_that_was_never_nominated_is_found(monkeypatch):
    async def nominated(self, *_):
        return True

    monkeypatch.setattr(PodConditions, "nominated", nominated)
    assert any(each.startswith("P13 low ") for each in failure(1, MAKES_ROOM))


def test_a_nomination_that_is_never_taken_back_is_found(monkeypatch):
    def without_an_end(*given, nomination=None, **options):
        return pod_scheduled_call(*given, nomination=nomination or None, **options)

    writes = "bayplan.scheduler.pod_conditions."
    monkeypatch.setattr(f"{writes}pod_scheduled_call", without_an_end)
    monkeypatch.setattr(f"{writes}nomination_call", lambda pod, node: nomination_call(pod, node or "n1"))
    assert any(each.startswith("P17 high ") for each in failure(1, LOSES_ITS_NODE))


def test_what_is_written_over_and_over_is_found(monkeypatch):
    def sweep(self):
        for uid in self.queue.uids():
            self.failures.conditions.nomination_ended(self.queue.newest(uid))

    monkeypatch.setattr(PreemptionExecutor, "sweep", sweep)
    assert any(each.startswith("P19 PATCH ") for each in failure(1, TOO_LARGE))


def test_a_pod_that_waits_and_does_not_say_so_is_found(monkeypatch):
    monkeypatch.setattr(FailureReporter, "report", lambda self, failed: None)
    assert any(each.startswith("P21 p1 ") for each in failure(1, TOO_LARGE))
