"""Topology spread constraints of pods, and those a profile gives to pods that have none."""

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, placement
from tests.oracle.families.selectors import keys_of, label_selector

_KEYS = (parts.ZONE, parts.ZONE, parts.HOSTNAME, parts.HOSTNAME, parts.RACK, parts.REGION, "disk")


def generate(dice: Dice) -> Scene:
    """Pods with one to three constraints of their own."""
    cluster = parts.nodes(dice, 4, 16)
    if dice.maybe(0.4):
        parts.taints(dice, cluster, 0.3)
    placed = parts.placed_pods(dice, cluster, dice.choice((0.5, 1.5, 3.0)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 6))]
    for each in (*placed, *incoming):
        parts.requests(dice, each, large=0.0)
    hard = dice.choice((0.3, 0.5, 0.9))
    for each in incoming:
        constraints(dice, each, hard=hard)
        if dice.maybe(0.4):
            parts.tolerations(dice, each)
        if dice.maybe(0.3):
            placement.node_affinity(dice, each, cluster)
    return Scene([], cluster, placed, incoming)


def constraints(dice: Dice, each: Object, *, hard: float = 0.5) -> None:
    """Hard and soft constraints with all their fields; no key and action comes twice."""
    given: dict[tuple[str, str], Object] = {}
    for _ in range(dice.randint(1, 3)):
        constraint = _constraint(dice, each, hard=dice.maybe(hard))
        given[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    each["spec"]["topologySpreadConstraints"] = list(given.values())


def _constraint(dice: Dice, each: Object, *, hard: bool) -> Object:
    found: Object = {
        "maxSkew": dice.choice((1, 1, 2, 3, 5)),
        "topologyKey": dice.choice(_KEYS),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
    }
    if dice.maybe(0.95):
        same = {"matchLabels": {"app": each["metadata"]["labels"]["app"]}}
        found["labelSelector"] = same if dice.maybe(0.6) else label_selector(dice)
        if dice.maybe(0.25) and "version" not in keys_of(found["labelSelector"]):
            found["matchLabelKeys"] = dice.some(("version", "absent"), 1, 2)
    if hard and dice.maybe(0.3):
        found["minDomains"] = dice.randint(1, 5)
    if dice.maybe(0.3):
        found["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
    if dice.maybe(0.3):
        found["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
    return found


def generate_defaults(dice: Dice) -> Scene:
    """Pods without constraints, in services and owned by controllers, and a few with."""
    cluster = parts.nodes(dice, 4, 16)
    placed = parts.placed_pods(dice, cluster, dice.choice((0.5, 1.5, 3.0)))
    incoming = [parts.pod(dice, f"p{index}") for index in range(dice.randint(3, 6))]
    objects = [*services(dice), *_controllers()]
    for each in (*placed, *incoming):
        parts.requests(dice, each, large=0.0)
        if dice.maybe(0.6):
            _own(dice, each)
    for each in incoming:
        if dice.maybe(0.15):
            constraints(dice, each)
    return Scene(objects, cluster, placed, incoming)


def services(dice: Dice) -> list[Object]:
    """Services that select some pods, all of a version, or none."""
    selectors = ({"app": "a"}, {"app": "b"}, {"version": "1"}, {"app": "a", "version": "2"}, None)
    found = []
    for index in range(dice.randint(0, 5)):
        spec: Object = {"ports": [{"port": 80}]}
        selector = dice.choice(selectors)
        if selector is not None:
            spec["selector"] = selector
        metadata = {"name": f"s{index}", "namespace": dice.choice(parts.NAMESPACES)}
        found.append({"kind": "Service", "metadata": metadata, "spec": spec})
    return found


def _controllers() -> list[Object]:
    """One controller of each kind in every namespace; nobody makes their pods."""
    found: list[Object] = []
    for namespace in parts.NAMESPACES:
        for kind, labels in (
            ("ReplicationController", {"app": "a"}),
            ("ReplicaSet", {"app": "b"}),
            ("StatefulSet", {"app": "c"}),
        ):
            spec: Object = {
                "selector": labels if kind == "ReplicationController" else {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app"}]}},
            }
            if kind == "StatefulSet":
                spec["serviceName"] = "s0"
            found.append({"kind": kind, "metadata": {"name": "owner", "namespace": namespace}, "spec": spec})
    return found


def _own(dice: Dice, each: Object) -> None:
    versions = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}
    kind = dice.choice(list(versions))
    owner: Object = {
        "apiVersion": versions[kind],
        "kind": kind,
        "name": "owner" if dice.maybe(0.9) else "gone",
        "uid": "00000000-0000-0000-0000-000000000001",
    }
    if dice.maybe(0.9):
        owner["controller"] = True
    each["metadata"]["ownerReferences"] = [owner]
