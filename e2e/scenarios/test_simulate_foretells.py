"""What `bayplan simulate --explain` says of a pod is what the scheduler then does with it on a real API server."""

import json
from collections import Counter
from contextlib import redirect_stdout
from copy import deepcopy
from http import HTTPStatus
from io import StringIO
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object, path_of
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.outcomes import condition_of
from tests.oracle.case import Scene
from tests.oracle.dice import Dice
from tests.oracle.families import everything, parts
from tests.oracle.profiles import GPU

from bayplan.cli import main
from bayplan.framework.candidate import CRITERIA

pytestmark = pytest.mark.controlplane

PODS = 200
CLASSES = {"low": 1, "middle": 100, "high": 1000}
READ = ("nodes", "pods", "namespaces", "services", "priorityclasses", "poddisruptionbudgets")
HELPFUL = ("toleration", "nodeSelector", "nodeAffinity")
"""Changes that a test makes as easily as a person."""
MENDED = 30
"""After so many of them no more are tried."""


def random_scene(seed: int) -> Scene:
    """Nodes, running pods and those that come, with all rules at once, priorities and extended resources."""
    dice = Dice("foretold", seed, 0)
    scene = everything.generate_pods(dice, PODS)
    for number, each in enumerate((*scene.placed, *scene.incoming)):
        spec = each["spec"]
        # Without kubelets a victim ends at once, as in a simulation.
        spec |= {"schedulerName": "bayplan", "terminationGracePeriodSeconds": 0}
        is_late = number > len(scene.placed) + PODS // 3
        name = dice.choice((None, "low", "low", "middle") if not is_late else (None, "low", "middle", "high", "high"))
        if name is not None:
            spec["priorityClassName"] = name
        resources = spec["containers"][0].setdefault("resources", {})
        if is_late and dice.maybe(0.5):
            resources.setdefault("requests", {})["cpu"] = dice.choice(("1", "2", "3", "4"))
        if dice.maybe(0.15):
            amount = str(dice.randint(1, 3))
            resources.setdefault("requests", {})[GPU] = amount
            resources["limits"] = {GPU: amount}
    return scene


class Prophecy:
    """What a simulation of one pod said."""

    def __init__(self, report: Object, pod: Object) -> None:
        meta = pod["metadata"]
        (told,) = (
            each for each in report["pods"] if (each["namespace"], each["name"]) == (meta["namespace"], meta["name"])
        )
        self.attempts = told["attempts"]
        self.last = self.attempts[-1]
        self.victims = {victim for attempt in self.attempts for victim in attempt["victims"]}

    def equals(self) -> list[tuple[str, set[str]]]:
        """Nodes and victims as good as those it named where it foretold a preemption: the one found first is taken."""
        compared = (attempt["preemption"] for attempt in self.attempts if "preemption" in attempt)
        candidates = [each for preemption in compared for each in preemption["candidates"]]
        return [(each["node"], set(each["victims"])) for each in candidates if each["worseBy"] in {None, CRITERIA[-1]}]

    def best(self) -> list[str]:
        """The nodes that are as good as the one it named: which of them is taken, chance decides."""
        scored = {name: each["score"] for name, each in self.last["nodes"].items() if each["rejectedBy"] is None}
        return [name for name, score in scored.items() if score == max(scored.values())]

    def contradictions(self) -> list[str]:
        """Where its explanation says another thing than its verdicts."""
        explanation, verdicts = self.last["explanation"], self.last["nodes"]
        counts: dict[str, int] = {}
        for each in verdicts.values():
            if each["rejectedBy"] is not None:
                counts[each["rejectedBy"]] = counts.get(each["rejectedBy"], 0) + 1
        grouped: dict[str, int] = {}
        for group in explanation["groups"]:
            grouped[group["plugin"]] = grouped.get(group["plugin"], 0) + group["count"]
        wrong = []
        total = explanation["feasible"] + sum(grouped.values()) + explanation["nodesInOtherGroups"]
        if total != explanation["nodes"]:
            wrong.append(f"groups add up to {total} of {explanation['nodes']} nodes")
        # Beside a nomination only the node itself was looked at.
        if not explanation["otherGroups"] and explanation["unscored"] is None and grouped != counts:
            wrong.append(f"groups {grouped}, verdicts {counts}")
        chosen = None if explanation["chosen"] is None else explanation["chosen"]["node"]
        if chosen != self.last["node"]:
            wrong.append(f"explains {chosen}, decides {self.last['node']}")
        return wrong


