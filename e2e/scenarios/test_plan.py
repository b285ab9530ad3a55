"""What `bayplan plan` says is what happens: plans for random clusters are carried out on a real API server.

No controller runs: the test plays a ReplicaSet, which makes a pod again once it is evicted, the controller of budgets,
and the kubelets that say of pods that they are ready.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError, Object, path_of
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import condition_of, node_of, wait_bound
from tests.oracle.dice import Dice

pytestmark = pytest.mark.controlplane

NODES = 8
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
BUDGET = "protected"


def make_nodes(client: ApiClient) -> list[str]:
    """Nodes of two sizes and two zones; their names are in the order in which a scheduler lists them."""
    names = [f"n{number}" for number in range(NODES)]
    client.create_all(
        "nodes",
        [
            node(name, cpu=("4", "8")[number % 2], labels={"topology.kubernetes.io/zone": "ab"[number % 2]})
            for number, name in enumerate(names)
        ],
    )
    return names


def random_pods(dice: Dice, namespace: str, names: list[str]) -> list[Object]:
    """Pods that run, of several sizes and rules, none of them asking for more than its node has."""
    left = {name: (4000, 8000)[number % 2] for number, name in enumerate(names)}
    made: list[Object] = []
    for number in range(dice.randint(12, 30)):
        name, cpu = dice.choice(names), dice.choice((250, 500, 1000, 1500, 2000))
        if left[name] < cpu:
            continue
        left[name] -= cpu
        app = dice.choice(("a", "b", "c"))
        rules: Object = {}
        if dice.maybe(0.2):
            rules["topologySpreadConstraints"] = [
                {
                    "maxSkew": 2,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }
            ]
        requests = {"cpu": f"{cpu}m", "memory": f"{dice.choice((128, 512, 1024))}Mi"}
        document = pod(f"p{number}", namespace, requests=requests, labels={"app": app}, node_name=name, **rules)
        document["metadata"]["ownerReferences"] = [OWNER]
        made.append(document)
    return made


class Carried:
    """A cluster whose plan is asked of `bayplan plan`, live, and then made true step by step."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.client, self.namespace = plane, plane.client, namespace

    def plan(self, *goal: str) -> Object:
        """The plan, whether or not it reaches the goal."""
        command = [sys.executable, "-m", "bayplan", "plan", *goal, "--kubeconfig", str(self.plane.admin_kubeconfig)]
        done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
        assert done.returncode in {0, 3}, done.stderr
        plan: Object = json.loads(done.stdout)
        assert plan["reached"] == (done.returncode == 0)
        return plan

    def run(self, document: Object) -> None:
        """Creates the pod, and says of it what its kubelet would once it runs."""
        self.client.create("pods", document)
        if "nodeName" in document["spec"]:
            self.be_ready(document["metadata"]["name"])

    def be_ready(self, name: str) -> None:
        status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        content = "application/strategic-merge-patch+json"
        self.client.patch("pods", name, status, namespace=self.namespace, subresource="status", content_type=content)

    def allow(self, disruptions: int) -> None:
        """Have the budget allow so many, as its controller does once all its pods are ready."""
        budget = self.client.get("poddisruptionbudgets", BUDGET, self.namespace)
        status = {
            "disruptionsAllowed": disruptions,
            "observedGeneration": budget["metadata"]["generation"],
            "currentHealthy": 2,
            "desiredHealthy": 1,
            "expectedPods": 2,
            "disruptedPods": None,
        }
        self.client.patch(
            "poddisruptionbudgets", BUDGET, {"status": status}, namespace=self.namespace, subresource="status"
        )

    def waits(self, name: str) -> bool:
        """Whether the scheduler finds no node for the pod, once it has tried."""

        def tried() -> Object | None:
            found = self.client.get("pods", name, self.namespace)
            return found if condition_of(found) or "nodeName" in found["spec"] else None

        return "nodeName" not in wait_until(tried, f"an attempt on {name}")["spec"]

    def carry_out(self, plan: Object) -> dict[str, tuple[str, str]]:
        """Makes the moves in their order; returns where the plan and the scheduler disagree."""
        wrong: dict[str, tuple[str, str]] = {}
        for name in plan["cordon"]:
            self.cordon(name, unschedulable=True)
        for move in plan["moves"]:
            landed = self.move(move)
            if landed != move["to"]:
                wrong[move["name"]] = move["to"], landed
        for name in plan["uncordon"]:
            self.cordon(name, unschedulable=False)
        return wrong

    def cordon(self, name: str, *, unschedulable: bool) -> None:
        self.client.patch("nodes", name, {"spec": {"unschedulable": unschedulable}})

    def move(self, move: Object) -> str:
        """Evicts a pod, makes it anew under its name, and returns the node it gets."""
        name = move["name"]
        before = self.client.get("pods", name, self.namespace)
        assert (before["metadata"]["uid"], before["spec"]["nodeName"]) == (move["uid"], move["from"])
        if move["waitsFor"]:
            # It is refused until the budget's controller has counted the pod before.
            with pytest.raises(ApiError, match="disruption budget"):
                self.evict(name)
            self.allow(1)
        self.evict(name)
        wait_until(lambda: self.is_gone(name, move["uid"]), f"the end of {name}")
        spec = {key: before["spec"][key] for key in ("schedulerName", "terminationGracePeriodSeconds", "containers")}
        spec |= {key: before["spec"][key] for key in ("topologySpreadConstraints",) if key in before["spec"]}
        meta = {key: before["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
        self.client.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        wait_bound(self.client, self.namespace, [name])
        self.be_ready(name)
        return node_of(self.client, self.namespace, name)

    def evict(self, name: str) -> None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        self.client.request("POST", path_of("pods", name, "eviction", namespace=self.namespace), eviction)

    def is_gone(self, name: str, uid: str) -> bool:
        try:
            return bool(self.client.get("pods", name, self.namespace)["metadata"]["uid"] != uid)
        except ApiError as error:
            return error.status == 404


@pytest.fixture
def carried(control_plane: ControlPlane, namespace: str) -> Carried:
    """The cluster's only namespace with pods, and a budget that protects those of one app."""
    budget = {
        "metadata": {"name": BUDGET, "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    control_plane.client.create("poddisruptionbudgets", budget)
    return Carried(control_plane, namespace)


def test_pods_land_where_the_plan_says(
    request: pytest.FixtureRequest, tmp_path: Path, bayplan_identity: Path, carried: Carried
) -> None:
    client, namespace = carried.client, carried.namespace
    names = make_nodes(client)
    seed, plans = request.config.getoption("--seed"), request.config.getoption("--plans")
    disagreed: list[str] = []
    moves = reached = 0
    # Once all nodes are there, so that both know them in the same order.
    with BayplanProcess(tmp_path, kubeconfig=bayplan_identity) as process:
        process.wait_ready()
        for number in range(plans):
            dice = Dice("plans", seed, number)
            for document in random_pods(dice, namespace, names):
                carried.run(document)
            carried.allow(1)
            goal = (("--free", dice.choice(names)), ("--nodes", "3"), ("--fit", f"{namespace}/wants"))[number % 3]
            if goal[0] == "--fit":
                client.create("pods", pod("wants", namespace, requests={"cpu": "7"}))
                # One that fits already waits for nothing.
                goal = goal if carried.waits("wants") else ("--nodes", "3")
            plan = carried.plan(*goal)
            wrong = carried.carry_out(plan)
            moves, reached = moves + len(plan["moves"]), reached + plan["reached"]
            if plan["fitsOn"] is not None:
                landed = wait_bound(client, namespace, ["wants"])["wants"]
                wrong |= {} if landed == plan["fitsOn"] else {"wants": (plan["fitsOn"], landed)}
            if wrong:
                disagreed.append(f"plan {number}, {plan['goal']}: {wrong}")
            client.delete_all("pods", namespace)
            for name in plan["cordon"]:
                carried.cordon(name, unschedulable=False)
    print(f"{plans - len(disagreed)} of {plans} plans agreed, {reached} reached their goal, {moves} moves")
    assert not disagreed
    assert moves >= plans
