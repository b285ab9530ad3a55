"""`python -m e2e.bench.webhooks`: what one namespace's broken admission costs all others, beside kube-scheduler.

In each scene one kind of call fails in one namespace: pods/binding, pods/status, deletion or eviction of victims, or
Events; by a webhook that nobody serves, that hangs, answers 500 or denies, by a policy, or by a quota. Pods come to
four other namespaces at a fixed rate, first by themselves and then while pods wait in the bad namespace. The time is
that from a pod's creation to its bind, its condition, or the end of its victim. Then the failure ends, and the bad pods
have to get what they came for. Calls for them are counted in the API server's audit log.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from e2e.arguments import positive
from e2e.bench import environment
from e2e.bench.admission_scenes import HIGH, LOW, SCENES, Scene
from e2e.bench.cluster import delete_until_gone
from e2e.bench.contestants import BAYPLAN, SAMPLED, Contestant, Stage, contestants
from e2e.bench.results import percentile
from e2e.bench.workload import bench_node, scheduler_configuration
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.failing_webhook import EVICTION, failing_admission
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import Process
from e2e.controlplane.recorder import PodRecorder

_OTHERS = 4
_CREATORS = 16
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_MOST_TIMES_AS_LONG, _MOST_SECONDS, _MOST_SECONDS_AFTER = 2.0, 0.5, 15.0
_UNREACHABLE = "cannot reach the API server"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from creation to what pods came for; `missing` ones had not got it at the end and count as endless."""

    p50: float
    p99: float
    longest: float
    missing: int
    pods: int


@dataclass(frozen=True, slots=True)
class Found:
    """One contestant in one scene.

    `calls` are those a second that failed or were held in the bad namespace, `in_flight` how many were at once at most.
    `after` is how long the last bad pod took once the failure had ended, endless if it did not get there. `unreachable`
    counts the lines of the log that blame the API server. Memory is in bytes.
    """

    contestant: str
    scene: str
    quiet: Times
    among: Times
    calls: float
    in_flight: int
    after: float
    peak_rss: int
    unreachable: int


class _Turn:
    """A scene on an empty cluster, with a contestant that runs."""

    def __init__(self, plane: ControlPlane, scene: Scene, recorder: PodRecorder, number: int) -> None:
        self._plane, self._client = plane, plane.client
        self.scene = scene
        self._recorder = recorder
        self.bad = f"bad-{number}"
        self.others = [f"others-{number}-{index}" for index in range(_OTHERS)]
        for name in (self.bad, *self.others):
            self._client.create("namespaces", {"metadata": {"name": name}})

    def prepare(self, bad: int, others: int) -> None:
        """Creates what the pods need to find: so many in the bad namespace, and in the others together."""
        self.scene.prepare(self._client, self.bad, range(bad))
        for position, namespace in enumerate(self.others):
            self.scene.prepare(self._client, namespace, range(position, others, _OTHERS))

    def flow(self, indices: range, rate: float, patience: float, process: Process) -> Times:
        """Creates pods in the other namespaces on the beat, waits for them as long as they may take, and measures."""
        sent: dict[str, float] = {}
        began = time.monotonic()
        with ThreadPoolExecutor(_CREATORS, thread_name_prefix="create") as pool:
            for beat, index in enumerate(indices):
                time.sleep(max(0.0, began + beat / rate - time.monotonic()))
                pool.submit(self._create, index, sent)
        self.wait(sent, time.monotonic() + patience, process)
        done = self.scene.done(self._recorder.events)
        if len(sent) < len(indices):
            raise RuntimeError(f"only {len(sent)} of {len(indices)} pods were created")
        seconds = [done.get(key, math.inf) - moment for key, moment in sent.items()]
        missing = sum(math.isinf(each) for each in seconds)
        return Times(percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds), missing, len(seconds))

    def _create(self, index: int, sent: dict[str, float]) -> None:
        namespace = self.others[index % _OTHERS]
        moment = time.monotonic()
        self._client.create("pods", self.scene.pod(namespace, index, elsewhere=True))
        sent[f"{namespace}/pod-{index}"] = moment

    def create_bad(self, count: int) -> list[str]:
        """Creates the pods that meet the failure, as fast as they are taken, and returns their keys."""
        self._client.create_all("pods", [self.scene.pod(self.bad, index, elsewhere=False) for index in range(count)])
        return [f"{self.bad}/pod-{index}" for index in range(count)]

    def wait(self, keys: Iterable[str], deadline: float, process: Process) -> float:
        """Waits until all of them got what they came for, or until the deadline; returns when the last did."""
        wanted = set(keys)
        while True:
            process.check_alive()
            done = self.scene.done(self._recorder.events)
            if wanted <= done.keys():
                return max(done[key] for key in wanted)
            if time.monotonic() >= deadline:
                return math.inf
            time.sleep(_POLL_SECONDS)

    def clear(self) -> None:
        """Deletes all pods and nodes."""
        namespaces = (self.bad, *self.others)
        delete_until_gone(self._client, [(kind, each) for each in namespaces for kind in ("pods", "events")])
        delete_until_gone(self._client, [("nodes", None)])


