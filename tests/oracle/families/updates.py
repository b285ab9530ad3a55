"""Clusters that change between decisions: images come and go, and pods are resized in place."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, placement
from tests.oracle.families.priorities import prioritise

_CPU = ("0", "100m", "250m", "1", "1500m", "2", "3")
_MEMORY = ("64Mi", "256Mi", "1Gi", "3Gi")


def generate_images(dice: Dice) -> Scene:
    """Nodes that pull images and remove them between decisions.

    After that every node is updated once more: kube-scheduler counts the nodes with an image anew only for nodes that
    change, and bayplan for all.
    """
    cluster = parts.nodes(dice, 3, 7)
    sizes = parts.images(dice, cluster)
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in incoming:
        placement.wanted_images(dice, each)
        parts.requests(dice, each, large=0.0)
    updates = []
    for after in range(1, len(incoming)):
        updates += [
            _of_node(node, after, "pulled", {"images": parts.held_images(dice, sizes)})
            for node in dice.some(cluster, 1, 3)
        ]
        updates += [_of_node(node, after, "touched", {}) for node in cluster]
    return Scene([], cluster, [], incoming, updates=updates)


def _of_node(node: Object, after: int, annotation: str, status: Object) -> Object:
    metadata = {"name": node["metadata"]["name"], "annotations": {f"example.com/{annotation}": str(after)}}
    return {"kind": "Node", "after": after, "metadata": metadata, "status": status}


def generate_resizes(dice: Dice) -> Scene:
    """Nearly full nodes whose pods are asked to grow or shrink, and the kubelet's answers, as they come."""
    cluster = parts.nodes(dice, 2, 6)
    for node in cluster:
        node["status"]["allocatable"] = {"cpu": dice.choice(("3", "4", "6")), "memory": "8Gi", "pods": "110"}
    placed = [_running(dice, index, cluster) for index in range(2 * len(cluster))]
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in incoming:
        wanted = {"cpu": dice.choice(("500m", "1", "2", "3")), "memory": dice.choice(_MEMORY)}
        each["spec"]["containers"][0]["resources"] = {"requests": wanted}
    scene = Scene([], cluster, placed, incoming)
    if dice.maybe(0.5):
        prioritise(dice, scene)
    for after in range(1, len(incoming)):
        # A pod whose status says otherwise in each update changes at every one of them.
        for each in dice.some(placed, 1, 3):
            scene.updates += _resize(dice, each, after)
    return scene


def _running(dice: Dice, index: int, cluster: list[Object]) -> Object:
    each = parts.pod(dice, f"x{index}")
    spec = each["spec"]
    spec["nodeName"] = dice.choice(cluster)["metadata"]["name"]
    spec["containers"] = [
        {"name": f"c{number}", "image": "app", "resources": {"requests": _amounts(dice)}}
        for number in range(dice.choice((1, 1, 2)))
    ]
    if dice.maybe(0.3):
        sidecar: Object = {"name": "side", "image": "app", "restartPolicy": "Always"}
        spec["initContainers"] = [{**sidecar, "resources": {"requests": _amounts(dice)}}]
    each["status"] = _status(dice, each)
    return each


def _resize(dice: Dice, each: Object, after: int) -> list[Object]:
    """Asks for other amounts, has the kubelet report others, or both."""
    metadata = {"name": each["metadata"]["name"], "namespace": each["metadata"]["namespace"]}
    found: list[Object] = []
    if dice.maybe(0.5):
        containers = [
            {"name": container["name"], "resources": {"requests": {"cpu": f"{dice.randrange(50, 2500)}m"}}}
            for container in each["spec"]["containers"]
        ]
        found.append({"kind": "Pod", "after": after, "metadata": metadata, "spec": {"containers": containers}})
    if dice.maybe(0.7) or not found:
        status = {**_status(dice, each), "message": f"seen at {after}"}
        found.append({"kind": "Pod", "after": after, "metadata": metadata, "status": status})
    return found


def _status(dice: Dice, each: Object) -> Object:
    """What a kubelet says of a pod that is being resized."""
    spec = each["spec"]
    status: Object = {"phase": "Running", "containerStatuses": [_actuated(dice, one) for one in spec["containers"]]}
    if "initContainers" in spec:
        status["initContainerStatuses"] = [_actuated(dice, one) for one in spec["initContainers"]]
    conditions: list[Object] = []
    if dice.maybe(0.4):
        reason = dice.choice(("Infeasible", "Deferred"))
        conditions.append({"type": "PodResizePending", "status": "True", "reason": reason})
    if dice.maybe(0.3):
        conditions.append({"type": "PodResizeInProgress", "status": "True"})
    status["conditions"] = conditions
    return status


def _actuated(dice: Dice, container: Object) -> Object:
    found: Object = {"name": container["name"], "image": "app", "imageID": "", "ready": True, "restartCount": 0}
    found["resources"] = {"requests": _amounts(dice)}
    if dice.maybe(0.7):
        found["allocatedResources"] = _amounts(dice)
    return found


def _amounts(dice: Dice) -> Object:
    return {"cpu": dice.choice(_CPU), "memory": dice.choice(_MEMORY)}
