"""What preemption does to preemptor, victims and other pods, with a PostFilter plugin that chooses as told."""

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.builders import make_node, make_pod

from bayplan.api.client import ApiResponse
from bayplan.api.errors import AmbiguousError
from bayplan.api.objects import PodCondition
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.interface import PostFilterResult
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import Place
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler import dispatcher as dispatcher_module
from bayplan.scheduler.binder import BindResult
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_handlers import AssignedPodEvents, NodeEvents, PendingPodEvents
from bayplan.scheduler.observer import NoObserver
from bayplan.scheduler.scheduler import Scheduler

NO = Status(Code.UNSCHEDULABLE, ("No preemption victims found for incoming pod",))


@dataclass
class Chooser:
    """Stands in for DefaultPreemption: nominates each pod as told, and else says "" (clear) or None (leave)."""

    name = "DefaultPreemption"
    nominations: dict = field(default_factory=dict)
    otherwise: str | None = ""
    evicts: bool = False
    retry_after: float | None = None

    def post_filter(self, state, pod, nodes, rejections):
        if pod.uid in self.nominations:
            node, *victims = self.nominations[pod.uid]
            found = tuple(v for n in nodes.pods for v in n.values() if v.uid in victims)
            return PostFilterResult(SUCCESS, node, found, evicts=self.evicts)
        return PostFilterResult(NO, self.otherwise, retry_after=self.retry_after)


class Api:
    """The API server: takes calls down in order; `answers` by (method, name) come first, statuses or errors."""

    def __init__(self):
        self.calls = []
        self.answers = defaultdict(list)
        self.gates = defaultdict(asyncio.Event)
        self.closed = set()
        self.busy = self.most = 0

    async def request(self, method, path, *, body=None, content_type=None):
        name = path.split("/pods/")[1].split("/")[0] if "/pods/" in path else ""
        content = json.loads(body)
        kind = "EVICT" if path.endswith("/eviction") else "EVENT" if "/events" in path else method
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(0)
        if (kind, name) in self.closed:
            await self.gates[kind, name].wait()
        self.busy -= 1
        self.calls.append((kind, name, content))
        answer = self.answers[kind, name].pop(0) if self.answers[kind, name] else 200
        if isinstance(answer, Exception):
            raise answer
        status, reply = answer if isinstance(answer, tuple) else (answer, b"")
        return ApiResponse(status, reply)

    def close(self, kind, name):
        self.closed.add((kind, name))

    def open(self, kind, name):
        self.closed.discard((kind, name))
        self.gates[kind, name].set()

    def order(self):
        return [(kind, name) for kind, name, _ in self.calls]

    def bodies(self, kind, name):
        return [content for k, n, content in self.calls if (k, n) == (kind, name)]


class Recorder:
    def __init__(self):
        self.preemptions = []
        self.failures = []

    def preempted(self, victim, preemptor, node_name, *, in_memory=False):
        self.preemptions.append((victim.uid, preemptor.uid, node_name, in_memory))

    def failed_scheduling(self, pod, message):
        self.failures.append(pod.uid)

    def scheduled(self, pod, node_name):
        pass

    def forget(self, uid):
        pass

    def sweep(self):
        pass


class Binder:
    def __init__(self):
        self.bound = []

    async def bind(self, binding):
        self.bound.append((binding.uid, binding.node_name))
        return BindResult.BOUND


class Observer(NoObserver):
    def __init__(self):
        self.attempts_at_preemption = 0
        self.victims = []

    def preemption_attempt(self):
        self.attempts_at_preemption += 1

    def preemption_victims(self, count):
        self.victims.append(count)


