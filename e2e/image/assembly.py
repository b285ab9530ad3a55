"""Carries out the stages of the Dockerfile on this machine's files, and runs what comes out as a pod would.

No container runtime and no registry is needed: this machine stands in for Python's image. Each stage is an overlay over
its root, with this Python as /usr/local; compilers are taken away first, as Python's image has none. Needs root.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.image.dockerfile import Instruction, Stage, context_files, read_stages

STAND_IN = "python:3.11-slim@sha256:" + "0" * 64
_PATH = "/usr/local/bin:/usr/bin:/bin"
_NOT_IN_THE_BASE = ("cc", "gcc", "ld", "make", "pip", "pip3")
USER_ID = 65532


def can_assemble() -> bool:
    """Whether this user may mount overlays."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(probe, check=False, capture_output=True).returncode == 0


class Assembly:
    """The image of a checkout, in a folder that no other overlay is in (such as one on a tmpfs or a disk)."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self._folder = folder
        self._repository = repository
        self._stages = read_stages(repository / "Dockerfile")
        self._final = self._stages[-1]

    def build(self, python_image: str = STAND_IN) -> None:
        """Carries out all stages.

        Raises:
            RuntimeError: an instruction failed; the message has what it printed.
        """
        context = self._context()
        script = ["set -eu"]
        for stage in self._stages[:-1]:
            script += self._mounts(stage.name)
            script += self._base(stage.name)
            directory = "/"
            for each in stage.instructions:
                if each.name == "WORKDIR":
                    directory = each.text
                    script.append(f"mkdir -p {self._root(stage.name)}{directory}")
                elif each.name == "RUN":
                    script.append(self._run(stage, each, directory, python_image))
                elif each.name == "COPY":
                    script.append(self._copy(stage, each, directory, context))
        done = _unshared(script)
        if done.returncode != 0:
            raise RuntimeError(f"the image cannot be assembled:\n{done.stdout}{done.stderr}")

    def run(self, arguments: Sequence[str], *, files: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the image's entry point: no network, root file system read-only, no capabilities; `files` is /files."""
        entry = json.loads(self._final.last("ENTRYPOINT"))
        return self.execute([*entry, *arguments], files=files)

    def execute(self, command: Sequence[str], *, files: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs any command in the image as `run` does."""
        (copied,) = [each.text.split()[0].partition("=")[2] for each in self._final.instructions if each.name == "COPY"]
        root = self._root(copied)
        environment = [f"{name}={value}" for name, value in self._final.environment().items()]
        script = ["set -eu", *self._mounts(copied)]
        if files is not None:
            script += [f"mkdir -p {root}/files", f"mount --bind {files} {root}/files"]
        confined = [
            *("chroot", str(root), "setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups"),
            *("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"),
            *("env", "-i", f"--chdir={self._final.last('WORKDIR')}", *environment, *command),
        ]
        script += [
            f"mount -t tmpfs none {root}/tmp",
            f"chmod 1777 {root}/tmp",
            f"mount -o remount,ro,bind {root}/usr/local",
            f"mount -o remount,ro,bind {root}",
            f"exec {shlex.join(confined)}",
        ]
        return _unshared(script, "--net")

    def _context(self) -> Path:
        """A copy of what the builder would get."""
        context = self._folder / "context"
        for name in context_files(self._repository / ".dockerignore"):
            source, target = self._repository / name, context / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        return context

    def _root(self, stage: str) -> Path:
        return self._folder / stage / "root"

    def _mounts(self, stage: str) -> list[str]:
        """What shows a stage's files: this machine's below, and above what the stage changed."""
        folder = self._folder / stage
        layers = {"/": folder / "root", sys.base_prefix: folder / "root" / "usr" / "local"}
        script: list[str] = []
        for number, (below, shown) in enumerate(layers.items()):
            above, work = folder / f"upper-{number}", folder / f"work-{number}"
            script += [
                f"mkdir -p {shown} {above} {work}",
                f"mount -t overlay overlay -o lowerdir={below},upperdir={above},workdir={work} {shown}",
            ]
        root = folder / "root"
        return [*script, f"mount --bind /dev {root}/dev", f"mount -t proc proc {root}/proc"]

    def _base(self, stage: str) -> list[str]:
        """Makes this machine's files those of Python's image, as far as the Dockerfile can see."""
        root = self._root(stage)
        gone = [f"{root}/usr/bin/{name}" for name in _NOT_IN_THE_BASE]
        # Libraries of this Python are found where it is shown, also by who may not look where it is.
        return [f"rm -rf {' '.join(gone)} {root}/opt/bayplan {root}/src", f"chroot {root} ldconfig"]

    def _run(self, stage: Stage, instruction: Instruction, directory: str, python_image: str) -> str:
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        arguments = {"PYTHON_IMAGE": python_image} if _takes_image(stage) else {}
        environment = {"PATH": _PATH, "HOME": "/root", **passed, **arguments}
        pairs = [f"{name}={value}" for name, value in environment.items()]
        command = ["env", "-i", f"--chdir={directory}", *pairs, "sh", "-ec", instruction.text]
        return shlex.join(["chroot", str(self._root(stage.name)), *command])

    def _copy(self, stage: Stage, instruction: Instruction, directory: str, context: Path) -> str:
        *sources, target = instruction.text.split()
        origin = context
        if sources[0].startswith("--from="):
            origin = self._root(sources.pop(0).partition("=")[2])
        to = f"{self._root(stage.name)}{Path(directory) / target}"
        # A folder is copied as what is in it, files into the folder that the target names.
        folder = len(sources) == 1 and not target.endswith("/")
        lines = [f"mkdir -p {to}"]
        lines += [f"cp -a {origin}/{each.lstrip('/')}{'/.' if folder else ''} {to}" for each in sources]
        return "\n".join(lines)


def _takes_image(stage: Stage) -> bool:
    return any((each.name, each.text) == ("ARG", "PYTHON_IMAGE") for each in stage.instructions)


def _unshared(script: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script where its mounts are its own, and end with it."""
    command = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", *options, "sh", "-c", "\n".join(script)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
