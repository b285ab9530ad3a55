"""Two full nodes, a PostFilter plugin that chooses victims as told, and an API server that answers as told."""

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field

from tests.builders import make_pod
from tests.scheduler import scene
from tests.waiting import Sleeps

from bayplan.api.response import ApiResponse
from bayplan.framework.interface import PostFilterResult
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.scheduler.dispatcher import Dispatcher

NO = Status(Code.UNSCHEDULABLE, ("No preemption victims found for incoming pod",))


@dataclass
class Chooser:
    """Stands in for DefaultPreemption: nominates each pod as told, and else says "" (clear) or None (leave)."""

    name = "DefaultPreemption"
    nominations: dict = field(default_factory=dict)
    candidates: tuple = ()
    otherwise: str | None = ""
    evicts: bool = False
    retry_after: float | None = None

    def post_filter(self, state, pod, nodes, rejections):
        if pod.uid in self.nominations:
            node, *victims = self.nominations[pod.uid]
            found = tuple(v for n in nodes.pods for v in n.values() if v.uid in victims)
            return PostFilterResult(SUCCESS, node, found, self.candidates, evicts=self.evicts)
        return PostFilterResult(NO, self.otherwise, retry_after=self.retry_after)


class Api:
    """The API server: takes calls down in order; `answers` by (method, name) come first, statuses or errors.

    A dry run is an ASK, whichever call it is of. What `refuses` names is refused, asked or not.
    """

    def __init__(self):
        self.calls = []
        self.answers = defaultdict(list)
        self.gates = defaultdict(asyncio.Event)
        self.closed = set()
        self.refuses = {}
        self.busy = self.most = 0

    async def request(self, method, path, *, body=None, content_type=None, accept=None, on_send):
        name = path.split("/pods/")[1].split("/")[0] if "/pods/" in path else ""
        content = json.loads(body)
        kind = "EVICT" if "/eviction" in path else "EVENT" if "/events" in path else method
        ends = kind in {"EVICT", "DELETE"}
        if "dryRun" in content or "dryRun" in content.get("deleteOptions", {}):
            kind = "ASK"
        on_send()
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(0)
        if (kind, name) in self.closed:
            await self.gates[kind, name].wait()
        self.busy -= 1
        self.calls.append((kind, name, content))
        answer = self.answers[kind, name].pop(0) if self.answers[kind, name] else 200
        if ends and name in self.refuses:
            answer = self.refuses[name]
        if isinstance(answer, Exception):
            raise answer
        status, reply = answer if isinstance(answer, tuple) else (answer, b"")
        return ApiResponse(status, reply)

    def close(self, kind, *names):
        self.closed |= {(kind, name) for name in names}

    def open(self, kind, *names):
        for name in names:
            self.closed.discard((kind, name))
            self.gates[kind, name].set()

    def order(self):
        return [(kind, name) for kind, name, _ in self.calls]

    def deleted(self):
        return [name for kind, name in self.order() if kind == "DELETE"]

    def bodies(self, kind, name):
        return [content for k, n, content in self.calls if (k, n) == (kind, name)]


class Scene(scene.Scene):
    """Two nodes of one CPU that a pod of low priority fills each; preemption is the chooser's."""

    def __init__(self):
        self.api, self.chooser = Api(), Chooser()
        super().__init__(Dispatcher(self.api, self.api, sleep=Sleeps()))
        self.framework.post_filters = [self.chooser]
        self.placed = {}
        for node in ("n1", "n2"):
            self.node(node, cpu="1")
            self.place(f"low-{node}", node)

    def place(self, name, node, cpu="1", **fields):
        pod = self.placed[name] = make_pod(name, uid=name, cpu=cpu, node=node, **{"priority": 0, **fields})
        self.assigned.on_add(pod)

    def pod(self, name="p", **fields):
        return super().pod(name, **{"priority": 10, **fields})

    async def attempt(self):
        """One attempt and all that follows from it."""
        queued = self.step()
        await self.work()
        return queued

    async def work(self):
        """Everything that can happen without time passing."""
        for _ in range(100):
            await asyncio.sleep(0)
        self.check()

    def nominated(self, uid="p"):
        return self.queue.nominator.nominated_node(uid)


async def preempt(scene, *victims, uid="p", node="n1", **fields):
    """A pod comes for which `victims`, or the low pod of the node, are to make room, and is tried."""
    scene.chooser.nominations[uid] = (node, *(victims or (f"low-{node}",)))
    scene.pod(uid, **fields)
    await scene.attempt()
