"""All rules at once, as a crowded cluster has them."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import features, parts, placement, pod_affinity, spread, volumes
from tests.oracle.families.storage_objects import Storage


def generate(dice: Dice) -> Scene:
    """A larger cluster where each pod has some rules of each family; every other one has storage."""
    cluster = parts.nodes(dice, 8, 40)
    parts.capacities(dice, cluster)
    parts.taints(dice, cluster, 0.2)
    parts.images(dice, cluster)
    if dice.maybe(0.3):
        features.declare(dice, cluster)
    placed = parts.placed_pods(dice, cluster, 0.8)
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in (*placed, *incoming):
        parts.requests(dice, each)
        parts.tolerations(dice, each)
        placement.wanted_images(dice, each)
        if dice.maybe(0.25):
            placement.host_ports(dice, each)
    for each in placed:
        if dice.maybe(0.15):
            pod_affinity.rules(dice, each)
    for each in incoming:
        _rules(dice, each, cluster)
    storage = Storage(dice, cluster)
    if dice.maybe(0.5):
        volumes.fill(dice, storage, placed, incoming)
    return Scene(storage.objects, cluster, placed, incoming)


def generate_pods(dice: Dice, count: int) -> Scene:
    """A cluster that so many pods fill more and more, with what needs no controllers: no storage and no rollouts."""
    cluster = parts.nodes(dice, 30, 40)
    parts.capacities(dice, cluster)
    parts.taints(dice, cluster, 0.2)
    parts.images(dice, cluster)
    placed = parts.placed_pods(dice, cluster, 0.5)
    incoming = [parts.pod(dice, f"p{index}") for index in range(count)]
    for each in (*placed, *incoming):
        parts.requests(dice, each)
        parts.tolerations(dice, each)
        placement.wanted_images(dice, each)
        each["metadata"].pop("deletionTimestamp", None)
    for each in incoming:
        if dice.maybe(0.2):
            placement.host_ports(dice, each)
        _rules(dice, each, cluster)
    return Scene([*parts.namespaces(), *spread.services(dice)], cluster, placed, incoming)


def _rules(dice: Dice, each: Object, cluster: list[Object]) -> None:
    if dice.maybe(0.35):
        placement.node_affinity(dice, each, cluster)
    if dice.maybe(0.5):
        spread.constraints(dice, each)
    if dice.maybe(0.4):
        pod_affinity.rules(dice, each)
    if dice.maybe(0.1):
        features.need(dice, each)
