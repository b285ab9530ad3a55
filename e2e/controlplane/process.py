"""Child processes that never outlive the test run, with logs in files and figures from /proc."""

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from e2e.controlplane.waiting import wait_until

READY_SECONDS = 60.0
STOP_SECONDS = 10.0

# Runs in the child: ask the kernel for SIGKILL when the parent dies in any way, then become the program.
_EXEC = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_FIRST_PORT, _SLICE, _SLICES = 20000, 1500, 8  # below the range the kernel hands out to outgoing connections


def _own_ports() -> Iterator[int]:
    """Ports of this process of pytest alone, in turn: one that was given is not yet listened on for a while."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SLICES
    offset = secrets.randbelow(_SLICE)
    return itertools.cycle(_FIRST_PORT + worker * _SLICE + (offset + each) % _SLICE for each in range(_SLICE))


_candidates = _own_ports()


def free_ports(count: int) -> list[int]:
    """Returns distinct loopback TCP ports nobody listens on right now, and no other worker of this run is given."""
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            candidate = next(_candidates)
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", candidate))
                ports.append(candidate)
        return ports


class Child(Protocol):
    """What `subprocess.Popen` offers for a child, of which this is the part that is used."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Process:
    """A running program in its own session, killed by the kernel when the thread that started it ends.

    Start it from a thread that lives as long as the program should: the main thread, in tests.
    Output of both streams goes to `log_path`, appended. As a context manager it is ready, and ends with the block.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._child = self._start([*map(str, command)], log.fileno(), environment, directory)

    def _start(
        self, command: list[str], log: int, environment: Mapping[str, str] | None, directory: Path | None
    ) -> Child:
        """Starts the program with both streams on the file descriptor `log`."""
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _EXEC, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment) if environment is not None else None,
            cwd=directory,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        try:
            self.wait_ready()
        except BaseException:
            self.stop(STOP_SECONDS)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(STOP_SECONDS)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal, or None while the process runs."""
        return self._child.poll()

    def is_ready(self) -> bool:
        """Whether it does its work; every program has its own way to tell."""
        raise NotImplementedError

    def wait_ready(self, check: Callable[[], bool] | None = None, *, timeout_seconds: float = READY_SECONDS) -> None:
        """Waits until `check`, or `is_ready` without one, is true.

        Raises:
            RuntimeError: the process ended instead; the message has the end of its log.
            TimeoutError: it did neither.
        """

        def ready_or_dead() -> bool:
            self.check_alive()
            return (check or self.is_ready)()

        wait_until(
            ready_or_dead,
            f"{self.name} becoming ready",
            timeout_seconds=timeout_seconds,
            detail=lambda: f"\n{self.log_tail()}",
        )

    def check_alive(self) -> None:
        """Raises a RuntimeError with the end of its log if the process ended."""
        if self.exit_code is not None:
            raise RuntimeError(f"{self.name} exited with {self.exit_code}:\n{self.log_tail()}")

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._child.terminate()

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._child.kill()

    def suspend(self) -> None:
        """Sends SIGSTOP."""
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Sends SIGCONT."""
        self._child.send_signal(signal.SIGCONT)

    def wait(self, timeout_seconds: float = 30.0) -> int:
        """Waits for the end and returns the exit code.

        Raises:
            TimeoutError: it still runs; the message ends with the last lines of the log.
        """
        try:
            return self._child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            message = f"{self.name} still runs after {timeout_seconds:g} s:\n{self.log_tail()}"
            raise TimeoutError(message) from None

    def stop(self, grace_seconds: float) -> int:
        """Sends SIGTERM, after `grace_seconds` SIGKILL, and returns the exit code."""
        self.terminate()
        try:
            return self._child.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._child.wait()

    def log(self) -> str:
        """Returns everything the process wrote so far."""
        return self.log_path.read_text(errors="replace")

    def log_tail(self, lines: int = 30) -> str:
        """Returns the last lines of the log."""
        return "\n".join(self.log().splitlines()[-lines:])

    def cpu_seconds(self) -> float:
        """Returns the user and system CPU time the running process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def rss_bytes(self) -> int:
        """Returns the resident memory of the running process."""
        return self._status_bytes("VmRSS")

    def peak_rss_bytes(self) -> int:
        """Returns the largest resident memory the running process ever had."""
        return self._status_bytes("VmHWM")

    def _status_bytes(self, key: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(f"{self.name} (pid {self.pid}) has ended")


def stop_all(processes: Sequence[Process], grace_seconds: float) -> None:
    """Sends SIGTERM to all, gives them `grace_seconds` together, then kills the rest."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + grace_seconds
    for process in processes:
        process.stop(max(0.0, deadline - time.monotonic()))
