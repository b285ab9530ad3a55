"""Gangs among random faults: what happens to them is drawn from a seed, and each is whole when the faults are over."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.faults.api_server import Object
from tests.faults.cluster_objects import node_object, pod_object
from tests.faults.final_state import p22_p25_itself
from tests.faults.history import History, node_of
from tests.faults.memory_api import NODES, PODS
from tests.faults.steps import STATUSES, WAITS, Step, World
from tests.faults.virtual_time import cancel_all

from bayplan.api.kinds import CRD_POD_GROUPS, POD_GROUPS
from bayplan.cache.group_members import POD_GROUP_LABEL

WHOLE_SECONDS = 60.0
"""How long a gang may run in part after the last fault."""
_SETTLE_SECONDS = 190.0
_MOST_GANGS = 10


class GangWorld(World):
    """A cluster to which gangs come and nodes are added; nothing else goes, so that none may stay in part."""

    def __init__(self, seed: int) -> None:
        self.least: dict[str, int] = {}
        super().__init__(seed)

    def room(self, name: str, cpu: int) -> None:
        """A node of so many CPUs, or as many more on one that is there."""
        known = self.api.objects.get(NODES, {}).get(name)
        before = 0 if known is None else int(known["status"]["allocatable"]["cpu"])
        self.api.put(NODES, node_object(name, cpu=before + cpu, zone="a"))

    def gang(self, name: str, count: int, least: int, native: bool, order: int) -> None:
        """A group and its pods of one CPU, which come in any order."""
        self.least[name] = least
        spec: Object = {"schedulingPolicy": {"gang": {"minCount": least}}} if native else {"minMember": least}
        group = {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {}}
        pods = [pod_object(f"{name}-{index}", cpu=1000) for index in range(count)]
        for pod in pods:
            if native:
                pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            else:
                pod["metadata"]["labels"][POD_GROUP_LABEL] = name
        coming: list[Object] = [group, *pods]
        random.Random(order).shuffle(coming)
        for obj in coming:
            if obj is group:
                self.api.put((POD_GROUPS if native else CRD_POD_GROUPS).path, obj)
            else:
                self._create(obj)

    def remake(self, name: str) -> None:
        """Delete the group, whose pods stay, and make it anew."""
        for path in (POD_GROUPS.path, CRD_POD_GROUPS.path):
            found = self.api.objects.get(path, {}).get(f"default/{name}")
            if found is not None:
                self.api.delete(path, f"default/{name}")
                metadata = {"name": name, "namespace": "default"}
                self.api.put(path, {"metadata": metadata, "spec": found["spec"], "status": {}})


def draw(seed: int) -> list[Step]:
    """The steps of a seed: nodes, gangs of one kind, single pods, and faults of binds and of the scheduler's life."""
    rng = random.Random(f"{seed}/gangs")
    steps = [Step("room", {"name": f"n{number}", "cpu": rng.randint(2, 8)}) for number in range(rng.randint(1, 5))]
    native = rng.random() < 0.5
    made: list[str] = []
    for _ in range(rng.randint(8, 30)):
        draws = [(_gang, 8), (_fault, 9), (_life, 4), (_stream, 3), (_rest, 4)]
        (kind,) = rng.choices([each for each, _ in draws], [weight for _, weight in draws])
        if kind is _gang and len(made) < _MOST_GANGS:
            made.append(f"g{len(made)}")
            steps.append(Step("gang", {"name": made[-1], "native": native, **_gang(rng)}))
        elif kind is not _gang:
            steps.append(Step(*kind(rng, made)))
        steps[-1] = replace(steps[-1], wait=rng.choice(WAITS[:-1]))
    return steps


def _gang(rng: random.Random) -> dict[str, Any]:
    count = rng.randint(2, 9)
    least = count if rng.random() < 0.6 else rng.randint(2, count)
    return {"count": count, "least": least, "order": rng.randrange(1000)}


def _fault(rng: random.Random, _: list[str]) -> tuple[str, dict[str, Any]]:
    verb = rng.choice(["BIND"] * 5 + ["PATCH", "GET", "EVENT"])
    faults = ["refused", "lost-request", "lost-answer", "slow", "hangs", *STATUSES]
    faults += ["409", "409", "500", "late"] if verb == "BIND" else []
    given = {"fault": rng.choice(faults), "verb": verb, "times": rng.choice([1, 1, 2, 5])}
    return "fault", {**given, "seconds": rng.choice([0.5, 3.0, 12.0])}


def _life(rng: random.Random, _: list[str]) -> tuple[str, dict[str, Any]]:
    return rng.choice(
        [
            ("kill_at_write", {"number": rng.randint(1, 12)}),
            ("kill_at_write", {"number": rng.randint(1, 12)}),
            ("kill", {"seconds": rng.choice([0.5, 5.0])}),
            ("terminate", {}),
        ]
    )


def _stream(rng: random.Random, _: list[str]) -> tuple[str, dict[str, Any]]:
    return rng.choice([("end_watches", {}), ("compact", {}), ("down", {"seconds": rng.choice([0.5, 5.0, 20.0])})])


def _rest(rng: random.Random, made: list[str]) -> tuple[str, dict[str, Any]]:
    if made and rng.random() < 0.4:
        return "remake", {"name": rng.choice(made)}
    if rng.random() < 0.5:
        return "room", {"name": f"n{rng.randrange(7)}", "cpu": rng.randint(1, 4)}
    return "pod", {"name": f"s{rng.randrange(6)}", "cpu": 1000}


async def outcome(seed: int, steps: list[Step]) -> list[str]:
    """Carry out the steps, and return which gangs are not whole a minute after the last, and what else was broken."""
    world = GangWorld(seed)
    await world.live_through(steps)
    await world.pause(WHOLE_SECONDS)
    found = list(_not_whole(world))
    await world.pause(_SETTLE_SECONDS)
    found += [*_waits_with_room(world), *History(world.api).broken(), *p22_p25_itself(world.api, world.life)]
    await cancel_all()
    return found


def _not_whole(world: GangWorld) -> Iterator[str]:
    for name, pods in _by_gang(world).items():
        bound = sum(bool(node_of(pod)) for pod in pods)
        if 0 < bound < world.least[name]:
            yield f"gang {name} runs in part: {bound} of {world.least[name]}"


def _waits_with_room(world: GangWorld) -> Iterator[str]:
    cpus = sum(int(node["status"]["allocatable"]["cpu"]) for node in world.api.objects.get(NODES, {}).values())
    free = cpus - sum(bool(node_of(pod)) for pod in world.api.objects.get(PODS, {}).values())
    for name, pods in _by_gang(world).items():
        bound = sum(bool(node_of(pod)) for pod in pods)
        missing = max(world.least[name] - bound, 1)
        if len(pods) - bound >= missing and free >= missing:
            yield f"gang {name} waits with room for {free}: {bound} of {len(pods)} run, {world.least[name]} must"


def _by_gang(world: GangWorld) -> dict[str, list[Object]]:
    pods = defaultdict(list)
    for pod in world.api.objects.get(PODS, {}).values():
        name = pod["metadata"]["name"].partition("-")[0]
        if name in world.least:
            pods[name].append(pod)
    return pods
