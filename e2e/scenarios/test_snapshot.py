"""A snapshot of a live cluster, taken with the documented rights: simulated, it says what the scheduler then does."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.dry_runs import DRY_RUN, refusal_of
from e2e.scenarios.outcomes import condition_of

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parents[2]
USER = "snapshot-taker"
NAME = "bayplan-snapshot"
PENDING = 24
WAIT_SECONDS = 120.0


@pytest.fixture
def role(client: ApiClient) -> Iterator[Object]:
    """The role that the document shows, given to a user."""
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/snapshot.md").read_text(), re.DOTALL)
    document: Object = yaml.safe_load(block)
    client.create("clusterroles", document)
    binding = {
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }
    client.create("clusterrolebindings", binding)
    yield document
    client.delete("clusterrolebindings", NAME)
    client.delete("clusterroles", NAME)


def bayplan(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the command and returns what it wrote."""
    command = [sys.executable, "-m", "bayplan", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def taken(plane: ControlPlane, file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Takes a snapshot as the user with the documented rights; these may have been given a moment ago."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        done = bayplan("snapshot", "--kubeconfig", plane.kubeconfig_for(USER), "-o", file, *arguments)
        if done.returncode == 0 or time.monotonic() > deadline:
            return done
        time.sleep(0.2)


def simulated(file: Path) -> list[Object]:
    done = bayplan("simulate", "--cluster", file, "-o", "json")
    assert done.returncode == 0, done.stderr
    pods: list[Object] = json.loads(done.stdout)["pods"]
    return pods


def make_cluster(client: ApiClient, namespace: str, create_class: CreateClass) -> None:
    """Nodes of two sizes and zones, running pods, and pods that wait, each of a priority of its own."""
    for number in range(PENDING):
        create_class(f"snapshot-{number}", 1000 - number)
    # The API server refuses pods of a class that its own watch has not brought yet.
    wait_until(lambda: _is_known(client, namespace, f"snapshot-{PENDING - 1}"), "the last class to be known")
    zones = ("a", "b")
    client.create_all(
        "nodes",
        [
            node(
                f"n{number}",
                cpu=str(2 + number % 3),
                labels={"topology.kubernetes.io/zone": zones[number % 2], "disk": ("ssd", "hdd")[number % 2]},
                taints=[{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if number == 5 else (),
            )
            for number in range(6)
        ],
    )
    client.create("services", {"metadata": {"name": "web", "namespace": namespace}, "spec": _service()})
    for number in range(4):
        running = pod(f"running-{number}", namespace, node_name=f"n{number}", labels={"app": "web"})
        client.create("pods", running)
    for number in range(PENDING):
        requests = {"cpu": f"{300 + 150 * (number % 5)}m", "memory": "256Mi"}
        fields: Object = {"priorityClassName": f"snapshot-{number}", **_rules(number)}
        labels = {"app": ("web", "db", "job")[number % 3]}
        client.create("pods", pod(f"waiting-{number}", namespace, requests=requests, labels=labels, **fields))


def _is_known(client: ApiClient, namespace: str, name: str) -> bool:
    tried = pod("tried", namespace, priorityClassName=name)
    return not refusal_of(lambda: client.request("POST", f"/api/v1/namespaces/{namespace}/pods{DRY_RUN}", tried))


def _service() -> Object:
    return {"selector": {"app": "web"}, "ports": [{"port": 80}]}


def _rules(number: int) -> Object:
    """What the pod of this number asks for besides room."""
    selector = {"matchLabels": {"app": ("web", "db", "job")[number % 3]}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    away = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    rules: list[Object] = [
        {},
        {"nodeSelector": {"disk": "ssd"}},
        {"topologySpreadConstraints": [spread]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"nodeSelector": {"disk": "tape"}},
    ]
    return rules[number % len(rules)]


def nodes_of(client: ApiClient, namespace: str) -> dict[str, str | None]:
    """The node of each pod that waited; a pod without one may still wait for its victims to end."""
    pods = [each for each in client.list("pods", namespace) if each["metadata"]["name"].startswith("waiting-")]
    return {each["metadata"]["name"]: each["spec"].get("nodeName") for each in pods if is_told(each)}


def is_told(found: Object) -> bool:
    """Whether the scheduler has tried it."""
    return bool(found["spec"].get("nodeName") or condition_of(found))


@pytest.mark.usefixtures("role")
def test_a_simulated_snapshot_says_what_the_scheduler_then_does(
    control_plane: ControlPlane,
    namespace: str,
    create_class: CreateClass,
    run_bayplan: RunBayplan,
    tmp_path: Path,
) -> None:
    make_cluster(control_plane.client, namespace, create_class)
    plain, redacted = tmp_path / "cluster.json.gz", tmp_path / "redacted.json.gz"
    done = taken(control_plane, plain)
    assert done.returncode == 0, done.stderr
    assert f"{4 + PENDING} Pod, 6 Node" in done.stderr
    assert taken(control_plane, redacted, "--redact", "--keep-label", "disk").returncode == 0
    expected = {each["name"]: each["attempts"][-1]["node"] for each in simulated(plain)}
    assert len(expected) == PENDING
    assert None in expected.values()
    hidden = [each["attempts"][-1]["node"] for each in simulated(redacted)]
    assert set(hidden).isdisjoint({*expected.values()} - {None})
    pairs = set(zip(expected.values(), hidden, strict=True))
    assert len(pairs) == len({*expected.values()}) == len({*hidden})
    run_bayplan()
    wait_until(
        lambda: nodes_of(control_plane.client, namespace) == expected,
        "all pods where the simulation has them",
        detail=lambda: f"{nodes_of(control_plane.client, namespace)} in place of {expected}",
    )


def test_each_documented_right_is_needed(
    control_plane: ControlPlane, client: ApiClient, role: Object, tmp_path: Path
) -> None:
    assert taken(control_plane, tmp_path / "before.json").returncode == 0
    client.delete("clusterroles", NAME)
    client.create("clusterroles", {**role, "rules": role["rules"][:1]})
    missing = sorted(
        f"{plural}.{group}"
        for rule in role["rules"][1:]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        # Few clusters have these: they are left out and named where all else may be read.
        if group != "resource.k8s.io" and plural != "podgroups"
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        done = bayplan("snapshot", "--kubeconfig", control_plane.kubeconfig_for(USER), "-o", tmp_path / "after.json")
        named = sorted(re.findall(r"the right to list (\S+) is missing", done.stderr))
        if named == missing:
            break
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.2)
    assert done.returncode == 1
    assert not (tmp_path / "after.json").exists()
    assert taken(control_plane, tmp_path / "less.json", "--ignore-forbidden").returncode == 0
