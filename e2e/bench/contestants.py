"""Who takes part, and how each is started: its own program, its own identity, the same settings."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from e2e.bench.programs import start_module
from e2e.bench.workload import scheduler_configuration
from e2e.controlplane import commands
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.build import binary
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process, free_ports

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

    def bayplan(stage: Stage) -> Process:
        return _bayplan(stage, profile_directory)

    others = () if before is None else (Contestant(BEFORE, "bayplan before", partial(_bayplan_of, before.resolve())),)
    everyone = (
        Contestant(SAMPLED, "kube-scheduler, default sampling", lambda stage: _kube_scheduler(stage, None)),
        Contestant(ALL_NODES, "kube-scheduler, 100 % of nodes", lambda stage: _kube_scheduler(stage, 100)),
        Contestant(BAYPLAN, "bayplan, all nodes", bayplan),
        Contestant(BARE_BINDER, "bare binder (the limit)", _bare_binder, schedules=False),
        *others,
    )
    return {contestant.name: contestant for contestant in everyone}


def _kube_scheduler(stage: Stage, percentage: int | None) -> Process:
    kubeconfig = stage.plane.kubeconfig_for("system:kube-scheduler")
    document = scheduler_configuration(percentage)
    document["clientConnection"]["kubeconfig"] = str(kubeconfig)
    config = _write_config(stage, document)
    (port,) = free_ports(1)
    command = commands.kube_scheduler(
        binary("kube-scheduler"), kubeconfig, config, stage.directory, port=port, verbosity=0
    )
    log = stage.directory / "kube-scheduler.log"
    return Process("kube-scheduler", command, log_path=log, directory=stage.directory)


def _bayplan(stage: Stage, profile_directory: Path | None) -> Process:
    if profile_directory is None:
        return _bayplan_of(REPOSITORY, stage)
    config = _write_config(stage, scheduler_configuration(None))
    arguments: list[str | Path] = [
        profile_directory,
        "run",
        "--config",
        config,
        "--kubeconfig",
        stage.bayplan_kubeconfig,
        "--bind-address",
        "127.0.0.1",
        "--http-port",
        "0",
    ]
    return start_module("bayplan", "e2e.bench.profiled", arguments, stage.directory)


def _bayplan_of(checkout: Path, stage: Stage) -> Process:
    config = _write_config(stage, scheduler_configuration(None))
    return BayplanProcess(stage.directory, config=config, kubeconfig=stage.bayplan_kubeconfig, checkout=checkout)


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


def _write_config(stage: Stage, document: dict[str, object]) -> Path:
    path = stage.directory / "config.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return path
