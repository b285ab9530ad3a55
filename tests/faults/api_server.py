"""A small Kubernetes API server on loopback that can be told to fail; state is in `FakeApiServer.put` and friends."""

import asyncio
import contextlib
import copy
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from tests.faults.faults import Fault, RequestFault, StreamFault, status_body, status_response
from tests.faults.targets import Target, target_of

Object = dict[str, Any]


@dataclass
class Seen:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes
    raw_path: str


@dataclass
class _Injected:
    fault: Fault
    method: str
    path: str
    left: int


@dataclass
class Change:
    """What happened to an object, in the order of `FakeApiServer.history`."""

    version: int
    collection: str
    type: str
    obj: Object
    old: Object | None


def _matches(obj: Object | None, selector: str) -> bool:
    if obj is None:
        return False
    for term in filter(None, selector.split(",")):
        negative = "!=" in term
        name, _, wanted = term.partition("!=" if negative else "=")
        value: Any = obj
        for part in name.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        if (str(value or "") == wanted) == negative:
            return False
    return True


def _key(obj: Object) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


@dataclass
class FakeApiServer:
    """Lists (paged), watches (field selectors, bookmarks), creates, binds, patches and deletes.

    `async with FakeApiServer() as server`; `tokens` empty means everybody may do everything.
    """

    tls: ssl.SSLContext | None = None
    tokens: set[str] = field(default_factory=set)
    requests: list[Seen] = field(default_factory=list)
    reviews: dict[str, Callable[[Object], Object]] = field(default_factory=dict)  # by collection: spec to status

    def __post_init__(self) -> None:
        self.version = 10
        self.compacted = 0
        self.objects: dict[str, dict[str, Object]] = {}
        self.history: list[Change] = []
        self._changed = asyncio.Event()
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._faults: list[_Injected] = []
        self._endings = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        self._listening: list[socket.socket] = []
        await self._runner.setup()
        await self.listen(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        # asyncio leaves open what it accepted right before its server ends: accept no more, and let that begin.
        for each in self._listening:
            asyncio.get_running_loop().remove_reader(each)
        for _ in range(3):
            await asyncio.sleep(0)
        server = self._runner.server
        # Closing TLS politely waits for the client's goodbye, for which the loop may not live long enough.
        for connection in server.connections if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()
        await asyncio.sleep(0)

    async def listen(self, port: int) -> None:
        self._listening.append(socket.create_server(("127.0.0.1", port)))
        await web.SockSite(self._runner, self._listening[-1], ssl_context=self.tls).start()
        self.port = self._listening[-1].getsockname()[1]
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def inject(self, fault: Fault, *, method: str = "", path: str = "", times: int = 1) -> None:
        """Let the next `times` matching requests fail so.

        `method` "" means any, WATCH is a watch, GET is a get or list; a StreamFault only ever meets watches.
        """
        self._faults.append(_Injected(fault, method, path, times))

    def put(self, collection: str, obj: Object) -> Object:
        """Create or change an object as some other client would; a new UID under an old name is a re-creation."""
        self.version += 1
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        old = self.objects.setdefault(collection, {}).get(_key(obj))
        meta.setdefault("uid", old["metadata"]["uid"] if old else f"uid-{self.version}")
        if old is not None and old["metadata"]["uid"] != meta["uid"]:
            self.delete(collection, _key(obj))
            return self.put(collection, obj)
        meta["resourceVersion"] = str(self.version)
        self.objects[collection][_key(obj)] = obj
        self._record(collection, "MODIFIED" if old else "ADDED", obj, old)
        return obj

    def delete(self, collection: str, key: str) -> None:
        self.version += 1
        old = self.objects[collection].pop(key)
        gone = copy.deepcopy(old)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._record(collection, "DELETED", gone, old)

    def bookmark(self, collection: str) -> None:
        self.version += 1
        self._record(collection, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}, None)

    def compact(self) -> None:
        """Forget all history: versions and continue tokens handed out so far are gone."""
        self.version += 1
        self.compacted = self.version
        self.expire_continue_tokens()

    def restore(self, version: int) -> None:
        """Go back to an empty store at an earlier version, as if etcd were restored from a backup of then."""
        self.version, self.compacted = version, 0
        self.objects.clear()
        self.history.clear()
        self.expire_continue_tokens()

    def expire_continue_tokens(self) -> None:
        """Forget every list that is under way: its next page is answered with 410."""
        self._pages.clear()

    @property
    def connections(self) -> int:
        """How many connections clients hold open."""
        server = self._runner.server
        return sum(each.transport is not None for each in server.connections) if server is not None else 0

    def watches(self, collection: str) -> int:
        """Return how many watches were asked for."""
        return sum(1 for seen in self.requests if seen.path == collection and "watch" in seen.query)

    def lists(self, collection: str) -> int:
        """Return how many list pages were asked for."""
        return sum(1 for s in self.requests if s.path == collection and s.method == "GET" and "watch" not in s.query)

    def end_watches(self) -> None:
        """End every open watch cleanly, as a server does when their time is over."""
        self._endings += 1
        self._wake()

    def _record(self, collection: str, kind: str, obj: Object, old: Object | None) -> None:
        self.history.append(Change(self.version, collection, kind, obj, old))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.method, request.path, dict(request.query), headers, body, request.raw_path)
        self.requests.append(seen)
        watching = "watch" in request.query
        fault = self._take_fault(seen, watching=watching)
        if self.tokens and request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return status_response(401, "Unauthorized", "Unauthorized")

        async def act() -> web.StreamResponse:
            target = target_of(request.path)
            if watching:
                return await self._watch(request, target, fault if isinstance(fault, StreamFault) else StreamFault())
            if request.method == "GET" and not target.name:
                return self._list(request, target)
            return self._one(request.method, target, json.loads(body) if body else {})

        if isinstance(fault, RequestFault):
            return await fault.serve(request, act)
        return await act()

    def _take_fault(self, seen: Seen, *, watching: bool) -> Fault | None:
        for injected in self._faults:
            stream = isinstance(injected.fault, StreamFault)
            if injected.left <= 0 or (stream and not watching):
                continue
            verb = "WATCH" if watching else seen.method
            if injected.method not in {"", verb} or injected.path not in seen.path:
                continue
            injected.left -= 1
            return injected.fault
        return None

    def _list(self, request: web.Request, target: Target) -> web.Response:
        token, limit = request.query.get("continue", ""), int(request.query.get("limit", "0"))
        selector = request.query.get("fieldSelector", "")
        if token:
            if token not in self._pages:
                return status_response(410, "Expired", "The provided continue parameter is too old")
            version, rest = self._pages[token]
        else:
            version = self.version
            stored = self.objects.get(target.collection, {})
            rest = [copy.deepcopy(stored[key]) for key in sorted(stored) if _matches(stored[key], selector)]
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        meta: Object = {"resourceVersion": str(version)}
        if rest:
            meta["continue"] = f"{version}:{len(rest)}:{len(self._pages)}"
            self._pages[meta["continue"]] = (version, rest)
        return web.json_response({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page})

    async def _watch(self, request: web.Request, target: Target, fault: StreamFault) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        selector = request.query.get("fieldSelector", "")
        version = int(request.query.get("resourceVersion") or 0)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            if version < self.compacted:
                error = {"type": "ERROR", "object": status_body(410, "Expired", f"too old resource version: {version}")}
                await response.write(json.dumps(error).encode() + b"\n")
                return response
            if not await fault.opened(request, response):
                return response
            position, endings = 0, self._endings
            while endings == self._endings:
                changed = self._changed
                while position < len(self.history):
                    change = self.history[position]
                    position += 1
                    if change.collection != target.collection or change.version <= version:
                        continue
                    line = self._line(change, selector)
                    if line and not await fault.event(request, response, line):
                        return response
                await changed.wait()
        return response

    @staticmethod
    def _line(change: Change, selector: str) -> bytes:
        kind = change.type
        if kind != "BOOKMARK":
            before = _matches(change.old, selector)
            after = kind != "DELETED" and _matches(change.obj, selector)
            if not before and not after:
                return b""
            kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
        return json.dumps({"type": kind, "object": change.obj}).encode() + b"\n"

    def _one(self, method: str, target: Target, body: Object) -> web.Response:
        stored = self.objects.get(target.collection, {})
        if method == "POST" and (review := self.reviews.get(target.collection)) is not None:
            return web.json_response({**body, "status": review(body["spec"])}, status=201)
        if method == "POST" and not target.name:
            body.setdefault("metadata", {}).setdefault("namespace", target.namespace)
            if _key(body) in stored:
                return status_response(409, "AlreadyExists", f'"{body["metadata"]["name"]}" already exists')
            return web.json_response(self.put(target.collection, body), status=201)
        obj = stored.get(target.key)
        if obj is None:
            return status_response(404, "NotFound", f'"{target.name}" not found')
        uid = (body.get("preconditions") or body.get("metadata") or {}).get("uid")
        if uid and uid != obj["metadata"]["uid"]:
            return status_response(409, "Conflict", "the UID in the precondition does not match")
        acts = {"GET": self._get, "DELETE": self._remove, "POST": self._bind, "PATCH": self._patch, "PUT": self._update}
        act = acts.get(method)
        return act(target, obj, body) if act else status_response(405, "MethodNotAllowed", method)

    def _get(self, _: Target, obj: Object, __: Object) -> web.Response:
        return web.json_response(obj)

    def _update(self, target: Target, obj: Object, body: Object) -> web.Response:
        """Replace the object if it is the version that the body was made from."""
        if body["metadata"].get("resourceVersion") != obj["metadata"]["resourceVersion"]:
            return status_response(409, "Conflict", "the object has been modified")
        return web.json_response(self.put(target.collection, body))

    def _remove(self, target: Target, _: Object, __: Object) -> web.Response:
        self.delete(target.collection, target.key)
        return web.json_response(status_body(200))

    def _bind(self, target: Target, obj: Object, body: Object) -> web.Response:
        if target.subresource != "binding":
            return status_response(405, "MethodNotAllowed", "only bindings are created here")
        if obj.get("spec", {}).get("nodeName"):
            return status_response(409, "Conflict", f"pod {target.name} is already assigned to a node")
        spec = {**obj.get("spec", {}), "nodeName": body["target"]["name"]}
        self.put(target.collection, {**obj, "spec": spec})
        return web.json_response(status_body(201), status=201)

    def _patch(self, target: Target, obj: Object, body: Object) -> web.Response:
        """Replace the fields of spec and status that the patch names: enough for tests, no strategic merge."""
        merged = {part: {**obj.get(part, {}), **(body.get(part) or {})} for part in ("spec", "status")}
        return web.json_response(self.put(target.collection, {**obj, **merged}))
