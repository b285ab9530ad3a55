"""Builds the control plane's binaries, and what else go.mod pins, and keeps them in a cache outside the checkout.

Run as `python -m e2e.controlplane.build` from the root of the repository.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from e2e.controlplane.kubernetes_version import kubernetes_version
from e2e.controlplane.toolchain import Say, ToolchainError, find_go

MODULE = Path(__file__).resolve().parent
BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Programs:
    """What one `go build` makes, and the folder of the cache it is kept in.

    `package` is what Go is asked to build. `renamed` has Go's name of a program and the one it gets here. `sources` are
    the files of the module that the programs are made of, besides go.mod and go.sum. `module` is the folder with these;
    without one it is the folder of this file. `kubernetes` says whether the programs are Kubernetes' own.
    """

    folder: str
    package: str
    names: tuple[str, ...]
    duration: str
    renamed: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    module: Path | None = None
    kubernetes: bool = True

    def flags(self) -> tuple[str, ...]:
        """Returns the flags of `go build` for these."""
        return build_flags(self.module) if self.kubernetes else (*_REPRODUCIBLE, "-ldflags", "-s -w")


CONTROL_PLANE = Programs("controlplane", "tool", BINARIES, "4 to 12 minutes", renamed=(("server", "etcd"),))

_REPRODUCIBLE = ("-trimpath", "-buildvcs=false")
_STAMPED = "k8s.io/component-base/version"
# No cgo: a machine without a C compiler builds the same binaries.
_BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


class BuildError(RuntimeError):
    """The binaries could not be built; the message ends with the last lines of the build."""


def cache_root() -> Path:
    """Returns the folder all cached builds and toolchains live in."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "bayplan"


def build_flags(module: Path | None = None) -> tuple[str, ...]:
    """Returns the flags of `go build`, which stamp the version of Kubernetes that the module's go.mod asks for.

    Without these stamps the server calls itself v0.0.0-master+$Format, which kubectl and other clients cannot parse.

    Raises:
        ValueError: the module asks for none.
    """
    version = kubernetes_version((module or MODULE) / "go.mod")
    major, minor = version.split(".")[:2]
    stamps = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "bayplan",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    linked = ["-s", "-w", *(f"-X {_STAMPED}.{key}={value}" for key, value in stamps.items())]
    return (*_REPRODUCIBLE, "-ldflags", " ".join(linked))


def cache_key(programs: Programs = CONTROL_PLANE) -> str:
    """Returns 16 hex digits that change with go.mod, go.sum, the sources, the build flags and the kind of machine."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", *programs.sources):
        digest.update(((programs.module or MODULE) / name).read_bytes())
    digest.update(repr((programs.flags(), sorted(_BUILD_ENVIRONMENT.items()), platform.machine())).encode())
    return digest.hexdigest()[:16]


def build_directory(programs: Programs = CONTROL_PLANE) -> Path:
    """Returns where the binaries of this go.mod are, built or not."""
    return cache_root() / programs.folder / cache_key(programs)


def binary(name: str, *, say: Say | None = None) -> Path:
    """Returns the path of one of BINARIES, building all of them when it is needed.

    A binary in the folder KUBEBUILDER_ASSETS names wins, if etcd and kube-apiserver are both there.

    Raises:
        BuildError: the build failed.
        ToolchainError: there is no Go and none can be installed.
    """
    if name not in BINARIES:
        raise ValueError(f"{name!r} is not one of {', '.join(BINARIES)}")
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and all((Path(assets) / needed).is_file() for needed in ("etcd", "kube-apiserver")):
        given = Path(assets) / name
        if given.is_file():
            return given
    return build(say or say_on_stderr) / name


def build(say: Say, programs: Programs = CONTROL_PLANE) -> Path:
    """Builds the binaries unless they are cached, and returns their folder.

    Two processes that want the same build never both do it: the second waits for the first.

    Raises:
        BuildError: the build failed.
        ToolchainError: there is no Go and none can be installed.
    """
    target = build_directory(programs)
    if not _missing(target, programs):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_suffix(".lock"), say):
        if _missing(target, programs):
            shutil.rmtree(target, ignore_errors=True)
            _build_into(target, programs, say)
    return target


@cache
def module_sources(programs: Programs, module: str) -> Path:
    """Returns where Go keeps the sources of a module that `programs` are made of; they are fetched if they are gone."""
    folder = programs.module or MODULE
    go = find_go(folder / "go.mod", cache_root() / "go", say_on_stderr)
    done = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=folder,
        env=go_environment(go),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(done.stdout)["Dir"])


def go_environment(go: Path) -> dict[str, str]:
    """Returns the environment in which this Go runs, whatever other Go the machine is set up for."""
    path = f"{go.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, **_BUILD_ENVIRONMENT, "PATH": path}
    environment.pop("GOROOT", None)
    return environment


def _missing(folder: Path, programs: Programs) -> list[str]:
    return [name for name in programs.names if not (folder / name).is_file()]


def say_on_stderr(message: str) -> None:
    """Writes a progress line to the process's real stderr, past any capturing."""
    print(f"controlplane: {message}", file=sys.__stderr__, flush=True)


