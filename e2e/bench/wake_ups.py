"""`python -m e2e.bench.wake_ups`: what an event costs that may help very many waiting pods.

The engine alone, without an API server: full nodes, pods of a few kinds that wait for room, and pods on nodes that are
deleted and replaced. Prints how long the event itself takes, in all and in the longest step that nothing else can run
in, how many pods are tried for it, and when a pod that comes right after it has its decision. Times are of the
process's CPU.
"""

import argparse
import gc
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import Container, Node, NodeStatus, Pod, PodSpec, ResourceRequirements
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.cli.process import end_process
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.in_flight import STEP_PODS
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import Attempt, AttemptRunner
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.event_handlers import AssignedPodEvents
from bayplan.server.metrics import SchedulerMetrics

_AFTER_BACK_OFF, _DURING_BACK_OFF = 15.0, 0.5


class Scene:
    """Full nodes of one CPU, and so many pods that wait for one."""

    def __init__(self, nodes: int, waiting: int, kinds: int) -> None:
        self.now = 0.0
        cache, nominator = Cache(), Nominator()
        frameworks = build_frameworks(default_configuration(), cache.nodes, cache.listers, nominator)
        settings = queue_settings(frameworks)
        self.queue = SchedulingQueue(clock=lambda: self.now, settings=settings, nominator=nominator, step=STEP_PODS)
        cycle = SchedulingCycle(cache.nodes, nominator, frameworks.values())
        self._attempts = AttemptRunner(cache, self.queue, cycle, frameworks, lambda: self.now, decides_by_kind=True)
        self._serial = itertools.count()
        self._kinds = kinds
        metrics = SchedulerMetrics(profiles=sorted(frameworks))
        self._assigned = AssignedPodEvents(cache, self.queue, metrics, on_gone=lambda uid: None)
        for index in range(nodes):
            allocatable: dict[str, Quantity] = {"cpu": "1", "memory": "4Gi", "pods": "110"}
            cache.set_node(Node(metadata=ObjectMeta(name=f"n{index}"), status=NodeStatus(allocatable=allocatable)))
            self._assigned.on_add(self._pod(node=f"n{index}"))
        self._full = self._pod(node="n0")
        for _ in range(waiting):
            self.queue.add(PodInfo(self._pod()))

    def _pod(self, node: str = "") -> Pod:
        serial = next(self._serial)
        requests: dict[str, Quantity] = {"cpu": "1", "memory": f"{serial % self._kinds + 1}Mi"}
        metadata = ObjectMeta(name=f"p{serial}", namespace="default", uid=f"p{serial}", resource_version="1")
        containers = [Container(name="main", resources=ResourceRequirements(requests=requests))]
        return Pod(metadata, PodSpec(scheduler_name="bayplan", node_name=node, containers=containers))

    def wake(self) -> tuple[float, float]:
        """A pod that took nothing more than its node had goes; returns the milliseconds, and the longest step's."""
        self._assigned.on_add(self._full)
        return self._steps(lambda: self._assigned.on_delete(self._full))

    def pass_time(self, seconds: float) -> tuple[float, float]:
        """Lets back-offs end; returns the milliseconds, and the longest step's."""
        self.now += seconds
        return self._steps(lambda: None)

    def _steps(self, begin: Callable[[], object]) -> tuple[float, float]:
        took, step = [], begin
        while True:
            started = time.process_time()
            goes_on = step() or self.queue.is_moving
            took.append((time.process_time() - started) * 1000)
            if step is not begin and not goes_on:
                return sum(took), max(took)
            step = partial(self.queue.flush, self.now)

    def newcomer(self) -> str:
        """Adds a pod and returns its UID."""
        pod = PodInfo(self._pod())
        self.queue.add(pod)
        return pod.uid

    def try_all(self, uid: str = "") -> tuple[int, float, float]:
        """Tries what is there to try: how many pods, the milliseconds, and those until the pod `uid` was decided."""
        tried, decided, started = 0, 0.0, time.process_time()
        while self.queue.has_ready():
            attempt = self._attempts.run()
            if attempt is None:
                self.queue.flush(self.now)
                continue
            tried += 1
            if isinstance(attempt, Attempt) and attempt.queued.uid == uid:
                decided = (time.process_time() - started) * 1000
        return tried, (time.process_time() - started) * 1000, decided


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.wake_ups", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=20_000)
    parser.add_argument("--kinds", type=int, default=5, help="of pods that ask for different amounts")
    options = parser.parse_args(arguments)
    scene = Scene(options.nodes, options.waiting, options.kinds)
    tried, total, _ = scene.try_all()
    # As the process does with what is there at its start.
    gc.collect()
    gc.freeze()
    sys.stdout.write(f"at first: {tried} pods tried in {total:.0f} ms\n")
    for title, seconds in (("all have waited long", _AFTER_BACK_OFF), ("all have just been tried", _DURING_BACK_OFF)):
        scene.pass_time(seconds)
        wake, longest = scene.wake()
        tried, total, decided = scene.try_all(scene.newcomer())
        sys.stdout.write(
            f"{title}: waking {options.waiting} pods takes {wake:.0f} ms, the longest step {longest:.1f}; "
            f"then {tried} are tried in {total:.0f} ms, and a newcomer is decided after {decided:.1f} ms\n"
        )
    backing_off = scene.queue.pending()["backoff"]
    ends, longest = scene.pass_time(_AFTER_BACK_OFF)
    sys.stdout.write(f"the ends of {backing_off} back-offs take {ends:.0f} ms, the longest step {longest:.1f}\n")
    return 0


if __name__ == "__main__":
    end_process(main())
