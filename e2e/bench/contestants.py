"""Who takes part, and how each is started: its own program, its own identity, the same settings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from e2e.bench.programs import PYTHON_PATH, start_module
from e2e.bench.workload import scheduler_configuration
from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process

SAMPLED, ALL_NODES, BAYPLAN, BARE_BINDER = "kube-scheduler", "kube-scheduler-100", "bayplan", "bare-binder"
BEFORE = "bayplan-before"
"""bayplan as another checkout has it, to compare a change with what was there before."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a contestant finds when it is started: files of its own, and pods that wait in a namespace."""

    plane: ControlPlane
    bayplan_kubeconfig: Path
    directory: Path
    namespace: str
    pods_file: Path


@dataclass(frozen=True, slots=True)
class Contestant:
    """`start` returns at once; nothing polls the process for health, which would be work of its own.

    `schedules` is false for one that only knows the answers of the first phase.
    """

    name: str
    title: str
    start: Callable[[Stage], Process]
    schedules: bool = True


def contestants(profile_directory: Path | None = None, before: Path | None = None) -> dict[str, Contestant]:
    """Returns all contestants by name.

    With `profile_directory` bayplan leaves a profile there; with `before`, another checkout, its bayplan takes part.
    """
    bayplan = partial(_bayplan, profile_directory=profile_directory)
    bayplan_before = partial(_bayplan, checkout=before.resolve()) if before is not None else None
    others = () if bayplan_before is None else (Contestant(BEFORE, "bayplan before", bayplan_before),)
    everyone = (
        Contestant(SAMPLED, "kube-scheduler, default sampling", lambda stage: _kube_scheduler(stage, None)),
        Contestant(ALL_NODES, "kube-scheduler, 100 % of nodes", lambda stage: _kube_scheduler(stage, 100)),
        Contestant(BAYPLAN, "bayplan, all nodes", bayplan),
        Contestant(BARE_BINDER, "bare binder (the limit)", _bare_binder, schedules=False),
        *others,
    )
    return {contestant.name: contestant for contestant in everyone}


def _kube_scheduler(stage: Stage, percentage: int | None) -> Process:
    kubeconfig = stage.plane.kubeconfig_for(kube_scheduler_process.USER)
    return KubeSchedulerProcess(stage.directory, scheduler_configuration(percentage), kubeconfig, verbosity=0)


def _bayplan(stage: Stage, *, profile_directory: Path | None = None, checkout: Path = REPOSITORY) -> Process:
    return BayplanProcess(
        stage.directory,
        config=scheduler_configuration(None),
        kubeconfig=stage.bayplan_kubeconfig,
        checkout=checkout,
        program=("e2e.bench.profiled", profile_directory) if profile_directory is not None else ("bayplan",),
        environment={"PYTHONPATH": PYTHON_PATH} if profile_directory is not None else None,
    )


def _bare_binder(stage: Stage) -> Process:
    arguments: list[str | Path] = [
        "--kubeconfig",
        stage.bayplan_kubeconfig,
        "--namespace",
        stage.namespace,
        "--pods",
        stage.pods_file,
    ]
    return start_module("bare-binder", "e2e.bench.bare_binder", arguments, stage.directory)