class Scene:
    """Two full nodes of one CPU, the real scheduler on a clock moved by hand, and an API server that is told."""

    def __init__(self):
        self.now = 0.0
        self.cache = Cache()
        self.api, self.recorder, self.binder, self.observer = Api(), Recorder(), Binder(), Observer()
        self.frameworks = build_frameworks(default_configuration(), self.cache.nodes)
        (framework,) = self.frameworks.values()
        self.chooser = Chooser()
        framework.post_filters = [self.chooser]
        self.queue = SchedulingQueue(
            clock=self.clock, profiles={name: f.queue_profile() for name, f in self.frameworks.items()}
        )
        self.dispatcher = Dispatcher(self.api, self.api)
        self.scheduler = Scheduler(
            cache=self.cache,
            queue=self.queue,
            cycle=SchedulingCycle(self.cache.nodes),
            frameworks=self.frameworks,
            dispatcher=self.dispatcher,
            binder=self.binder,
            recorder=self.recorder,
            observer=self.observer,
            clock=self.clock,
        )
        wake, gone = self.scheduler.wake, self.recorder.forget
        self.nodes = NodeEvents(self.cache, self.queue, wake, self.observer)
        self.assigned = AssignedPodEvents(self.cache, self.queue, wake, self.observer, on_gone=gone)
        self.pending = PendingPodEvents(
            self.cache, self.queue, wake, self.observer, profiles=frozenset({"bayplan"}), on_gone=gone
        )
        self.placed = {}
        for node in ("n1", "n2"):
            self.nodes.on_add(make_node(node, cpu="1"))
            self.place(f"low-{node}", node)

    def clock(self):
        return self.now

    def place(self, name, node, cpu="1", **fields):
        pod = self.placed[name] = make_pod(name, uid=name, cpu=cpu, node=node, priority=0, **fields)
        self.assigned.on_add(pod)

    def pod(self, name="p", **fields):
        pod = make_pod(name, **{"uid": name, "cpu": "1", "priority": 10, **fields})
        self.pending.changed(pod)
        return pod

    def step(self):
        queued = self.queue.pop()
        if queued is not None:
            self.scheduler.schedule_one(queued)
        self.check()

    async def work(self):
        """Everything that can happen without time passing."""
        for _ in range(100):
            await asyncio.sleep(0)
        self.check()

    def check(self):
        self.queue.validate()
        self.cache.validate()

    def place_of(self, uid="p"):
        queued = self.queue.get(uid)
        return None if queued is None else queued.place

    def nominated(self, uid="p"):
        return self.queue.nominator.nominated_node(uid)


@pytest.fixture
async def scene(monkeypatch):
    monkeypatch.setattr(dispatcher_module, "_RETRY_DELAYS_SECONDS", (0.0, 0.0, 0.0))
    made = Scene()
    made.dispatcher.start()
    return made


def terminating(pod):
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="9")
    return msgspec.structs.replace(pod, metadata=metadata)


async def preempt(scene, *victims, uid="p", node="n1", **fields):
    scene.chooser.nominations[uid] = (node, *(victims or (f"low-{node}",)))
    scene.pod(uid, **fields)
    scene.step()
    await scene.work()


async def test_nomination_and_condition_come_in_one_request_before_any_victim_is_touched(scene):
    await preempt(scene)
    assert scene.api.order() == [("PATCH", "p"), ("PATCH", "low-n1"), ("DELETE", "low-n1")]
    status = scene.api.calls[0][2]["status"]
    assert status["nominatedNodeName"] == "n1"
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")


async def test_a_victim_is_told_why_and_ends_with_its_own_grace_period(scene):
    await preempt(scene)
    (patch,) = scene.api.bodies("PATCH", "low-n1")
    (condition,) = patch["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "bayplan: preempting to accommodate a higher priority pod",
    }
    assert patch["metadata"] == {"uid": "low-n1"}
    assert scene.api.bodies("DELETE", "low-n1") == [
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "low-n1"}}
    ]
    assert scene.recorder.preemptions == [("low-n1", "p", "n1", False)]
    assert scene.observer.victims == [1]
    assert scene.observer.attempts_at_preemption == 1


async def test_the_nomination_counts_at_once_and_the_pod_is_not_tried_while_calls_are_made(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene)
    assert scene.nominated() == "n1"
    scene.assigned.on_delete(scene.placed["low-n2"])
    scene.queue.flush(scene.now)
    assert scene.place_of() is None
    assert scene.queue.pop() is None
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    # The event that came meanwhile is not lost.
    assert scene.place_of() is Place.BACKOFF


async def test_the_pod_waits_for_its_victim_and_is_woken_by_its_end(scene):
    await preempt(scene)
    assert scene.place_of() is Place.UNSCHEDULABLE
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    assert scene.place_of() is Place.UNSCHEDULABLE
    scene.assigned.on_delete(scene.placed["low-n1"])
    scene.step()
    await scene.work()
    assert scene.binder.bound == [("p", "n1")]
    assert scene.nominated() is None


