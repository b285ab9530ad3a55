"""kube-scheduler, `bayplan run` and `bayplan simulate` decide alike about random pods on the same objects."""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml
from e2e.conftest import RunBayplan
from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import COMPONENTS
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, condition_of, configuration, profile
from tests.oracle.case import Decision, Scene
from tests.oracle.comparison import differences
from tests.oracle.decision_log import DecisionLog, key_of
from tests.oracle.dice import Dice
from tests.oracle.families import everything, parts
from tests.oracle.profiles import SCHEDULER
from tests.oracle.simulation import cluster_file, decision_of, simulate

pytestmark = pytest.mark.controlplane

OURS = "bayplan"
WAIT_SECONDS, POLL_SECONDS = 30.0, 0.003


def _shipped() -> Object:
    """What a profile of the shipped configuration says."""
    (shipped,) = yaml.safe_load((COMPONENTS / "preemption" / "config.yaml").read_text())["profiles"]
    return {"pluginConfig": shipped["pluginConfig"]}


@pytest.mark.parametrize("fields", [{}, _shipped()], ids=["kube-schedulers-defaults", "shipped-configuration"])
def test_the_binary_a_running_bayplan_and_a_simulation_agree_on_random_pods(
    control_plane: ControlPlane,
    run_bayplan: RunBayplan,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    fields: Object,
) -> None:
    seed, pods = request.config.getoption("--seed"), request.config.getoption("--pods")
    scene = everything.generate_pods(Dice("same-decisions", seed, 0), pods)
    bayplan = run_bayplan(configuration(profile(OURS, **fields)))
    kubeconfig = control_plane.kubeconfig_for(kube_scheduler_process.USER)
    arguments = ("--logging-format=json",)
    same = configuration(profile(SCHEDULER, **fields))
    with KubeSchedulerProcess(tmp_path, same, kubeconfig, verbosity=10, arguments=arguments) as reference:
        contest = Contest(control_plane.client, bayplan, DecisionLog(reference.log_path), scene, same)
        try:
            contest.set_up()
            found = [contest.differences_about(index, tmp_path) for index in range(pods)]
        finally:
            contest.clear()
    assert_alive_without_a_traceback(bayplan)
    placed = [decision for decision in contest.decisions if decision.node]
    assert len({decision.node for decision in placed}) > 5, "hardly any nodes were chosen"
    assert len(placed) < pods, "every pod found a node"
    lines = [line for lines in found for line in lines]
    assert not lines, "\n".join([f"--seed {seed}: {len(lines)} differences", *lines[:20]])


def best_nodes(decision: Decision) -> list[str | None]:
    """The nodes that are as good as the chosen one; without a node, that is None."""
    if not decision.totals:
        return [decision.node]
    scored = zip(decision.feasible, decision.totals, strict=True)
    return [name for name, total in scored if total == max(decision.totals)]


class Contest:
    """Has every pod decided three times over on the same objects; the cluster goes on as kube-scheduler decides."""

    def __init__(
        self, client: ApiClient, bayplan: BayplanProcess, log: DecisionLog, scene: Scene, configured: Object
    ) -> None:
        self.decisions: list[Decision] = []
        self._client = client
        self._bayplan = bayplan
        self._log = log
        self._scene = scene
        self._configured = configured

    def set_up(self) -> None:
        """Creates the cluster and waits until both schedulers know all of it."""
        # Without controllers no namespace ends.
        known = {each["metadata"]["name"] for each in self._client.list("namespaces")}
        for each in self._scene.objects:
            if each["kind"] != "Namespace" or each["metadata"]["name"] not in known:
                self._client.create(f"{each['kind'].lower()}s", each)
        self._client.create_all("nodes", self._scene.nodes)
        for each in self._scene.placed:
            self._create(each)
        nodes, pods = len(self._scene.nodes), len(self._scene.placed)
        seen = self._log.seen
        self._log.wait(lambda: seen["node-add"] >= nodes and seen["pod-add"] >= pods, "the cluster")
        self._wait_for_cache()

    def differences_about(self, index: int, folder: Path) -> list[str]:
        """What differs about the pod of this number, a line each."""
        pod = self._scene.incoming[index]
        key = key_of(pod["metadata"])
        node, message = self._ask_bayplan(pod)
        simulated = self._simulate(folder)
        self._create(pod)
        decision = self._log.decision(key)
        self.decisions.append(decision)
        if decision.node is None:
            self._delete(pod)
        self._wait_for_cache()
        simulated.error = decision.error
        lines = [f"{key}: simulate: {line}" for line in differences(decision, simulated)]
        if message != decision.message:
            lines.append(f"{key}: run: message: kube-scheduler {decision.message!r}, bayplan {message!r}")
        best = best_nodes(decision)
        if node not in best:
            lines.append(f"{key}: run: node: kube-scheduler {decision.node}, bayplan {node}, best {best}")
        return lines

    def clear(self) -> None:
        """Removes everything that other tests would find in their way."""
        for namespace in parts.NAMESPACES:
            self._client.delete_all("pods", namespace)
            for found in self._client.list("services", namespace):
                self._client.delete("services", found["metadata"]["name"], namespace=namespace)
        self._client.delete_all("nodes")

    def _ask_bayplan(self, pod: Object) -> tuple[str | None, str | None]:
        """The node that `bayplan run` bound a copy of the pod to, or its message; the copy is gone afterwards."""
        self._create({**pod, "spec": {**pod["spec"], "schedulerName": OURS}})
        answer: Object = {}

        def answered() -> bool:
            nonlocal answer
            answer = self._client.get("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])
            return bool(answer["spec"].get("nodeName") or condition_of(answer))

        self._wait(answered, f"an answer about {pod['metadata']['name']}")
        self._delete(pod)
        node = answer["spec"].get("nodeName")
        if node is not None:
            gone = "pod-delete", key_of(pod["metadata"])
            self._log.wait(lambda: self._log.seen_of[gone] > 0, "the end of the copy")
        return node, None if node else condition_of(answer)["message"]

    def _simulate(self, folder: Path) -> Decision:
        scene = self._scene
        (report,) = simulate(self._configured, cluster_file(scene, self.decisions), folder)["pods"]
        return decision_of(report["attempts"][0])

    def _wait_for_cache(self) -> None:
        """Waits until bayplan knows of all that the API server has, and of nothing else."""

        def is_same() -> bool:
            # Where something differs it looks again after a pause.
            status, text = self._bayplan.get("/debug/cache")
            return status == HTTPStatus.OK and not json.loads(text)["differences"]

        self._wait(is_same, "equality of bayplan's cache with the API server")

    def _create(self, pod: Object) -> None:
        self._client.create("pods", pod)

    def _delete(self, pod: Object) -> None:
        self._client.delete("pods", pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], grace_seconds=0)

    @staticmethod
    def _wait(check: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not check():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come within {WAIT_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
