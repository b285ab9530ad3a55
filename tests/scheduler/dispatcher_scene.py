"""A dispatcher between two clients that answer as told."""

import asyncio
import json
import logging
from collections import defaultdict

from tests.waiting import Sleeps

from bayplan.api.client import ApiResponse
from bayplan.scheduler.api_calls import ApiCall
from bayplan.scheduler.dispatcher import Dispatcher


class Client:
    """Answers what it is told to, 200 otherwise; a closed gate holds every request."""

    def __init__(self):
        self.started = []
        self.done = []
        self.answers = defaultdict(list)
        self.gate = asyncio.Event()
        self.gate.set()
        self.now = 0
        self.most = 0

    async def request(self, method, path, *, body=None, content_type=None):
        self.started.append(path)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            answer = self.answers[path].pop(0) if self.answers[path] else 200
            if isinstance(answer, BaseException):
                raise answer
            self.done.append((path, body and json.loads(body)["status"]["v"].encode()))
            return ApiResponse(answer, path.encode())
        finally:
            self.now -= 1


class Scene:
    def __init__(self, **workers):
        self.client, self.events = Client(), Client()
        self.patched, self.sleeps = [], Sleeps()
        self.dispatcher = Dispatcher(
            self.client, self.events, on_patched=self.patched.append, sleep=self.sleeps, **workers
        )
        self.lost = []

    @classmethod
    def started(cls, **workers):
        made = cls(**workers)
        made.dispatcher.start()
        return made

    def send(self, *paths):
        for path in paths:
            self.dispatcher.send(ApiCall("POST", path, None, "x", path))

    def patch(self, uid, body=b""):
        call = ApiCall("PATCH", uid, json.dumps({"status": {"v": body.decode()}}).encode(), "x", uid)
        self.dispatcher.patch(uid, call, lambda done: done or self.lost.append((uid, body)))

    def submit(self, job, times=1):
        for _ in range(times):
            self.dispatcher.submit(job)

    def close(self):
        self.client.gate.clear()
        self.events.gate.clear()

    def open(self):
        self.client.gate.set()
        self.events.gate.set()

    async def drain(self, binds_seconds=30, calls_seconds=30):
        await self.dispatcher.drain(binds_seconds=binds_seconds, calls_seconds=calls_seconds)


async def settle():
    """Lets everything run that can without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


def warnings(caplog):
    return [r for r in caplog.records if r.levelno >= logging.WARNING]
