"""A live cluster is recorded with rights to list and watch, and replayed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until

pytestmark = pytest.mark.controlplane

USER = "trace-recorder"
READS = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]


@pytest.fixture
def reader(control_plane: ControlPlane, client: ApiClient) -> Iterator[Path]:
    """A kubeconfig of a user who may list and watch nodes and pods, and nothing else."""
    client.create("clusterroles", {"metadata": {"name": USER}, "rules": READS})
    binding = {
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }
    client.create("clusterrolebindings", binding)
    time.sleep(1)  # until the API server knows the role
    yield control_plane.kubeconfig_for(USER)
    client.delete("clusterrolebindings", USER)
    client.delete("clusterroles", USER)


def bayplan(*arguments: str | Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bayplan", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_came_ran_and_ended_is_in_the_trace_and_replay_runs_it(
    client: ApiClient, namespace: str, reader: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trace.jsonl.gz"
    client.create_all("nodes", [node("n1", cpu="4"), node("n2", cpu="4")])
    client.create("pods", pod("old", namespace, node_name="n1", requests={"cpu": "1"}))
    recorder = bayplan("trace", "record", "--kubeconfig", reader, "-o", file)
    try:
        wait_until(file.exists, "the recording to begin")
        for name in ("short", "long"):
            client.create("pods", pod(name, namespace, scheduler="nobody", requests={"cpu": "2"}))
            client.bind(namespace, name, "n2")
        time.sleep(1)
        client.delete("pods", "short", namespace=namespace, grace_seconds=0)
        time.sleep(1)
        recorder.send_signal(signal.SIGINT)
        _, told = recorder.communicate(timeout=20)
    finally:
        recorder.kill()
    assert (recorder.returncode, told.splitlines()[0].split(", ")[:2]) == (0, [f"{file}: 3 pods", "1 pool"])
    replay = bayplan("replay", file, "--pool", "fixed", "-o", "json")
    report, errors = replay.communicate(timeout=60)
    assert (replay.returncode, errors) == (0, "")
    assert '"bound":3' in json.dumps(json.loads(report), separators=(",", ":"))


def test_whoever_may_not_watch_is_told_what_is_missing(control_plane: ControlPlane, tmp_path: Path) -> None:
    recorder = bayplan(
        "trace", "record", "--kubeconfig", control_plane.kubeconfig_for("stranger"), "-o", tmp_path / "trace.jsonl"
    )
    _, told = recorder.communicate(timeout=30)
    assert recorder.returncode == 1
    assert told.count("\n") == 1
    assert "is forbidden" in told
