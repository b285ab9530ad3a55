"""A dispatcher between two clients that answer as told."""

import asyncio
import json
import logging
from collections import defaultdict
from functools import partial
from itertools import count

from tests.waiting import Sleeps, until

from bayplan.api.response import ApiCall, ApiResponse
from bayplan.scheduler.dispatcher import Dispatcher


class Client:
    """Answers what it is told to, 200 otherwise; a closed gate holds every request, `closed` those to its paths.

    Without `tokens` no request leaves: the rate limit holds it up."""

    def __init__(self):
        self.started = []
        self.bodies = []
        self.on_its_way = []
        self.done = []
        self.answers = defaultdict(list)
        self.gate = asyncio.Event()
        self.gate.set()
        self.tokens = asyncio.Event()
        self.tokens.set()
        self.closed = set()
        self.now = 0
        self.most = 0

    async def request(self, method, path, *, body=None, content_type=None, accept=None, on_send):
        await self.tokens.wait()
        on_send()
        path = path.partition("/pods/")[2]
        content = (path, body and json.loads(body)["status"]["v"].encode())
        self.started.append(path)
        self.bodies.append(content)
        self.on_its_way.append(content)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            await until(lambda: path not in self.closed)
            answer = self.answers[path].pop(0) if self.answers[path] else 200
            if isinstance(answer, BaseException):
                raise answer
            self.done.append(content)
            if isinstance(answer, ApiResponse):
                return answer
            return ApiResponse(answer, path.encode())
        finally:
            self.now -= 1
            self.on_its_way.remove(content)


def call_to(name, namespace=None, *, method="POST", body=None):
    """A call about a pod, in a namespace of its own unless one is given."""
    return ApiCall(method, f"/namespaces/{namespace or name}/pods/{name}", name, body, "x")


class Scene:
    def __init__(self, **limits):
        self.client, self.events = Client(), Client()
        self.patched, self.sleeps = [], Sleeps()
        self.calls = []
        self.dispatcher = Dispatcher(
            self.client,
            self.events,
            on_patched=self.patched.append,
            on_call=lambda call_type, result, seconds: self.calls.append((call_type, result)),
            wake=self._wake,
            sleep=self.sleeps,
            **limits,
        )
        self.lost = []
        self.woken = 0
        self.numbers = count()

    def _wake(self):
        self.woken += 1

    def send(self, *paths, uid=None, method="POST", if_missing=None, namespace=None, **options):
        """Events of a pod each, or all of one; `if_missing` is the path of what creates them."""
        for path in paths:
            create = None if if_missing is None else call_to(if_missing, namespace, method="POST")
            self.dispatcher.send(uid or path, call_to(path, namespace, method=method), create, **options)

    def patch(self, uid, body=b"", namespace=None, **options):
        content = json.dumps({"status": {"v": body.decode()}}).encode()
        call = call_to(uid, namespace, method="PATCH", body=content)
        self.dispatcher.patch(uid, call, lambda done: done or self.lost.append((uid, body)), **options)

    def submit(self, job, times=1, uid=None, namespace=None, priority=0):
        """Binds of a pod each, or of the pod `uid`; each holds its turn until its end."""
        for _ in range(times):
            name = uid or f"bind-{next(self.numbers)}"
            self.dispatcher.submit(name, namespace or name, partial(_sent, job), priority)

    def close(self):
        self.client.gate.clear()
        self.events.gate.clear()

    def open(self):
        for client in (self.client, self.events):
            client.gate.set()
            client.closed = set()

    async def drain(self, binds_seconds=30, calls_seconds=30):
        await self.dispatcher.drain(binds_seconds=binds_seconds, calls_seconds=calls_seconds)


async def _sent(job, turn):
    turn.sent()
    await job()


async def settle():
    """Lets everything run that can without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


def warnings(caplog):
    return [r for r in caplog.records if r.levelno >= logging.WARNING]
