"""A binder between a server with one pod and what the cache would say."""

from tests.waiting import Sleeps

from bayplan.framework.interface import Binding
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.turns import Turns

PODS = "/api/v1/pods"
BINDING = Binding("default", "web", "u1", "n1")


class Scene:
    """A server with one pod, and what the cache would say."""

    def __init__(self, server, client):
        self.server = server
        self.nodes = {"n1"}
        self.confirmed = {}
        self.doubts = []
        self.conflicts = []
        self.sleeps = Sleeps()
        self.binder = Binder(
            client,
            node_exists=self.nodes.__contains__,
            confirmed_node=self.confirmed.get,
            on_ambiguous=lambda: self.doubts.append(1),
            on_conflict=lambda: self.conflicts.append(1),
            timeout=0.5,
            request_timeout=0.1,
            sleep=self.sleeps,
        )

    def put(self, uid="u1", phase="Pending", metadata=None, **spec):
        metadata = {"name": "web", "namespace": "default", "uid": uid, **(metadata or {})}
        self.server.put(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})

    def fail(self, fault, method="POST", times=1):
        self.server.inject(fault, method=method, path="/pods/web", times=times)

    def count(self, method):
        return sum(seen.method == method for seen in self.server.requests)

    def bound_to(self):
        return self.server.objects[PODS]["default/web"]["spec"].get("nodeName")

    async def bind(self):
        return await self.binder.bind(BINDING, Turns(1).turn(BINDING.namespace))
