import asyncio
import json
from itertools import pairwise

import pytest
from tests.builders import make_node, make_pod

from bayplan.api.objects import PodCondition
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.status import Code, Status
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import Place
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.binder import BindError, BindResult
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.event_handlers import AssignedPodEvents, NodeEvents, PendingPodEvents
from bayplan.scheduler.observer import NoObserver
from bayplan.scheduler.scheduler import Scheduler


class Dispatcher:
    """Keeps binds until told to run them, and patches for ever."""

    def __init__(self):
        self.jobs = []
        self.patches = []
        self.jobs_in_flight = 0

    def submit(self, job):
        self.jobs.append(job)

    def patch(self, uid, call, lost):
        (condition,) = json.loads(call.body)["status"]["conditions"]
        self.patches.append((uid, condition["reason"], condition["message"]))

    async def run(self):
        jobs, self.jobs[:] = self.jobs[:], []
        for job in jobs:
            await job()


class Binder:
    """Answers with `result`, after calling `meanwhile`; remembers what was asked."""

    def __init__(self):
        self.result = BindResult.BOUND
        self.meanwhile = lambda: None
        self.bindings = []

    async def bind(self, binding):
        self.bindings.append((binding.uid, binding.node_name))
        self.meanwhile()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Recorder:
    def __init__(self):
        self.said = []
        self.forgotten = []
        self.sweeps = 0

    def scheduled(self, pod, node_name):
        self.said.append((pod.uid, "Scheduled", node_name))

    def failed_scheduling(self, pod, message):
        self.said.append((pod.uid, "FailedScheduling", message))

    def forget(self, uid):
        self.forgotten.append(uid)

    def sweep(self):
        self.sweeps += 1


class Observer(NoObserver):
    def __init__(self):
        self.attempts = []
        self.bounds = []

    def attempt(self, profile, result, seconds):
        self.attempts.append((profile, result, seconds))

    def bound(self, attempts, sli_seconds):
        self.bounds.append((attempts, sli_seconds))

    def results(self):
        return [result for _, result, _ in self.attempts]


class Hook:
    """A plugin of any extension point, made of functions."""

    def __init__(self, name, **points):
        self.name = name
        vars(self).update(points)


class Scene:
    """The real queue, cache, cycle and handlers on a clock moved by hand; writes go to fakes."""

    def __init__(self):
        self.now = 0.0
        self.cache = Cache()
        self.frameworks = build_frameworks(default_configuration(), self.cache.nodes, self.cache.listers)
        (self.framework,) = self.frameworks.values()
        self.queue = SchedulingQueue(
            clock=self.clock, profiles={name: f.queue_profile() for name, f in self.frameworks.items()}
        )
        self.dispatcher, self.binder, self.recorder, self.observer = Dispatcher(), Binder(), Recorder(), Observer()
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

    def clock(self):
        return self.now

    def node(self, name="n1", **fields):
        self.nodes.on_add(make_node(name, **fields))

    def pod(self, name="p", **fields):
        pod = make_pod(name, **{"uid": name, "cpu": "1", **fields})
        self.pending.changed(pod)
        return pod

    def step(self):
        """One scheduling cycle, if a pod can be popped."""
        queued = self.queue.pop()
        if queued is not None:
            self.scheduler.schedule_one(queued)
        self.check()
        return queued

    async def attempt(self):
        """One cycle and what follows from it."""
        queued = self.step()
        await self.dispatcher.run()
        self.check()
        return queued

    def check(self):
        self.queue.validate()
        self.cache.validate()

    def place(self, uid="p"):
        queued = self.queue.get(uid)
        return None if queued is None else queued.place

    def said(self):
        said, self.recorder.said = self.recorder.said, []
        return said


@pytest.fixture
def scene():
    made = Scene()
    assert made.framework.profile_name == "bayplan"
    return made


