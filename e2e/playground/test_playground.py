"""`make playground` and every command that it prints, typed at a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.console_blocks import commands_of

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.health import get_local
from e2e.controlplane.waiting import wait_until
from e2e.playground.terminals import (
    READY_SECONDS,
    PlaygroundTerminal,
    Shell,
    commands_in,
    processes_of,
    settings_in,
)
from e2e.playground.tour import NAMESPACE, steps

pytestmark = pytest.mark.controlplane

DOCUMENT = REPOSITORY / "docs" / "playground.md"


def test_every_command_does_what_it_is_for_and_ctrl_c_ends_everything(
    control_plane_binaries: None, tmp_path: Path
) -> None:
    with PlaygroundTerminal(REPOSITORY, tmp_path, "--nodes 50 --minutes 30") as terminal:
        terminal.wait_for()
        shell = Shell(*settings_in(terminal.text))
        deploy, count, preempt, explain, fail_over = commands_in(terminal.text)

        shell.type(deploy)
        per_node = counts(shell.type(count))
        assert sum(per_node.values()) == 48
        # Although a Service selects them they fill six nodes, or seven where a replica of bayplan has half of one.
        assert max(per_node.values()) == 8
        assert len(per_node) <= 7

        assert re.search(r"Preempted +pod/training-\S+ +Preempted by pod", shell.type(preempt))
        verdict = r"^training-\S+ +0/50 nodes are available: 2 Insufficient nvidia\.com/gpu, 48 node\(s\) didn't match"
        wait_until(lambda: re.search(verdict, shell.type(explain), re.MULTILINE), "a verdict")

        waiting = re.search(r"^training-\S+", shell.type(explain), re.MULTILINE)
        assert waiting is not None
        question = asking(terminal.text, waiting[0])
        told = shell.type(question)
        assert told.startswith(f"default/{waiting[0]}: waits, no node fits")
        assert "  woken by: " in told

        before = holder(shell)
        assert 'deployment "web" successfully rolled out' in shell.type(fail_over)
        assert sum(counts(shell.type(count)).values()) == 60
        assert holder(shell) not in {"", before}
        # The same line as before the failover.
        wait_until(lambda: shell.type(question).startswith(f"default/{waiting[0]}: "), "an answer of the new leader")
        # Another pod stands by in the place of the one that ended.
        shell.type(f"kubectl -n {NAMESPACE} rollout status deployment/bayplan")
        assert "bayplan starts version=" in shell.type(f"kubectl -n {NAMESPACE} logs deployment/bayplan")
        assert shell.type(f"kubectl -n {NAMESPACE} logs deployment/bayplan --tail=1 2>/dev/null").count("\n") == 1
        if address := re.search(r"Prometheus, .*: (http://127\.0\.0\.1:(\d+))/alerts", terminal.text):
            port = int(address[2])
            # Of each replica both endpoints of the shipped ServiceMonitor.
            wait_until(lambda: found(port, 'up{job="bayplan"}') == ["1"] * 4, "a scrape of both replicas")
            checks = 'count by (instance) (kubernetes_healthcheck{job="bayplan", type="readyz"}) > bool 0'
            wait_until(lambda: found(port, checks) == ["1", "1"], "what the probes found")

        # etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and two replicas.
        assert len(processes_of(tmp_path)) >= 7
        assert terminal.press_ctrl_c() == 0, terminal.text
        assert terminal.text.rstrip().endswith("playground: nothing is left")
        assert processes_of(tmp_path) == {}
        assert list(tmp_path.iterdir()) == []


def asking(printed: str, pod: str) -> str:
    """The line that asks the scheduler about a pod, for a shell without .venv."""
    line = [line.strip() for line in printed.splitlines() if "bayplan explain POD" in line][-1]
    return line.replace("POD", pod).replace(".venv/bin/bayplan", f"PYTHONPATH=operator {sys.executable} -m bayplan")


def test_a_replica_that_is_killed_is_started_again(control_plane_binaries: None, tmp_path: Path) -> None:
    with PlaygroundTerminal(REPOSITORY, tmp_path, "--nodes 16 --replicas 1 --minutes 30") as terminal:
        terminal.wait_for()
        shell = Shell(*settings_in(terminal.text))
        ((number, _),) = [each for each in processes_of(tmp_path).items() if "-m bayplan run" in each[1]]
        os.kill(number, signal.SIGKILL)
        bayplan = f"pods -n {NAMESPACE} -l app.kubernetes.io/name=bayplan"

        def is_back() -> bool:
            (container,) = shell.items(bayplan)[0]["status"]["containerStatuses"]
            return bool(container["restartCount"] == 1 and container["ready"])

        wait_until(is_back, "a restart", timeout_seconds=READY_SECONDS)
        assert terminal.press_ctrl_c() == 0, terminal.text
    assert processes_of(tmp_path) == {}


def test_ctrl_c_ends_everything_also_while_it_starts(control_plane_binaries: None, tmp_path: Path) -> None:
    with PlaygroundTerminal(REPOSITORY, tmp_path, "--minutes 30") as terminal:
        terminal.wait_for("playground: starting")
        assert terminal.press_ctrl_c() == 0, terminal.text
    assert terminal.text.rstrip().endswith("playground: nothing is left")
    assert processes_of(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_document_shows_the_commands_as_they_are_printed() -> None:
    shown = [each.text for each in commands_of(DOCUMENT.read_text())]
    printed = [each.command for each in steps()]
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
        start_new_session=True,  # where the tests' own terminal is not its
    )


def counts(printed: str) -> dict[str, int]:
    """What `uniq -c` counted."""
    return {name: int(number) for number, name in (line.split() for line in printed.splitlines())}


def found(port: int, query: str) -> list[str]:
    """What Prometheus finds now, a value for each series."""
    answer = json.loads(get_local(port, f"/api/v1/query?{urlencode({'query': query})}")[1])
    return [each["value"][1] for each in answer["data"]["result"]]


def holder(shell: Shell) -> str:
    """Who has the lease."""
    return shell.type(f"kubectl -n {NAMESPACE} get lease bayplan -o jsonpath='{{.spec.holderIdentity}}'")
