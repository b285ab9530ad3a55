"""What the figures were measured on and with: machine, versions, commit."""

import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import binary
from e2e.controlplane.kubernetes_version import version_of

_DISTRIBUTIONS = ("kopf", "numpy", "msgspec", "pyreqwest", "aiohttp", "uvloop")


@dataclass(frozen=True, slots=True)
class Machine:
    """The cores this process may use, memory in bytes, and the load average before the run."""

    cores: int
    cpu: str
    memory: int
    kernel: str
    load_before: float


def machine() -> Machine:
    """Returns what this machine is, and how busy it is now."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_first(Path("/proc/cpuinfo"), r"^model name\s*:\s*(.+)$") or platform.machine(),
        memory=int(_first(Path("/proc/meminfo"), r"^MemTotal:\s*(\d+) kB$") or 0) * 1024,
        kernel=f"{platform.system()} {platform.release()}",
        load_before=round(os.getloadavg()[0], 2),
    )


def versions() -> dict[str, str]:
    """Returns the versions of everything that takes part, by name."""
    found = {name: metadata.version(name) for name in _DISTRIBUTIONS}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    found["bayplan"] = project["version"]
    found["python"] = platform.python_version()
    found["kube-scheduler"] = f"v{version_of(binary('kube-scheduler'))}"
    found["kube-apiserver"] = f"v{version_of(binary('kube-apiserver'))}"
    found["etcd"] = _output([binary("etcd"), "--version"]).splitlines()[0].removeprefix("etcd Version: ")
    return found


def commit() -> str:
    """Returns the commit of the checkout, `-dirty` if files differ from it, or "" outside of git."""
    try:
        return _output(["git", "-C", REPOSITORY, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
    except (OSError, subprocess.CalledProcessError):
        return ""


def date() -> str:
    """Returns the moment in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _first(path: Path, pattern: str) -> str | None:
    match = re.search(pattern, path.read_text(), re.MULTILINE)
    return match.group(1) if match else None


def _output(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
