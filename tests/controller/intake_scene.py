"""The intake's list against a fake API server."""

from functools import partial

import msgspec
from tests.controller.kubernetes_api import PODS, pod
from tests.scheduler.handler_scene import HandlerScene
from tests.waiting import Sleeps

from bayplan.api.credentials import Credentials
from bayplan.api.objects import Pod
from bayplan.api.watch_source import WatchSource
from bayplan.controller.intake_list import IntakeList


class IntakeScene:
    """The intake's list between a server and the real handlers of pending pods."""

    def __init__(self, server, client, *names, page_size=500):
        names = names or ("bayplan",)
        self.server = server
        self.handlers = HandlerScene(profiles=names)
        self.pending, self.queue, self.gone = self.handlers.pending, self.handlers.queue, self.handlers.gone
        self.sleep = Sleeps()
        source = partial(WatchSource, Credentials(server=server.url), PODS, list_timeout=30.0, inactivity=30.0)
        self.list = IntakeList(client, source, names, self.pending, page_size=page_size, sleep=self.sleep)

    def put(self, name, *, queued=False, **fields):
        metadata = fields.pop("metadata", {})
        obj = pod(name, **{"scheduler": "bayplan", **fields})
        obj["metadata"] |= {"uid": f"uid-{name}", **metadata}
        stored = self.server.put(PODS, obj)
        if queued:
            self.ghost(name, stored["metadata"], **fields)

    def ghost(self, name, metadata=None, **fields):
        """A pod that is queued, whatever the server has."""
        told = pod(name, **fields)
        told["metadata"] |= metadata or {"uid": f"uid-{name}"}
        self.pending.changed(msgspec.convert(told, Pod))

    def queued(self):
        return {uid.removeprefix("uid-") for uid in self.queue.uids()}

    async def filled(self):
        assert await self.list.fill()

    async def compared(self, times=1):
        for _ in range(times):
            await self.list.compare()

    def lists(self):
        return [seen for seen in self.server.requests if seen.path == PODS]

    def fetched(self):
        return [seen.path.rpartition("/")[2] for seen in self.server.requests if seen.path != PODS]
