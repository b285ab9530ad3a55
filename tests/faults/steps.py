"""What happens in a sequence of faults: steps drawn from a seed, and the world that carries them out."""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.faults.api_server import Object
from tests.faults.cluster_objects import node_object, pod_object, spreading
from tests.faults.memory_api import NODES, PODS, Injected, MemoryApi
from tests.faults.scheduler_life import SchedulerLife
from tests.faults.volume_controller import CLAIMS, VOLUMES, VolumeController, claim_object, volume_object

from bayplan.config.load import default_configuration

PDBS = "/apis/policy/v1/poddisruptionbudgets"
FIRST_NODES = 3
NODE_NAMES = tuple(f"n{number}" for number in range(5))
POD_NAMES = tuple(f"p{number}" for number in range(16))
CLAIM_NAMES = tuple(f"c{number}" for number in range(3))
WAITS = (0.0, 0.0, 0.001, 0.005, 0.02, 0.1, 0.4, 1.0, 1.0, 3.0, 12.0, 70.0)
STATUSES = ("429", "500", "502", "503", "504")
WATCHED = (NODES, PODS, PDBS, CLAIMS, VOLUMES)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, and how many seconds go by before the next; `what` is a method of `World`."""

    what: str
    given: dict[str, Any] = field(default_factory=dict)
    wait: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def draw(seed: int) -> list[Step]:
    """The steps of a seed; a few nodes come first."""
    rng = random.Random(seed)
    steps = [Step("node", _node(rng, name)) for name in NODE_NAMES[:FIRST_NODES]]
    return steps + [_draw_step(rng) for _ in range(rng.randint(10, 45))]


def _draw_step(rng: random.Random) -> Step:
    draws = [(_pod, 10), (_world, 7), (_storage, 2), (_fault, 6), (_stream, 2), (_life, 1)]
    (kind,) = rng.choices([each for each, _ in draws], [weight for _, weight in draws])
    what, given = kind(rng)
    return Step(what, given, rng.choice(WAITS[:-1]) if rng.random() < 0.98 else WAITS[-1])


def _pod(rng: random.Random) -> tuple[str, dict[str, Any]]:
    given: dict[str, Any] = {"name": rng.choice(POD_NAMES), "cpu": rng.choice([500, 1000, 1000, 2000, 3000])}
    given["priority"] = rng.choice([0, 0, 0, 5, 10])
    if rng.random() < 0.2:
        given["zone"] = rng.choice("ab")
    if rng.random() < 0.2:
        given["tolerates"] = True
    if rng.random() < 0.1:
        given["gated"] = True
    if rng.random() < 0.1:
        given["never"] = True
    if rng.random() < 0.3:
        given["grace"] = rng.choice([0, 1, 20])
    if rng.random() < 0.15:
        given["claim"] = rng.choice(CLAIM_NAMES)
    return "pod", given


def _node(rng: random.Random, name: str) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name, "cpu": rng.choice([2, 3, 4]), "zone": rng.choice("ab")}
    given["pods"] = rng.choice([3, 110])
    if rng.random() < 0.15:
        given["tainted"] = True
    if rng.random() < 0.1:
        given["cordoned"] = True
    return given


def _world(rng: random.Random) -> tuple[str, dict[str, Any]]:
    pod, node = rng.choice(POD_NAMES), rng.choice(NODE_NAMES)
    return rng.choice(
        [
            ("delete", {"name": pod}),
            ("delete", {"name": pod}),
            ("finish", {"name": pod}),
            ("replace", {"name": pod}),
            ("ungate", {"name": pod}),
            ("relabel", {"name": pod}),
            ("placed", {"name": f"d{rng.randrange(4)}", "node": node, "cpu": rng.choice([500, 1000])}),
            ("delete", {"name": f"d{rng.randrange(4)}"}),
            ("nominated", {"name": f"f{rng.randrange(2)}", "node": node, "cpu": 1000}),
            ("delete", {"name": f"f{rng.randrange(2)}"}),
            ("node", _node(rng, node)),
            ("node", _node(rng, node)),
            ("drop_node", {"name": node}),
            ("remake_node", {"name": node}),
            ("budget", {"name": "b", "allowed": rng.randrange(2)}),
        ]
    )


def _storage(rng: random.Random) -> tuple[str, dict[str, Any]]:
    claim = rng.choice(CLAIM_NAMES)
    return rng.choice(
        [
            ("claim", {"name": claim, "class_name": rng.choice(["local", "made", "made"])}),
            ("claim", {"name": claim, "class_name": rng.choice(["local", "made", "made"])}),
            ("volume", {"name": f"v{rng.randrange(3)}", "zone": rng.choice("ab")}),
            ("drop_claim", {"name": claim}),
        ]
    )


def _fault(rng: random.Random) -> tuple[str, dict[str, Any]]:
    times = rng.choice([1, 1, 2, 5])
    if rng.random() < 0.65:
        verb = rng.choice(["BIND", "BIND", "BIND", "PATCH", "DELETE", "EVENT", "GET"])
        faults = ["refused", "lost-request", "lost-answer", "lost-answer", "slow", "hangs", *STATUSES]
        if verb in {"BIND", "PATCH"}:
            faults.append("409")
        if verb in {"BIND", "DELETE", "EVENT"}:
            # A patch of the status that is carried out after its answer was given up can come after the bind.
            faults.append("late")
        fault = rng.choice(faults)
        return "fault", {"fault": fault, "verb": verb, "times": times, "seconds": rng.choice([0.5, 3.0, 12.0, 40.0])}
    path = rng.choice(WATCHED)
    if rng.random() < 0.4:
        faults = ["refused", "truncated", "lost-answer", "slow", "hangs", "410", *STATUSES]
        return "fault", {"fault": rng.choice(faults), "verb": "LIST", "part": path, "times": times, "seconds": 2.0}
    faults = ["ends", "cut", "reset", "silence", "duplicates", "error-410", "error-500", "refused", *STATUSES]
    return "fault", {"fault": rng.choice(faults), "verb": "WATCH", "part": path, "times": times}


def _stream(rng: random.Random) -> tuple[str, dict[str, Any]]:
    return rng.choice(
        [
            ("end_watches", {}),
            ("end_watches", {}),
            ("compact", {}),
            ("expire", {}),
            ("bookmarks", {"sent": False}),
            ("bookmarks", {"sent": True}),
            ("down", {"seconds": rng.choice([0.5, 5.0, 40.0])}),
        ]
    )


def _life(rng: random.Random) -> tuple[str, dict[str, Any]]:
    return rng.choice(
        [
            ("kill", {"seconds": rng.choice([0.5, 5.0])}),
            ("kill_at_write", {"number": rng.randint(1, 6)}),
            ("terminate", {}),
        ]
    )


class World:
    """A cluster with one scheduler, and what is done to both."""

    def __init__(self, seed: int) -> None:
        self.api = MemoryApi()
        self.api.rng = self.rng = random.Random(seed)
        VolumeController(self.api)
        self.lives: list[SchedulerLife] = []
        self._dies = asyncio.Event()
        self._created = 0
        self.start()

    @property
    def life(self) -> SchedulerLife:
        return self.lives[-1]

    def start(self) -> None:
        self._dies.clear()
        self.api.on_write = lambda: None
        self.lives.append(SchedulerLife(self.api, default_configuration(), self.rng))

    async def live_through(self, steps: Iterable[Step]) -> None:
        """Carry out the steps, and end all faults."""
        for step in steps:
            await self.act(step)
        self.api.faults.clear()
        self.api.sends_bookmarks = True
        self.api.on_write = lambda: None
        self._dies.clear()

    async def act(self, step: Step) -> None:
        done = getattr(self, step.what)(**step.given)
        if done is not None:
            await done
        await self.pause(step.wait)

    async def pause(self, seconds: float) -> None:
        """Let time go by; a scheduler that was told to die at a write is followed by the next."""
        until = self.api.loop.time() + seconds
        try:
            async with asyncio.timeout(seconds):
                await self._dies.wait()
        except TimeoutError:
            return
        await self.kill(0.5)
        await self.pause(max(until - self.api.loop.time(), 0.0))

    # Pods.

    def pod(self, name: str, **given: Any) -> None:
        """Create a pod unless there is one of that name."""
        if f"default/{name}" not in self.api.objects.get(PODS, {}):
            self._create(pod_object(name, **given))

    def placed(self, name: str, node: str, cpu: int) -> None:
        self._create(pod_object(name, cpu=cpu, scheduler="", node=node))

    def nominated(self, name: str, node: str, cpu: int) -> None:
        self._create(pod_object(name, cpu=cpu, scheduler="other", nominated=node, priority=7))

    def _create(self, obj: Object) -> None:
        if f"default/{obj['metadata']['name']}" in self.api.objects.get(PODS, {}):
            return
        self._created += 1
        obj["metadata"]["creationTimestamp"] = f"2026-01-01T00:{self._created // 60:02}:{self._created % 60:02}Z"
        self.api.put(PODS, obj)

    def delete(self, name: str) -> None:
        if self._pod(name) is not None:
            self.api.end_pod(f"default/{name}")

    def finish(self, name: str) -> None:
        found = self._pod(name)
        if found is not None and found["spec"].get("nodeName"):
            self.api.finish(f"default/{name}")

    def replace(self, name: str) -> None:
        """Delete a pod at once and create it anew under its name."""
        found = self._pod(name)
        if found is not None:
            self.api.end_pod(f"default/{name}", grace=0)
            spec = {key: value for key, value in found["spec"].items() if key != "nodeName"}
            if spec["schedulerName"]:
                metadata = {"name": name, "namespace": "default", "labels": {"app": "a"}}
                self._create({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def ungate(self, name: str) -> None:
        found = self._pod(name)
        if found is not None and found["spec"].get("schedulingGates"):
            self.api.put(PODS, {**found, "spec": {**found["spec"], "schedulingGates": []}})

    def relabel(self, name: str) -> None:
        found = self._pod(name)
        if found is not None:
            labels = {"app": "b" if found["metadata"].get("labels", {}).get("app") == "a" else "a"}
            self.api.put(PODS, {**found, "metadata": {**found["metadata"], "labels": labels}})

    def _pod(self, name: str) -> Object | None:
        return self.api.objects.get(PODS, {}).get(f"default/{name}")

    # Nodes and budgets.

    def node(self, name: str, **given: Any) -> None:
        self.api.put(NODES, node_object(name, **given))

    def drop_node(self, name: str) -> None:
        if name in self.api.objects.get(NODES, {}):
            self.api.delete(NODES, name)
            self.api.later(30.0, lambda: self._collect(name))

    def remake_node(self, name: str) -> None:
        found = self.api.objects.get(NODES, {}).get(name)
        if found is not None:
            self.api.delete(NODES, name)
            self.api.put(NODES, {**found, "metadata": {"name": name, "labels": found["metadata"]["labels"]}})

    def _collect(self, node: str) -> None:
        """Delete the pods of a node that is gone, as pod garbage collection does."""
        if node in self.api.objects[NODES]:
            return
        for key, pod in list(self.api.objects.get(PODS, {}).items()):
            if pod["spec"].get("nodeName") == node:
                self.api.end_pod(key, grace=0)

    def budget(self, name: str, allowed: int) -> None:
        spec = {"selector": {"matchLabels": {"app": "a"}}}
        metadata = {"name": name, "namespace": "default"}
        self.api.put(PDBS, {"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}})

    def claim(self, name: str, class_name: str) -> None:
        if f"default/{name}" not in self.api.objects.get(CLAIMS, {}):
            self.api.put(CLAIMS, claim_object(name, class_name))

    def drop_claim(self, name: str) -> None:
        """Delete a claim, whoever uses it; its volume stays, and is nobody's."""
        if f"default/{name}" in self.api.objects.get(CLAIMS, {}):
            self.api.delete(CLAIMS, f"default/{name}")

    def volume(self, name: str, zone: str) -> None:
        if name not in self.api.objects.get(VOLUMES, {}):
            self.api.put(VOLUMES, volume_object(name, zone))

    # Faults.

    def fault(self, fault: str, verb: str, times: int, part: str = "", seconds: float = 0.0) -> None:
        self.api.faults.append(Injected(fault, verb, part, times, seconds))

    def end_watches(self) -> None:
        self.api.end_watches()

    def compact(self) -> None:
        self.api.compact()
        self.api.end_watches()

    def expire(self) -> None:
        self.api.expire_continue_tokens()

    def bookmarks(self, *, sent: bool) -> None:
        self.api.sends_bookmarks = sent

    async def down(self, seconds: float) -> None:
        self.api.go_down()
        await self.pause(seconds)
        self.api.come_back()

    async def kill(self, seconds: float) -> None:
        await self.life.kill()
        await asyncio.sleep(seconds)
        self.start()

    def kill_at_write(self, number: int) -> None:
        left = number

        def count() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._dies.set()

        self.api.on_write = count

    async def reconfigure(self, *, spreads: bool) -> None:
        """Change the strategy while the scheduler goes on."""
        await self.life.parts.reload.replace(spreading() if spreads else default_configuration())

    async def terminate(self) -> None:
        await self.life.stop()
        self.start()
