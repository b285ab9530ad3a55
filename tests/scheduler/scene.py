"""A whole scheduler on a clock that tests move by hand; what it would write goes to stand-ins that remember it."""

import asyncio
import json
from contextlib import nullcontext

from tests.builders import make_node, make_pod
from tests.cache_checks import assert_adds_up
from tests.queue_checks import assert_consistent
from tests.recorded_metrics import RecordedMetrics

from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.binder import BindResult
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.engines import Engine
from bayplan.scheduler.event_handlers import AssignedPodEvents, NodeEvents
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler


class HeldDispatcher:
    """Keeps binds until told to run them, and patches for ever; nominations are taken at once, or refused."""

    def __init__(self):
        self.jobs = []
        self.of_many = []
        self.patches = []
        self.nominations = []
        self.takes_nominations = True
        self.jobs_in_flight = 0

    def takes(self, namespace):
        return True

    def submit(self, uid, namespace, job, priority=0, *, of_many=False):
        self.jobs.append(job)
        self.of_many += [uid] * of_many

    def patch(self, uid, call, ended, **options):
        status = json.loads(call.body)["status"]
        if "nominatedNodeName" in status:
            self.nominations.append((uid, status["nominatedNodeName"]))
        for condition in status.get("conditions", ()):
            self.patches.append((uid, condition["reason"], condition["message"]))
        if "conditions" not in status:
            ended(self.takes_nominations)

    async def request(self, call):
        raise AssertionError(f"nobody ends a victim here: {call}")

    async def run(self):
        jobs, self.jobs[:] = self.jobs[:], []
        for job in jobs:
            await job(nullcontext())


class Binder:
    """Answers with `result`, after calling `meanwhile`; remembers what was asked."""

    def __init__(self):
        self.result = BindResult.BOUND
        self.meanwhile = lambda: None
        self.bindings = []

    async def bind(self, binding, turn):
        self.bindings.append((binding.uid, binding.node_name))
        self.meanwhile()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Recorder:
    """Remembers the events of pods."""

    def __init__(self):
        self.said = []
        self.preemptions = []
        self.forgotten = []
        self.sweeps = 0

    def scheduled(self, pod, node_name):
        self.said.append((pod.uid, "Scheduled", node_name))

    def taken(self, pod):
        self.said.append((pod.uid, "BoundByAnother", ""))

    def failed_scheduling(self, pod, message, *, told_later=False):
        if not told_later:
            self.told(pod, message)

    def told(self, pod, message):
        self.said.append((pod.uid, "FailedScheduling", message))

    def preempted(self, victim, preemptor, node_name, *, group_uid="", in_memory=False):
        self.preemptions.append((victim.uid, group_uid or preemptor.uid, node_name, in_memory))

    def forget(self, uid):
        self.forgotten.append(uid)

    def sweep(self):
        self.sweeps += 1


class Handlers:
    """The handlers of watch events on a cache and a queue."""

    def __init__(self, cache, queue, gone, profiles=("bayplan",)):
        self.cache, self.queue, self.metrics = cache, queue, RecordedMetrics()
        self.nodes = NodeEvents(cache, queue, self.metrics)
        self.assigned = AssignedPodEvents(cache, queue, self.metrics, on_gone=gone)
        self.pending = PendingPodEvents(cache, queue, self.metrics, profiles=frozenset(profiles), on_gone=gone)


class Scene(Handlers):
    """The real queue, cache, cycle, plugins and handlers; the dispatcher is a test's own or holds what it is given."""

    def __init__(self, dispatcher=None, configuration=None, **options):
        self.now = 0.0
        cache, nominator = Cache(), Nominator()
        configuration = configuration or default_configuration()
        self.frameworks = build_frameworks(configuration, cache.nodes, cache.listers, nominator)
        self.framework = next(iter(self.frameworks.values()))
        settings = queue_settings(self.frameworks)
        self.profiles = settings.profiles
        self.groups = PodGroups(cache)
        options = {"nominator": nominator, "groups": self.groups, **options}
        self.binder, self.recorder, self.news = Binder(), Recorder(), asyncio.Event()
        queue = SchedulingQueue(clock=self.clock, settings=settings, wake=self.news.set, **options)
        self.dispatcher = dispatcher or HeldDispatcher()
        super().__init__(cache, queue, self._pod_gone, self.frameworks)
        self.scheduler = Scheduler(
            cache=self.cache,
            queue=self.queue,
            engine=self.engine(self.frameworks),
            dispatcher=self.dispatcher,
            recorder=self.recorder,
            metrics=self.metrics,
            news=self.news,
            clock=self.clock,
            victim_gone=self.assigned.gone_by_answer,
            writes_node=configuration.feature_gates.enabled("NominatedNodeNameForExpectation"),
        )

    def engine(self, frameworks, **fields):
        """An engine of these frameworks on what the scene has, with the scene's binder and back-offs unless given."""
        return Engine(
            frameworks=frameworks,
            cycle=SchedulingCycle(self.cache.nodes, self.queue.nominator, frameworks.values()),
            binder=self.binder,
            queue=queue_settings(frameworks),
            **fields,
        )

    def _pod_gone(self, uid):
        self.scheduler.pod_gone(uid)

    def clock(self):
        return self.now

    def node(self, name="n1", **fields):
        self.nodes.on_add(make_node(name, **fields))

    def pod(self, name="p", **fields):
        pod = make_pod(name, **{"uid": name, "cpu": "1", **fields})
        self.pending.changed(pod)
        return pod

    def step(self):
        """One attempt, if a pod can be popped; returns the pod as it is queued."""
        attempt = self.scheduler.schedule_one()
        self.check()
        return attempt and attempt.queued

    async def attempt(self):
        """One attempt and the bind that follows from it."""
        queued = self.step()
        await self.dispatcher.run()
        self.check()
        return queued

    async def first_attempt(self, name="p", **pod):
        """One node, one pod, and one attempt with its bind."""
        self.node()
        self.pod(name, **pod)
        return await self.attempt()

    def after(self, seconds):
        """Time passes, and the queue looks at the clock."""
        self.now += seconds
        self.queue.flush(self.now)

    def check(self):
        assert_consistent(self.queue)
        assert_adds_up(self.cache)

    def sub_queue_of(self, uid="p"):
        """Where in the queue the pod is; None when it is in no queue."""
        queued = self.queue.get(uid)
        return None if queued is None else queued.sub_queue

    def said(self):
        """What was said of pods since the last time."""
        said, self.recorder.said = self.recorder.said, []
        return said