@contextlib.contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        started = said = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - said >= PROGRESS_SECONDS:
                    said = time.monotonic()
                    say(f"[{said - started:4.0f} s] waiting for another build to finish")
                time.sleep(0.2)
        yield


def _build_into(target: Path, programs: Programs, say: Say) -> None:
    go = find_go((programs.module or MODULE) / "go.mod", cache_root() / "go", say)
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        say(f"building {', '.join(programs.names)} with {go} ({programs.duration} the first time)")
        started = time.monotonic()
        _go_build(go, programs, scratch, say)
        for built, name in programs.renamed:
            (scratch / built).rename(scratch / name)
        if missing := _missing(scratch, programs):
            raise BuildError(f"the build made no {', '.join(missing)}")
        scratch.chmod(0o755)
        scratch.rename(target)
        say(f"built in {time.monotonic() - started:.0f} s: {target}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _go_build(go: Path, programs: Programs, scratch: Path, say: Say) -> None:
    command = [str(go), "build", "-v", *programs.flags(), "-o", f"{scratch}/", programs.package]
    with subprocess.Popen(
        command,
        cwd=programs.module or MODULE,
        env=go_environment(go),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            tail = _report(process, say)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise BuildError(f"go build failed with exit code {process.returncode}:\n" + "\n".join(tail))


def _report(process: subprocess.Popen[str], say: Say) -> list[str]:
    """Says every PROGRESS_SECONDS how far the build is until its output ends; returns its last lines."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    output = process.stdout
    assert output is not None

    def read() -> None:
        for line in output:
            lines.put(line.rstrip())
        lines.put(None)

    reader = threading.Thread(target=read, name="go-build-output", daemon=True)
    reader.start()
    started = said = time.monotonic()
    downloaded = compiled = 0
    tail: list[str] = []
    current = "resolving modules"
    while True:
        try:
            line = lines.get(timeout=1.0)
            if line is None:
                break
            tail = [*tail[-29:], line]
            downloaded += line.startswith("go: downloading")
            compiled += not line.startswith("go: ")
            current = line
        except queue.Empty:
            pass
        if time.monotonic() - said >= PROGRESS_SECONDS:
            said = time.monotonic()
            done = f"{downloaded} modules fetched, {compiled} packages compiled"
            say(f"[{said - started:4.0f} s] {done}, last: {current}")
    reader.join()
    return tail


def main() -> int:
    """Builds what is missing and prints the folder; exit code 1 with one message when it fails."""
    try:
        folder = build(say_on_stderr)
    except (BuildError, ToolchainError) as error:
        say_on_stderr(str(error))
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
