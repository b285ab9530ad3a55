"""`make playground` and every command that it prints, typed at a terminal."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.test_console_blocks import commands_of

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.waiting import wait_until
from e2e.playground.tour import NAMESPACE, steps

pytestmark = pytest.mark.controlplane

NODES = 50
READY_SECONDS = 240.0
END_SECONDS = 60.0
CTRL_C = b"\x03"
DOCUMENT = REPOSITORY / "docs" / "playground.md"

# Runs in the child: the pseudo-terminal is its own, so that what is typed there becomes signals.
_AT_A_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A terminal in which `make playground` runs; what is printed is kept."""

    def __init__(self, temporary: Path) -> None:
        self._master, slave = os.openpty()
        self._printed: list[bytes] = []
        command = ["make", "--no-print-directory", "-C", str(REPOSITORY), "playground"]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _AT_A_TERMINAL, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TMPDIR": str(temporary), "PLAYGROUND_ARGS": f"--nodes {NODES} --minutes 20"},
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._printed.append(data)
        except OSError:
            return  # nobody has it open any more

    @property
    def text(self) -> str:
        return b"".join(self._printed).decode().replace("\r\n", "\n")

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(END_SECONDS)
        self._reader.join(END_SECONDS)
        os.close(self._master)


class Shell:
    """A second terminal: bash, in which everything that was printed to be set is set."""

    def __init__(self, printed: str) -> None:
        lines = [line.strip() for line in printed.splitlines()]
        self._begin = [line for line in lines if line.startswith(("cd ", "export "))]
        self.commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]

    def type(self, command: str) -> str:
        script = "\n".join(["set -euo pipefail", *self._begin, command])
        done = subprocess.run(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd="/",
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def items(self, arguments: str) -> list[dict[str, object]]:
        """What `kubectl get` finds."""
        found: list[dict[str, object]] = json.loads(self.type(f"kubectl get {arguments} -o json"))["items"]
        return found

    def holder(self) -> str:
        """Who has the lease."""
        return self.type(f"kubectl -n {NAMESPACE} get lease bayplan -o jsonpath='{{.spec.holderIdentity}}'")


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the playground has its folders."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def terminal(control_plane_binaries: None, temporary: Path) -> Iterator[Terminal]:
    found = Terminal(temporary)
    yield found
    found.close()


@pytest.fixture(scope="module")
def shell(terminal: Terminal) -> Shell:
    def is_there() -> bool:
        assert terminal.process.poll() is None, terminal.text
        return "Ctrl-C ends all of it" in terminal.text

    wait_until(is_there, "the playground", timeout_seconds=READY_SECONDS, detail=lambda: terminal.text)
    return Shell(terminal.text)


def test_every_command_does_what_it_is_for_and_ctrl_c_ends_everything(
    terminal: Terminal, shell: Shell, temporary: Path
) -> None:
    deploy, count, preempt, explain, fail_over = shell.commands

    shell.type(deploy)
    per_node = counts(shell.type(count))
    assert sum(per_node.values()) == 48
    # Sixteen in each zone fill two nodes, or three where a replica of bayplan has half of one.
    assert max(per_node.values()) == 8
    assert len(per_node) <= 8
    assert len(shell.items("pods -l app=training --field-selector status.phase=Running")) == 8

    assert re.search(r"Preempted +pod/training-\S+ +Preempted by pod", shell.type(preempt))
    (waiting,) = [line for line in shell.type(explain).splitlines() if line.startswith("training-")]
    assert "0/50 nodes are available" in waiting
    assert "2 Insufficient nvidia.com/gpu" in waiting

    before = shell.holder()
    assert 'deployment "web" successfully rolled out' in shell.type(fail_over)
    assert sum(counts(shell.type(count)).values()) == 60
    assert shell.holder() not in {"", before}
    shell.type(f"kubectl -n {NAMESPACE} rollout status deployment/bayplan")

    folders = [each for each in temporary.iterdir() if each.name.startswith("bayplan-")]
    assert len(folders) == 2
    running = [pid for pid, text in command_lines().items() if any(str(each) in text for each in folders)]
    assert len(running) >= 7  # etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, two replicas

    terminal.type(CTRL_C)
    assert terminal.process.wait(END_SECONDS) == 0, terminal.text
    assert terminal.text.rstrip().endswith("playground: nothing is left")
    assert "make: ***" not in terminal.text
    assert [text for text in command_lines().values() if str(temporary) in text] == []
    assert list(temporary.iterdir()) == []


def test_the_document_shows_the_commands_as_they_are_printed() -> None:
    shown = [each.text for each in commands_of(DOCUMENT.read_text())]
    printed = [each.command for each in steps("bayplan-<the-leader>")]
    assert [each for each in shown if each.startswith("kubectl ")] == printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "3"], "argument --nodes: 3: the pods to try need at least 16"),
        (["--replicas", "0"], "argument --replicas: 0: must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_at_once(arguments: list[str], message: str) -> None:
    done = play(arguments, {})
    assert done.returncode == 2
    assert message in done.stderr


def test_a_control_plane_that_cannot_be_built_is_said_in_the_words_of_the_build(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    go = programs / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo go version go1.99.0 || { echo no way to the modules; exit 1; }\n'
    )
    go.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = play([], {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)})
    assert done.returncode == 1
    assert "playground: go build failed with exit code 1:\nno way to the modules" in done.stdout
    assert list(tmp_path.glob("bayplan-*")) == []


def play(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "e2e.playground", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_SECONDS,
    )


def counts(printed: str) -> dict[str, int]:
    """What `uniq -c` counted."""
    return {name: int(number) for number, name in (line.split() for line in printed.splitlines())}


def command_lines() -> dict[int, str]:
    """The processes of this machine, and how they were started."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
    return found
