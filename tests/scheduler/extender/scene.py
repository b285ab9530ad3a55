"""A scheduling cycle with extenders in front of it, over a cluster that a test brings."""

from dataclasses import replace

import msgspec

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.extender.client import make_clients
from bayplan.scheduler.extender.cycle import ExtendedCycle

WHOLE_POD = b'{"metadata":{"name":"p","annotations":{"a":"b"}}}'


class ExtendedScene:
    """Asks the extenders as the scheduler does; `stack` closes their clients, `meanwhile` is called while they think.

    `reads` counts how often the API server was asked for the whole pod.
    """

    def __init__(self, stack, world, extenders):
        self.world = world
        self.clients = clients(stack, *extenders)
        self.meanwhile = lambda: None
        self.reads = 0
        self.cycle = ExtendedCycle(world.cycle, world.cache.nodes, self.clients, self._source)

    async def _source(self, pod):
        self.reads += 1
        self.meanwhile()
        return msgspec.Raw(WHOLE_POD)

    async def schedule(self, pod):
        return (await self.cycle.schedule(PodInfo(pod), self.world.framework)).outcome


def clients(stack, *extenders, admit=None):
    made = make_clients(extenders, admit)
    for client in made:
        stack.push_async_callback(client.close)
    return made


def at(server, extender, **fields):
    return replace(extender, url_prefix=server.url, **fields)
