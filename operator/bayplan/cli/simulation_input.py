"""What `bayplan simulate` and `bayplan web --cluster` read before they decide, and what they say of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from bayplan.api.live_paths import ALL_THAT_FIT
from bayplan.cache.pod_info import PodInfo
from bayplan.cli import nothing_collected
from bayplan.cli.config import load_checked, read_configuration, without_effect
from bayplan.config.errors import FieldWarning, line_of, quote
from bayplan.config.types import SchedulerConfiguration
from bayplan.shown_text import counted
from bayplan.simulate.capacity import NotCountedError, counted_pod
from bayplan.simulate.changes import NO_CHANGES, Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.input_files import input_notes
from bayplan.simulate.repack import Repacking, repacked
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.validation import Validate, Validation


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration, from a file unless it is the default, with a simulator that has no objects yet."""

    file: Path | None
    configuration: SchedulerConfiguration
    simulator: Simulator
    notes: Sequence[FieldWarning]

    def lines(self) -> Iterator[str]:
        """Yield what of it has no effect outside of a cluster, a line each."""
        yield from (line_of(str(self.file), each) for each in self.notes)
        yield from without_effect(self.configuration)
        if self.configuration.extenders:
            yield "extenders are not called: decisions are those of the plugins alone"


def configured(file: Path | None, scheduler_name: str | None, feature_gates: Sequence[str]) -> Configured:
    """Load a configuration, of standard input where `file` is `-`, and make a simulator of it.

    Raises:
        InputError: with everything that is wrong.
    """
    notes: list[FieldWarning] = []
    data = None if file is None else read_configuration(file)
    configuration = load_checked(file, scheduler_name, feature_gates, notes, data=data)
    return Configured(file, configuration, Simulator(configuration), notes)


class SimulationInput(NamedTuple):
    """The configurations, at least one, the objects they decide about, and the pod that is counted, if one is."""

    each_configured: Sequence[Configured]
    objects: ClusterObjects
    counted: PodInfo | None
    repackings: Sequence[Repacking | None]
    """What each configuration is to place anew, where that was asked."""
    asked: int | None
    """How many of the pod that is counted are tried at most."""


def read_input(
    cluster: Sequence[str],
    configs: Sequence[Path],
    scheduler_name: str | None,
    feature_gates: Sequence[str],
    changes: Changes = NO_CHANGES,
    *,
    count: str | None = None,
    repack: Sequence[str] | None = None,
    validate: str = Validate.WARN,
    tries_all: bool = True,
) -> SimulationInput:
    """Read configurations and objects, and say on standard error what was skipped and what has no effect.

    Where the command `tries_all` pods that wait it also says why none may be tried.
    Without `configs` there is the default configuration. With `repack`, each gets the pods that it names, or all that
    run, to be placed anew. With `count` the pods that were added are taken out of the cluster. What cannot be used
    ends the command with a line for each mistake; `validate` is one of Validate.
    """
    validation = Validation(Validate(validate))
    each_configured = [configured(each, scheduler_name, feature_gates) for each in configs or (None,)]
    with nothing_collected():
        objects = read_cluster(cluster, changes, validation)
    for line in (*validation.warnings(), *(objects.notes if count is None else ())):
        click.echo(line, err=True)
    _tell_of_skipped(objects)
    if changes.as_scheduler and not all(changes.as_scheduler in each.simulator.frameworks for each in each_configured):
        raise ClusterFileError(f"--as-scheduler: no profile is named {quote(changes.as_scheduler)}")
    counted = _counted(objects, [each.simulator for each in each_configured]) if count is not None else None
    names = [[*each.simulator.frameworks] for each in each_configured]
    repackings = [None if repack is None else repacked(objects, each, repack) for each in names]
    for line in dict.fromkeys(line for each in each_configured for line in each.lines()):
        click.echo(line, err=True)
    if objects.is_empty:
        raise ClusterFileError("--cluster: the files hold no objects")
    if tries_all:
        _tell_of_untried([each.objects if each else objects for each in repackings], names, counted)
    asked = None if count is None or count == ALL_THAT_FIT else int(count)
    return SimulationInput(each_configured, objects, counted, repackings, asked)


def _counted(objects: ClusterObjects, simulators: Sequence[Simulator]) -> PodInfo:
    """Take the pods that were added out of the cluster, and return one of them."""
    if len(objects.added) != 1 or not objects.added[0]:
        raise ClusterFileError("--count: --add must give one pod, or one workload but a DaemonSet, that can be read")
    pods = objects.added[0]
    try:
        pod = counted_pod(pods)
    except NotCountedError as error:
        raise ClusterFileError(f"--count: {error}") from None
    uids = {pod.uid for pod in pods}
    objects.pods = [pod for pod in (*objects.pods, *objects.making_way) if pod.uid not in uids]
    name = pod.pod.spec.scheduler_name
    if not all(name in each.frameworks for each in simulators):
        raise ClusterFileError(f"--count: pod {pod.key} is for the scheduler {name}: give --scheduler-name {name}")
    return pod


def _tell_of_skipped(objects: ClusterObjects) -> None:
    for skipped in objects.skipped:
        what = f"{skipped.namespace}/{skipped.name}"
        if skipped.kind == "Pod":
            what = f"pod {what}"
        else:
            pods = f"{counted(skipped.pods, 'pod')} of " if skipped.pods else ""
            what = f"{pods}{skipped.kind} {what}"
        told = f"{what} skipped: " if skipped.name else ""
        click.echo(f"{skipped.source}: {told}{skipped.message}", err=True)


def _tell_of_untried(
    each_objects: Sequence[ClusterObjects], each_profiles: Sequence[Sequence[str]], counted: PodInfo | None
) -> None:
    """Say why there may be nothing to see."""
    told = (
        input_notes(objects, profiles, counted) for objects, profiles in zip(each_objects, each_profiles, strict=True)
    )
    for line in dict.fromkeys(line for lines in told for line in lines):
        click.echo(line, err=True)
