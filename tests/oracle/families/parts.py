"""Nodes, pods and their parts as random dice make them; families put them together."""

from typing import Any

from tests.oracle.case import Object
from tests.oracle.dice import Dice
from tests.oracle.profiles import FPGA, GPU, SCHEDULER

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "rack"
NAMESPACES = ("blue", "green", "grey")
ADMIN_NAMESPACE = "blue"
"""Where claims may ask for devices that others have."""
NAMESPACE_LABELS = {
    "blue": {"team": "sea", "env": "prod", "resource.kubernetes.io/admin-access": "true"},
    "green": {"team": "wood"},
    "grey": {"env": "dev"},
}
HUGE = "hugepages-2Mi"
STORAGE = "ephemeral-storage"
IMAGES = ("app", "web:1.2", "registry.example.com/db/main", "registry.example.com/ml:v7", "busybox:latest")
TAINT_KEYS = ("dedicated", "gpu", "spot")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
DISKS = ("ssd", "nvme", "hdd")
TIERS = ("prod", "dev", "edge")


def namespaces() -> list[Object]:
    """The namespaces every scene has."""
    return [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}
        for name, labels in NAMESPACE_LABELS.items()
    ]


def nodes(dice: Dice, low: int, high: int) -> list[Object]:
    """Plain nodes in zones and racks, with some labels missing."""
    zones = dice.randint(1, 4)
    return [_node(dice, index, zones) for index in range(dice.randint(low, high))]


def _node(dice: Dice, index: int, zones: int) -> Object:
    name = f"n{index}"
    labels = {HOSTNAME: name}
    if dice.maybe(0.92):
        zone = dice.randrange(zones)
        labels |= {ZONE: f"z{zone}", REGION: f"r{zone // 2}"}
    if dice.maybe(0.8):
        labels[RACK] = f"k{dice.randrange(3)}"
    if dice.maybe(0.8):
        labels["disk"] = dice.choice(DISKS)
    if dice.maybe(0.7):
        labels["tier"] = dice.choice(TIERS)
    if dice.maybe(0.7):
        labels["cores"] = str(dice.choice((2, 4, 8, 16)))
    if dice.maybe(0.2):
        labels["flag"] = ""
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def capacities(dice: Dice, cluster: list[Object]) -> None:
    """Gives nodes differing amounts, odd and zero ones among them, and extended resources."""
    for node in cluster:
        amounts: dict[str, Any] = {
            "cpu": dice.choice(("4", "8", "3900m", "16", "7")),
            "memory": dice.choice(("16Gi", "32Gi", "31572316Ki", "8G", "64Gi")),
            "pods": dice.choice(("110", "110", "30", "3", "8")),
        }
        if dice.maybe(0.7):
            amounts[STORAGE] = dice.choice(("100Gi", "50G", "0", "37Gi"))
        if dice.maybe(0.5):
            amounts[GPU] = str(dice.choice((0, 1, 4, 8)))
        if dice.maybe(0.3):
            amounts[FPGA] = str(dice.choice((2, 5)))
        if dice.maybe(0.3):
            amounts[HUGE] = dice.choice(("1Gi", "0", "512Mi"))
        if dice.maybe(0.04):
            amounts["cpu"] = "0"
        if dice.maybe(0.04):
            amounts["memory"] = "0"
        if dice.maybe(0.03):
            amounts["pods"] = "0"
        if dice.maybe(0.02):
            amounts = {}
        node["status"]["allocatable"] = amounts


def taints(dice: Dice, cluster: list[Object], chance: float = 0.5) -> None:
    """Taints and cordons some nodes."""
    for node in cluster:
        spec: Object = node.setdefault("spec", {})
        if dice.maybe(chance):
            given = {}
            for _ in range(dice.randint(1, 3)):
                key, effect = dice.choice(TAINT_KEYS), dice.choice(EFFECTS)
                given[key, effect] = {"key": key, "value": dice.choice(("a", "b", "")), "effect": effect}
            spec["taints"] = list(given.values())
        if dice.maybe(chance / 4):
            spec["unschedulable"] = True
        if not spec:
            del node["spec"]


def images(dice: Dice, cluster: list[Object]) -> dict[str, int]:
    """Puts images of all sizes on the nodes, and returns the sizes; an image has one size everywhere."""
    sizes = {image: dice.choice((5, 40, 333, 700, 2500)) << 20 for image in IMAGES}
    for node in cluster:
        held = held_images(dice, sizes)
        if held:
            node["status"]["images"] = held
    return sizes


def held_images(dice: Dice, sizes: dict[str, int]) -> list[Object]:
    """Some images as a node tells that it has them, by one name or two."""
    held = []
    for image in dice.some(IMAGES, 0, 4):
        tagged = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        names = [tagged, f"{image.partition(':')[0]}@sha256:{'0' * 63}{IMAGES.index(image)}"]
        held.append({"names": names[: dice.randint(1, 2)], "sizeBytes": sizes[image]})
    return held


def pod(dice: Dice, name: str, *, namespace: str | None = None, scheduler: str = SCHEDULER) -> Object:
    """A pod of one container that asks for nothing."""
    labels = {"app": dice.choice(("a", "b", "c"))}
    if dice.maybe(0.4):
        labels["version"] = dice.choice(("1", "2"))
    return {
        "metadata": {"name": name, "namespace": namespace or dice.choice(NAMESPACES), "labels": labels},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "app"}]},
    }


def placed_pods(dice: Dice, cluster: list[Object], per_node: float) -> list[Object]:
    """Pods that are on nodes already; some of them are being deleted."""
    found = []
    for index in range(round(len(cluster) * per_node)):
        each = pod(dice, f"placed-{index}")
        each["spec"]["nodeName"] = dice.choice(cluster)["metadata"]["name"]
        if dice.maybe(0.06):
            each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        found.append(each)
    return found


def requests(dice: Dice, each: Object, *, large: float = 0.08) -> None:
    """Gives the first container cpu and memory, or one of them, or neither."""
    wanted: dict[str, str] = {}
    if dice.maybe(0.8):
        wanted["cpu"] = dice.choice(("100m", "250m", "1", "1500m", "0", "333m", "1.5m", "2"))
    if dice.maybe(0.8):
        wanted["memory"] = dice.choice(("64Mi", "1Gi", "2500M", "0", "4Gi", "100000001"))
    if dice.maybe(large):
        wanted["cpu"] = dice.choice(("6", "12", "64"))
    if wanted:
        each["spec"]["containers"][0]["resources"] = {"requests": wanted}


def tolerations(dice: Dice, each: Object) -> None:
    """Gives the pod tolerations that fit the taints of this module."""
    given: list[Object] = []
    for _ in range(dice.randint(0, 3)):
        toleration: Object = {"key": dice.choice(TAINT_KEYS)}
        if dice.maybe(0.5):
            toleration["operator"] = "Exists"
        elif dice.maybe(0.8):
            toleration["value"] = dice.choice(("a", "b"))
        if dice.maybe(0.7):
            toleration["effect"] = dice.choice(EFFECTS)
        given.append(toleration)
    if dice.maybe(0.12):
        given.append({"operator": "Exists"})
    if dice.maybe(0.2):
        given.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"})
    if given:
        each["spec"]["tolerations"] = given


def affinity(each: Object, kind: str) -> Object:
    """The pod's nodeAffinity, podAffinity or podAntiAffinity block, made if it is not there."""
    block: Object = each["spec"].setdefault("affinity", {}).setdefault(kind, {})
    return block