class Live:
    """The cluster that decides."""

    def __init__(self, client: ApiClient, bayplan: BayplanProcess, folder: Path) -> None:
        self.client = client
        self._bayplan = bayplan
        self._folder = folder

    def set_up(self, scene: Scene) -> None:
        """Creates the cluster, and waits until the scheduler knows all of it."""
        # Without controllers no namespace ends.
        known = {each["metadata"]["name"] for each in self.client.list("namespaces")}
        for each in scene.objects:
            if each["kind"] != "Namespace" or each["metadata"]["name"] not in known:
                self.client.create(f"{each['kind'].lower()}s", each)
        self.client.create_all("nodes", scene.nodes)
        self.client.create_all("pods", scene.placed)
        self.wait_until_known()

    def clear(self) -> None:
        """Removes everything that other tests would find in their way."""
        for namespace in parts.NAMESPACES:
            self.client.delete_all("pods", namespace)
            for each in self.client.list("services", namespace):
                self.client.delete("services", each["metadata"]["name"], namespace=namespace)
        self.client.delete_all("nodes")

    def foretell(self, pod: Object) -> Prophecy:
        """What `simulate` says of the pod on all that the API server has."""
        lists = [self.client.request("GET", path_of(resource)) for resource in READ]
        cluster, added = self._folder / "cluster.json", self._folder / "pod.json"
        cluster.write_text("\n".join(map(json.dumps, lists)))
        added.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))
        output = StringIO()
        with redirect_stdout(output), pytest.raises(SystemExit) as ended:
            main(["simulate", "--cluster", str(cluster), "--add", str(added), "--explain", "-o", "json"])
        assert not ended.value.code
        return Prophecy(json.loads(output.getvalue()), pod)

    def decide(self, pod: Object) -> Object:
        """The pod once the scheduler has bound it or found no node; it stays only if it is bound."""
        meta = pod["metadata"]
        self.client.create("pods", pod)

        def answered() -> Object | None:
            found = self.client.get("pods", meta["name"], meta["namespace"])
            waits = not condition_of(found) or found["status"].get("nominatedNodeName")
            return None if not found["spec"].get("nodeName") and waits else found

        found = wait_until(answered, f"an answer about {meta['name']}")
        if not found["spec"].get("nodeName"):
            self.end(pod)
        self.wait_until_known()
        return found

    def end(self, pod: Object) -> None:
        """Removes a pod at once."""
        self.client.delete("pods", pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], grace_seconds=0)

    def pods(self) -> set[str]:
        """All pods, as namespace/name."""
        return {f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in self.client.list("pods")}

    def wait_until_known(self) -> None:
        """Waits until the scheduler knows of all that the API server has, and of nothing else."""

        def is_same() -> bool:
            status, text = self._bayplan.get("/debug/cache")
            return status == HTTPStatus.OK and not json.loads(text)["differences"]

        wait_until(is_same, "equality of the scheduler's cache with the API server")


def differences(live: Live, pod: Object) -> tuple[Prophecy, list[str]]:
    """What a simulation said of a pod, and where the scheduler then did another thing."""
    told = live.foretell(pod)
    before = live.pods()
    found = live.decide(pod)
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    node, gone = found["spec"].get("nodeName"), before - live.pods()
    wrong = [f"{key}: {each}" for each in told.contradictions()]
    if (node, gone) in told.equals():
        return told, wrong
    if (node is None) != (told.last["node"] is None) or (node and node not in told.best()):
        wrong.append(f"{key}: foretold {told.last['node']} of {told.best()}, bound to {node}")
    if node is None and condition_of(found)["message"] != told.last["message"]:
        wrong.append(f"{key}: foretold {told.last['message']!r}, said {condition_of(found)['message']!r}")
    if gone != told.victims:
        wrong.append(f"{key}: foretold the end of {sorted(told.victims)}, gone are {sorted(gone)}")
    return told, wrong


def what_does_not_help(live: Live, pod: Object, told: Prophecy) -> tuple[int, list[str]]:
    """How many changes were tried that were said to help a pod without a node, and those that did not."""
    changes = [each for each in told.last["explanation"]["changes"] if each["kind"] in HELPFUL]
    wrong = []
    for change in changes:
        other = mended(pod, change)
        if live.decide(other)["spec"].get("nodeName"):
            live.end(other)
            live.wait_until_known()
        else:
            wrong.append(f"{pod['metadata']['name']}: {change} was said to help")
    return len(changes), wrong


def mended(pod: Object, change: Object) -> Object:
    """The pod with the change that an explanation says would help."""
    other = deepcopy(pod)
    other["metadata"]["name"] += "-mended"
    spec = other["spec"]
    match change["kind"]:
        case "toleration":
            toleration = {"operator": "Equal", **{key: change[key] for key in ("key", "value", "effect")}}
            spec["tolerations"] = [*spec.get("tolerations", ()), toleration]
        case "nodeSelector":
            del spec["nodeSelector"][change["key"]]
            if change["thereIs"] is not None:
                spec["nodeSelector"][change["key"]] = change["thereIs"]
        case "nodeAffinity":
            del spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return other


def test_a_simulation_foretells_what_the_scheduler_does_with_random_pods_and_what_helps_helps(
    client: ApiClient,
    bayplan: BayplanProcess,
    create_class: CreateClass,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    seed = request.config.getoption("--seed")
    for name, value in CLASSES.items():
        create_class(name, value)
    scene = random_scene(seed)
    live = Live(client, bayplan, tmp_path)
    found: list[str] = []
    outcomes: Counter[str] = Counter()
    try:
        live.set_up(scene)
        for pod in scene.incoming:
            told, wrong = differences(live, pod)
            found += wrong
            outcomes["preempted"] += bool(told.victims)
            outcomes["refused" if told.last["node"] is None else "placed"] += 1
            if told.last["node"] is None and outcomes["helped"] < MENDED:
                tried, wrong = what_does_not_help(live, pod, told)
                outcomes["helped"] += tried
                found += wrong
    finally:
        live.clear()
    assert not found, "\n".join([f"--seed {seed}: {len(found)} differences", *found[:20]])
    # Otherwise it was too easy.
    assert min(outcomes[each] for each in ("placed", "refused", "preempted", "helped")) >= 5, outcomes
