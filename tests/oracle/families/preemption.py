"""Full clusters with pods of many priorities, and pods that want in."""

from copy import deepcopy

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts, volumes
from tests.oracle.families.priorities import one_pod_a_claim, time
from tests.oracle.families.selectors import label_selector
from tests.oracle.profiles import GPU

NOMINATED = "nominatedNodeName"
GATE = [{"name": "example.com/wait"}]
"""A pod with this gate and a nomination holds its room and is never decided."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PRIORITIES = (-10, 0, 0, 5, 10, 100, 1000)
_CPU = (250, 500, 500, 1000, 1000, 1500, 2000, 3000)


def generate(dice: Dice) -> Scene:
    """Nodes with hardly any cpu left, pods that wait for their room, and one or two that may preempt."""
    cluster = parts.nodes(dice, 10, dice.choice((14, 20, 40)))
    rules = {name for name in ("taints", "affinity", "anti", "spread", "ports", "gpu") if dice.maybe(0.35)}
    for node in cluster:
        node["status"]["allocatable"] = {
            "cpu": dice.choice(("2", "4", "4", "6", "8")),
            "memory": dice.choice(("8Gi", "16Gi")),
            "pods": dice.choice(("110", "110", "4", "5")),
        }
        if "gpu" in rules and dice.maybe(0.6):
            node["status"]["allocatable"][GPU] = dice.choice(("1", "2", "4"))
    if "taints" in rules:
        parts.taints(dice, cluster, 0.4)
    priorities = dice.some(_PRIORITIES, 2, 5)
    placed = _fill(dice, cluster, rules, priorities)
    budgets = [_budget(dice, index, placed) for index in range(dice.choice((0, 0, 1, 2, 3, 5)))]
    incoming = [
        _nominated(dice, f"w{dice.case}-{index}", cluster, rules) for index in range(dice.choice((0, 0, 0, 1, 3)))
    ]
    incoming += [_preemptor(dice, f"p{dice.case}-{index}", cluster, rules) for index in range(dice.choice((1, 2, 2)))]
    return Scene(budgets, cluster, placed, incoming)


def generate_storage(dice: Dice) -> Scene:
    """Few volumes a node, claims for one pod at a time and disks for one pod, with preemptors that want them."""
    scene = volumes.generate_limits(dice)
    priorities = dice.some(_PRIORITIES, 2, 4)
    starts = dice.sample(range(100_000), len(scene.placed))
    for each, start in zip(scene.placed, starts, strict=True):
        each["spec"]["priority"] = dice.choice(priorities)
        each["status"] = {"phase": "Running", "startTime": time(start)}
    one_pod_a_claim(scene)
    for csi_node in (each for each in scene.objects if each["kind"] == "CSINode"):
        for driver in csi_node["spec"]["drivers"]:
            driver["allocatable"] = {"count": 1}
    for each in scene.incoming:
        each["spec"]["priority"] = dice.choice((3, 50, 2000, 2000))
        if scene.placed and dice.maybe(0.8):
            each["spec"]["nodeSelector"] = {parts.HOSTNAME: dice.choice(scene.placed)["spec"]["nodeName"]}
    scene.objects += [_budget(dice, index, scene.placed) for index in range(dice.choice((0, 1, 2)))]
    return scene


def generate_nominated(dice: Dice) -> Scene:
    """Room kept for pods that others spread with or keep away from, also by selectors that select everybody."""
    cluster = parts.nodes(dice, 4, 10)
    for node in cluster:
        node["status"]["allocatable"] = {"cpu": dice.choice(("4", "6")), "memory": "16Gi", "pods": "110"}
    rules, namespace = {"anti"}, dice.choice(parts.NAMESPACES)
    placed = _fill(dice, cluster, rules, [0, 5])[:: dice.choice((1, 2))]
    waiting = [_nominated(dice, f"w{dice.case}-{index}", cluster, rules) for index in range(dice.choice((2, 4, 6)))]
    incoming = [parts.pod(dice, f"p{dice.case}-{index}") for index in range(3)]
    for each in (*placed, *waiting, *incoming):
        each["metadata"]["namespace"] = namespace if dice.maybe(0.8) else dice.choice(parts.NAMESPACES)
        terms = each["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(_REQUIRED, [])
        for term in terms:
            # Few nodes have these keys, and a term of a pod elsewhere keeps nobody away.
            term["topologyKey"] = dice.choice(("flag", "flag", "tier", parts.RACK))
    # One for all: nobody takes a nomination from another, which kube-scheduler writes whenever it finds time.
    priority = dice.choice((3, 50))
    for each in incoming:
        _ask(dice, each, dice.choice((500, 1000, 2000, 3000)), rules)
        each["spec"]["priority"] = priority
        if dice.maybe(0.7):
            each["spec"]["topologySpreadConstraints"] = [
                {
                    "maxSkew": dice.choice((1, 1, 2)),
                    "topologyKey": key,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {} if dice.maybe(0.8) else label_selector(dice),
                    **({"minDomains": dice.randint(1, 4)} if dice.maybe(0.2) else {}),
                }
                for key in dice.some((parts.ZONE, parts.HOSTNAME, parts.RACK), 1, 2)
            ]
    return Scene([], cluster, placed, [*waiting, *incoming])


def generate_not_started(dice: Dice) -> Scene:
    """Nodes full of pods that no kubelet has started; those of one priority on a node differ in nothing but names."""
    cluster = parts.nodes(dice, 3, 8)
    placed: list[Object] = []
    for node in cluster:
        node["status"]["allocatable"] = {"cpu": dice.choice(("4", "6", "8")), "memory": "16Gi", "pods": "110"}
        for priority in dice.some(sorted({*_PRIORITIES}), 1, 3):
            kind = parts.pod(dice, "kind")
            _ask(dice, kind, dice.choice((500, 1000, 2000)), set())
            kind["spec"] |= {"nodeName": node["metadata"]["name"], "priority": priority}
            for number in range(dice.randint(1, 4)):
                each = deepcopy(kind)
                each["metadata"]["name"] = f"x{len(placed)}"
                if number == 0 and dice.maybe(0.3):
                    each["status"] = {"phase": "Running", "startTime": time(len(placed))}
                placed.append(each)
    budgets = [_budget(dice, index, []) for index in range(dice.choice((0, 1, 2)))]
    incoming = [_preemptor(dice, f"p{dice.case}-{index}", cluster, set()) for index in range(dice.choice((1, 2)))]
    return Scene(budgets, cluster, placed, incoming)


def _fill(dice: Dice, cluster: list[Object], rules: set[str], priorities: list[int]) -> list[Object]:
    """Pods on every node until hardly any cpu is left; no two start at the same time, and few have not started."""
    starts = dice.sample(range(100_000), 1000)
    placed: list[Object] = []
    for node in cluster:
        free = int(node["status"]["allocatable"]["cpu"]) * 1000
        most = int(node["status"]["allocatable"]["pods"])
        not_started = dice.maybe(0.15)
        there, ports = 0, [8080, 9000]
        while free >= 250 and there < most and dice.maybe(0.99):
            there += 1
            each = parts.pod(dice, f"x{len(placed)}")
            cpu = min(dice.choice(_CPU), free)
            free -= cpu
            _ask(dice, each, cpu, rules)
            each["spec"] |= {"nodeName": node["metadata"]["name"], "priority": dice.choice(priorities)}
            _obstacles(dice, each, rules, 0.3, ports)
            each["status"] = {"phase": "Running", "startTime": time(starts[len(placed)])}
            if not_started:
                not_started = False
                del each["status"]
            if dice.maybe(0.05):
                _end(dice, each)
            placed.append(each)
    return placed


def _ask(dice: Dice, each: Object, cpu: int, rules: set[str]) -> None:
    wanted = {"cpu": f"{cpu}m"}
    if dice.maybe(0.7):
        wanted["memory"] = dice.choice(("100Mi", "500Mi", "1Gi", "2Gi"))
    if "gpu" in rules and dice.maybe(0.25):
        wanted[GPU] = "1"
    resources: Object = {"requests": wanted}
    if GPU in wanted:
        resources["limits"] = {GPU: "1"}
    each["spec"]["containers"][0]["resources"] = resources


def _obstacles(dice: Dice, each: Object, rules: set[str], chance: float, ports: list[int]) -> None:
    """What keeps pods apart besides amounts; a port that is taken is taken from `ports`."""
    if "ports" in rules and ports and dice.maybe(chance):
        port = dice.choice(ports)
        ports.remove(port)
        each["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": port}]
    if "anti" in rules and dice.maybe(chance):
        selector = {"matchLabels": {"app": dice.choice(("a", "b", "c"))}}
        key = dice.choice((parts.HOSTNAME, parts.HOSTNAME, parts.HOSTNAME, parts.RACK))
        parts.affinity(each, "podAntiAffinity")[_REQUIRED] = [{"topologyKey": key, "labelSelector": selector}]


def _end(dice: Dice, each: Object) -> None:
    """On its way out, perhaps because it was preempted."""
    each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if dice.maybe(0.5):
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        each.setdefault("status", {"phase": "Pending"})["conditions"] = [condition]


def _budget(dice: Dice, index: int, placed: list[Object]) -> Object:
    status: Object = {"disruptionsAllowed": dice.choice((0, 0, 1, 2, 5)), "observedGeneration": 1}
    selector: Object | None = label_selector(dice)
    if dice.maybe(0.05):
        selector = None
    namespace = dice.choice(parts.NAMESPACES)
    inside = [pod["metadata"]["name"] for pod in placed if pod["metadata"]["namespace"] == namespace]
    if inside and dice.maybe(0.25):
        status["disruptedPods"] = dict.fromkeys(dice.some(inside, 1, 6), "2026-01-01T00:00:00Z")
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"b{index}", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": status,
    }


def _nominated(dice: Dice, name: str, cluster: list[Object], rules: set[str]) -> Object:
    """A pod that waits for its room on a node."""
    each = parts.pod(dice, name)
    _ask(dice, each, dice.choice(_CPU), rules)
    _obstacles(dice, each, rules, 0.3, [8080, 9000])
    each["spec"] |= {"priority": dice.choice((50, 500, 2000)), "schedulingGates": GATE}
    each["status"] = {NOMINATED: dice.choice(cluster)["metadata"]["name"]}
    return each


def _preemptor(dice: Dice, name: str, cluster: list[Object], rules: set[str]) -> Object:
    each = parts.pod(dice, name)
    _ask(dice, each, dice.choice((1000, 2000, 2000, 3000, 4000, 4000, 5000, 6000)), rules)
    spec = each["spec"]
    spec["priority"] = dice.choice((3, 7, 50, 500, 2000, 2000, 2000))
    _obstacles(dice, each, rules, 0.7, [8080, 9000])
    if "taints" in rules:
        parts.tolerations(dice, each)
    if dice.maybe(0.25):
        spec["nodeSelector"] = {"disk": dice.choice(parts.DISKS)}
    if "affinity" in rules and dice.maybe(0.5):
        term = {"topologyKey": parts.ZONE, "labelSelector": {"matchLabels": {"app": dice.choice(("a", "b", "c"))}}}
        parts.affinity(each, "podAffinity")[_REQUIRED] = [term]
    if "spread" in rules and dice.maybe(0.8):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": dice.choice((1, 1, 2)),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": each["metadata"]["labels"]["app"]}},
            }
            for key in dice.some((parts.ZONE, parts.HOSTNAME), 1, 2)
        ]
    if dice.maybe(0.08):
        spec["preemptionPolicy"] = "Never"
    if dice.maybe(0.12):
        each["status"] = {NOMINATED: dice.choice(cluster)["metadata"]["name"]}
    return each
