"""Features that kubelets declare and pods need."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts

_RESTART_ALL = "RestartAllContainersOnContainerExits"
_DECLARED = (_RESTART_ALL, "GuaranteedQoSPodCPUResize", "UserNamespacesHostNetworkSupport")


def generate(dice: Dice) -> Scene:
    """Nodes with some features and taints, and pods of which some restart as a whole."""
    cluster = parts.nodes(dice, 3, 9)
    declare(dice, cluster)
    if dice.maybe(0.3):
        parts.taints(dice, cluster, 0.3)
    placed = parts.placed_pods(dice, cluster, 0.5)
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in (*placed, *incoming):
        parts.requests(dice, each)
    for each in incoming:
        if dice.maybe(0.7):
            need(dice, each)
    return Scene([], cluster, placed, incoming)


def declare(dice: Dice, cluster: list[Object]) -> None:
    """Lets nodes declare features, sorted as the API server wants them; some declare none."""
    chance = dice.choice((0.1, 0.4, 0.9))
    for node in cluster:
        declared = sorted(feature for feature in _DECLARED if dice.maybe(chance))
        if declared or dice.maybe(0.3):
            node["status"]["declaredFeatures"] = declared


def need(dice: Dice, each: Object) -> None:
    """Gives one container a rule for its exits; most rules restart the whole pod, which needs a feature."""
    action = dice.choice(("RestartAllContainers", "RestartAllContainers", "Restart"))
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [42]}}
    rules: Object = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    if dice.maybe(0.3):
        each["spec"]["initContainers"] = [{"name": "before", "image": "app", **rules}]
    else:
        each["spec"]["containers"][0].update(rules)
