"""`bayplan simulate`: the scheduler on objects from files."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from bayplan.api.live_paths import ALL_THAT_FIT
from bayplan.cli import nothing_collected
from bayplan.cli.flags import FEATURE_GATES, command
from bayplan.cli.progress import with_progress
from bayplan.config.errors import InputError
from bayplan.config.flags import FILE_TEXT, flag

if TYPE_CHECKING:
    from bayplan.cache.pod_info import PodInfo
    from bayplan.cli.simulation_input import Configured
    from bayplan.simulate.alike_pods import AlikePods
    from bayplan.simulate.cluster_objects import ClusterObjects
    from bayplan.simulate.decision import Decision
    from bayplan.simulate.repack import Repacking
    from bayplan.simulate.report import Report
    from bayplan.simulate.simulator import Simulator
    from bayplan.simulate.tables import Row

MAX_VERDICTS: Final = 5_000_000
"""Most verdicts (pods times nodes) that JSON may hold: some gigabytes."""
NOT_ALL_FIT: Final = 3
"""Exit code of `--fail-on-unschedulable` when a pod found no node, or could not be read."""


def _a_count(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    if text is not None and text != ALL_THAT_FIT and not (text.isascii() and text.isdecimal() and 0 < len(text) <= 7):
        raise click.BadParameter(f"{text[:64]!a} is neither a number from 0 to 9999999 nor {ALL_THAT_FIT}")
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
        "KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated. Of several it shows "
        "side by side what each makes of the cluster.",
        default=(),
    )
    scheduler_name: str | None = flag("--scheduler-name NAME", "Rename the only profile: pods ask for it by this name.")
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
        "End with exit code 3 if a pod finds no node, cannot be read or names no profile, or fewer than --count fit. "
        "With --add, --remove or --drain: if that is so of more pods than without.",
    )


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
    # Imported here so that the overview of commands does not wait for numpy.
    from bayplan.cli.comparison import compare  # noqa: PLC0415
    from bayplan.cli.simulation_input import read_input  # noqa: PLC0415
    from bayplan.cli.simulation_verdict import all_fit  # noqa: PLC0415
    from bayplan.simulate.changes import Changes  # noqa: PLC0415

    if flags.explain and len(flags.config) > 1:
        raise click.UsageError("--explain explains what one configuration does: give one --config.")
    if flags.only and not flags.repack:
        raise click.UsageError("--only is about --repack: give both.")
    if flags.as_scheduler and not flags.add:
        raise click.UsageError("--as-scheduler is about the pods of --add: give both.")
    each_configured, objects, counted, repackings = read_input(
        flags.cluster,
        flags.config,
        flags.scheduler_name,
        flags.feature_gates,
        Changes(flags.add, flags.remove, flags.drain, flags.as_scheduler),
        count=flags.count is not None,
        repack=flags.only if flags.repack else None,
        validate=flags.validate,
    )
    asked = None if flags.count in (None, ALL_THAT_FIT) else int(flags.count or 0)
    if len(each_configured) > 1:
        reports = compare(each_configured, objects, counted, asked, repackings, output=flags.output)
    else:
        (configured,) = each_configured
        reports = [_decide(configured, objects, counted, asked, repackings[0], flags=flags)]
    if flags.fail_on_unschedulable and not all_fit(each_configured, reports, objects):
        raise Exit(NOT_ALL_FIT)


def _decide(
    configured: "Configured",
    objects: "ClusterObjects",
    counted: "PodInfo | None",
    asked: int | None,
    repacking: "Repacking | None",
    *,
    flags: SimulateFlags,
) -> "Report":
    """Have one configuration decide on the objects, print what comes of it, and return that."""
    from msgspec import UNSET  # noqa: PLC0415

    from bayplan.simulate.alike_pods import AlikePods  # noqa: PLC0415
    from bayplan.simulate.capacity import how_many_fit  # noqa: PLC0415
    from bayplan.simulate.explained_attempts import ExplainedAttempts  # noqa: PLC0415
    from bayplan.simulate.simulator import ExplanationTooLargeError  # noqa: PLC0415
    from bayplan.simulate.tables import pod_row  # noqa: PLC0415

    explain, is_table, is_summary = flags.explain, flags.output != "json", flags.output == "summary"
    simulator = configured.simulator
    objects = repacking.objects if repacking else objects
    with nothing_collected():
        simulator.add(objects)
    has_verdicts = explain and not is_table
    _check_size(objects, simulator, verdicts=has_verdicts)
    explained, alike = ExplainedAttempts(), AlikePods()
    rows: list[Row] = []
    decisions = with_progress(
        partial(explained.step, simulator)
        if has_verdicts
        else partial(simulator.step, scores=is_table, reasons=explain and not is_summary),
        simulator.queue.pending()["active"],
        hidden=explain and is_table and sys.stdout.isatty(),
    )
    try:
        for each in decisions:
            if is_table:
                rows.append(pod_row(each))
                if alike.is_first(each.pod, rows[-1]) and not is_summary:
                    _print_explanation(each)
    except ExplanationTooLargeError as error:
        raise InputError(f"--explain: {error}; give fewer pods or nodes, or leave it out") from None
    report = simulator.report()
    report.repack = repacking.outcome(simulator) if repacking else UNSET
    if counted is not None:
        report.count = how_many_fit(simulator, configured.configuration, counted, asked)
    if is_table:
        _print(report, rows, alike if explain else None, is_summary=is_summary)
    else:
        sys.stdout.writelines(piece.decode() for piece in explained.pieces(report))
    return report


def _check_size(objects: "ClusterObjects", simulator: "Simulator", *, verdicts: bool) -> None:
    pods, nodes = simulator.queue.pending()["active"], len(objects.nodes)
    if verdicts and pods * nodes > MAX_VERDICTS:
        text = f"{pods} pods on {nodes} nodes are more than {MAX_VERDICTS} verdicts; give fewer pods"
        raise InputError(f"--explain: {text}")


def _print_explanation(decision: "Decision") -> None:
    """Print the explanation of a decision, if there is one."""
    from bayplan.scheduler.cycle import Placement  # noqa: PLC0415
    from bayplan.simulate.report import preemption  # noqa: PLC0415
    from bayplan.simulate.tables import Printer, print_explanation, print_preemption  # noqa: PLC0415

    outcome = decision.outcome
    if outcome is not None and outcome.explanation is not None:
        printer = Printer(sys.stdout)
        print_explanation(printer, decision.pod, outcome.explanation)
        if not isinstance(outcome, Placement) and outcome.candidates:
            print_preemption(printer, decision.pod, preemption(outcome.candidates))


def _print(report: "Report", rows: "list[Row]", alike: "AlikePods | None", *, is_summary: bool) -> None:
    from msgspec import UNSET  # noqa: PLC0415

    from bayplan.simulate.capacity import capacity_lines  # noqa: PLC0415
    from bayplan.simulate.repack import repack_lines  # noqa: PLC0415
    from bayplan.simulate.tables import Printer, print_pods, print_summary  # noqa: PLC0415

    printer = Printer(sys.stdout)
    tried = {row[0] for row in rows}
    told = rows if alike is None else [*alike.rows()]
    for pod in report.pods:
        key = f"{pod.namespace}/{pod.name}"
        if key not in tried:
            told.append((key, "-", "", pod.attempts[-1].message or ""))
    if told and not is_summary:
        print_pods(printer, told)
        printer.line()
    print_summary(printer, report.summary)
    if report.repack is not UNSET:
        for line in repack_lines(report.repack):
            printer.line(f"Repack: {line}")
    if report.count is not UNSET:
        for line in capacity_lines(report.count):
            printer.line(line)
