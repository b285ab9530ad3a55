"""Nodes, pods, groups and runs of steps that scenarios of gangs are put together from."""

from collections.abc import Iterable, Mapping, Sequence

from e2e.controlplane.objects import node, pod
from tests.oracle.gangs.scenario import FIRST, Change, Create, Delete, Object, Rest, Scenario, Step

REST = Rest()
GATE = [{"name": "example.com/hold"}]
ZONE = "topology.kubernetes.io/zone"


def scenario(name: str, about: str, *steps: Step | Sequence[Step], places: bool = False) -> Scenario:
    """Returns a scenario of steps and runs of steps; it rests at its end whether or not they say so."""
    flat: list[Step] = []
    for each in steps:
        flat += [each] if not isinstance(each, Sequence) else each
    return Scenario(name, about, (*flat, *(() if flat[-1] == REST else (REST,))), places)


def room(name: str, cpu: int = 1, *, labels: Mapping[str, str] | None = None, cordoned: bool = False) -> Create:
    """A node with so many CPUs, which is so many members of `member`."""
    return Create("nodes", node(name, cpu=str(cpu), labels=labels, unschedulable=cordoned))


def rooms(*cpus: int) -> list[Step]:
    """Nodes n1, n2 and so on with so many CPUs."""
    return [room(f"n{index}", cpu) for index, cpu in enumerate(cpus, 1)]


def group(name: str, least: int | None, *, priority: str = "", **spec: object) -> Create:
    """A PodGroup of the gang policy, or with no `least` of the basic one."""
    policy: Object = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    named = {"priorityClassName": priority} if priority else {}
    metadata = {"name": name}
    return Create("podgroups", {"metadata": metadata, "spec": {"schedulingPolicy": policy, **named, **spec}})


def member(
    name: str,
    of: str | None,
    *,
    cpu: str = "1",
    priority: str = "",
    scheduler: str = FIRST,
    labels: Mapping[str, str] | None = None,
    on: str | None = None,
    **spec: object,
) -> Create:
    """A pod that names a group, or none, and asks for one CPU unless it says otherwise."""
    if of is not None:
        spec["schedulingGroup"] = {"podGroupName": of}
    if priority:
        spec["priorityClassName"] = priority
    return Create(
        "pods", pod(name, "", scheduler=scheduler, requests={"cpu": cpu}, labels=labels, node_name=on, **spec)
    )


def members(of: str, count: int, *, first: int = 1, **fields: object) -> list[Step]:
    """Members NAME1, NAME2 and so on of a group NAME, all alike."""
    return [member(f"{of}{index}", of, **fields) for index in range(first, first + count)]  # type: ignore[arg-type]


def gang(name: str, least: int | None, count: int, *, priority: str = "", **fields: object) -> list[Step]:
    """So many members, and then their group: all of them are there when its first round begins."""
    return [*members(name, count, priority=priority, **fields), group(name, least, priority=priority)]


def single(name: str, **fields: object) -> Create:
    """A pod of no group."""
    return member(name, None, **fields)  # type: ignore[arg-type]


def least_becomes(name: str, least: int) -> Change:
    """Sets minCount of a group that is there."""
    return Change("podgroups", name, {"spec": {"schedulingPolicy": {"gang": {"minCount": least}}}})


def gone(*names: str) -> list[Step]:
    """Deletes pods at once."""
    return [Delete("pods", name) for name in names]


def opened(name: str) -> Change:
    """Takes the scheduling gates off a pod."""
    return Change("pods", name, {"spec": {"schedulingGates": []}})


def in_turns(*runs: Sequence[Step]) -> list[Step]:
    """One step of each run, then the next of each."""
    longest = max(map(len, runs))
    return [run[index] for index in range(longest) for run in runs if index < len(run)]


def apart(label: str, value: str, key: str = "kubernetes.io/hostname") -> Object:
    """The affinity of pods that do not share a node, or a domain, with pods of this label."""
    return {"podAntiAffinity": _required(label, value, key)}


def together(label: str, value: str, key: str) -> Object:
    """The affinity of pods that share a domain with pods of this label."""
    return {"podAffinity": _required(label, value, key)}


def _required(label: str, value: str, key: str) -> Object:
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def zones(cpus: Mapping[str, Iterable[int]], key: str = ZONE) -> list[Step]:
    """Nodes ZONE-1, ZONE-2 and so on with so many CPUs, labelled with their zone."""
    return [
        room(f"{zone}-{index}", cpu, labels={key: zone})
        for zone, each in cpus.items()
        for index, cpu in enumerate(each, 1)
    ]
