"""A contestant that runs while the binds of its pods are watched."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from e2e.bench.bind_watch import BindWatch
from e2e.bench.contestants import Contestant, Stage
from e2e.controlplane.process import Process

_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Watched:
    """The contestant's process, the watch of its namespace, and the monotonic moment before the start."""

    process: Process
    watch: BindWatch
    started: float


@contextmanager
def watched(contestant: Contestant, stage: Stage) -> Iterator[Watched]:
    """Starts a contestant once the watch misses no bind; both have ended when the block has."""
    watch = BindWatch(stage.plane.admin_kubeconfig, stage.namespace, stage.directory)
    try:
        started = time.monotonic()
        process = contestant.start(stage)
        try:
            yield Watched(process, watch, started)
        finally:
            process.stop(_STOP_SECONDS)
    finally:
        watch.stop()
