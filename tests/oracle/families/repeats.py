"""Rows of equal pods, which kube-scheduler may place by one ranking of the nodes."""

from copy import deepcopy

from tests.oracle.case import Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, placement


def generate(dice: Dice) -> Scene:
    """Nodes with room for one pod of a kind or for a few, and two or three kinds of pods, each several times."""
    cluster = parts.nodes(dice, 4, 12)
    for node in cluster:
        node["status"]["allocatable"] = {"cpu": dice.choice(("1", "2", "4")), "memory": "8Gi", "pods": "110"}
    if dice.maybe(0.5):
        parts.taints(dice, cluster, 0.3)
    parts.images(dice, cluster)
    placed = parts.placed_pods(dice, cluster, 0.5)
    for each in placed:
        parts.requests(dice, each, large=0.0)
    incoming = []
    for kind in range(dice.randint(1, 3)):
        first = parts.pod(dice, f"p{kind}")
        first["spec"]["containers"][0]["resources"] = {"requests": {"cpu": dice.choice(("300m", "700m", "1"))}}
        parts.tolerations(dice, first)
        if dice.maybe(0.5):
            placement.wanted_images(dice, first)
        if dice.maybe(0.3):
            placement.node_affinity(dice, first, cluster)
        for number in range(dice.randint(2, 5)):
            each = deepcopy(first)
            each["metadata"]["name"] += f"-{number}"
            incoming.append(each)
    return Scene([], cluster, placed, incoming)
