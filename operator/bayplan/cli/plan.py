"""`bayplan plan`: the moves that would free a node, have a pod fit, or leave fewer nodes in use."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from bayplan.cli.cluster_source import ClusterFlags, read_source
from bayplan.cli.flags import command
from bayplan.config.flags import FILE_TEXT, flag

if TYPE_CHECKING:
    from bayplan.cache.pod_info import PodInfo
    from bayplan.simulate.cluster_objects import ClusterObjects

NO_PLAN: Final = 3
"""Exit code where the goal is not reached, whatever moves there are."""


@dataclass(frozen=True, kw_only=True)
class _Goal:
    free: Sequence[str] = flag(
        "--free NODE", "Free the node of all pods that can move. Can be given several times.", default=()
    )
    fit: str | None = flag(
        "--fit NAMESPACE/NAME|FILE", "Make room for a pod that waits, or for the one that a file gives.", type=FILE_TEXT
    )
    nodes: int | None = flag("--nodes INT", "Bring the nodes in use down to so many.", type=click.IntRange(0))
    output: str = flag("--output -o table|json", "For people, or for programs.", default="table")


@command(
    examples=(
        "bayplan plan --free node-1",
        "bayplan plan --cluster cluster.json.gz --fit shop/web-0",
        "bayplan plan --cluster cluster.json.gz --fit pod.yaml -o json",
        "bayplan snapshot -o - | bayplan plan --cluster - --nodes 20",
    ),
)
def plan(goal: _Goal, source: ClusterFlags) -> None:
    """Say which evictions, in which order, would free a node, have a pod fit, or leave fewer nodes in use.

    The engine that schedules decides where each evicted pod lands once its controller makes it anew.
    PodDisruptionBudgets are honoured. The plan is printed, and nothing is done.

    Exit codes: 0 the goal is reached, 1 the cluster cannot be read, 2 wrong input, 3 the goal is not reached.
    """
    from bayplan.plan.goals import fewer, fit, free, print_plan  # noqa: PLC0415
    from bayplan.plan.rehearsal import Rehearsal  # noqa: PLC0415
    from bayplan.simulate.changes import Changes, missing  # noqa: PLC0415
    from bayplan.simulate.input_files import is_file  # noqa: PLC0415
    from bayplan.simulate.report import encode  # noqa: PLC0415
    from bayplan.simulate.tables import Printer  # noqa: PLC0415

    if bool(goal.free) + (goal.fit is not None) + (goal.nodes is not None) != 1:
        raise click.UsageError("Give one of --free, --fit and --nodes.")
    file = goal.fit if goal.fit and is_file(goal.fit) else None
    given = read_source(source, Changes(add=[] if file is None else [file]))
    simulator = given.each_configured[0].simulator
    nodes = [*dict.fromkeys(each.removeprefix("node/") for each in goal.free)]
    for each in set(nodes) - {node.metadata.name for node in given.objects.nodes}:
        raise missing(("Node", "", each), "--free")
    pod = None if goal.fit is None else _wanted(goal.fit, given.objects, simulator.frameworks)
    rehearsal = Rehearsal(simulator, given.objects)
    if pod is not None:
        found = fit(rehearsal, pod)
    else:
        found = free(rehearsal, nodes) if goal.nodes is None else fewer(rehearsal, goal.nodes)
    if goal.output == "json":
        sys.stdout.write(encode(found).decode())
    else:
        print_plan(Printer(sys.stdout), found)
    if not found.reached:
        raise Exit(NO_PLAN)


def _wanted(name: str, objects: "ClusterObjects", profiles: "Collection[str]") -> "PodInfo":
    """The pod that is to fit; raises ClusterFileError where that is none that waits for one of our schedulers."""
    from bayplan.config.errors import quote  # noqa: PLC0415
    from bayplan.simulate.documents import ClusterFileError  # noqa: PLC0415
    from bayplan.simulate.input_files import is_file, waiting_pods  # noqa: PLC0415

    key = name.removeprefix("pod/")
    key = key if "/" in key else f"default/{key}"
    named = [pod for pod in objects.pods if pod.key == key]
    added = [pod for pods in objects.added for pod in pods]
    if added and {pod.uid for pod in named} - {pod.uid for pod in added}:
        raise ClusterFileError(f"--fit: {quote(name)} is a file and a pod: give ./{name} or pod/{key}")
    found = added or named
    if not found and not is_file(name):
        raise ClusterFileError(f"--fit: {quote(name)}: there is no such file, and no such pod that can be read")
    if len(found) != 1:
        raise ClusterFileError(f"--fit: {quote(name)} gives {len(found)} pods that can be read, one is needed")
    (pod,) = found
    if added and all(each.uid != pod.uid for each in objects.pods):
        text = "makes no more pods: name the one that waits, as NAMESPACE/NAME"
        raise ClusterFileError(f"--fit: the workload of {quote(name)} {text}")
    if all(each.uid != pod.uid for each in waiting_pods(objects)):
        raise ClusterFileError(f"--fit: pod {pod.key} does not wait for a node")
    if pod.pod.spec.scheduler_name not in profiles:
        scheduler = quote(pod.pod.spec.scheduler_name)
        raise ClusterFileError(
            f"--fit: pod {pod.key} is for the scheduler {scheduler}: give --scheduler-name or --config"
        )
    return pod
