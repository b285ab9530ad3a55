"""Terminals in which a test types: one where the playground runs, and one where its cluster is used."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.controlplane.waiting import wait_until

READY_SECONDS = 300.0
END_SECONDS = 120.0
CTRL_C = b"\x03"

_LAST_LINE = "Ctrl-C ends all of it"
# Runs in the child: the pseudo-terminal is its own, so that what is typed there becomes signals.
_AT_A_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class PlaygroundTerminal:
    """A terminal in which `make playground` runs in a checkout; what is printed is kept.

    The playground has its folders in `temporary`, and ends with the block if nobody ended it.
    """

    def __init__(self, checkout: Path, temporary: Path, arguments: str) -> None:
        self._master, slave = os.openpty()
        self._printed: list[bytes] = []
        command = ["make", "--no-print-directory", "playground"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _AT_A_TERMINAL, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=checkout,
            env={**os.environ, "TMPDIR": str(temporary), "PLAYGROUND_ARGS": arguments},
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(END_SECONDS)
        self._reader.join(END_SECONDS)
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything that was printed so far."""
        return b"".join(self._printed).decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, text: str = _LAST_LINE) -> None:
        """Waits until this was printed; by default until the playground has said all that can be typed.

        Raises:
            RuntimeError, TimeoutError: it ended, or never did; the message has what it printed.
        """

        def is_there() -> bool:
            if self._process.poll() is not None:
                raise RuntimeError(f"the playground ended:\n{self.text}")
            return text in self.text

        wait_until(is_there, f"{text!r}", timeout_seconds=READY_SECONDS, detail=lambda: self.text)

    def press_ctrl_c(self) -> int:
        """Presses Ctrl-C and returns make's exit code."""
        os.write(self._master, CTRL_C)
        code = self._process.wait(END_SECONDS)
        self._reader.join(END_SECONDS)
        return code

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._printed.append(data)
        except OSError:
            return  # nobody has it open any more


class Shell:
    """A terminal with bash: each command is typed after the lines of `begin`, such as those that a program printed."""

    def __init__(self, *begin: str, directory: Path = Path("/")) -> None:
        self._begin = list(begin)
        self._directory = directory

    def type(self, command: str) -> str:
        """Returns what a command prints on both streams.

        Raises:
            AssertionError: it failed; the message has what it printed.
        """
        done = subprocess.run(
            ["bash", "-c", "\n".join(["set -euo pipefail", *self._begin, command])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self._directory,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def items(self, arguments: str) -> list[dict[str, Any]]:
        """Returns what `kubectl get` finds."""
        found: list[dict[str, Any]] = json.loads(self.type(f"kubectl get {arguments} -o json"))["items"]
        return found


def settings_in(printed: str) -> list[str]:
    """Returns the lines of the playground that set what a second terminal needs."""
    return [line.strip() for line in printed.splitlines() if line.strip().startswith(("cd ", "export "))]


def commands_in(printed: str) -> list[str]:
    """Returns the commands that the playground proposes."""
    return [line.strip().removeprefix("$ ") for line in printed.splitlines() if line.strip().startswith("$ ")]


def processes_of(folder: Path) -> dict[int, str]:
    """Returns how the processes were started whose command lines name a folder or what is in it, by their numbers."""
    return {number: text for number, text in _command_lines().items() if str(folder) in text}


def _command_lines() -> dict[int, str]:
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
    return found
