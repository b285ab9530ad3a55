"""The fake API server without a network: what it answers to requests, and how pods live and end on their nodes."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from tests.faults.api_server import Change, FakeApiServer, Object
from tests.faults.faults import status_body, status_response
from tests.faults.targets import Target, target_of
from tests.faults.virtual_time import virtual_loop

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
EVENTS = "/apis/events.k8s.io/v1/events"
BOOKMARK_SECONDS = 55.0
_KUBELET_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Write:
    """A write by a scheduler that the API server was asked for: when, by which of its lives, and the answer."""

    at: float
    life: int
    method: str
    target: Target
    body: Object
    uid: str
    status: int
    version: int


@dataclass(frozen=True, slots=True)
class Post:
    """A binding as a scheduler sent it, whatever became of it."""

    at: float
    life: int
    uid: str
    node: str


@dataclass(slots=True)
class Injected:
    """A fault that waits for its request: `verb` as in `verb_of`, `part` of the path, `left` times."""

    fault: str
    verb: str
    part: str
    left: int
    seconds: float = 0.0


def verb_of(method: str, path: str, *, watching: bool = False) -> str:
    """What a request is to a scheduler: LIST, WATCH, GET, BIND, EVENT, PATCH or DELETE."""
    if method == "GET":
        return "WATCH" if watching else "GET" if target_of(path).name else "LIST"
    return "BIND" if path.endswith("/binding") else "EVENT" if "/events" in path else method


class MemoryApi(FakeApiServer):
    """An API server whose answers have no way to go; `history` and `writes` tell all that ever happened.

    Pods with a node run after a moment, and end when they are deleted, after their grace period.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loop = virtual_loop()
        self.rng = random.Random(0)
        self.times: list[float] = []
        self.writes: list[Write] = []
        self.delivered: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self.faults: list[Injected] = []
        self.posts: list[Post] = []
        self.life = 0
        self._late: list[asyncio.TimerHandle] = []
        self.on_write: Callable[[], None] = lambda: None
        self.watchers: list[Callable[[str, Object], None]] = []
        self.sends_bookmarks = True
        self.is_down = False
        self._lines: dict[tuple[int, str], bytes] = {}

    # What goes wrong.

    def take(self, verb: str, path: str) -> Injected | None:
        """The fault that meets this request, if any."""
        for injected in self.faults:
            if injected.left > 0 and injected.verb == verb and injected.part in path:
                injected.left -= 1
                return injected
        return None

    def go_down(self) -> None:
        """Refuse all connections and break those that are open."""
        self.is_down = True
        self._wake()

    def come_back(self) -> None:
        """Answer again, without the history of before, as after a restart."""
        self.is_down = False
        self.compact()
        self._wake()

    def carry_out_late(self, seconds: float, act: Callable[[], Any]) -> None:
        """Carry a request out after its answer was given up, unless its sender dies before."""
        self._late.append(self.loop.call_later(seconds, act))

    def sender_died(self) -> None:
        """Drop the requests that are on their way through the server: it sees their connection end."""
        for handle in self._late:
            handle.cancel()

    # Requests.

    def posted(self, body: bytes | None) -> None:
        """Note a binding that a scheduler sends."""
        sent = json.loads(body or b"{}")
        self.posts.append(Post(self.loop.time(), self.life, sent["metadata"]["uid"], sent["target"]["name"]))

    async def changed(self, seconds: float) -> None:
        """Wait until something changed, at most so long."""
        waiting = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([waiting], timeout=max(seconds, 0.0))
        finally:
            waiting.cancel()

    @property
    def endings(self) -> int:
        """How often all watches were ended."""
        return self._endings

    def answer(self, method: str, path: str, body: bytes | None) -> web.Response:
        """Carry out a request of the scheduler."""
        target, sent = target_of(path), json.loads(body) if body else {}
        stored = self.objects.get(target.collection, {}).get(target.key)
        response = self._one(method, target, sent)
        if method != "GET":
            uid = stored["metadata"]["uid"] if stored else ""
            write = Write(self.loop.time(), self.life, method, target, sent, uid, response.status, self.version)
            self.writes.append(write)
            self.on_write()
        return response

    def page(self, path: str, query: dict[str, str]) -> web.Response:
        """A page of a list."""
        return self._list(SimpleNamespace(query=query), target_of(path))

    def line(self, change: Change, selector: str) -> bytes:
        """The line of a watch that tells of a change; empty where the selector leaves it out."""
        known = self._lines.get((change.version, selector))
        if known is None:
            known = self._lines[(change.version, selector)] = self._line(change, selector).strip()
        return known

    # What the real one does, and the one on loopback leaves out.

    def _record(self, collection: str, kind: str, obj: Object, old: Object | None) -> None:
        self.times.append(self.loop.time())
        super()._record(collection, kind, obj, old)
        if collection == PODS and kind != "DELETED":
            self._run_kubelet(obj, old)
        if kind in {"ADDED", "MODIFIED"}:
            for watcher in self.watchers:
                watcher(collection, obj)

    def _bind(self, target: Target, obj: Object, body: Object) -> web.Response:
        if obj["metadata"].get("deletionTimestamp"):
            return status_response(409, "Conflict", "pod is being deleted, cannot be assigned to a host")
        if obj["spec"].get("schedulingGates"):
            return status_response(409, "Conflict", "pod has non-empty .spec.schedulingGates")
        if obj["spec"].get("nodeName"):
            return status_response(409, "Conflict", "pod is already assigned to a node")
        spec = {**obj["spec"], "nodeName": body["target"]["name"]}
        status = with_condition(obj["status"], {"type": "PodScheduled", "status": "True"})
        status.pop("nominatedNodeName", None)
        self.put(target.collection, {**obj, "spec": spec, "status": status})
        return web.json_response(status_body(201), status=201)

    def _patch(self, target: Target, obj: Object, body: Object) -> web.Response:
        if target.collection != PODS:
            return self._patch_whole(target, obj, body)
        sent = dict(body.get("status") or {})
        status = dict(obj["status"])
        for condition in sent.pop("conditions", ()):
            status = with_condition(status, condition)
        status.update(sent)
        if not status.get("nominatedNodeName"):
            status.pop("nominatedNodeName", None)
        elif obj["spec"].get("nodeName"):
            return status_response(422, "Invalid", "nominatedNodeName may not be set on a pod with a node")
        return web.json_response(self.put(PODS, {**obj, "status": status}) if status != obj["status"] else obj)

    def _patch_whole(self, target: Target, obj: Object, body: Object) -> web.Response:
        """Merge annotations and the fields of spec and the rest, of the version that the patch names, if it does."""
        metadata = dict(body.get("metadata") or {})
        if metadata.get("resourceVersion") not in {None, obj["metadata"]["resourceVersion"]}:
            return status_response(409, "Conflict", "the object has been modified")
        annotations = {**(obj["metadata"].get("annotations") or {}), **(metadata.get("annotations") or {})}
        merged = {key: {**obj.get(key, {}), **value} for key, value in body.items() if key != "metadata"}
        changed = {**obj, **merged, "metadata": {**obj["metadata"], "annotations": annotations}}
        return web.json_response(self.put(target.collection, changed))

    def _remove(self, target: Target, obj: Object, body: Object) -> web.Response:
        if target.collection != PODS:
            return super()._remove(target, obj, body)
        return web.json_response(self.end_pod(target.key))

    def end_pod(self, key: str, *, grace: float | None = None) -> Object:
        """Delete a pod as a user would: at once without a node, otherwise after its grace period."""
        obj = self.objects[PODS][key]
        grace = obj["spec"].get("terminationGracePeriodSeconds", 2) if grace is None else grace
        if not obj["spec"].get("nodeName"):
            grace = 0
        ending = {**obj["metadata"], "deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": grace}
        if grace == 0:
            self.delete(PODS, key)
            return {**obj, "metadata": ending}
        if obj["metadata"].get("deletionTimestamp"):
            return obj
        uid = obj["metadata"]["uid"]
        self.later(grace, lambda: self._is(key, uid) and self.delete(PODS, key))
        return self.put(PODS, {**obj, "metadata": ending})

    def later(self, seconds: float, act: Callable[[], Any]) -> None:
        """Have something happen by itself."""
        self.loop.call_later(seconds, act)

    def finish(self, key: str) -> None:
        """Let a pod succeed."""
        obj = self.objects[PODS][key]
        self.put(PODS, {**obj, "status": {**obj["status"], "phase": "Succeeded"}})

    def _run_kubelet(self, obj: Object, old: Object | None) -> None:
        node = obj["spec"].get("nodeName")
        if not node or (old is not None and old["spec"].get("nodeName")):
            return
        key, uid = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}", obj["metadata"]["uid"]

        def start() -> None:
            if self._is(key, uid):
                now = self.objects[PODS][key]
                if now["status"].get("phase") == "Pending" and not now["metadata"].get("deletionTimestamp"):
                    status = {**now["status"], "phase": "Running", "startTime": "2026-01-01T00:00:10Z"}
                    self.put(PODS, {**now, "status": status})

        self.later(_KUBELET_SECONDS, start)

    def _is(self, key: str, uid: str) -> bool:
        found = self.objects[PODS].get(key)
        return found is not None and found["metadata"]["uid"] == uid


def with_condition(status: Object, condition: Object) -> Object:
    """A status with a condition of that type replaced or added, as a strategic merge does."""
    old = status.get("conditions", [])
    kept = [each for each in old if each["type"] != condition["type"]]
    was: Object = next((each for each in old if each["type"] == condition["type"]), {})
    merged = {**was, **condition}
    if condition["status"] == "True" and condition["type"] == "PodScheduled":
        merged = condition
    return {**status, "conditions": [*kept, merged]}
