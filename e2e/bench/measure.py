"""One contestant's turn: the drain, then the steady phase, on a cluster that holds nothing but nodes."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.bench.bind_watch import BindWatch
from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import Contestant, Stage
from e2e.bench.created import read_created
from e2e.bench.meter import CpuMeter, thread_cpu_seconds
from e2e.bench.results import Drain, Run, Steady, percentile
from e2e.bench.watched import Watched, watched
from e2e.controlplane.process import Process

_SAMPLE_SECONDS = 0.02
_EVENT_POLL_SECONDS = 0.05
_EVENT_STALL_SECONDS = 30.0
# Between phases: what one phase left for the API server to do shall not be counted in the next.
REST_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what; `steady_rate` is pods a second, 0 leaves the steady phase out."""

    pods: int
    steady_rate: float
    steady_seconds: float
    limit_seconds: float

    @property
    def steady_pods(self) -> int:
        return round(self.steady_rate * self.steady_seconds)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the phases of a turn look at; `started` is the monotonic moment before the process was started."""

    cluster: BenchCluster
    stage: Stage
    watch: BindWatch
    process: Process
    meter: CpuMeter
    started: float
    limit_seconds: float


@contextmanager
def begun_turn(
    cluster: BenchCluster, contestant: Contestant, *, waiting: int, bayplan_kubeconfig: Path, limit_seconds: float
) -> Iterator[Turn]:
    """Has so many pods wait, starts the contestant, and leaves the cluster as it was when the block ends.

    Raises:
        RuntimeError, TimeoutError: the contestant did not start.
    """
    namespace = cluster.new_namespace()
    with tempfile.TemporaryDirectory(prefix="turn-", dir=cluster.plane.directory) as name:
        directory = Path(name)
        try:
            cluster.load_pods(namespace, directory, first=0, count=waiting)
            stage = Stage(cluster.plane, bayplan_kubeconfig, directory, namespace, directory / "created-0.txt")
            time.sleep(REST_SECONDS)
            with watched(contestant, stage) as running:
                yield turn_of(cluster, stage, running, limit_seconds)
        finally:
            cluster.clear(namespace)
            time.sleep(REST_SECONDS)


def take_turn(
    cluster: BenchCluster, contestant: Contestant, plan: Plan, *, nodes: int, repeat: int, bayplan_kubeconfig: Path
) -> Run:
    """Runs one contestant and leaves the cluster as it was; a contestant that fails is a result, not an error."""
    drained = steady = None
    problem = ""
    try:
        with begun_turn(
            cluster,
            contestant,
            waiting=plan.pods,
            bayplan_kubeconfig=bayplan_kubeconfig,
            limit_seconds=plan.limit_seconds,
        ) as turn:
            drained = drain(turn, plan.pods)
            if plan.steady_pods and contestant.schedules:
                time.sleep(REST_SECONDS)
                steady = flow(turn, before=plan.pods, pods=plan.steady_pods, rate=plan.steady_rate)
    except (RuntimeError, TimeoutError) as error:
        problem = str(error)
    return Run(contestant.name, nodes, repeat, drained, steady, problem)


def turn_of(cluster: BenchCluster, stage: Stage, running: Watched, limit_seconds: float) -> Turn:
    """Returns the turn of a contestant that was just started."""
    process = running.process
    return Turn(cluster, stage, running.watch, process, CpuMeter(process), running.started, limit_seconds)


def drain(turn: Turn, pods: int) -> Drain:
    """Waits until the pods that were there before the start are bound and their Events written.

    Raises:
        RuntimeError, TimeoutError: the contestant ended, was too slow, or did less than it should.
    """
    started = turn.started
    apiserver, etcd = (turn.cluster.plane.process(name) for name in ("kube-apiserver", "etcd"))
    apiserver_before, etcd_before = apiserver.cpu_seconds(), etcd.cpu_seconds()
    _wait_bound(turn, pods)
    events_at_last_bind = turn.cluster.event_count(turn.stage.namespace)
    first_bind, last_bind = min(turn.watch.bound_at.values()), max(turn.watch.bound_at.values())
    last_event = max(last_bind, _wait_events(turn, pods))
    result = Drain(
        pods=pods,
        first_bind=first_bind - started,
        last_bind=last_bind - started,
        last_event=last_event - started,
        cpu_at_first_bind=turn.meter.at(first_bind),
        cpu_at_last_bind=turn.meter.at(last_bind),
        cpu_at_last_event=turn.meter.at(last_event),
        threads=thread_cpu_seconds(turn.process),
        apiserver_cpu=apiserver.cpu_seconds() - apiserver_before,
        etcd_cpu=etcd.cpu_seconds() - etcd_before,
        peak_rss=turn.process.peak_rss_bytes(),
        nodes_used=turn.cluster.nodes_used(turn.stage.namespace),
        events_at_last_bind=min(pods, events_at_last_bind),
        events=turn.cluster.scheduled_events(turn.stage.namespace),
    )
    if result.events < pods:
        raise RuntimeError(f"only {result.events} of {pods} Scheduled Events were written")
    return result


def flow(turn: Turn, *, before: int, pods: int, rate: float) -> Steady:
    """Has pods created, `rate` a second or, with 0, as fast as they are taken, and waits as `drain` does.

    `before` is how many pods of this turn there were before.

    Raises:
        RuntimeError, TimeoutError: the contestant ended, was too slow, or did less than it should.
    """
    cpu_before = turn.process.cpu_seconds()
    load, output = turn.cluster.start_load(
        turn.stage.directory,
        namespace=turn.stage.namespace,
        first=before,
        count=pods,
        rate=rate,
    )
    total = before + pods
    try:
        _wait_bound(turn, total, load=load)
        load.wait()
    finally:
        load.kill()  # of a turn that failed: no pod may come after the cleaning up
        load.wait()
    cpu = turn.meter.at(_wait_events(turn, total)) - cpu_before
    created = read_created(output)
    latencies = [turn.watch.bound_at[row.name] - row.sent for row in created]
    sent = [row.sent for row in created]
    return Steady(
        pods=len(created),
        rate=rate,
        achieved_rate=(len(sent) - 1) / (max(sent) - min(sent)),
        p50=percentile(latencies, 0.5),
        p99=percentile(latencies, 0.99),
        longest=max(latencies),
        create_p50=percentile([row.answered - row.sent for row in created], 0.5),
        cpu=cpu,
        events=turn.cluster.scheduled_events(turn.stage.namespace) - before,
        peak_rss=turn.process.peak_rss_bytes(),
        all_bound=max(turn.watch.bound_at[row.name] for row in created) - min(sent),
    )


def _wait_bound(turn: Turn, pods: int, *, load: Process | None = None) -> None:
    deadline = time.monotonic() + turn.limit_seconds
    while (bound := turn.watch.poll()) < pods:
        turn.process.check_alive()
        turn.meter.sample()
        if load is not None and load.exit_code not in {None, 0}:
            raise RuntimeError(f"creating pods failed:\n{load.log_tail()}")
        if time.monotonic() >= deadline:
            problem = f"{bound} of {pods} pods were bound within {turn.limit_seconds:g} s"
            raise TimeoutError(f"{problem}:\n{turn.process.log_tail()}")
        time.sleep(_SAMPLE_SECONDS)
    turn.meter.sample()


def _wait_events(turn: Turn, pods: int) -> float:
    """Waits for as many Events as there are bound pods, or until no more come, and returns when the last was seen."""
    seen, moment = -1, time.monotonic()
    while seen < pods and time.monotonic() - moment < _EVENT_STALL_SECONDS:
        count = turn.cluster.event_count(turn.stage.namespace)
        turn.process.check_alive()
        turn.meter.sample()
        if count > seen:
            seen, moment = count, time.monotonic()
        time.sleep(_EVENT_POLL_SECONDS)
    return moment
