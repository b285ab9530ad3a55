"""What `bayplan simulate` does with what it read: one configuration decides, or several do and are compared."""

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import click
import msgspec
from msgspec import UNSET

from bayplan.cli import nothing_collected
from bayplan.cli.process import with_progress
from bayplan.cli.simulation_input import Configured, SimulationInput
from bayplan.config.errors import InputError, quote_unprintable
from bayplan.explain.trace import ExplanationTooLargeError
from bayplan.scheduler.decision import FitError
from bayplan.shown_text import counted
from bayplan.simulate.capacity import capacity_lines, how_many_fit
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import ComparedCluster, compared, own_pods, placements, print_comparison
from bayplan.simulate.input_files import waiting_pods
from bayplan.simulate.repack import Repacking, repack_lines
from bayplan.simulate.report import AttemptReport, ClaimReport, Compared, PodReport, Report, encode, preemption
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import Step, explaining, scoring, tracing
from bayplan.simulate.tables import (
    AlikePods,
    Printer,
    Row,
    pod_row,
    print_explanation,
    print_pods,
    print_preemption,
    print_summary,
)

MAX_VERDICTS: Final = 5_000_000
"""Most verdicts (pods times nodes) that JSON may hold: some gigabytes."""

PodKey = tuple[str, str, str]
"""Kind, namespace and name: a workload stands for its pods where these cannot be read."""


def decide(given: SimulationInput, *, explain: bool, output: str) -> Report:
    """Have the only configuration decide on the objects, print what comes of it, and return that."""
    (configured,), (repacking,) = given.each_configured, given.repackings
    is_table, is_summary = output != "json", output == "summary"
    simulator = configured.simulator
    objects = repacking.objects if repacking else given.objects
    with nothing_collected():
        simulator.add(objects)
    has_verdicts = explain and not is_table
    pods, nodes = simulator.queue.pending()["active"], len(objects.nodes)
    if has_verdicts and pods * nodes > MAX_VERDICTS:
        text = f"{counted(pods, 'pod')} on {counted(nodes, 'node')} are more than {MAX_VERDICTS} verdicts"
        raise InputError(f"--explain: {text}; give fewer pods")
    if is_table:
        simulator.reader = explaining(simulator.cache.nodes) if explain else scoring
    elif explain:
        simulator.reader = tracing(simulator.cache.nodes)
    explained, alike = ExplainedAttempts(), AlikePods()
    rows: list[Row] = []
    steps = with_progress(
        partial(explained.step, simulator) if has_verdicts else simulator.step,
        pods,
        hidden=explain and is_table and sys.stdout.isatty(),
    )
    try:
        for each in steps:
            if is_table:
                rows.append(pod_row(each))
                if alike.is_first(each.pod, rows[-1]):
                    _print_explanation(each)
    except ExplanationTooLargeError as error:
        raise InputError(f"--explain: {error}; give fewer pods or nodes, or leave it out") from None
    report = _report(given, configured, repacking)
    if is_table:
        _print(report, rows, alike if explain else None, is_summary=is_summary)
    else:
        sys.stdout.writelines(piece.decode() for piece in explained.pieces(report))
    return report


def _report(given: SimulationInput, configured: Configured, repacking: Repacking | None) -> Report:
    simulator = configured.simulator
    report = simulator.report()
    report.repack = repacking.outcome(simulator) if repacking else UNSET
    if given.counted is not None:
        report.count = how_many_fit(simulator, configured.configuration, given.counted, given.asked)
    return report


def _print_explanation(step: Step) -> None:
    """Print the explanation of a decision, if there is one."""
    outcome, explanation = step.outcome, step.read.explanation
    if explanation is not None:
        printer = Printer(sys.stdout)
        print_explanation(printer, step.pod, explanation)
        if isinstance(outcome, FitError) and outcome.post_filter.candidates:
            print_preemption(printer, step.pod, preemption(outcome.post_filter.candidates))


def _print(report: Report, rows: list[Row], alike: AlikePods | None, *, is_summary: bool) -> None:
    printer = Printer(sys.stdout)
    tried = {row[0] for row in rows}
    told = _told_once(rows) if alike is None else [*alike.rows()]
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


def _told_once(rows: Iterable[Row]) -> list[Row]:
    """Leave out what a pod was told the last time it was tried, too."""
    told: list[Row] = []
    last: dict[str, Row] = {}
    for row in rows:
        if last.get(row[0]) != row:
            told.append(row)
        last[row[0]] = row
    return told


def compare(given: SimulationInput, *, output: str) -> list[Report]:
    """Have each configuration decide, write them side by side, and return the reports in the same order."""
    outcomes = [
        _outcome(given, each, repacking)
        for each, repacking in zip(given.each_configured, given.repackings, strict=True)
    ]
    comparison = compared(outcomes)
    if output == "json":
        sys.stdout.write(encode(comparison).decode())
    else:
        print_comparison(Printer(sys.stdout), comparison, is_summary=output == "summary")
    return [each.report for each, _ in outcomes]


def _outcome(given: SimulationInput, configured: Configured, repacking: Repacking | None) -> ComparedCluster:
    simulator = configured.simulator
    simulator.add(own_pods(repacking.objects if repacking else given.objects))
    for _ in with_progress(simulator.step, simulator.queue.pending()["active"]):
        pass
    told = Compared(quote_unprintable(str(configured.file)), _report(given, configured, repacking))
    return told, placements(simulator.cache.nodes)


