"""Pods that claim devices: from templates, shared, by extended resources, and where others have devices already."""

from collections.abc import Sequence

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.families.device_objects import Devices
from tests.oracle.profiles import GPU

_BY_CLASS = tuple(f"deviceclass.resource.kubernetes.io/{name}" for name in ("any", "gpu"))


def generate(dice: Dice) -> Scene:
    """Nodes with devices, of which some are taken, and pods with one claim or two, or with extended resources."""
    cluster = parts.nodes(dice, 2, 5)
    for node in cluster:
        if dice.maybe(0.15):
            # A device plugin is there already.
            node["status"]["allocatable"][GPU] = dice.choice(("0", "1", "2"))
    devices = Devices(dice, cluster)
    devices.publish()
    devices.take(dice.choice((0.0, 0.1, 0.3)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 6))]
    shared: dict[str, str] = {}
    for each in incoming:
        if dice.maybe(0.15):
            parts.requests(dice, each)
        if dice.maybe(0.1):
            each["spec"]["nodeSelector"] = {"disk": dice.choice(parts.DISKS)}
        by_resource = dice.maybe(0.3)
        claims = 0 if by_resource and dice.maybe(0.7) else dice.choice((1, 1, 1, 2))
        if by_resource:
            # kube-scheduler cannot bind a pod with claims where a device plugin offers what a class provides too.
            _extended(dice, each, _BY_CLASS if claims else (GPU, GPU, *_BY_CLASS))
        if claims:
            each["spec"]["resourceClaims"] = _entries(dice, each["metadata"]["namespace"], claims, devices, shared)
    return Scene(devices.objects, cluster, [], incoming)


def _entries(dice: Dice, namespace: str, count: int, devices: Devices, shared: dict[str, str]) -> list[Object]:
    """Claims of a pod, of templates or `shared` by pods of a namespace."""
    entries: list[Object] = []
    for index in range(count):
        if dice.maybe(0.3):
            if namespace not in shared or dice.maybe(0.5):
                shared[namespace] = devices.shared_claim(namespace)
            source = {"resourceClaimName": shared[namespace]}
        else:
            source = {"resourceClaimTemplateName": devices.template(namespace)}
        # kube-scheduler tries for ever where two entries name one claim.
        if source not in [{key: entry[key] for key in entry if key != "name"} for entry in entries]:
            entries.append({"name": f"e{index}", **source})
    return entries


def _extended(dice: Dice, pod: Object, names: Sequence[str]) -> None:
    """Has the containers of a pod ask for extended resources, one of them before the others start."""
    containers = pod["spec"]["containers"]
    if dice.maybe(0.3):
        first = {"name": "first", "image": "app"}
        containers = [*containers, *pod["spec"].setdefault("initContainers", [first])]
    for container in containers:
        wanted = {name: dice.choice(("1", "1", "2", "3")) for name in dice.some(names, 1, 2)}
        kept = container.get("resources", {})
        container["resources"] = {key: {**kept.get(key, {}), **wanted} for key in ("requests", "limits")}
