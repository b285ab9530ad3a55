"""Clusters for schedulers that ask extenders."""

from tests.oracle.case import Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts
from tests.oracle.families.priorities import prioritise
from tests.oracle.profiles import GPU


def generate(dice: Dice) -> Scene:
    """Few nodes, partly full and tainted, and pods whose names the extenders judge."""
    cluster = parts.nodes(dice, 3, 12)
    for node in cluster:
        amounts = {"cpu": dice.choice(("2", "4", "8")), "memory": "16Gi", "pods": "110"}
        if dice.maybe(0.5):
            amounts[GPU] = "2"
        node["status"]["allocatable"] = amounts
    if dice.maybe(0.4):
        parts.taints(dice, cluster, 0.3)
    placed = parts.placed_pods(dice, cluster, 1.5)
    incoming = [parts.pod(dice, f"p{dice.case}-{index}") for index in range(dice.randint(3, 6))]
    for each in (*placed, *incoming):
        parts.requests(dice, each, large=0.2)
    for each in incoming:
        parts.tolerations(dice, each)
        if dice.maybe(0.4):
            each["spec"]["containers"][0]["resources"] = {"limits": {GPU: dice.choice(("1", "3")), "cpu": "1"}}
    scene = Scene([], cluster, placed, incoming)
    prioritise(dice, scene)
    return scene
