"""The worked example of the bin packing documentation, on a real API server and in a simulation of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration, profile, wait_bound

pytestmark = pytest.mark.controlplane

Points = tuple[tuple[int, int], ...]

FULL_IS_BEST = ((0, 0), (100, 10))
EMPTY_IS_BEST = ((0, 10), (100, 0))
WEIGHTS = {"intel.com/foo": 5, "cpu": 3, "memory": 1}
NODES = {"node1": "4", "node2": "8"}
USED = {
    "node1": {"intel.com/foo": "1", "memory": "256Mi", "cpu": "1"},
    "node2": {"intel.com/foo": "2", "memory": "512Mi", "cpu": "6"},
}
REQUESTED = {"intel.com/foo": "2", "memory": "256Mi", "cpu": "2"}


def shape_of(points: Points) -> list[Object]:
    return [{"utilization": utilization, "score": score} for utilization, score in points]


def scheduler_configuration(points: Points, scheduler: str = "bayplan") -> Object:
    """RequestedToCapacityRatio is the only score, as in the example."""
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()],
        "requestedToCapacityRatio": {"shape": shape_of(points)},
    }
    return configuration(
        profile(
            scheduler,
            plugins={"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
            pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
        )
    )


def policy(points: Points) -> Object:
    """The same in the format kube-scheduler had before profiles."""
    arguments = {
        "shape": shape_of(points),
        "resources": [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()],
    }
    priority = {
        "name": "RequestedToCapacityRatioPriority",
        "weight": 1,
        "argument": {"requestedToCapacityRatioArguments": arguments},
    }
    return {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "GeneralPredicates"}],
        "priorities": [priority],
    }


def simulate(config: Path, cluster: str) -> dict[str, Any]:
    """What `bayplan simulate` says of the only pending pod."""
    done = subprocess.run(
        [sys.executable, "-m", "bayplan", "simulate", "--config", config, "--cluster", "-", "--explain", "-o", "json"],
        input=cluster,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")},
    )
    assert (done.returncode, done.stderr) == (0, "")
    (told,) = json.loads(done.stdout)["pods"]
    assert (told["name"], told["schedulerName"]) == ("example", "bayplan")
    (attempt,) = told["attempts"]
    answer: dict[str, Any] = attempt
    return answer


def put_the_example(client: ApiClient, namespace: str, *, scheduler: str = "bayplan", cpu: str = "2") -> None:
    """The two nodes, what they carry, and the pod; `cpu` is what the pod asks for."""
    for name, foo in NODES.items():
        client.create("nodes", node(name, cpu="8", memory="1Gi", resources={"intel.com/foo": foo}))
        used = pod(f"used-{name}", namespace, scheduler="another", requests=USED[name], node_name=name)
        client.create("pods", used)
    client.create("pods", pod("example", namespace, scheduler=scheduler, requests={**REQUESTED, "cpu": cpu}))


@pytest.mark.parametrize("document_of", [scheduler_configuration, policy], ids=["configuration", "policy"])
@pytest.mark.parametrize(
    ("points", "cpu", "scores", "of_ten", "winner"),
    [
        (FULL_IS_BEST, "2", {"node1": 60, "node2": 69}, {"node1": 5, "node2": 7}, "node2"),
        (EMPTY_IS_BEST, "1", {"node1": 44, "node2": 35}, {"node1": 5, "node2": 4}, "node1"),
        # The pod would fill node2's CPU, which scores 0 there, and what scores 0 is left out of the mean.
        (EMPTY_IS_BEST, "2", {"node1": 40, "node2": 46}, {"node1": 5, "node2": 5}, "node2"),
    ],
    ids=["as-documented", "reversed", "reversed-with-a-full-resource"],
)
def test_the_worked_example_is_scored_as_documented_and_the_better_node_gets_the_pod(
    *,
    control_plane: ControlPlane,
    namespace: str,
    run_bayplan: RunBayplan,
    tmp_path: Path,
    document_of: Callable[[Points], Object],
    points: Points,
    cpu: str,
    scores: dict[str, int],
    of_ten: dict[str, int],
    winner: str,
) -> None:
    client = control_plane.client
    put_the_example(client, namespace, cpu=cpu)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(document_of(points)))

    attempt = simulate(config, control_plane.kubectl("get", "nodes,pods", "-A", "-o", "json"))
    told = {name: verdict["scores"] for name, verdict in attempt["nodes"].items()}
    assert told == {name: {"NodeResourcesFit": score} for name, score in scores.items()}
    shown = {name: verdict["ofTen"] for name, verdict in attempt["nodes"].items()}
    assert shown == {name: {"NodeResourcesFit": points_of_ten} for name, points_of_ten in of_ten.items()}
    assert attempt["node"] == winner

    scheduler = run_bayplan(config)
    assert wait_bound(client, namespace, ["example"]) == {"example": winner}
    assert_alive_without_a_traceback(scheduler)


@pytest.mark.parametrize(
    ("points", "cpu", "winner"),
    [(FULL_IS_BEST, "2", "node2"), (EMPTY_IS_BEST, "1", "node1"), (EMPTY_IS_BEST, "2", "node2")],
)
def test_kube_scheduler_chooses_the_same_nodes(
    control_plane: ControlPlane, namespace: str, points: Points, cpu: str, winner: str
) -> None:
    client = control_plane.client
    put_the_example(client, namespace, scheduler="reference", cpu=cpu)
    document = scheduler_configuration(points, scheduler="reference")
    with control_plane.start_kube_scheduler({"profiles": document["profiles"]}):
        assert wait_bound(client, namespace, ["example"]) == {"example": winner}