async def test_a_pod_that_fits_is_assumed_at_once_and_bound(scene):
    scene.node()
    scene.pod()
    scene.step()
    assert (scene.cache.node_of("p"), scene.cache.is_assumed("p"), scene.binder.bindings) == ("n1", True, [])
    scene.now += 2.0
    await scene.dispatcher.run()
    assert scene.binder.bindings == [("p", "n1")]
    assert scene.cache.is_assumed("p")
    assert scene.queue.uids() == set()
    assert scene.recorder.forgotten == ["p"]
    assert scene.said() == [("p", "Scheduled", "n1")]
    assert scene.dispatcher.patches == []
    assert scene.observer.attempts == [("bayplan", "scheduled", 2.0)]
    assert scene.observer.bounds == [(1, 2.0)]


async def test_the_time_to_bind_is_counted_from_the_first_attempt(scene):
    scene.pod()
    await scene.attempt()
    scene.now += 50.0
    scene.queue.flush(scene.now)
    scene.node()
    await scene.attempt()
    assert scene.observer.bounds == [(2, 50.0)]


def test_the_next_pod_sees_what_the_last_one_took(scene):
    scene.node("n1", cpu="1")
    scene.node("n2", cpu="1")
    for name in ("p", "q", "r"):
        scene.pod(name)
        scene.step()
    assert {scene.cache.node_of("p"), scene.cache.node_of("q")} == {"n1", "n2"}
    assert scene.cache.node_of("r") is None
    assert scene.place("r") is Place.UNSCHEDULABLE


async def test_post_bind_plugins_hear_of_bound_pods_only(scene):
    heard = []
    scene.framework.post_binds = [Hook("Post", post_bind=lambda pod, node: heard.append((pod.uid, node)))]
    scene.node()
    scene.pod("p")
    await scene.attempt()
    scene.binder.result = BindResult.GONE
    scene.pod("q")
    await scene.attempt()
    assert heard == [("p", "n1")]


async def test_a_failed_bind_gives_the_room_back_wakes_others_and_backs_off(scene):
    scene.node(cpu="1")
    scene.pod("p")
    scene.pod("q")
    scene.step()
    scene.step()
    assert scene.place("q") is Place.UNSCHEDULABLE
    scene.said()
    scene.binder.result = BindError("status 403: no")
    await scene.dispatcher.run()
    scene.check()
    assert scene.cache.node_of("p") is None
    assert scene.place("p") is Place.ERROR_BACKOFF
    assert scene.place("q") is Place.BACKOFF
    message = 'running Bind plugin "DefaultBinder": status 403: no'
    assert scene.said() == [("p", "FailedScheduling", message)]
    assert scene.dispatcher.patches[-1] == ("p", "SchedulerError", message)
    assert scene.observer.results() == ["unschedulable", "error"]
    assert scene.observer.bounds == []


async def test_a_binder_that_breaks_is_a_failed_bind(scene, caplog):
    scene.node()
    scene.pod()
    scene.binder.result = RuntimeError("bug")
    await scene.attempt()
    assert scene.cache.node_of("p") is None
    assert scene.place() is Place.ERROR_BACKOFF
    assert "bind failed unexpectedly" in caplog.text


async def test_a_failed_bind_of_a_pod_the_watch_has_shown_on_a_node_is_no_failure(scene):
    scene.node()
    scene.pod()
    scene.binder.result = BindError("unreachable")
    scene.binder.meanwhile = lambda: scene.assigned.on_add(make_pod(uid="p", node="n1", cpu="1"))
    await scene.attempt()
    assert scene.cache.confirmed_node("p") == "n1"
    assert (scene.queue.uids(), scene.said(), scene.dispatcher.patches) == (set(), [], [])


async def test_a_pod_that_is_no_longer_ours_gives_the_room_back_without_a_word(scene):
    scene.node(cpu="1")
    scene.pod("p")
    scene.pod("q")
    scene.step()
    scene.step()
    scene.said()
    scene.binder.result = BindResult.GONE
    await scene.dispatcher.run()
    assert (scene.cache.node_of("p"), scene.queue.get("p"), scene.said()) == (None, None, [])
    assert scene.place("q") is Place.BACKOFF
    assert scene.observer.results() == ["unschedulable"]


