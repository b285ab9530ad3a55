"""Starts the benchmark's own programs, and bayplan, as processes apart from the one that measures."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.process import Process

PYTHON_PATH = os.pathsep.join((str(REPOSITORY / "operator"), str(REPOSITORY)))
"""Where bayplan and e2e are imported from."""


def start_module(name: str, module: str, arguments: Sequence[str | Path], directory: Path) -> Process:
    """Starts `python -m module` with bayplan and e2e importable; its log is `<name>.log` in `directory`."""
    return Process(
        name,
        [sys.executable, "-m", module, *arguments],
        log_path=directory / f"{name}.log",
        environment={**os.environ, "PYTHONPATH": PYTHON_PATH},
        directory=directory,
    )
