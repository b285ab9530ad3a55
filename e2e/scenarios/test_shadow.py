"""Shadows beside a real kube-scheduler: one of its own configuration, and one that packs; neither writes anything.

`--pods 2000` is the run of which docs/shadow.md has the figures; `-s` shows the lines that it has them from.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.installation import MANIFESTS, OVERLAYS, kustomize
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    configuration,
    metric,
    profile,
    wait_bound,
    wait_metric,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

THEIRS = "default-scheduler"
ACCOUNT = "bayplan-shadow"
SIZES = ({"cpu": "250m", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "4Gi"})
PODS_A_NODE = 5
ONE_BY_ONE = 24
DECISIONS = "bayplan_shadow_decisions_total"
IN_USE = "bayplan_shadow_nodes_in_use"


@dataclass(frozen=True)
class Run:
    """What was found beside a kube-scheduler that placed `pods`, on `nodes` nodes, and what was asked for."""

    pods: int
    nodes: int
    another: float
    """How often the shadow of the same configuration would have chosen another node for pods that came one by one."""
    as_theirs: dict[str, float]
    packing: dict[str, float]
    in_use: list[tuple[float, float]]
    """Of the real world and of the one that packs: with all pods, and after every second one ended."""
    asked: list[AuditEvent]
    shipped: list[dict[str, Any]]
    """The objects of the overlay."""


@pytest.fixture(scope="module")
def run(
    request: pytest.FixtureRequest, start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    pods = request.config.getoption("--pods")
    nodes = max(pods // PODS_A_NODE, 1)
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    client = plane.client
    client.create_all("nodes", [node(f"n{index}", cpu="8", memory="32Gi") for index in range(nodes)])
    plane.kubectl("apply", "-k", OVERLAYS / "shadow")
    other = plane.start_kube_scheduler(configuration(profile(THEIRS)))
    directory = tmp_path_factory.mktemp("shadow")
    same, packed = REPOSITORY / "examples" / "kube-scheduler-default.yaml", MANIFESTS / "config.yaml"
    with shadow(plane, directory, "as-theirs", same) as theirs, shadow(plane, directory, "packing", packed) as packing:
        client.create("pods", pod("huge", "default", scheduler=THEIRS, requests={"cpu": "100"}))
        wait_refused(client, "default", "huge")
        for index in range(ONE_BY_ONE):
            client.create("pods", pod(f"s{index}", "default", scheduler=THEIRS, requests=SIZES[index % len(SIZES)]))
            wait_bound(client, "default", [f"s{index}"])
        wait_metric(theirs, ONE_BY_ONE + 1, DECISIONS)
        another = metric(theirs, DECISIONS, outcome="another")
        names = [f"p{index}" for index in range(pods)]
        sizes = [SIZES[index % len(SIZES)] for index in range(pods)]
        client.create_all(
            "pods",
            [pod(name, "default", scheduler=THEIRS, requests=size) for name, size in zip(names, sizes, strict=True)],
        )
        wait_bound(client, "default", names, timeout_seconds=300)
        in_use = []
        for each in (theirs, packing):
            wait_metric(each, pods + ONE_BY_ONE + 1, DECISIONS)
        in_use.append(nodes_in_use(packing))
        for name in names[::2]:
            client.delete("pods", name, namespace="default", grace_seconds=0)
        for each in (theirs, packing):
            wait_metric(each, pods + ONE_BY_ONE - len(names[::2]), "scheduler_cache_size", type="pods")
        in_use.append(nodes_in_use(packing))
        for each in (theirs, packing):
            assert_alive_without_a_traceback(each)
            each.terminate()
            assert each.wait(STOP_SECONDS) == 0, each.log_tail()
        other.stop(STOP_SECONDS)
        asked = [event for event in plane.audit_events() if event.user.endswith(f":{ACCOUNT}")]
        yield Run(
            pods + ONE_BY_ONE,
            nodes,
            another,
            last_line(theirs),
            last_line(packing),
            in_use,
            asked,
            kustomize(plane, OVERLAYS / "shadow"),
        )


def shadow(plane: ControlPlane, directory: Path, name: str, config: Path) -> BayplanProcess:
    kubeconfig = plane.service_account_kubeconfig(ACCOUNT, ACCOUNT)
    return BayplanProcess(directory, config=config, kubeconfig=kubeconfig, arguments=["--shadow"], name=name)


def nodes_in_use(process: BayplanProcess) -> tuple[float, float]:
    # The text of /metrics is up to a second old.
    wait_until(lambda: metric(process, IN_USE, world="real") > 0, "nodes in use")
    return metric(process, IN_USE, world="real"), metric(process, IN_USE, world="shadow")


def last_line(process: BayplanProcess) -> dict[str, float]:
    """What the shadow told at its end."""
    line = [each for each in process.log().splitlines() if "what a shadow found" in each][-1]
    print(f"{process.name}: {line}")
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line)}


def test_neither_writes_anything_not_even_a_lease_and_nothing_that_they_ask_is_forbidden(run: Run) -> None:
    assert run.asked
    assert [event for event in run.asked if event.verb not in {"get", "list", "watch"}] == []
    assert [event.uri for event in run.asked if event.code in {401, 403}] == []


def test_the_one_of_the_same_configuration_agrees(run: Run) -> None:
    found = run.as_theirs
    assert found["neither"] == 1
    assert found["same"] + found["tie"] + found["another"] == run.pods
    # Binds of a burst come in another order than they were decided in, the more so the busier the machine is; of pods
    # that come one by one the shadow sees the very state that the other saw.
    assert run.another == 0


def test_the_one_that_packs_would_choose_other_nodes_and_use_fewer(run: Run) -> None:
    found = run.packing
    assert found["another"] > found["same"]
    (real, packed), (real_after, packed_after) = run.in_use
    assert (real, packed < 0.7 * real) == (run.nodes, True)
    assert packed_after <= real_after
    assert found["shadow_node_hours"] <= found["node_hours"]


def test_the_overlay_gives_no_right_to_write(run: Run) -> None:
    assert [each["kind"] for each in run.shipped if each["kind"].startswith("Role")] == []
    (role,) = (each for each in run.shipped if each["kind"] == "ClusterRole")
    rights = {(verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]}
    # Who asks for its metrics, and whether they may: questions, of which the API server stores nothing.
    questions = {("create", "tokenreviews"), ("create", "subjectaccessreviews")}
    assert {verb for verb, _ in rights - questions} == {"get", "list", "watch"}


def test_the_overlay_goes_with_an_installation_that_schedules(run: Run) -> None:
    assert all("shadow" in each["metadata"]["name"] for each in run.shipped)
    (deployment,) = (each for each in run.shipped if each["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    assert "priorityClassName" not in spec
    assert spec["containers"][0]["args"][:2] == ["run", "--shadow"]
