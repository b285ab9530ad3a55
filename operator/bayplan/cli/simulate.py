"""`bayplan simulate`: the scheduler on objects from files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from click.exceptions import Exit

from bayplan.api.live_paths import ALL_THAT_FIT
from bayplan.cli.flags import FEATURE_GATES, SCHEDULER_NAME, check_standard_input, command
from bayplan.config.flags import FILE_TEXT, flag

NOT_ALL_FIT: Final = 3
"""Exit code of `--fail-on-unschedulable` when a pod found no node, or could not be read."""


def _a_count(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    number = int(text[:8]) if text and text.isascii() and text.isdecimal() else 0
    if text is not None and text != ALL_THAT_FIT and not 0 < number < 10**7:
        raise click.BadParameter(f"{text[:64]!a} is neither a number from 1 to 9999999 nor {ALL_THAT_FIT}")
    return text


@dataclass(frozen=True, kw_only=True)
class SimulateFlags:
    """What is simulated, and what is told of it."""

    cluster: Sequence[str] = flag(
        "--cluster FILE",
        "Nodes, pods and workloads, YAML or JSON, also compressed by gzip: single objects, several documents, "
        "or lists as `kubectl get nodes,pods -A -o json` writes them. A directory stands for the files in it. Can "
        "be given several times; - is standard input.",
        default=(),
        required=True,
        type=FILE_TEXT,
    )
    add: Sequence[str] = flag(
        "--add FILE",
        "Objects that come, or take the place of those of the same kind and name.",
        default=(),
        type=FILE_TEXT,
    )
    remove: Sequence[str] = flag(
        "--remove KIND/NAME|FILE",
        "Objects that go, with the pods they control; KIND/NAMESPACE/NAME outside of default.",
        default=(),
        type=FILE_TEXT,
    )
    drain: Sequence[str] = flag("--drain NODE", "Close the node and have its pods scheduled elsewhere.", default=())
    count: str | None = flag(
        "--count INT|max",
        "How many copies of the pod that --add gives fit beside all others: INT are tried, or as many as fit.",
        callback=_a_count,
    )
    repack: bool = flag("--repack", "Place all pods that can move anew, whoever scheduled them.")
    only: Sequence[str] = flag(
        "--only namespace=NAME|scheduler=NAME",
        "With --repack: leave pods of other namespaces and schedulers where they are.",
        default=(),
    )
    config: Sequence[Path] = flag(
        "--config FILE",
        "KubeSchedulerConfiguration or legacy Policy; - is standard input; without it one profile, MostAllocated. Of "
        "several it shows side by side what each makes of the cluster.",
        default=(),
    )
    scheduler_name: str | None = SCHEDULER_NAME()
    as_scheduler: str | None = flag(
        "--as-scheduler NAME", "Try the pods of --add as if they named this profile, whichever they name."
    )
    validate: str = flag(
        "--validate strict|warn|ignore",
        "What becomes of objects that the API server would refuse, unless they came from one: an error, a line on "
        "standard error, or nothing.",
        default="strict",
    )
    feature_gates: Sequence[str] = FEATURE_GATES()
    explain: bool = flag("--explain", "Say why: groups of nodes, scores, what helps.")
    output: str = flag("--output -o table|summary|json", "For people, its end alone, or for programs.", default="table")
    fail_on_unschedulable: bool = flag(
        "--fail-on-unschedulable",
        "End with exit code 3 if a pod finds no node, cannot be read, would be refused or names no profile, if --add "
        "gives nothing to try, or if fewer than --count fit. With --add, --remove or --drain, pods do not count that "
        "had no node without the change. What waits for gates of its own is no fault, nor what holds up a drain.",
    )

    def __post_init__(self) -> None:
        """Refuse standard input for two files."""
        check_standard_input(cluster=self.cluster, add=self.add, remove=self.remove, config=self.config)


@command(
    examples=(
        "kubectl get nodes,pods -A -o json | bayplan simulate --cluster - --scheduler-name default-scheduler",
        "bayplan simulate --cluster nodes.yaml --add deployment.yaml --explain",
        "bayplan simulate --cluster cluster/ --drain node-1 --fail-on-unschedulable",
        "bayplan simulate --cluster cluster.json.gz --add pod.yaml --count max",
        "bayplan simulate --cluster cluster.json.gz --repack",
        "bayplan simulate --cluster cluster.json.gz --config now.yaml --config tomorrow.yaml",
    ),
)
def simulate(flags: SimulateFlags) -> None:
    """Schedule pods from files, without a cluster.

    Pods with a node take room there. Pods without one that name a profile of the configuration are tried in queue
    order, by the engine that `bayplan run` uses. A pod that cannot be read is reported and skipped.
    """
    from bayplan.cli.simulation import all_fit, compare, decide  # noqa: PLC0415
    from bayplan.cli.simulation_input import read_input  # noqa: PLC0415
    from bayplan.simulate.changes import Changes  # noqa: PLC0415

    if flags.explain and len(flags.config) > 1:
        raise click.UsageError("--explain explains what one configuration does: give one --config.")
    if flags.explain and flags.output == "summary":
        raise click.UsageError("--explain explains each pod, of which -o summary tells nothing: give one of them.")
    if flags.only and not flags.repack:
        raise click.UsageError("--only is about --repack: give both.")
    if flags.as_scheduler and not flags.add:
        raise click.UsageError("--as-scheduler is about the pods of --add: give both.")
    given = read_input(
        flags.cluster,
        flags.config,
        flags.scheduler_name,
        flags.feature_gates,
        Changes(flags.add, flags.remove, flags.drain, flags.as_scheduler),
        count=flags.count,
        repack=flags.only if flags.repack else None,
        validate=flags.validate,
    )
    if len(given.each_configured) > 1:
        reports = compare(given, output=flags.output)
    else:
        reports = [decide(given, explain=flags.explain, output=flags.output)]
    if flags.fail_on_unschedulable and not all_fit(given, reports):
        raise Exit(NOT_ALL_FIT)
