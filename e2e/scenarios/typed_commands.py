"""A shell in a checkout, in which the commands of a document are typed as they stand there."""

import os
import shutil
import subprocess
from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import binary, build, say_on_stderr
from e2e.controlplane.plane import ControlPlane
from e2e.helm.chart import PROGRAM
from tests.console_blocks import Command, commands_of

_TIMEOUT_SECONDS = 120.0


def typed_in(document: str) -> list[Command]:
    """Returns the commands of the console blocks of a document of this repository."""
    return commands_of((REPOSITORY / document).read_text())


class Shell:
    """A shell whose kubectl and helm find a control plane, in a folder with the manifests of this checkout."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(REPOSITORY / "manifests", folder / "manifests", symlinks=True)
        programs = folder / "programs"
        programs.mkdir()
        for path in (binary("kubectl"), build(say_on_stderr, PROGRAM) / "helm"):
            (programs / path.name).symlink_to(path)
        self._environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder),
            "KUBECONFIG": str(plane.admin_kubeconfig),
        }

    def type(self, command: str) -> tuple[int, str]:
        """Returns the exit code of a command and what it printed on both streams."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
        return done.returncode, done.stdout
