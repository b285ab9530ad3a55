"""One run: a control plane of its own, Karpenter, one scheduler, and a trace of pods as time goes by."""

import json
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from bayplan.cli.config import load_checked
from bayplan.config.types import SchedulerConfiguration
from bayplan.replay.outcome import quantile
from bayplan.replay.trace import Trace, TracePod
from e2e.autoscaler.karpenter import KarpenterProcess, install_karpenter
from e2e.autoscaler.ledger import Ledger, Live
from e2e.autoscaler.workload import STEADY, trace_for
from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.client import ApiError, path_of
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import Process
from e2e.controlplane.recorder import PodRecorder

KUBE_SCHEDULER, BAYPLAN = "kube-scheduler", "bayplan"
_DEFAULTS = REPOSITORY / "examples" / "kube-scheduler-default.yaml"
_NAMESPACE = "default"
_TICK_SECONDS, _NODES_SECONDS = 0.02, 0.25


class Run(msgspec.Struct, frozen=True):
    """Who schedules (kube-scheduler, bayplan, or bayplan with the file of that name), and when nodes go."""

    contestant: str
    consolidation: str
    seed: int
    minutes: float
    consolidate_after: str = "10s"
    load: str = STEADY

    @property
    def trace(self) -> Trace:
        """The pods that come."""
        return trace_for(self.seed, self.minutes, self.load)

    @property
    def file(self) -> Path | None:
        """The file of its configuration; None for bayplan's default."""
        if self.contestant == KUBE_SCHEDULER:
            return _DEFAULTS
        return None if self.contestant == BAYPLAN else Path(self.contestant).resolve()

    @property
    def scheduler_name(self) -> str:
        """Whom the pods are for."""
        if self.contestant == KUBE_SCHEDULER:
            return "default-scheduler"
        return self.configuration().profiles[0].scheduler_name

    def configuration(self) -> SchedulerConfiguration:
        """Return what is configured."""
        return load_checked(self.file, None, (), [])


def run_live(run: Run) -> Live:
    """Has it happen, which takes as many minutes as it says and half a minute more.

    Raises:
        RuntimeError: a process ended.
    """
    with ControlPlane.start(ControlPlaneOptions(bench=True, kwok=True)) as plane:
        install_karpenter(plane, consolidation=run.consolidation, consolidate_after=run.consolidate_after)
        kubeconfig = install_bayplan(plane)
        with (
            KarpenterProcess(plane) as karpenter,
            _scheduler(plane, run, kubeconfig) as scheduler,
            PodRecorder(plane.client) as recorder,
        ):
            return _Load(plane, run, recorder, (karpenter, scheduler)).run()


def _scheduler(plane: ControlPlane, run: Run, kubeconfig: Path) -> Process:
    folder = Path(tempfile.mkdtemp(prefix="scheduler-", dir=plane.directory))
    if run.contestant == KUBE_SCHEDULER:
        return KubeSchedulerProcess(folder, {}, plane.kubeconfig_for(kube_scheduler_process.USER), verbosity=0)
    return BayplanProcess(folder, config=run.file, kubeconfig=kubeconfig)


@dataclass(frozen=True, slots=True)
class _Cpu:
    """The machine's CPU time so far."""

    idle: int
    total: int

    @classmethod
    def now(cls) -> "_Cpu":
        amounts = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return cls(amounts[3] + amounts[4], sum(amounts))


class _Load:
    """Creates pods when they come, ends each when its time since its bind is over, and makes evicted ones again."""

    def __init__(self, plane: ControlPlane, run: Run, recorder: PodRecorder, processes: tuple[Process, ...]) -> None:
        self._client, self._recorder, self._processes = plane.client, recorder, processes
        self._trace = run.trace
        self._ledger = Ledger(self._trace)
        self._scheduler_name = run.scheduler_name
        self._coming = deque(self._trace.pods)
        self._pods: dict[str, TracePod] = {}
        """By uid, as the two below."""
        self._ends: list[tuple[float, str, str]] = []
        self._told: set[str] = set()
        self._bound: set[str] = set()
        self._made = self._seen = 0
        self._nodes: set[str] = set()
        self._creations: list[float] = []

    def run(self) -> Live:
        """Have time go by until the end of the trace."""
        end, cpu = self._trace.header.seconds, _Cpu.now()
        self._started, looked = time.monotonic(), 0.0
        while (now := self._now()) < end:
            while self._coming and self._coming[0].arrival_seconds <= now:
                self._create(self._coming.popleft())
            while self._ends and self._ends[0][0] <= now:
                self._end(*heappop(self._ends)[1:])
            self._take_in()
            if now - looked >= _NODES_SECONDS:
                looked = now
                self._look_at_nodes()
                for each in self._processes:
                    each.check_alive()
            time.sleep(_TICK_SECONDS)
        after = _Cpu.now()
        return self._ledger.live(
            seconds=self._now(),
            cpu_idle=(after.idle - cpu.idle) / (after.total - cpu.total),
            create_p99=quantile(sorted(self._creations), 0.99),
        )

    def _now(self) -> float:
        return time.monotonic() - self._started

    def _create(self, traced: TracePod) -> None:
        self._made += 1
        amounts = self._trace.template_of(traced).requests
        requests = {name: str(amount) for name, amount in amounts.items()}
        document = pod(f"pod-{self._made}", _NAMESPACE, scheduler=self._scheduler_name, requests=requests)
        sent = self._now()
        uid = self._client.create("pods", document)["metadata"]["uid"]
        self._creations.append(self._now() - sent)
        self._pods[uid] = traced
        self._ledger.came(uid, traced, sent)

    def _end(self, uid: str, name: str) -> None:
        if uid in self._pods:
            self._told.add(uid)
            try:
                self._client.delete("pods", name, namespace=_NAMESPACE, grace_seconds=0)
            except ApiError as error:
                if error.status != 404:
                    raise
                self._told.discard(uid)  # evicted: the watch has not told yet

    def _take_in(self) -> None:
        """Take in what the watch saw; a pod that nobody here told to end was evicted, and its owner makes it again."""
        events = self._recorder.events
        for event in events[self._seen :]:
            now = event.arrived - self._started
            if event.node and event.uid not in self._bound:
                self._bound.add(event.uid)
                self._ledger.bound(event.uid, event.node, now)
                name = event.key.partition("/")[2]
                heappush(self._ends, (now + self._pods[event.uid].duration_seconds, event.uid, name))
            if event.type == "DELETED":
                evicted = event.uid not in self._told
                self._ledger.ended(event.uid, now, evicted=evicted)
                traced = self._pods.pop(event.uid)
                if evicted:
                    self._create(traced)
        self._seen = len(events)

    def _look_at_nodes(self) -> None:
        names = set(self._node_names())
        self._ledger.nodes(self._nodes, names, self._now())
        self._nodes = names

    def _node_names(self) -> Iterator[str]:
        status, content = self._client.exchange("GET", path_of("nodes"))
        if status != 200:
            raise RuntimeError(f"nodes: {status} {content[:200]!r}")
        for each in json.loads(content)["items"]:
            yield each["metadata"]["name"]