@dataclass(frozen=True, slots=True)
class _Bench:
    """What all turns share."""

    plane: ControlPlane
    kubeconfig: Path
    options: argparse.Namespace


def measure(bench: _Bench, contestant: Contestant, scene: Scene, number: int) -> Found:
    """Has one contestant go through one scene, the `number`-th of all; the cluster is empty before and after."""
    plane, options = bench.plane, bench.options
    with (
        PodRecorder(plane.client) as recorder,
        tempfile.TemporaryDirectory(prefix="webhooks-", dir=plane.directory) as folder,
    ):
        turn = _Turn(plane, scene, recorder, number)
        try:
            if not scene.preempts:
                plane.client.create_all("nodes", [bench_node(index) for index in range(options.nodes)])
            turn.prepare(scene.bad_pods(options.pods), 3 * _pods(scene, options))
            stage = Stage(plane, bench.kubeconfig, Path(folder), turn.bad, Path(folder) / "unused.txt")
            process = contestant.start(stage)
            try:
                return _go_through(bench, turn, contestant, process)
            finally:
                process.stop(_STOP_SECONDS)
                if options.logs is not None:
                    (options.logs / f"{scene.name}-{contestant.name}.log").write_text(process.log())
        finally:
            turn.clear()


def _pods(scene: Scene, options: argparse.Namespace) -> int:
    pods: float = scene.rate(options.rate) * options.seconds
    return max(1, round(pods))


