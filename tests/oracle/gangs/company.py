"""Plays many scenarios on several control planes at a time: a rest costs time and no CPU."""

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from tests.oracle.gangs.recording import Run
from tests.oracle.gangs.scenario import Family, Scenario
from tests.oracle.gangs.stage import QUIET_SECONDS, Stage, options

StartScheduler = Callable[[ControlPlane, tuple[str, ...]], Process]
"""Starts a scheduler on a control plane, given the feature gates of its families."""


def play_all(
    families: Sequence[Family], planes: int, start: StartScheduler, quiet_seconds: float = QUIET_SECONDS
) -> dict[str, Run]:
    """Returns what the scheduler made of each scenario, by its name; on each control plane one runs."""
    found: dict[str, Run] = {}
    by_gates: dict[tuple[str, ...], list[Scenario]] = {}
    for family in families:
        by_gates.setdefault(family.gates, []).extend(family.scenarios)
    for gates, scenarios in by_gates.items():
        waiting: queue.SimpleQueue[Scenario] = queue.SimpleQueue()
        for scenario in scenarios:
            waiting.put(scenario)
        count = min(planes, len(scenarios))
        with ThreadPoolExecutor(count, thread_name_prefix="stage") as pool:
            for each in [pool.submit(_play, gates, waiting, start, quiet_seconds) for _ in range(count)]:
                found |= each.result()
    return found


def _play(
    gates: tuple[str, ...], waiting: "queue.SimpleQueue[Scenario]", start: StartScheduler, quiet: float
) -> dict[str, Run]:
    found: dict[str, Run] = {}
    with ControlPlane.start(options(gates)) as plane, Stage(plane, quiet) as stage, start(plane, gates) as process:
        while True:
            try:
                scenario = waiting.get_nowait()
            except queue.Empty:
                return found
            found[scenario.name] = stage.play(scenario)
            process.check_alive()
            print(f"played {scenario.name}", flush=True)
