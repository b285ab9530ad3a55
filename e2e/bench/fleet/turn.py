"""One scheduler's turn on the fleet: two replicas start, jobs come at rates and at once, and are taken away again."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.bench.bind_watch import BindWatch
from e2e.bench.cluster import delete_until_gone
from e2e.bench.created import Created, read_created
from e2e.bench.fleet.layout import PLACEHOLDER_CLASS, Layout, write_documents
from e2e.bench.programs import start_module
from e2e.bench.results import percentile
from e2e.bench.workload import scheduler_configuration
from e2e.controlplane.installation import NAMESPACE
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from e2e.controlplane.replicas import StartReplica, holder_of
from e2e.controlplane.waiting import wait_until

JOBS, WARM, RUNNING = "jobs", "warm", "running"
BURST = 0.0
_LIMIT_SECONDS = 600.0
_REST_SECONDS = 4.0
_AT_REST_CPU = 0.15
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Phase:
    """So many jobs, at a rate a second or, with 0, as fast as the API server takes them."""

    jobs: int
    rate: float


@dataclass(frozen=True, slots=True)
class Flow:
    """What a phase gave: seconds from the sending of a job's creation to its bind, and the leader's CPU."""

    phase: Phase
    p50: float
    p99: float
    all_bound: float
    cpu_ms_per_job: float


@dataclass(frozen=True, slots=True)
class Resident:
    """Resident memory in bytes at rest after the start, and at most."""

    started: int
    peak: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One contestant with placeholders or without: its phases, and what its replicas hold."""

    contestant: str
    placeholders: bool
    flows: Sequence[Flow]
    leader: Resident
    standby: Resident
    evicted: int


def load_documents(plane: ControlPlane, namespace: str, path: Path, rate: float = BURST) -> list[Created]:
    """Creates the pods of a file, and returns them."""
    load, output = _start_load(plane, namespace, path, rate)
    if load.wait(_LIMIT_SECONDS) != 0:
        raise RuntimeError(f"creating pods failed:\n{load.log_tail()}")
    return read_created(output)


def _start_load(plane: ControlPlane, namespace: str, path: Path, rate: float) -> tuple[Process, Path]:
    output = path.with_suffix(".created")
    arguments: list[str | Path] = ["--kubeconfig", plane.admin_kubeconfig, "--namespace", namespace]
    arguments += ["--documents", path, "--output", output, "--rate", str(rate)]
    return start_module("load", "e2e.bench.load", arguments, path.parent), output


@dataclass(frozen=True, slots=True)
class Stage:
    """What a contestant finds: the fleet, a folder that is not there yet, and whether placeholders hold its room."""

    plane: ControlPlane
    layout: Layout
    directory: Path
    placeholders: bool


def take_turn(stage: Stage, name: str, start: StartReplica, phases: Sequence[Phase]) -> Turn:
    """Has a contestant bind all jobs of the phases; the fleet is as it was before when it returns.

    Raises:
        RuntimeError, TimeoutError: it did not.
    """
    election = {"leaderElect": True, "resourceName": name, "resourceNamespace": NAMESPACE}
    settings: dict[str, Any] = {**scheduler_configuration(None), "leaderElection": election}
    plane, directory = stage.plane, stage.directory
    directory.mkdir()
    flows: list[Flow] = []
    evicted = 0
    with ExitStack() as stack:
        replicas: list[Process] = []
        for role in ("leader", "standby"):
            process = start(plane, directory / role, settings).process
            stack.callback(process.stop, _STOP_SECONDS)
            replicas.append(process)
            if role == "leader":
                wait_until(lambda: holder_of(plane, name), f"{name} leading", timeout_seconds=_LIMIT_SECONDS)
        for process in replicas:
            _wait_for_rest(process)
        started = [each.rss_bytes() for each in replicas]
        watch = BindWatch(plane.admin_kubeconfig, JOBS, directory)
        stack.callback(watch.stop)
        first = 0
        for phase in phases:
            write_documents(_jobs_file(stage, phase), stage.layout.jobs(JOBS, first, phase.jobs))
            first += phase.jobs
            flows.append(_flow(stage, watch, replicas[0], phase, first))
        if stage.placeholders:
            evicted = len(stage.layout.placeholders) - len(plane.client.list("pods", WARM))
        peaks = [each.peak_rss_bytes() for each in replicas]
    leader, standby = (Resident(*each) for each in zip(started, peaks, strict=True))
    delete_until_gone(plane.client, [("pods", JOBS), ("events", JOBS), ("events", WARM)])
    return Turn(name, stage.placeholders, flows, leader, standby, evicted)


def _jobs_file(stage: Stage, phase: Phase) -> Path:
    return stage.directory / f"jobs-{phase.rate:.0f}.jsonl"


def _flow(stage: Stage, watch: BindWatch, leader: Process, phase: Phase, total: int) -> Flow:
    """Have the jobs of a phase come, after which there have been so many in all."""

    def is_done() -> bool:
        leader.check_alive()
        return watch.poll() >= total

    before = leader.cpu_seconds()
    load, output = _start_load(stage.plane, JOBS, _jobs_file(stage, phase), phase.rate)
    try:
        wait_until(
            is_done,
            f"{total} jobs bound",
            timeout_seconds=_LIMIT_SECONDS,
            detail=lambda: f"{watch.poll()} are\n{leader.log_tail()}",
        )
        load.wait()
    finally:
        with suppress(ProcessLookupError):
            load.kill()
        load.wait()
    # Events and the ends of victims are part of what a job costs.
    _wait_for_rest(leader, 0.5)
    created = read_created(output)
    took = [watch.bound_at[row.name] - row.sent for row in created]
    return Flow(
        phase,
        percentile(took, 0.5),
        percentile(took, 0.99),
        max(watch.bound_at[row.name] for row in created) - min(row.sent for row in created),
        (leader.cpu_seconds() - before) / phase.jobs * 1000,
    )


def _wait_for_rest(process: Process, seconds: float = _REST_SECONDS) -> None:
    """Return when a replica has had little to do for some seconds, after as many."""

    def is_at_rest() -> bool:
        before = process.cpu_seconds()
        time.sleep(seconds)
        process.check_alive()
        return process.cpu_seconds() - before < _AT_REST_CPU * seconds

    time.sleep(seconds)
    wait_until(is_at_rest, f"{process.name} at rest", timeout_seconds=_LIMIT_SECONDS)


def place(plane: ControlPlane, layout: Layout, directory: Path, *, say: Callable[[str], None]) -> None:
    """Creates the nodes, and the pods that run."""
    plane.client.create("priorityclasses", {"metadata": {"name": PLACEHOLDER_CLASS}, "value": -1000})
    for namespace in (JOBS, WARM, RUNNING):
        plane.client.create("namespaces", {"metadata": {"name": namespace}})
    plane.client.create_all("nodes", layout.node_objects())
    path = directory / "running.jsonl"
    say(f"{write_documents(path, layout.pod_objects(layout.running, RUNNING))} pods that run")
    load_documents(plane, RUNNING, path)


def fill(plane: ControlPlane, layout: Layout, directory: Path) -> None:
    """Creates the placeholders that are not there."""
    present = {each["metadata"]["name"] for each in plane.client.list("pods", WARM)}
    every = layout.pod_objects(layout.placeholders, WARM, priorityClassName=PLACEHOLDER_CLASS)
    path = directory / "placeholders.jsonl"
    if write_documents(path, (each for each in every if each["metadata"]["name"] not in present)):
        load_documents(plane, WARM, path)
