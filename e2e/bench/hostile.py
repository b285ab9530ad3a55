"""`python -m e2e.bench.hostile`: what hostile pods cost all others, beside kube-scheduler in one run.

Ordinary pods come at a fixed rate, first by themselves and then while all pods of the table of hostile inputs come
among them, evenly over the same time. For both the time from the sending of a pod's creation to its bind is printed.
Then every hostile pod must have the verdict that the table says, for bayplan and for kube-scheduler, and the resident
memory is taken before they came, while they are there, and half a minute after all pods were deleted.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.bench import environment
from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import BAYPLAN, SAMPLED, Contestant, Stage, contestants
from e2e.bench.measure import REST_SECONDS, flow, turn_of
from e2e.bench.results import Steady
from e2e.bench.watched import watched
from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.hostile import surroundings
from e2e.hostile.row import BINDS, FAILS, NAMESPACE, SILENT
from e2e.hostile.table import CASES

_LIMIT_SECONDS = 180.0
_VERDICT_SECONDS = 30.0
_CALM_SECONDS = 30.0
_MOST_TIMES_AS_LONG = 2.0
"""The bar: p99 of the others with the storm, in multiples of what it is without."""


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one contestant; `wrong` are the hostile pods with another verdict than the table's, and theirs.

    `resident` is memory in bytes before the hostile pods, among them, and after all pods were deleted.
    """

    contestant: str
    alone: Steady
    among: Steady
    wrong: dict[str, str]
    resident: tuple[int, int, int]


def measure(cluster: BenchCluster, contestant: Contestant, kubeconfig: Path, options: argparse.Namespace) -> Found:
    """Has one contestant meet both flows; the cluster is empty before and after."""
    client, plane = cluster.plane.client, cluster.plane
    pods = round(options.rate * options.seconds)
    with tempfile.TemporaryDirectory(prefix="hostile-", dir=plane.directory) as name:
        namespace = cluster.new_namespace()
        stage = Stage(plane, kubeconfig, Path(name), namespace, Path(name) / "unused.txt")
        surroundings.set_up(client, options.nodes)
        try:
            with watched(contestant, stage) as running:
                turn = turn_of(cluster, stage, running, _LIMIT_SECONDS)
                # What the first pods of a process pay for is not the storm's doing.
                flow(turn, before=0, pods=100, rate=options.rate)
                alone = flow(turn, before=100, pods=pods, rate=options.rate)
                before = running.process.rss_bytes()
                time.sleep(REST_SECONDS)
                storm = threading.Thread(target=_storm, args=(client, options.seconds), name="storm")
                storm.start()
                among = flow(turn, before=100 + pods, pods=pods, rate=options.rate)
                storm.join()
                wrong = _wrong_verdicts(client, contestant.name)
                there = running.process.rss_bytes()
                surroundings.delete_pods(client)
                cluster.clear(namespace)
                time.sleep(_CALM_SECONDS)
                return Found(contestant.name, alone, among, wrong, (before, there, running.process.rss_bytes()))
        finally:
            surroundings.take_down(client)


def _storm(client: ApiClient, seconds: float) -> None:
    """Creates the hostile pods one after the other, evenly over the seconds."""
    documents = surroundings.pod_documents(SCHEDULER_NAME)
    began = time.monotonic()
    for index, document in enumerate(documents):
        time.sleep(max(0.0, began + index * seconds / len(documents) - time.monotonic()))
        client.create("pods", document)


def _wrong_verdicts(client: ApiClient, contestant: str) -> dict[str, str]:
    """The pods whose verdict is not the table's; waits for those that have none yet."""
    deadline = time.monotonic() + _VERDICT_SECONDS
    while True:
        found = {pod["metadata"]["name"]: _act(pod) for pod in client.list("pods", NAMESPACE)}
        wrong = {name: found[name] for name in CASES if not _is_right(name, found[name], contestant)}
        if not wrong or time.monotonic() >= deadline:
            return wrong
        time.sleep(1.0)


def _act(pod: Object) -> str:
    """What was done with a pod: one of the table's words, or the message that it got."""
    if pod["spec"].get("nodeName"):
        return BINDS
    conditions: list[Object] = pod["status"].get("conditions", [])
    condition = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    if condition.get("reason") == "SchedulerError":
        return FAILS
    return str(condition.get("message") or SILENT)


def _is_right(name: str, act: str, contestant: str) -> bool:
    case = CASES[name]
    if contestant != BAYPLAN and case.kube_scheduler:
        return case.kube_scheduler in act
    return act == BINDS if not case.verdict else case.verdict in act


def table(found: Sequence[Found]) -> str:
    """Returns the times and the memory of each contestant, and how much longer its others took."""
    lines = [
        "| | p50 ms | p99 | longest | among hostile: p50 ms | p99 | longest | p99 times | MB before | among | after |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        times = [1000 * t for s in (each.alone, each.among) for t in (s.p50, s.p99, s.longest)]
        cells = [*(f"{t:.0f}" for t in times), f"{each.among.p99 / each.alone.p99:.1f}"]
        cells += [f"{size / 1e6:.0f}" for size in each.resident]
        lines.append(f"| {each.contestant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if bayplan gave a wrong verdict, or others waited more than twice as long."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.hostile", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=20.0, help="ordinary pods a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the two flows")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[SAMPLED, BAYPLAN], help="contestants")
    options = parser.parse_args(arguments)
    found = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        cluster = BenchCluster(plane)
        for name in options.only:
            found.append(measure(cluster, contestants()[name], kubeconfig, options))
            print(f"{name}: {len(CASES) - len(found[-1].wrong)} of {len(CASES)} verdicts as the table says", flush=True)
            for pod, act in found[-1].wrong.items():
                print(f"  {pod}: {act[:200]}")
    print(f"\n{environment.date()}  {environment.commit()}\n\n{table(found)}")
    ours = [each for each in found if each.contestant == BAYPLAN]
    return int(any(each.wrong or each.among.p99 > _MOST_TIMES_AS_LONG * each.alone.p99 for each in ours))


if __name__ == "__main__":
    sys.exit(main())
