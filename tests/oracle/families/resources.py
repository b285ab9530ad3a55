"""What pods ask for and nodes offer, in all the ways the API has."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.profiles import FPGA, GPU

_CPU = ("0", "1m", "50m", "100m", "700m", "1", "1.0001", "2", "3500m", "8")
_MEMORY = ("0", "1", "128Mi", "200Mi", "1Gi", "1500M", "3Gi", "7Gi", "15Gi", "123456789")


def generate(dice: Dice) -> Scene:
    """Nodes of differing sizes, partly full, and pods with requests of all kinds."""
    cluster = parts.nodes(dice, 4, 12)
    parts.capacities(dice, cluster)
    placed = parts.placed_pods(dice, cluster, dice.choice((0.0, 1.0, 2.0)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in placed:
        ask(dice, each, modest=True)
        if dice.maybe(0.3):
            _resize(dice, each)
    for each in incoming:
        ask(dice, each)
    return Scene([], cluster, placed, incoming)


def ask(dice: Dice, each: Object, *, modest: bool = False) -> None:
    """Gives the pod containers, init containers, sidecars, pod-level requests and overhead."""
    spec = each["spec"]
    spec["containers"] = [_container(dice, f"c{index}", modest) for index in range(dice.choice((1, 1, 2, 3)))]
    if dice.maybe(0.3):
        spec["initContainers"] = [_init_container(dice, f"i{index}", modest) for index in range(dice.randint(1, 3))]
    if dice.maybe(0.15):
        spec["overhead"] = {"cpu": dice.choice(("250m", "1")), "memory": dice.choice(("64Mi", "1Gi"))}
    if dice.maybe(0.15):
        _pod_level(dice, each)


def _container(dice: Dice, name: str, modest: bool) -> Object:
    wanted: dict[str, str] = {}
    if dice.maybe(0.75):
        wanted["cpu"] = dice.choice(_CPU[:6] if modest else _CPU)
    if dice.maybe(0.75):
        wanted["memory"] = dice.choice(_MEMORY[:6] if modest else _MEMORY)
    if dice.maybe(0.25):
        wanted[parts.STORAGE] = dice.choice(("1Gi", "10G", "0"))
    limits: dict[str, str] = {}
    if dice.maybe(0.3):
        limits[GPU] = str(dice.choice((0, 1, 1, 2)))
    if dice.maybe(0.15):
        limits[FPGA] = "1"
    if dice.maybe(0.1) and wanted.get("memory", "0") != "0":
        limits[parts.HUGE] = "64Mi"
    if dice.maybe(0.1) and "cpu" not in wanted:
        limits["cpu"] = "300m"
    resources = {"requests": {**wanted, **limits} if dice.maybe(0.5) else wanted, "limits": limits}
    resources = {key: value for key, value in resources.items() if value}
    return {"name": name, "image": "app", **({"resources": resources} if resources else {})}


def _init_container(dice: Dice, name: str, modest: bool) -> Object:
    found = _container(dice, name, modest)
    if dice.maybe(0.5):
        found["restartPolicy"] = "Always"
    return found


def _pod_level(dice: Dice, each: Object) -> None:
    """Pod-level requests, which the API wants to cover those of the containers."""
    whole = {"cpu": dice.choice(("3", "6")), "memory": dice.choice(("5Gi", "12Gi"))}
    kept = dice.some(list(whole))
    for container in (*each["spec"]["containers"], *each["spec"].get("initContainers", [])):
        container.pop("resources", None)
        if dice.maybe(0.5):
            container["resources"] = {"requests": {"cpu": "250m", "memory": "256Mi"}}
    each["spec"]["resources"] = {"requests": {name: whole[name] for name in kept}}


def _resize(dice: Dice, each: Object) -> None:
    """What a kubelet reports of a pod whose requests are being changed in place."""
    spec = each["spec"]
    status: Object = {"phase": "Running"}
    for field, containers in (
        ("containerStatuses", spec["containers"]),
        ("initContainerStatuses", spec.get("initContainers", [])),
    ):
        reported = [_actuated(dice, container) for container in containers if dice.maybe(0.8)]
        if reported:
            status[field] = reported
    if dice.maybe(0.3):
        reason = dice.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if "resources" in spec and dice.maybe(0.6):
        status["resources"] = {"requests": {"cpu": dice.choice(("2", "7")), "memory": "9Gi"}}
        status["allocatedResources"] = {"cpu": dice.choice(("4", "1"))}
    each["status"] = status


def _actuated(dice: Dice, container: Object) -> Object:
    found: Object = {"name": container["name"], "image": "app", "imageID": "", "ready": True, "restartCount": 0}
    if dice.maybe(0.8):
        found["resources"] = {"requests": {"cpu": dice.choice(_CPU[:6]), "memory": dice.choice(_MEMORY[:6])}}
    if dice.maybe(0.6):
        found["allocatedResources"] = {"cpu": dice.choice(_CPU[:6]), "memory": dice.choice(_MEMORY[:6])}
    return found
