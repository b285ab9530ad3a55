"""The version of Kubernetes that bayplan is held against: it stands in go.mod and nowhere else."""

import re
import subprocess
from pathlib import Path

GO_MOD = Path(__file__).with_name("go.mod")


def kubernetes_version(go_mod: Path = GO_MOD) -> str:
    """Returns what the k8s.io/kubernetes line of a go.mod asks for, such as `1.37.1`.

    What is built carries it, recordings name it, and the documents are checked against it.

    Raises:
        ValueError: there is no such line.
    """
    match = re.search(r"^\s*k8s\.io/kubernetes v(\S+)", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"{go_mod}: no k8s.io/kubernetes line")
    return match.group(1)


def minor_version(version: str) -> str:
    """Returns the minor version, such as `1.37`, that a version belongs to."""
    return ".".join(version.split(".")[:2])


def version_of(binary: Path) -> str:
    """Returns the version that one of Kubernetes' own binaries says it has, whoever built it."""
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix("Kubernetes v")
