"""Builds and runs the program with Kubernetes' scheduling specs, and follows its progress."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.build import Programs, build, say_on_stderr
from e2e.controlplane.process import Process

_NAME = "scheduling-e2e"
PROGRAM = Programs("conformance", f"./{_NAME}", (_NAME,), "3 to 12 minutes", sources=(f"{_NAME}/main.go",))
# Specs about feature gates that are off in a cluster that nobody configured.
_LABEL_FILTER = "!(Feature: containsAny OffByDefault)"
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Begins:
    """A spec that has begun."""

    name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A spec that has ended: `state` is ginkgo's word for how, `failure` its reason where it did not pass."""

    name: str
    state: str
    seconds: float
    conformance: bool
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Whether it passed; one that found the cluster unfit and skipped itself did not."""
        return self.state == "passed"


@dataclass(frozen=True, slots=True)
class Chosen:
    """How many specs will run."""

    specs: int


Progress = Chosen | Begins | Verdict


def build_suite() -> Path:
    """Returns the program with the specs, built unless it is cached.

    Raises:
        BuildError: the build failed.
        ToolchainError: there is no Go and none can be installed.
    """
    return build(say_on_stderr, PROGRAM) / _NAME


def run_suite(
    program: Path, kubeconfig: Path, directory: Path, *, nodes: int, seed: int, focus: str | None
) -> Iterator[Progress]:
    """Runs the specs one after the other, in an order that `seed` decides, and yields what happens.

    `directory` gets the suite's own log and junit_01.xml. Call it from a thread that lives as long as the iterator.

    Raises:
        RuntimeError: the program ended without running its specs.
    """
    progress = directory / "progress.jsonl"
    command: list[str | Path] = [
        program,
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        f"--num-nodes={nodes}",
        "--dump-logs-on-failure=false",
        f"--report-dir={directory}",
        f"--progress={progress}",
        f"--ginkgo.label-filter={_LABEL_FILTER}",
        f"--ginkgo.seed={seed}",
        "--ginkgo.timeout=3h",
        "--ginkgo.no-color",
        "--ginkgo.v",
    ]
    if focus is not None:
        command.append(f"--ginkgo.focus={focus}")
    process = Process(_NAME, command, log_path=directory / f"{_NAME}.log", directory=directory)
    try:
        seen = 0
        for line in _lines(progress, process):
            seen += 1
            yield read_progress(json.loads(line))
        if seen == 0:
            raise RuntimeError(f"{_NAME} ran no spec and exited with {process.exit_code}:\n{process.log_tail()}")
    finally:
        process.stop(grace_seconds=5.0)


def read_progress(document: dict[str, Any]) -> Progress:
    """Returns what one line of the program's progress file says."""
    if "name" not in document:
        return Chosen(document.get("specs", 0))
    if "state" not in document:
        return Begins(document["name"])
    return Verdict(
        name=document["name"],
        state=document["state"],
        seconds=document.get("seconds", 0.0),
        conformance="Conformance" in document["labels"],
        failure=document.get("failure", ""),
    )


def _lines(path: Path, process: Process) -> Iterator[str]:
    """Yields the complete lines of a file that a process writes, until it has ended and all were read."""
    read = 0
    while True:
        ended = process.exit_code is not None
        text = path.read_text() if path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        yield from complete[read:].splitlines()
        read = len(complete)
        if ended:
            return
        time.sleep(_POLL_SECONDS)
