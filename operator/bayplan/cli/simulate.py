"""`bayplan simulate`: the scheduler on objects from files."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bayplan.cli import BAD_INPUT
from bayplan.cli.feature_gates import FeatureGatesOption, tell_without_effect
from bayplan.cli.progress import with_progress

if TYPE_CHECKING:
    from bayplan.cache.pod_info import PodInfo
    from bayplan.config.types import SchedulerConfiguration
    from bayplan.simulate.cluster import ClusterObjects
    from bayplan.simulate.decision import Decision
    from bayplan.simulate.report import Report
    from bayplan.simulate.simulator import Simulator
    from bayplan.simulate.tables import Row

MAX_VERDICTS: Final = 5_000_000
"""Most verdicts (pods times nodes) that JSON may hold: some gigabytes."""
NOT_ALL_FIT: Final = 3
"""Exit code of `--fail-on-unschedulable` when a pod found no node, or could not be read."""
ALL_THAT_FIT: Final = "max"


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"


def _a_count(text: str | None) -> str | None:
    if text is not None and text != ALL_THAT_FIT and not (text.isascii() and text.isdecimal() and 0 < len(text) <= 7):
        raise typer.BadParameter(f"{text[:64]!a} is neither a number from 0 to 9999999 nor {ALL_THAT_FIT}")
    return text


def simulate(  # noqa: PLR0917  typer turns each parameter into a flag
    cluster: Annotated[
        list[str],
        typer.Option(
            "--cluster",
            metavar="FILE",
            help="Nodes, pods and workloads, YAML or JSON, also compressed by gzip: single objects, several documents, "
            "or lists as `kubectl get nodes,pods -A -o json` writes them. A directory stands for the files in it. Can "
            "be given several times; - is standard input.",
        ),
    ],
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add", metavar="FILE", help="Objects that come, or take the place of those of the same kind and name."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="KIND/NAME|FILE",
            help="Objects that go, with the pods they control; KIND/NAMESPACE/NAME outside of default.",
        ),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option("--drain", metavar="NODE", help="Close the node and have its pods scheduled elsewhere."),
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(
            "--count",
            metavar="N|max",
            callback=_a_count,
            help="How many of the pod that --add gives fit once the others are placed, at most N of them.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated.",
        ),
    ] = None,
    scheduler_name: Annotated[
        str | None,
        typer.Option("--scheduler-name", metavar="NAME", help="Rename the only profile: pods ask for it by this name."),
    ] = None,
    feature_gates: FeatureGatesOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why: groups of nodes, scores, what helps.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="For people, or for programs.")] = Output.TABLE,
    fail_on_unschedulable: Annotated[
        bool,
        typer.Option(
            "--fail-on-unschedulable",
            help="End with exit code 3 if a pod finds no node or cannot be read, or fewer than --count fit.",
        ),
    ] = False,
) -> None:
    """Schedule pods from files, without a cluster.

    Pods with a node take room there. Pods without one that name a profile of the configuration are tried in queue
    order, by the engine that `bayplan run` uses. A pod that cannot be read is reported and skipped.

    Example: kubectl get nodes,pods -A -o json | bayplan simulate --cluster - --scheduler-name default-scheduler
    """
    # Imported here so that the overview of commands does not wait for numpy.
    from bayplan.cli.config import load_checked  # noqa: PLC0415
    from bayplan.config.errors import ConfigurationError, FieldNote, note_lines  # noqa: PLC0415
    from bayplan.simulate.capacity import how_many_fit  # noqa: PLC0415
    from bayplan.simulate.changes import Changes  # noqa: PLC0415
    from bayplan.simulate.cluster import read_cluster  # noqa: PLC0415
    from bayplan.simulate.documents import ClusterFileError  # noqa: PLC0415
    from bayplan.simulate.simulator import ExplanationTooLargeError, Simulator  # noqa: PLC0415

    notes: list[FieldNote] = []
    try:
        configuration = load_checked(config, scheduler_name, feature_gates, notes)
        simulator = Simulator(configuration)
        objects = read_cluster(cluster, Changes(add or (), remove or (), drain or ()))
        counted = None if count is None else _counted(objects, simulator)
    except (ConfigurationError, ClusterFileError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None
    for line in note_lines(config, notes):
        typer.echo(line, err=True)
    tell_without_effect(configuration)
    if configuration.extenders:
        typer.echo("extenders are not called in a simulation: decisions are those of the plugins alone", err=True)
    _tell_of_input(objects, configuration, counted)
    simulator.add(objects)
    is_table = output is Output.TABLE
    has_verdicts = explain and not is_table
    _check_size(objects, simulator, verdicts=has_verdicts)
    decisions = with_progress(
        lambda: simulator.step(explain=has_verdicts, scores=is_table, keep=has_verdicts, reasons=explain),
        simulator.queue.pending()["active"],
        hidden=explain and is_table and sys.stdout.isatty(),
    )
    try:
        rows = [_print_decision(each) if is_table else () for each in decisions]
    except ExplanationTooLargeError as error:
        typer.echo(f"--explain: {error}; give fewer pods or nodes, or leave it out", err=True)
        raise typer.Exit(BAD_INPUT) from None
    report = simulator.report()
    if counted is not None:
        asked = None if count == ALL_THAT_FIT else int(count or 0)
        report.count = how_many_fit(simulator, configuration, counted, asked)
    _write(report, rows, output)
    if fail_on_unschedulable and not _all_fit(report):
        raise typer.Exit(NOT_ALL_FIT)


def _counted(objects: "ClusterObjects", simulator: "Simulator") -> "PodInfo":
    """Take the pods that were added out of the cluster, and return one of them."""
    from bayplan.simulate.documents import ClusterFileError  # noqa: PLC0415

    if len(objects.added) != 1 or not objects.added[0]:
        raise ClusterFileError("--count: --add must give one pod, or one workload that has pods to come")
    pods = objects.added[0]
    owner = next(iter(pods[0].pod.metadata.owner_references or ()), None)
    if owner is not None and owner.kind == "DaemonSet":
        raise ClusterFileError("--count: a DaemonSet has one pod on each node; leave out --count to see which fit")
    claims = [volume.persistent_volume_claim for volume in pods[0].pod.spec.volumes or ()]
    own = any(each is not None and each.claim_name.endswith(f"-{pods[0].name}") for each in claims)
    if owner is not None and owner.kind == "StatefulSet" and own:
        raise ClusterFileError(
            "--count: each pod of a StatefulSet has claims of its own; leave out --count and give its replicas"
        )
    uids = {pod.uid for pod in pods}
    objects.pods = [pod for pod in objects.pods if pod.uid not in uids]
    name = pods[0].pod.spec.scheduler_name
    if name not in simulator.frameworks:
        raise ClusterFileError(f"--count: pod {pods[0].key} is for the scheduler {name}: give --scheduler-name {name}")
    return pods[0]


def _tell_of_input(
    objects: "ClusterObjects", configuration: "SchedulerConfiguration", counted: "PodInfo | None"
) -> None:
    """Name what was skipped, and say why there may be nothing to see."""
    from bayplan.simulate.input_notes import input_notes  # noqa: PLC0415

    for skipped in objects.skipped:
        what = f"{skipped.namespace}/{skipped.name}"
        what = f"pod {what}" if skipped.kind == "Pod" else f"{skipped.pods} pods of {skipped.kind} {what}"
        typer.echo(f"{skipped.source}: {what} skipped: {skipped.message}", err=True)
    if objects.is_empty:
        typer.echo("--cluster: the files hold no objects", err=True)
        raise typer.Exit(BAD_INPUT)
    for line in input_notes(objects, [each.scheduler_name for each in configuration.profiles], counted):
        typer.echo(line, err=True)


def _check_size(objects: "ClusterObjects", simulator: "Simulator", *, verdicts: bool) -> None:
    pods, nodes = simulator.queue.pending()["active"], len(objects.nodes)
    if verdicts and pods * nodes > MAX_VERDICTS:
        typer.echo(
            f"--explain: {pods} pods on {nodes} nodes are more than {MAX_VERDICTS} verdicts; give fewer pods", err=True
        )
        raise typer.Exit(BAD_INPUT)


def _print_decision(decision: "Decision") -> "Row":
    """Print the explanation of a decision, if there is one, and return its row in the table of pods."""
    from bayplan.scheduler.cycle import Placement  # noqa: PLC0415
    from bayplan.simulate.report import preemption  # noqa: PLC0415
    from bayplan.simulate.tables import Printer, pod_row, print_explanation, print_preemption  # noqa: PLC0415

    outcome = decision.outcome
    if outcome is not None and outcome.explanation is not None:
        printer = Printer(sys.stdout)
        print_explanation(printer, decision.pod, outcome.explanation)
        if not isinstance(outcome, Placement) and outcome.candidates:
            print_preemption(printer, decision.pod, preemption(outcome.candidates))
    return pod_row(decision)


def _write(report: "Report", rows: "list[Row]", output: Output) -> None:
    if output is Output.JSON:
        from bayplan.simulate.report import encode  # noqa: PLC0415

        sys.stdout.write(encode(report).decode())
        return
    from msgspec import UNSET  # noqa: PLC0415

    from bayplan.simulate.capacity import capacity_lines  # noqa: PLC0415
    from bayplan.simulate.tables import Printer, print_pods, print_summary  # noqa: PLC0415

    printer = Printer(sys.stdout)
    tried = {row[0] for row in rows}
    for pod in report.pods:
        key = f"{pod.namespace}/{pod.name}"
        if key not in tried:
            rows.append((key, "-", "", pod.attempts[-1].message or ""))
    print_pods(printer, rows)
    print_summary(printer, report.summary)
    if report.count is not UNSET:
        for line in capacity_lines(report.count):
            printer.line(line)


def _all_fit(report: "Report") -> bool:
    from msgspec import UNSET  # noqa: PLC0415

    summary = report.summary
    if report.count is not UNSET and report.count.asked is not None and report.count.fits < report.count.asked:
        return False
    return not summary.unschedulable and not summary.skipped
