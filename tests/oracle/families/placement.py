"""Rules between a pod and the node alone: taints, node affinity, host ports and images."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts

_LABELS = {
    parts.ZONE: ("z0", "z1", "z2"),
    "disk": parts.DISKS,
    "tier": parts.TIERS,
    "flag": ("",),
    "cores": ("2", "4", "8"),
    "absent": ("x",),
}


def generate_taints(dice: Dice) -> Scene:
    """Tainted and cordoned nodes."""
    cluster = parts.nodes(dice, 4, 12)
    parts.taints(dice, cluster, dice.choice((0.3, 0.7, 0.95)))
    return _scene(dice, cluster, parts.tolerations)


def generate_node_affinity(dice: Dice) -> Scene:
    """Node selectors, required and preferred node affinity, fields among them."""
    cluster = parts.nodes(dice, 4, 14)
    return _scene(dice, cluster, lambda dice, each: node_affinity(dice, each, cluster))


def generate_ports_and_images(dice: Dice) -> Scene:
    """Host ports that collide, and images that are there already."""
    cluster = parts.nodes(dice, 3, 8)
    parts.images(dice, cluster)

    def rules(dice: Dice, each: Object) -> None:
        host_ports(dice, each)
        wanted_images(dice, each)

    return _scene(dice, cluster, rules, per_node=1.5)


def generate_mixed(dice: Dice) -> Scene:
    """Every rule of this module at once."""
    cluster = parts.nodes(dice, 5, 20)
    parts.capacities(dice, cluster)
    parts.taints(dice, cluster, 0.3)
    parts.images(dice, cluster)

    def rules(dice: Dice, each: Object) -> None:
        parts.tolerations(dice, each)
        if dice.maybe(0.5):
            node_affinity(dice, each, cluster)
        if dice.maybe(0.3):
            host_ports(dice, each)
        wanted_images(dice, each)

    return _scene(dice, cluster, rules, per_node=1.0)


def _scene(dice: Dice, cluster: list[Object], rules: object, per_node: float = 0.5) -> Scene:
    placed = parts.placed_pods(dice, cluster, per_node)
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 5))]
    for each in (*placed, *incoming):
        parts.requests(dice, each)
        assert callable(rules)
        rules(dice, each)
    return Scene([], cluster, placed, incoming)


def node_affinity(dice: Dice, each: Object, cluster: list[Object]) -> None:
    """A node selector, required terms, preferred terms, or several of them."""
    if dice.maybe(0.25):
        key = dice.choice(list(_LABELS))
        each["spec"]["nodeSelector"] = {key: dice.choice(_LABELS[key])}
    if dice.maybe(0.6):
        terms = [_term(dice, cluster) for _ in range(dice.randint(1, 3))]
        block = parts.affinity(each, "nodeAffinity")
        block["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.maybe(0.6):
        wishes = [
            {"weight": dice.choice((1, 2, 10, 50, 100)), "preference": _term(dice, cluster)}
            for _ in range(dice.randint(1, 3))
        ]
        block = parts.affinity(each, "nodeAffinity")
        block["preferredDuringSchedulingIgnoredDuringExecution"] = wishes


def _term(dice: Dice, cluster: list[Object]) -> Object:
    if dice.maybe(0.05):
        return {}
    term: Object = {}
    if dice.maybe(0.85):
        term["matchExpressions"] = [_expression(dice) for _ in range(dice.choice((1, 1, 2)))]
    if dice.maybe(0.2):
        name = dice.choice(cluster)["metadata"]["name"] if dice.maybe(0.8) else "nowhere"
        term["matchFields"] = [{"key": "metadata.name", "operator": dice.choice(("In", "NotIn")), "values": [name]}]
    return term


def _expression(dice: Dice) -> Object:
    operator = dice.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": dice.choice(("cores", "cores", "disk")), "operator": operator, "values": [dice.choice("2478")]}
    key = dice.choice(list(_LABELS))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.some(_LABELS[key], 1, 2)}


def host_ports(dice: Dice, each: Object) -> None:
    """Host ports from a small range, on all addresses or on one, for a container or a sidecar."""
    given: dict[tuple[object, ...], Object] = {}
    for _ in range(dice.randint(0, 2)):
        port: Object = {"containerPort": 80, "hostPort": dice.choice((8080, 8081, 9000))}
        if dice.maybe(0.4):
            port["hostIP"] = dice.choice(("127.0.0.1", "10.1.2.3", "0.0.0.0", "::"))
        if dice.maybe(0.4):
            port["protocol"] = dice.choice(("UDP", "TCP"))
        given[port["hostPort"], port.get("hostIP"), port.get("protocol", "TCP")] = port
    if not given:
        return
    if dice.maybe(0.2):
        _use_host_network(dice, each, list(given.values()))
    if dice.maybe(0.25):
        sidecar: Object = {"name": "side", "image": "app", "ports": list(given.values())}
        if dice.maybe(0.7):
            sidecar["restartPolicy"] = "Always"
        each["spec"]["initContainers"] = [sidecar]
    else:
        each["spec"]["containers"][0]["ports"] = list(given.values())


def _use_host_network(dice: Dice, each: Object, ports: list[Object]) -> None:
    """Puts the pod into the host's network, where a port need not say twice what it is."""
    each["spec"]["hostNetwork"] = True
    for port in ports:
        port["containerPort"] = port["hostPort"]
        if dice.maybe(0.5):
            del port["hostPort"]


def wanted_images(dice: Dice, each: Object) -> None:
    """One to three containers with images that nodes may hold."""
    first = each["spec"]["containers"][0]
    first["image"] = dice.choice(parts.IMAGES)
    for index in range(dice.choice((0, 0, 1, 2))):
        each["spec"]["containers"].append({"name": f"more{index}", "image": dice.choice(parts.IMAGES)})
    if dice.maybe(0.2):
        before = {"name": "before", "image": dice.choice(parts.IMAGES)}
        each["spec"].setdefault("initContainers", []).append(before)
    if dice.maybe(0.15):
        volume = {"name": "files", "image": {"reference": dice.choice(parts.IMAGES)}}
        each["spec"].setdefault("volumes", []).append(volume)
