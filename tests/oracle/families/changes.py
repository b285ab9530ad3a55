"""Clusters in which nodes, pods, namespaces and storage come, change and go between decisions."""

from typing import Any

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import features, parts, placement, pod_affinity, spread, volumes
from tests.oracle.families.storage_objects import Storage

_TOUCHED = "example.com/touched"


def generate(dice: Dice) -> Scene:
    """Pods of all rules, and before each but the first what a busy cluster does in between."""
    cluster = parts.nodes(dice, 4, 12)
    parts.capacities(dice, cluster)
    parts.taints(dice, cluster, 0.2)
    placed = parts.placed_pods(dice, cluster, dice.choice((0.8, 1.5)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(5, 8))]
    for each in (*placed, *incoming):
        parts.requests(dice, each)
        parts.tolerations(dice, each)
        if dice.maybe(0.25):
            placement.host_ports(dice, each)
        if dice.maybe(0.3):
            pod_affinity.rules(dice, each)
    for each in incoming:
        _rules(dice, each, cluster)
    objects = spread.services(dice)
    if dice.maybe(0.4):
        storage = Storage(dice, cluster)
        volumes.fill(dice, storage, placed, incoming)
        objects += storage.objects
    # Some are on a node that comes later, or never.
    for each in placed:
        if dice.maybe(0.1):
            each["spec"]["nodeName"] = f"n{len(cluster)}"
    return Scene(objects, cluster, placed, incoming, updates=_Updates(dice, objects, cluster, placed, incoming).made)


def _rules(dice: Dice, each: Object, cluster: list[Object]) -> None:
    if dice.maybe(0.3):
        placement.node_affinity(dice, each, cluster)
    if dice.maybe(0.6):
        spread.constraints(dice, each)
    if dice.maybe(0.1):
        features.need(dice, each)


class _Updates:
    """What happens between the decisions of a scene, in `made`."""

    def __init__(
        self, dice: Dice, objects: list[Object], cluster: list[Object], placed: list[Object], incoming: list[Object]
    ) -> None:
        self._dice = dice
        self._nodes = [each["metadata"]["name"] for each in cluster]
        self._gone: list[str] = []
        self._count = len(cluster)
        self._pods = [each["metadata"] for each in placed]
        self._objects = objects
        self.made: list[Object] = []
        kinds = 3 * [self._node] + 2 * [self._pod]
        kinds += [self._new_node, self._gone_node, self._namespace, self._storage]
        for after in range(1, len(incoming)):
            for _ in range(dice.randint(0, 4)):
                dice.choice(kinds)(after)
            if "volumes" not in incoming[after - 1]["spec"]:
                # One whose volumes nobody binds is on no node yet.
                self._pods.append(incoming[after - 1]["metadata"])

    def _add(self, kind: str, after: int, name: str, namespace: str | None = None, **what: Any) -> None:
        metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
        self.made.append({"kind": kind, "after": after, "metadata": metadata, **what})

    def _node(self, after: int) -> None:
        if not self._nodes:
            return
        dice, name = self._dice, self._dice.choice(self._nodes)
        drawn = parts.nodes(dice, 1, 1)
        what = dice.choice(("labels", "taints", "cordon", "amounts", "features"))
        patch: Object = {"metadata": {"annotations": {_TOUCHED: f"{after}-{len(self.made)}"}}}
        if what == "labels":
            labels = {key: drawn[0]["metadata"]["labels"].get(key) for key in (parts.ZONE, parts.RACK, "disk", "tier")}
            patch["metadata"]["labels"] = {key: labels[key] for key in dice.some(list(labels), 1, 3)}
        elif what == "taints":
            parts.taints(dice, drawn, 0.6)
            patch["spec"] = {"taints": drawn[0].get("spec", {}).get("taints")}
        elif what == "cordon":
            patch["spec"] = {"unschedulable": dice.choice((True, None, None))}
        elif what == "amounts":
            parts.capacities(dice, drawn)
            patch["status"] = {"allocatable": drawn[0]["status"]["allocatable"]}
        elif what == "features":
            features.declare(dice, drawn)
            patch["status"] = {"declaredFeatures": drawn[0]["status"].get("declaredFeatures")}
        self._add("Node", after, name, patch=patch)

    def _new_node(self, after: int) -> None:
        dice = self._dice
        if self._gone and dice.maybe(0.6):
            name = self._gone.pop()
        else:
            name = f"n{self._count}"
            self._count += 1
        (node,) = parts.nodes(dice, 1, 1)
        parts.capacities(dice, [node])
        parts.taints(dice, [node], 0.2)
        node["metadata"]["name"] = node["metadata"]["labels"][parts.HOSTNAME] = name
        self._nodes.append(name)
        self._add("Node", after, name, created=node)

    def _gone_node(self, after: int) -> None:
        if len(self._nodes) > 2:
            name = self._dice.choice(self._nodes)
            self._nodes.remove(name)
            self._gone.append(name)
            self._add("Node", after, name, deleted=True)

    def _pod(self, after: int) -> None:
        if not self._pods:
            return
        dice, pod = self._dice, self._dice.choice(self._pods)
        name, namespace = pod["name"], pod["namespace"]
        if dice.maybe(0.35):
            self._pods.remove(pod)
            if dice.maybe(0.5):
                self._add("Pod", after, name, namespace, deleted=True)
            else:
                self._add("Pod", after, name, namespace, patch={"status": {"phase": "Succeeded"}})
            return
        labels = {"app": dice.choice(("a", "b", "c")), "version": dice.choice(("1", "2", None))}
        change = {"annotations": {_TOUCHED: f"{after}-{len(self.made)}"}, "labels": labels}
        self._add("Pod", after, name, namespace, patch={"metadata": change})

    def _namespace(self, after: int) -> None:
        labels = self._dice.choice(({"team": "sea"}, {"team": None, "env": "prod"}, {"team": "wood", "env": "dev"}))
        self._add("Namespace", after, self._dice.choice(parts.NAMESPACES), patch={"metadata": {"labels": labels}})

    def _storage(self, after: int) -> None:
        dice = self._dice
        found = [each for each in self._objects if each["kind"] in ("CSIStorageCapacity", "CSINode", "CSIDriver")]
        if not found:
            return
        each = dice.choice(found)
        name, namespace = each["metadata"]["name"], each["metadata"].get("namespace")
        if each["kind"] == "CSIStorageCapacity":
            if each["capacity"] != "0":
                self._add(each["kind"], after, name, namespace, patch={"capacity": dice.choice(("3Gi", "9Gi", "70Gi"))})
        elif each["kind"] == "CSIDriver":
            self._add(each["kind"], after, name, patch={"spec": {"storageCapacity": dice.maybe(0.5)}})
        else:
            drivers = [
                {**one, "allocatable": {"count": dice.randint(1, 5)}} if "allocatable" in one else one
                for one in each["spec"]["drivers"]
            ]
            self._add(each["kind"], after, name, patch={"spec": {"drivers": drivers}})