async def test_other_pods_bind_while_victims_are_being_ended(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene)
    scene.nodes.on_add(make_node("n3", cpu="1"))
    scene.pod("other", priority=0)
    scene.step()
    await scene.work()
    assert scene.binder.bound == [("other", "n3")]


async def test_victims_that_end_already_are_not_ended_again(scene):
    scene.place("low-b", "n1", cpu="0")
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    await preempt(scene, "low-n1", "low-b")
    assert scene.api.order() == [("PATCH", "p"), ("PATCH", "low-b"), ("DELETE", "low-b")]
    assert scene.observer.victims == [2]


async def test_a_nomination_without_victims_left_to_end_is_only_written(scene):
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    await preempt(scene)
    assert scene.api.order() == [("PATCH", "p")]
    assert scene.observer.victims == []
    assert scene.place_of() is Place.UNSCHEDULABLE


@pytest.mark.parametrize("call", ["PATCH", "DELETE"])
@pytest.mark.parametrize("status", [404, 409, 422])
async def test_a_victim_that_is_gone_or_was_recreated_counts_as_ended(scene, call, status):
    scene.api.answers[call, "low-n1"] = [status] * 9
    await preempt(scene)
    assert scene.nominated() == "n1"
    assert scene.recorder.preemptions == []
    assert scene.place_of() is Place.UNSCHEDULABLE


@pytest.mark.parametrize("call", ["PATCH", "DELETE"])
@pytest.mark.parametrize("answer", [403, 500, AmbiguousError("lost")], ids=repr)
async def test_a_victim_that_cannot_be_ended_costs_the_nomination_and_the_pod_backs_off(scene, call, answer):
    scene.api.answers[call, "low-n1"] = [answer] * 9
    await preempt(scene)
    assert scene.nominated() is None
    assert scene.place_of() is Place.ERROR_BACKOFF
    last = scene.api.bodies("PATCH", "p")[-1]["status"]
    assert last["nominatedNodeName"] is None
    assert last["conditions"][0]["reason"] == "Unschedulable"
    assert scene.recorder.preemptions == []


async def test_what_passes_is_tried_again(scene):
    scene.api.answers["DELETE", "low-n1"] = [AmbiguousError("lost"), 503]
    await preempt(scene)
    assert len(scene.api.bodies("DELETE", "low-n1")) == 3
    assert scene.nominated() == "n1"


@pytest.mark.parametrize("answer", [403, 404, AmbiguousError("lost")], ids=repr)
async def test_no_victim_ends_if_the_nomination_cannot_be_written(scene, answer):
    scene.api.answers["PATCH", "p"] = [answer] * 4
    await preempt(scene)
    assert {name for _, name in scene.api.order()} == {"p"}
    assert scene.nominated() is None
    assert scene.place_of() is Place.ERROR_BACKOFF


async def test_victims_end_several_at_once_but_not_all(scene):
    for number in range(30):
        scene.place(f"v{number}", "n1", cpu="0")
    await preempt(scene, *(f"v{number}" for number in range(30)))
    assert len([kind for kind, _ in scene.api.order() if kind == "DELETE"]) == 30
    assert scene.api.most == 8


async def test_a_preemptor_that_is_deleted_spares_the_victims_not_begun(scene):
    for number in range(20):
        scene.place(f"v{number}", "n1", cpu="0")
        scene.api.close("PATCH", f"v{number}")
    await preempt(scene, *(f"v{number}" for number in range(20)))
    scene.pending.gone("p")
    for number in range(20):
        scene.api.open("PATCH", f"v{number}")
    await scene.work()
    assert len([kind for kind, _ in scene.api.order() if kind == "DELETE"]) == 8
    assert scene.queue.uids() == set()
    assert scene.nominated() is None


async def test_a_victim_of_two_preemptors_ends_once(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene, "low-n1")
    await preempt(scene, "low-n1", uid="q")
    assert scene.place_of("q") is None
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    assert scene.api.order().count(("DELETE", "low-n1")) == 1
    assert (scene.nominated("p"), scene.nominated("q")) == ("n1", "n1")
    assert scene.place_of("q") is Place.UNSCHEDULABLE