async def test_a_pod_bound_elsewhere_meanwhile_stays_counted_there(scene):
    scene.node("n1")
    scene.pod()
    scene.binder.result = BindResult.GONE
    scene.binder.meanwhile = lambda: scene.assigned.on_add(make_pod(uid="p", node="n2", cpu="1"))
    await scene.attempt()
    assert scene.cache.confirmed_node("p") == "n2"
    assert scene.queue.uids() == set()


async def test_a_pod_deleted_before_its_bind_began_is_not_posted(scene):
    scene.node()
    scene.pod()
    scene.step()
    scene.pending.gone("p")
    await scene.dispatcher.run()
    assert (scene.binder.bindings, scene.cache.node_of("p"), scene.queue.uids()) == ([], None, set())


async def test_a_pod_deleted_while_its_bind_fails_is_not_tried_again_or_talked_about(scene):
    scene.node()
    scene.pod()
    scene.binder.result = BindError("x")
    scene.binder.meanwhile = lambda: scene.pending.gone("p")
    await scene.attempt()
    assert (scene.queue.uids(), scene.said(), scene.dispatcher.patches) == (set(), [], [])
    assert scene.cache.node_of("p") is None


async def test_every_way_out_of_a_bind_wakes_the_loop(scene):
    woken = []
    scene.node()
    for name, result in (("a", BindResult.BOUND), ("b", BindResult.GONE), ("c", BindError("x"))):
        scene.pod(name)
        scene.binder.result = result
        scene.step()
        scene.scheduler._news.clear()
        await scene.dispatcher.run()
        woken.append(scene.scheduler._news.is_set())
    assert woken == [True, True, True]


async def test_a_pod_that_fits_nowhere_waits_for_what_its_rejectors_want(scene):
    scene.node(cpu="500m")
    scene.node("n2", taints=["x:NoSchedule"])
    scene.pod()
    queued = await scene.attempt()
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert queued.rejector_plugins == {"NodeResourcesFit", "TaintToleration"}
    assert scene.place() is Place.UNSCHEDULABLE
    assert scene.said() == [("p", "FailedScheduling", message)]
    assert scene.dispatcher.patches == [("p", "Unschedulable", message)]
    assert scene.observer.results() == ["unschedulable"]
    assert scene.cache.node_of("p") is None


async def test_without_nodes_a_pod_is_unschedulable_but_backs_off_as_after_an_error(scene):
    scene.pod()
    await scene.attempt()
    assert scene.place() is Place.ERROR_BACKOFF
    assert scene.said() == [("p", "FailedScheduling", "no nodes available to schedule pods")]
    assert scene.dispatcher.patches == [("p", "Unschedulable", "no nodes available to schedule pods")]
    assert scene.observer.results() == ["unschedulable"]


async def test_the_same_reason_is_patched_once_though_every_failure_is_an_event(scene):
    scene.pod()
    for _ in range(3):
        await scene.attempt()
        scene.now += 20.0
        scene.queue.flush(scene.now)
    assert len(scene.said()) == 3
    assert len(scene.dispatcher.patches) == 1
    echo = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message="no nodes available to schedule pods"
    )
    scene.pod(resource_version="2", conditions=[echo])
    await scene.attempt()
    assert len(scene.dispatcher.patches) == 1


