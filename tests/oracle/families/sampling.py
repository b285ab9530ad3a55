"""Clusters of more nodes than are looked at for each pod, and searches that stop at the first that fits."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, placement
from tests.oracle.profiles import OTHER_SCHEDULER

_NAMES = "requiredDuringSchedulingIgnoredDuringExecution"


def generate(dice: Dice) -> Scene:
    """More than a hundred small nodes in zones, and pods of which each search goes on where the last one ended."""
    return _scene(dice, dice.randint(104, 170), dice.randint(5, 8))


def generate_few(dice: Dice) -> Scene:
    """The same with few nodes, for profiles that take the first node that fits.

    Pods are pinned to one node at most: kube-scheduler looks at several in no order.
    """
    return _scene(dice, dice.randint(4, 24), dice.randint(6, 10), names=1)


def _scene(dice: Dice, count: int, decisions: int, names: int = 4) -> Scene:
    cluster = parts.nodes(dice, count, count)
    small = dice.choice((0.05, 0.2, 0.5))
    for node in cluster:
        node["status"]["allocatable"]["cpu"] = dice.choice(("1", "2")) if dice.maybe(small) else dice.choice(("8", "6"))
    if dice.maybe(0.5):
        parts.taints(dice, cluster, dice.choice((0.1, 0.4)))
    placed = parts.placed_pods(dice, cluster, 0.1)
    incoming = [parts.pod(dice, f"p{index}") for index in range(decisions)]
    for each in (*placed, *incoming):
        parts.requests(dice, each, large=0.0)
    for each in incoming:
        _rules(dice, each, cluster, names)
    return Scene([], cluster, placed, incoming)


def _rules(dice: Dice, each: Object, cluster: list[Object], names: int) -> None:
    spec = each["spec"]
    if dice.maybe(0.4):
        spec["schedulerName"] = OTHER_SCHEDULER
    if dice.maybe(0.3):
        parts.tolerations(dice, each)
    if dice.maybe(0.3):
        spec["containers"][0]["resources"] = {"requests": {"cpu": dice.choice(("3", "5", "64"))}}
    if dice.maybe(0.2):
        spec["nodeSelector"] = {"disk": dice.choice((*parts.DISKS, "none"))}
    elif dice.maybe(0.2):
        _pin(dice, each, cluster, names)
    elif names > 1 and dice.maybe(0.2):
        placement.node_affinity(dice, each, cluster)


def _pin(dice: Dice, each: Object, cluster: list[Object], names: int) -> None:
    """Allows so many nodes at most, by their names alone, so that no others are searched."""
    allowed = [node["metadata"]["name"] for node in dice.some(cluster, 1, names)]
    if dice.maybe(0.1):
        allowed.append("nowhere")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in allowed]
    parts.affinity(each, "nodeAffinity")[_NAMES] = {"nodeSelectorTerms": terms}