def _go_through(bench: _Bench, turn: _Turn, contestant: Contestant, process: Process) -> Found:
    options, scene = bench.options, turn.scene
    rate, pods = scene.rate(options.rate), _pods(scene, options)
    # What the first pods of a process pay for is not the failure's doing.
    turn.flow(range(max(1, pods // 4)), rate, _START_SECONDS, process)
    quiet = turn.flow(range(pods, 2 * pods), rate, options.patience, process)
    tail = bench.plane.audit_tail()
    with failing_admission(bench.plane, turn.bad, scene.call, scene.failure, mutating=scene.mutating):
        began = time.time()
        keys = turn.create_bad(scene.bad_pods(options.pods))
        time.sleep(options.ahead)
        among = turn.flow(range(2 * pods, 3 * pods), rate, options.patience, process)
        window = (began, time.time())
        ended = time.monotonic()
    after = max(0.0, turn.wait(keys, time.monotonic() + options.limit, process) - ended)
    calls = [each for each in tail.poll() if _is_bad(each, turn.bad, window)]
    asked = [each for each in calls if each.resource == scene.resource]
    return Found(
        contestant.name,
        scene.name,
        quiet,
        among,
        len(asked) / (window[1] - window[0]),
        most_at_once((each.received, each.answered) for each in calls),
        after,
        process.peak_rss_bytes(),
        process.log().count(_UNREACHABLE),
    )


def _is_bad(event: AuditEvent, namespace: str, window: tuple[float, float]) -> bool:
    is_the_scheduler = event.user != "test-admin"
    return is_the_scheduler and event.namespace == namespace and window[0] <= event.received <= window[1]


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """Returns how many spans of time overlap at most."""
    steps = sorted(step for began, ended in spans for step in ((began, 1), (ended, -1)))
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def misses(found: Found, everyone: Sequence[Found]) -> list[str]:
    """Returns the bars that one turn does not reach; another contestant is compared with in the same scene."""
    missed = []
    if found.among.missing:
        missed.append(f"{found.among.missing} of {found.among.pods} of the others were left")
    elif found.among.p99 > min(_MOST_SECONDS, _MOST_TIMES_AS_LONG * found.quiet.p99):
        missed.append(f"the others' p99 is over {_MOST_TIMES_AS_LONG:g} times the quiet one, or {_MOST_SECONDS:g} s")
    if found.after > _MOST_SECONDS_AFTER:
        missed.append(f"the bad pods took over {_MOST_SECONDS_AFTER:g} s after its end")
    theirs = [each for each in everyone if (each.scene, each.contestant) == (found.scene, SAMPLED)]
    # Who is held up itself calls nobody, and kube-scheduler never evicts.
    if any(found.calls > each.calls > 0 and not each.among.missing for each in theirs):
        missed.append("more calls for the bad than kube-scheduler makes")
    return missed


def table(found: Sequence[Found]) -> str:
    """Returns a row for each contestant in each scene."""
    heads = [
        *("quiet: p50 s", "p99", "longest", "among bad: p50 s", "p99", "longest", "left", "p99 times"),
        *("bad: calls/s", "at once", "s after its end", "peak MB", "unreachable"),
    ]
    lines = [
        f"| scene | | {' | '.join(heads)} |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        cells = [f"{seconds:.2f}" for t in (each.quiet, each.among) for seconds in (t.p50, t.p99, t.longest)]
        cells += [f"{each.among.missing} of {each.among.pods}", f"{each.among.p99 / each.quiet.p99:.1f}"]
        cells += [f"{each.calls:.1f}", str(each.in_flight), f"{each.after:.1f}", f"{each.peak_rss / 1e6:.0f}"]
        lines.append(f"| {each.scene} | {each.contestant} | {' | '.join(cells)} | {each.unreachable} |")
    return "\n".join(lines)


def _entrants(scene: Scene, names: Sequence[str]) -> list[Contestant]:
    everyone = contestants()
    if scene.call == EVICTION:
        # kube-scheduler has no such setting: it deletes its victims, which nothing keeps it from.
        everyone[BAYPLAN] = Contestant(BAYPLAN, "bayplan, which evicts", _start_evicting)
    return [everyone[name] for name in names]


def _start_evicting(stage: Stage) -> Process:
    configuration = scheduler_configuration(None)
    strict = {"name": "DefaultPreemption", "args": {"bayplan.io": {"pdbPolicy": "Strict"}}}
    configuration["profiles"][0]["pluginConfig"].append(strict)
    return BayplanProcess(stage.directory, config=configuration, kubeconfig=stage.bayplan_kubeconfig)


def _scenes(text: str) -> list[Scene]:
    """Returns the scenes of these names; for what is no name, those whose names begin so."""
    found = []
    for name in text.split(","):
        found += [SCENES[name]] if name in SCENES else [SCENES[each] for each in SCENES if each.startswith(name)]
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: none of {', '.join(SCENES)}")
    return found


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.webhooks", description=__doc__)
    parser.add_argument("--scenes", type=_scenes, default=list(SCENES.values()), help="names, or how names begin")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[SAMPLED, BAYPLAN], help="contestants")
    parser.add_argument("--pods", type=positive, default=1000, help="in the bad namespace, a tenth for status")
    parser.add_argument("--rate", type=float, default=20.0, help="pods a second elsewhere; a tenth where each preempts")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the two flows")
    parser.add_argument("--ahead", type=float, default=5.0, help="seconds that the bad pods come before the others")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds for the others after the last came")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for the bad pods after the failure's end")
    parser.add_argument("--nodes", type=positive, default=100)
    parser.add_argument(
        "--flow-control", action="store_true", help="the API server's priority and fairness, and limits, as by default"
    )
    parser.add_argument("--logs", type=Path, help="folder that exists, for the contestants' logs")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if bayplan missed a bar."""
    options = _options(arguments)
    found: list[Found] = []
    with ControlPlane.start(ControlPlaneOptions(bench=not options.flow_control, audit=True)) as plane:
        bench = _Bench(plane, install_bayplan(plane), options)
        for name, value in ((LOW, 1), (HIGH, 1000)):
            plane.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
        for scene in options.scenes:
            for contestant in _entrants(scene, options.only):
                found.append(measure(bench, contestant, scene, len(found)))
                print(table(found[-1:]).splitlines()[-1], flush=True)
    print(
        f"\n{environment.date()}  {environment.commit()}  load {environment.machine().load_before}\n\n{table(found)}\n"
    )
    wrong = 0
    for each in found:
        for missed in misses(each, found):
            wrong += each.contestant == BAYPLAN
            print(f"{each.scene}, {each.contestant}: {missed}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