@pytest.mark.parametrize(("error", "message"), [(RuntimeError("boom"), "boom"), (KeyError(), "KeyError")])
async def test_an_exception_in_a_plugin_fails_its_pod_alone(scene, monkeypatch, caplog, error, message):
    scene.node()
    schedule = scene.scheduler._cycle.schedule

    def break_on_p(pod, framework):
        if pod.uid == "p":
            raise error
        return schedule(pod, framework)

    monkeypatch.setattr(scene.scheduler._cycle, "schedule", break_on_p)
    scene.pod("p")
    scene.pod("q")
    await scene.attempt()
    await scene.attempt()
    assert scene.place("p") is Place.ERROR_BACKOFF
    assert scene.said() == [("p", "FailedScheduling", message), ("q", "Scheduled", "n1")]
    assert scene.dispatcher.patches == [("p", "SchedulerError", message)]
    assert scene.observer.results() == ["error", "scheduled"]
    assert "scheduling cycle failed pod='default/p'" in caplog.text


def refuse(code=Code.UNSCHEDULABLE):
    return lambda state, pod, node: Status(code, ("not here",))


def accept(log, name):
    return lambda state, pod, node: log.append(f"reserve {name}") or Status()


def undo(log, name):
    return lambda state, pod, node: log.append(f"unreserve {name}")


@pytest.mark.parametrize("point", ["reserve", "permit"])
async def test_a_rejection_after_the_choice_undoes_what_was_reserved(scene, point):
    log = []
    first = Hook("First", reserve=accept(log, "First"), unreserve=undo(log, "First"))
    if point == "reserve":
        scene.framework.reserves = [first, Hook("Last", reserve=refuse(), unreserve=undo(log, "Last"))]
    else:
        scene.framework.reserves = [first]
        scene.framework.permits = [Hook("Last", permit=refuse())]
    scene.node()
    scene.node("n2")
    scene.pod()
    queued = await scene.attempt()
    assert log == ["reserve First", *(["unreserve Last"] if point == "reserve" else []), "unreserve First"]
    assert queued.rejector_plugins == {"Last"}
    assert scene.said() == [("p", "FailedScheduling", "0/1 nodes are available: not here.")]
    assert (scene.cache.node_of("p"), scene.binder.bindings) == (None, [])


async def test_an_error_after_the_choice_backs_off(scene):
    scene.framework.reserves = [Hook("Last", reserve=refuse(Code.ERROR), unreserve=lambda *_: None)]
    scene.node()
    scene.pod()
    await scene.attempt()
    assert scene.place() is Place.ERROR_BACKOFF
    assert scene.dispatcher.patches == [("p", "SchedulerError", "Last: not here")]


async def test_an_exception_after_the_choice_undoes_everything(scene):
    log = []

    def broken(pod, node_name):
        raise RuntimeError("boom")

    scene.framework.reserves = [Hook("First", reserve=accept(log, "First"), unreserve=undo(log, "First"))]
    scene.framework.binds = [Hook("Bind", bind=broken)]
    scene.node()
    scene.pod()
    await scene.attempt()
    assert log == ["reserve First", "unreserve First"]
    assert (scene.cache.node_of("p"), scene.place()) == (None, Place.ERROR_BACKOFF)


@pytest.mark.parametrize("result", [BindResult.GONE, BindError("x"), BindResult.BOUND], ids=repr)
async def test_what_was_reserved_is_given_back_unless_the_pod_was_bound(scene, result):
    log = []
    scene.framework.reserves = [Hook("First", reserve=accept(log, "First"), unreserve=undo(log, "First"))]
    scene.binder.result = result
    scene.node()
    scene.pod()
    await scene.attempt()
    assert log == ["reserve First", *([] if result is BindResult.BOUND else ["unreserve First"])]


async def test_a_pod_that_is_being_deleted_is_skipped_with_an_event(scene):
    scene.node()
    scene.pod(deleting=True)
    await scene.attempt()
    assert scene.said() == [("p", "FailedScheduling", "skip schedule deleting pod: default/p")]
    assert (scene.queue.uids(), scene.cache.node_of("p"), scene.dispatcher.patches) == (set(), None, [])
    assert scene.observer.attempts == []


