"""Runs commands of bayplan by forks of one process that has their modules loaded: nine tenths of a start are that.

Each is a process of its own that does what `python -m bayplan` does, with its own folder, environment and output. What
only loading the modules shows is for tests that start the program itself: those of the image, the Deployment and typed
commands, of memory and of signals, and all that give it an environment.
"""

import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

ROOT = Path(__file__).resolve().parents[1]
_SUBREAPER, _DIE_WITH_PARENT = 36, 1  # PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG, <sys/prctl.h>
_POLL_SECONDS = 0.005
_LONGEST_REQUEST = 1 << 16


class ForkedProcess:
    """A child of this process that `Preloaded` forked, with what `subprocess.Popen` offers for one that it started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        if self._exit_code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended; raises subprocess.TimeoutExpired if it has not within `timeout` seconds."""
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(_POLL_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Preloaded:
    """The process that has loaded `modules` and runs none of them; what it forks are our children, and end with us."""

    def __init__(self, *modules: str) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *modules],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PYTHONUNBUFFERED": "1"},
                pass_fds=[theirs.fileno()],
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ours.close()
        self._process.wait()

    def start(
        self,
        arguments: Sequence[str],
        *,
        stdout: int,
        stderr: int,
        environment: Mapping[str, str],
        directory: Path = ROOT,
    ) -> ForkedProcess:
        """Starts `bayplan` with these arguments; `stdout` and `stderr` are files that stay the caller's."""
        asked = {
            "parent": os.getpid(),
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory),
        }
        libc = ctypes.CDLL(None)
        # Meanwhile whoever loses its parent becomes our child.
        libc.prctl(_SUBREAPER, 1)
        try:
            socket.send_fds(self._ours, [json.dumps(asked).encode()], [stdout, stderr])
            return ForkedProcess(int(self._ours.recv(32)))
        finally:
            libc.prctl(_SUBREAPER, 0)


def _serve(asking: socket.socket, modules: Sequence[str]) -> None:
    # As the command does before it loads anything.
    importlib.import_module("bayplan.cli.process").return_large_blocks()
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    while True:
        request, streams, _, _ = socket.recv_fds(asking, _LONGEST_REQUEST, 2)
        if not request:
            return
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)
            _run(json.loads(request), asking, streams)
        # Once it has ended, its child is a child of who asked.
        os.waitpid(between, 0)
        for stream in streams:
            os.close(stream)


def _run(asked: dict[str, Any], asking: socket.socket, streams: Sequence[int]) -> NoReturn:
    while os.getppid() != asked["parent"]:
        time.sleep(_POLL_SECONDS)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    os.setsid()
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout, sys.stderr = _opened(1), _opened(2)
    sys.argv[1:] = asked["arguments"]
    sys.path[0] = asked["directory"]
    asking.send(f"{os.getpid()}".encode())
    asking.close()
    runpy.run_module("bayplan", run_name="__main__", alter_sys=True)
    sys.exit()


def _opened(number: int) -> io.TextIOWrapper:
    """Standard output or standard error, as Python opens them when it starts."""
    direct = "PYTHONUNBUFFERED" in os.environ
    stream = open(number, "wb", buffering=0 if direct else -1, closefd=False)  # noqa: SIM115  open to the end
    errors = "backslashreplace" if number == 2 else "strict"
    return io.TextIOWrapper(stream, errors=errors, line_buffering=number == 2, write_through=direct)


def _main(arguments: Sequence[str]) -> None:
    with socket.socket(fileno=int(arguments[0])) as asking:
        _serve(asking, arguments[1:])


if __name__ == "__main__":
    _main(sys.argv[1:])
