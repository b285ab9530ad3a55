"""Pods that wait for room on a node: those of other schedulers, of other profiles, and of the same one."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, spread
from tests.oracle.families.preemption import GATE, NOMINATED
from tests.oracle.families.priorities import prioritise
from tests.oracle.profiles import OTHER_SCHEDULER, SCHEDULER

STRANGER = "nobody-we-know"


def generate(dice: Dice) -> Scene:
    """Nearly full nodes on which pods of several schedulers are to be placed."""
    cluster = parts.nodes(dice, 2, 8)
    for node in cluster:
        node["status"]["allocatable"] = {"cpu": dice.choice(("2", "3", "4")), "memory": "16Gi", "pods": "110"}
    placed = parts.placed_pods(dice, cluster, 1.0)
    waiting = [_waiting(dice, f"w{index}", cluster, SCHEDULER) for index in range(dice.choice((0, 1, 2)))]
    waiting += [_waiting(dice, f"o{index}", cluster, OTHER_SCHEDULER) for index in range(dice.choice((0, 1)))]
    foreign = [_waiting(dice, f"f{index}", cluster, STRANGER) for index in range(dice.randint(1, 4))]
    coming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(2, 4))]
    for each in (*placed, *coming):
        each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": dice.choice(("500m", "1", "2", "3"))}}
    for each in coming:
        if dice.maybe(0.3):
            spread.constraints(dice, each)
    scene = Scene([], cluster, placed, coming, foreign)
    prioritise(dice, scene)
    for each in coming:
        if dice.maybe(0.35):
            each["status"] = {NOMINATED: dice.choice(cluster)["metadata"]["name"]}
    for each in coming:
        if dice.maybe(0.2):
            _only_on(dice, each, cluster)
    scene.incoming = [*waiting, *coming]
    return scene


def _only_on(dice: Dice, each: Object, cluster: list[Object]) -> None:
    """Has the pod name the nodes that it may run on, as those of a DaemonSet do; it may be nominated to another."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}]}
        for node in dice.some(cluster, 1, 2)
    ]
    block = parts.affinity(each, "nodeAffinity")
    block["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def _waiting(dice: Dice, name: str, cluster: list[Object], scheduler: str) -> Object:
    each = parts.pod(dice, name, scheduler=scheduler)
    each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": dice.choice(("500m", "1", "2"))}}
    each["spec"]["priority"] = dice.choice((0, 50, 2000))
    if scheduler != STRANGER:
        each["spec"]["schedulingGates"] = GATE
    each["status"] = {NOMINATED: dice.choice(cluster)["metadata"]["name"]}
    return each