def all_fit(given: SimulationInput, reports: Sequence[Report]) -> bool:
    """Whether every pod has a node with every configuration, and as many as asked for were counted.

    Of a cluster that was changed only those count that the change added, evicted or took the room of: what was left
    without a node before is no fault of the change. A line on standard error names pods that nothing was tried for.
    """
    objects = given.objects
    before = objects.before() if objects.before is not None else ClusterObjects()
    added = {_key(info.namespace, info.name) for pods in objects.added for info in pods}
    there = {each.source for each in before.skipped}
    added |= {(each.kind, each.namespace, each.name) for each in objects.skipped if each.source not in there}
    fit = True
    for configured, report in zip(given.each_configured, reports, strict=True):
        failing = _without_node(report)
        others = _of_others(objects, configured)
        if failing and before.pods:
            simulator = Simulator(configured.configuration)
            simulator.add(own_pods(before))
            failing -= _without_node(simulator.run()) - added
        for key in _of_others(before, configured).keys() - added:
            others.pop(key, None)
        _tell_of_others(others, added)
        count = report.count
        enough = count is UNSET or count.asked is None or count.fits >= count.asked
        fit = fit and enough and not failing and not others
    return fit


def _key(namespace: str, name: str) -> PodKey:
    return "Pod", namespace, name


def _without_node(report: Report) -> set[PodKey]:
    """The pods that were tried and got no node, and those that could not be read; gated pods are no fault."""
    tried = report.pods[: len(report.pods) - report.summary.gated]
    lost = {_key(pod.namespace, pod.name) for pod in tried if not any(each.node for each in pod.attempts)}
    return lost | {(each.kind, each.namespace, each.name) for each in report.summary.skipped}


def _of_others(objects: ClusterObjects, configured: Configured) -> dict[PodKey, str]:
    """The pods that wait for a scheduler that is no profile's, with its name."""
    profiles = configured.simulator.frameworks
    named = ((_key(info.namespace, info.name), info.pod.spec.scheduler_name) for info in waiting_pods(objects))
    return {key: name for key, name in named if name not in profiles}


def _tell_of_others(others: dict[PodKey, str], added: set[PodKey]) -> None:
    # In a file or pipe it would stand before the table otherwise, and behind it on a terminal.
    sys.stdout.flush()
    for name in sorted(set(others.values())):
        (_, *first), *more = (key for key, each in others.items() if each == name)
        pods = f"pod {'/'.join(first)} was" if not more else f"pod {'/'.join(first)} and {len(more)} more were"
        advice = "give --as-scheduler for what --add gives, or --scheduler-name"
        if not any(key in added for key, each in others.items() if each == name):
            advice = f"give --scheduler-name {name}"
        click.echo(f"--fail-on-unschedulable: {pods} not tried: no profile is named {name}; {advice}", err=True)


MAX_EXPLAINED_BYTES: Final = 256 << 20
"""Most compressed text that is held; a verdict takes some ten bytes."""

_QUICKLY: Final = 1


class _PodText(msgspec.Struct, rename="camel"):
    """A PodReport whose attempts are written already."""

    namespace: str
    name: str
    scheduler_name: str
    attempts: list[msgspec.Raw]
    claims: dict[str, ClaimReport] | msgspec.UnsetType


class ExplainedAttempts:
    """Holds the attempts of a report with all that explains them, which as objects take a hundred times as much."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str, int], bytes] = {}
        self._bytes = 0

    def step(self, simulator: Simulator) -> Step | None:
        """Have the simulator take a step, and hold all that its reader said of the decision.

        Raises:
            ExplanationTooLargeError: it would take more memory than it may.
        """
        step = simulator.step()
        if step is not None:
            self._add(simulator.report_of(step.pod), step.explained_attempt())
        return step

    def _add(self, pod: PodReport, attempt: AttemptReport) -> None:
        """Hold `attempt` in the place of the last one of `pod`."""
        text = zlib.compress(msgspec.json.encode(attempt), _QUICKLY)
        self._bytes += len(text)
        if self._bytes > MAX_EXPLAINED_BYTES:
            what = f"the explanations up to pod {pod.namespace}/{pod.name}"
            raise ExplanationTooLargeError(f"{what} take more than {MAX_EXPLAINED_BYTES >> 20} MiB")
        self._texts[pod.namespace, pod.name, len(pod.attempts) - 1] = text

    def pieces(self, report: Report) -> Iterator[bytes]:
        """Yield the report as `encode` writes it, a pod at a time, with what is held in the place of its attempts."""
        yield b'{\n  "pods": ['
        before = b"\n    "
        for pod in report.pods:
            yield before + _indented(self._text(pod), 4)
            before = b",\n    "
        yield b"\n  ]," if report.pods else b"],"
        rest = msgspec.json.format(
            msgspec.json.encode(Report([], report.summary, report.count, report.repack)), indent=2
        )
        yield rest.removeprefix(b'{\n  "pods": [],') + b"\n"

    def _text(self, pod: PodReport) -> bytes:
        attempts = [
            msgspec.Raw(msgspec.json.encode(attempt) if (held := self._held(pod, index)) is None else held)
            for index, attempt in enumerate(pod.attempts)
        ]
        return msgspec.json.encode(_PodText(pod.namespace, pod.name, pod.scheduler_name, attempts, pod.claims))

    def _held(self, pod: PodReport, index: int) -> bytes | None:
        text = self._texts.get((pod.namespace, pod.name, index))
        return None if text is None else zlib.decompress(text)


def _indented(text: bytes, columns: int) -> bytes:
    # A line break in a string is written as an escape.
    return msgspec.json.format(text, indent=2).replace(b"\n", b"\n" + b" " * columns)