async def test_a_pod_that_is_on_a_node_already_is_skipped(scene):
    scene.node()
    pod = scene.pod()
    scene.cache.assume_pod(PodInfo(pod), "n1")
    await scene.attempt()
    assert (scene.queue.uids(), scene.binder.bindings, scene.said()) == (set(), [], [])
    assert scene.cache.is_assumed("p")


class Running:
    """The loop as a task, with binds done as soon as they are submitted."""

    def __init__(self, scene):
        self.scene = scene
        self.tasks = set()

    async def __aenter__(self):
        self.scene.dispatcher.submit = self._submit
        self.task = asyncio.create_task(self.scene.scheduler.run())
        return self

    def _submit(self, job):
        task = asyncio.create_task(job())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def __aexit__(self, *_):
        self.scene.scheduler.stop()
        async with asyncio.timeout(10):
            await self.task


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  the scheduler has no event for tests
            await asyncio.sleep(0.001)


async def test_the_loop_schedules_what_comes_and_stops_when_told(scene):
    scene.node(cpu="100", pods=1000)
    async with Running(scene):
        for i in range(50):
            scene.pod(f"p{i}", cpu="1m")
        await until(lambda: len(scene.binder.bindings) == 50)
        scene.pod("late", cpu="1m")
        await until(lambda: len(scene.binder.bindings) == 51)
    scene.pod("after the end")
    await asyncio.sleep(0)
    assert len(scene.binder.bindings) == 51
    assert scene.recorder.sweeps > 0


async def test_a_loop_that_was_stopped_before_it_began_does_nothing(scene):
    scene.node()
    scene.pod()
    scene.scheduler.stop()
    await scene.scheduler.run()
    assert scene.queue.uids() == {"p"}
    assert scene.place() is Place.ACTIVE


async def test_a_stop_is_heeded_between_two_decisions(scene, monkeypatch):
    scene.node(pods=1000)
    for i in range(20):
        scene.pod(f"p{i}", cpu="1m")
    schedule_one = scene.scheduler.schedule_one

    def stop_after_one(queued):
        schedule_one(queued)
        scene.scheduler.stop()

    monkeypatch.setattr(scene.scheduler, "schedule_one", stop_after_one)
    await scene.scheduler.run()
    assert len(scene.dispatcher.jobs) == 1


async def test_the_loop_lets_others_run_while_it_has_work(scene, monkeypatch):
    scene.node(cpu="100", pods=10_000)
    for i in range(40):
        scene.pod(f"p{i}", cpu="1m")
    schedule_one = scene.scheduler.schedule_one

    def slow(queued):
        schedule_one(queued)
        scene.now += 0.004

    monkeypatch.setattr(scene.scheduler, "schedule_one", slow)
    left_at_turns = []

    async def other():
        while scene.queue.has_ready():
            left_at_turns.append(scene.queue.pending()["active"])
            await asyncio.sleep(0)

    async with Running(scene):
        await other()
    # Three decisions of 4 ms fill a slice of 10 ms.
    assert max(a - b for a, b in pairwise(left_at_turns)) == 3


async def test_no_pod_is_popped_while_too_many_binds_are_under_way(scene):
    scene.node()
    scene.pod()
    scene.dispatcher.jobs_in_flight = 256
    async with Running(scene):
        for _ in range(20):
            await asyncio.sleep(0)
        assert scene.place() is Place.ACTIVE
        scene.dispatcher.jobs_in_flight = 255
        scene.scheduler.wake()
        await until(lambda: scene.binder.bindings)


async def test_the_loop_wakes_by_itself_when_a_back_off_ends(scene):
    async with Running(scene):
        scene.pod()
        await until(lambda: scene.place() is Place.ERROR_BACKOFF)
        # The node comes without a wake: only the clock can bring the pod back.
        scene.cache.set_node(make_node("n1"))
        deadline = scene.queue.next_deadline()
        scene.now = deadline - 0.001
        scene.scheduler.wake()
        await asyncio.sleep(0)
        scene.now = deadline
        await until(lambda: scene.binder.bindings)
