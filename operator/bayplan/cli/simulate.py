"""`bayplan simulate`: the scheduler on objects from files."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bayplan.cli import BAD_INPUT
from bayplan.cli.feature_gates import FeatureGatesOption, tell_without_effect

if TYPE_CHECKING:
    from bayplan.simulate.cluster import ClusterObjects
    from bayplan.simulate.simulator import Simulator

MAX_VERDICTS: Final = 5_000_000
"""Most verdicts (pods times nodes) that JSON may hold: some gigabytes."""


class Output(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"


def simulate(  # noqa: PLR0917  typer turns each parameter into a flag
    cluster: Annotated[
        list[str],
        typer.Option(
            "--cluster",
            metavar="FILE",
            help="Nodes and pods, YAML or JSON: single objects, several documents, or lists as `kubectl get nodes,pods "
            "-A -o json` writes them. Can be given several times; - is standard input.",
        ),
    ],
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
) -> None:
    """Schedule pods from files, without a cluster.

    Pods with a node take room there. Pods without one that name a profile of the configuration are tried in queue
    order, by the engine that `bayplan run` uses. A pod that cannot be read is reported and skipped.

    Example: kubectl get nodes,pods -A -o json | bayplan simulate --cluster - --scheduler-name default-scheduler
    """
    # Imported here so that the overview of commands does not wait for numpy.
    from bayplan.cli.config import load_checked  # noqa: PLC0415
    from bayplan.config.errors import ConfigurationError, FieldNote, note_lines  # noqa: PLC0415
    from bayplan.simulate.cluster import read_cluster  # noqa: PLC0415
    from bayplan.simulate.documents import ClusterFileError  # noqa: PLC0415
    from bayplan.simulate.simulator import ExplanationTooLargeError, Simulator  # noqa: PLC0415

    notes: list[FieldNote] = []
    try:
        configuration = load_checked(config, scheduler_name, feature_gates, notes)
        simulator = Simulator(configuration)
        objects = read_cluster(cluster)
    except (ConfigurationError, ClusterFileError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None
    for line in note_lines(config, notes):
        typer.echo(line, err=True)
    tell_without_effect(configuration)
    if configuration.extenders:
        typer.echo("extenders are not called in a simulation: decisions are those of the plugins alone", err=True)
    for skipped in objects.skipped:
        typer.echo(f"{skipped.source}: pod {skipped.namespace}/{skipped.name} skipped: {skipped.message}", err=True)
    simulator.add(objects)
    _check_size(objects, simulator, verdicts=explain and output is Output.JSON)
    try:
        if output is Output.JSON:
            from bayplan.simulate.report import encode  # noqa: PLC0415

            sys.stdout.write(encode(simulator.run(explain=explain)).decode())
        else:
            _print_tables(simulator, explain=explain)
    except ExplanationTooLargeError as error:
        typer.echo(f"--explain: {error}; give fewer pods or nodes, or leave it out", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _check_size(objects: "ClusterObjects", simulator: "Simulator", *, verdicts: bool) -> None:
    pods, nodes = simulator.queue.pending()["active"], len(objects.nodes)
    if verdicts and pods * nodes > MAX_VERDICTS:
        typer.echo(
            f"--explain: {pods} pods on {nodes} nodes are more than {MAX_VERDICTS} verdicts; give fewer pods", err=True
        )
        raise typer.Exit(BAD_INPUT)


def _print_tables(simulator: "Simulator", *, explain: bool) -> None:
    from bayplan.scheduler.cycle import Placement  # noqa: PLC0415
    from bayplan.simulate.report import preemption  # noqa: PLC0415
    from bayplan.simulate.tables import (  # noqa: PLC0415
        Printer,
        pod_row,
        print_explanation,
        print_pods,
        print_preemption,
        print_summary,
    )

    printer = Printer(sys.stdout)
    rows = []
    while (decision := simulator.step(reasons=explain, scores=True)) is not None:
        rows.append(pod_row(decision))
        outcome = decision.outcome
        if outcome is not None and outcome.explanation is not None:
            print_explanation(printer, decision.pod, outcome.explanation)
            if not isinstance(outcome, Placement) and outcome.candidates:
                print_preemption(printer, decision.pod, preemption(outcome.candidates))
    report = simulator.report()
    tried = {row[0] for row in rows}
    for pod in report.pods:
        key = f"{pod.namespace}/{pod.name}"
        if key not in tried:
            rows.append((key, "-", "", pod.attempts[-1].message or ""))
    print_pods(printer, rows)
    print_summary(printer, report.summary)
