"""The checks after a sequence find what they are for: each bug planted here breaks its promise within some seeds."""

from tests.faults.sequences import failure
from tests.faults.steps import Step, draw

from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.cache.cache import Cache
from bayplan.cache.node_table import NodeTable
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import binding_call
from bayplan.scheduler.binder import Binder, BindError, BindResult

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
    async def bind(self, binding):
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