async def test_the_answer_to_the_delete_makes_the_victim_terminating_before_the_watch_does(scene):
    victim = terminating(scene.placed["low-n1"])
    reply = {
        "metadata": {"name": "low-n1", "namespace": "default", "uid": "low-n1", "deletionTimestamp": "2026-01-01"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    scene.api.answers["DELETE", "low-n1"] = [(200, json.dumps(reply).encode())]
    await preempt(scene)
    assert scene.cache.pod("low-n1").pod.metadata.deletion_timestamp
    assert scene.cache.node_of("low-n1") == "n1"
    assert victim.metadata.deletion_timestamp


@pytest.mark.parametrize("reply", [b"", b"{", b"[]", b'{"kind":"Status"}', b'{"metadata":{"uid":"other"}}'])
async def test_an_answer_that_says_nothing_of_the_victim_changes_nothing(scene, reply):
    before = scene.cache.pod("low-n1")
    scene.api.answers["DELETE", "low-n1"] = [(200, reply)]
    await preempt(scene)
    assert scene.cache.pod("low-n1") is before


async def test_a_victim_not_bound_yet_gives_its_room_back_without_being_deleted(scene):
    scene.nodes.on_add(make_node("n3", cpu="1"))
    scene.pod("young", priority=0)
    scene.step()
    assert scene.cache.is_assumed("young")
    scene.chooser.nominations["p"] = ("n3", "young")
    scene.pod()
    scene.step()
    await scene.work()
    assert scene.binder.bound == []
    assert scene.cache.node_of("young") is None
    assert scene.place_of("young") is Place.ERROR_BACKOFF
    assert scene.recorder.preemptions == [("young", "p", "n3", True)]
    assert not scene.api.bodies("DELETE", "young")
    scene.step()
    await scene.work()
    assert scene.binder.bound == [("p", "n3")]


async def test_a_rejected_bind_that_was_placed_anew_is_posted_once(scene):
    scene.nodes.on_add(make_node("n3", cpu="1"))
    scene.pod("young", priority=0)
    scene.step()
    assert scene.scheduler._binding.reject("young")
    assert not scene.scheduler._binding.reject("young")
    scene.queue.activate(["young"])
    scene.step()
    await scene.work()
    assert scene.binder.bound == [("young", "n3")]


async def test_lower_nominations_on_the_node_are_cleared_and_their_pods_woken(scene):
    await preempt(scene, uid="low", priority=1)
    await preempt(scene, uid="same", priority=10, node="n1")
    assert scene.nominated("low") is None
    assert scene.api.bodies("PATCH", "low")[-1] == {
        "metadata": {"uid": "low"},
        "status": {"nominatedNodeName": None},
    }
    assert scene.place_of("low") is Place.BACKOFF
    await preempt(scene, uid="peer", priority=10, node="n1")
    assert (scene.nominated("same"), scene.nominated("peer")) == ("n1", "n1")


async def test_nominations_of_other_schedulers_pods_are_not_theirs_to_clear(scene):
    scene.queue.nominator.add(PodInfo(make_pod("foreign", uid="foreign", priority=1)), "n1")
    await preempt(scene)
    assert scene.nominated("foreign") == "n1"
    assert "foreign" not in {name for _, name in scene.api.order()}


async def test_a_pod_whose_node_is_taken_by_a_higher_one_spares_the_victims_not_begun(scene):
    scene.api.close("PATCH", "low")
    await preempt(scene, uid="low", priority=1)
    scene.chooser.nominations["p"] = ("n1",)
    scene.pod()
    scene.step()
    scene.api.open("PATCH", "low")
    await scene.work()
    assert not scene.api.bodies("DELETE", "low-n1")
    assert [body["status"]["nominatedNodeName"] for body in scene.api.bodies("PATCH", "low")] == ["n1", None]
    assert scene.place_of("low") is Place.BACKOFF


async def test_without_a_candidate_an_earlier_nomination_is_cleared_with_the_condition(scene):
    scene.pod(nominated="n1")
    assert scene.nominated() == "n1"
    scene.step()
    await scene.work()
    assert scene.nominated() is None
    (patch,) = scene.api.bodies("PATCH", "p")
    assert patch["status"]["nominatedNodeName"] is None
    assert patch["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert scene.place_of() is Place.UNSCHEDULABLE


async def test_a_nomination_preemption_leaves_alone_stays(scene):
    scene.chooser.otherwise = None
    scene.pod(nominated="n1")
    scene.step()
    await scene.work()
    assert scene.nominated() == "n1"
    (patch,) = scene.api.bodies("PATCH", "p")
    assert "nominatedNodeName" not in patch["status"]


async def test_a_pod_that_time_alone_may_help_is_tried_again_at_its_time(scene):
    scene.chooser.otherwise, scene.chooser.retry_after = None, 30.0
    scene.pod()
    scene.step()
    assert scene.place_of() is Place.UNSCHEDULABLE
    assert scene.queue.next_deadline() == 30
    scene.now = 30.0
    scene.queue.flush(scene.now)
    scene.chooser.nominations["p"] = ("n1", "low-n1")
    scene.step()
    await scene.work()
    assert scene.nominated() == "n1"


async def test_an_error_in_the_cycle_clears_the_nomination(scene):
    def broken(*_):
        raise RuntimeError("broken")

    scene.chooser.post_filter = broken
    scene.pod(nominated="n1")
    scene.step()
    await scene.work()
    assert scene.nominated() is None
    (patch,) = scene.api.bodies("PATCH", "p")
    assert patch["status"]["nominatedNodeName"] is None
    assert patch["status"]["conditions"][0]["reason"] == "SchedulerError"


async def test_a_nomination_to_a_node_that_goes_away_is_cleared_and_the_pod_tried_again(scene):
    await preempt(scene)
    scene.nodes.on_delete(make_node("n1", cpu="1"))
    scene.scheduler._preemption.sweep()
    await scene.work()
    assert scene.nominated() is None
    assert scene.api.bodies("PATCH", "p")[-1]["status"] == {"nominatedNodeName": None}
    assert scene.place_of() is Place.BACKOFF


async def test_a_restart_reads_nominations_from_the_pods_and_drops_those_to_nodes_that_are_gone(scene):
    scene.pod("kept", nominated="n1")
    scene.pod("stale", nominated="n9")
    assert (scene.nominated("kept"), scene.nominated("stale")) == ("n1", "n9")
    scene.scheduler._preemption.sweep()
    await scene.work()
    assert (scene.nominated("kept"), scene.nominated("stale")) == ("n1", None)
    assert scene.api.order() == [("PATCH", "stale")]


async def test_a_pod_that_gets_another_node_leaves_its_room_to_others(scene):
    await preempt(scene)
    scene.pod("waiting", priority=5)
    scene.step()
    await scene.work()
    assert scene.place_of("waiting") is Place.UNSCHEDULABLE
    scene.nodes.on_add(make_node("n3", cpu="1"))
    scene.queue.activate(["p"])
    scene.step()
    await scene.work()
    assert scene.binder.bound == [("p", "n3")]
    assert scene.nominated() is None
    assert scene.place_of("waiting") is Place.BACKOFF


# Eviction API.


async def test_under_strict_budgets_victims_are_evicted_one_by_one_and_told_why_afterwards(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    await preempt(scene, "low-n1", "v")
    assert scene.api.order() == [
        ("PATCH", "p"),
        ("EVICT", "low-n1"),
        ("PATCH", "low-n1"),
        ("EVICT", "v"),
        ("PATCH", "v"),
    ]
    assert scene.api.bodies("EVICT", "v") == [
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "v", "namespace": "default"},
            "deleteOptions": {"preconditions": {"uid": "v"}},
        }
    ]
    assert [uid for uid, *_ in scene.recorder.preemptions] == ["low-n1", "v"]


async def test_an_eviction_a_budget_refuses_withdraws_the_nomination_and_spares_the_rest(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    scene.api.answers["EVICT", "low-n1"] = [429]
    await preempt(scene, "low-n1", "v")
    assert scene.api.order() == [("PATCH", "p"), ("EVICT", "low-n1"), ("PATCH", "p")]
    assert scene.nominated() is None
    assert scene.place_of() is Place.ERROR_BACKOFF


async def test_a_condition_a_victim_carries_already_is_not_written_again(scene):
    said = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message="bayplan: preempting to accommodate a higher priority pod",
    )
    scene.place("v", "n1", cpu="0", conditions=[said])
    await preempt(scene, "v")
    assert scene.api.order() == [("PATCH", "p"), ("DELETE", "v")]
