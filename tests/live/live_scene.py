"""A whole scheduler in memory that is asked questions, and what it holds, to be compared before and after."""

import json

from tests.scheduler.scene import Scene

from bayplan.config.load import default_configuration
from bayplan.live.inspector import LiveInspector
from bayplan.live.simulation import KnownClasses
from bayplan.plugins.dynamic_resources.claim_cache import StrandedDevices


class LiveScene(Scene):
    """A scene whose scheduler is asked."""

    def __init__(self, configuration=None, **settings):
        super().__init__(configuration=configuration, **settings)
        self.leading = self.synced = True
        self.known_classes = KnownClasses()
        self.inspector = LiveInspector(
            cache=self.cache,
            queue=self.queue,
            frameworks=lambda: self.scheduler.frameworks,
            recent=self.scheduler.decisions,
            configuration=lambda: configuration or default_configuration(),
            is_leading=lambda: self.leading,
            is_synced=lambda: self.synced,
            identity="host_1",
            read_classes=self._classes,
            stranded_devices=StrandedDevices(self.cache.listers).by_driver,
        )

    async def _classes(self):
        return self.known_classes

    def held(self):
        """All that the scheduler decides by, and what it decided."""
        nodes = self.cache.nodes
        nominator = self.queue.nominator
        rows = nodes.rows().tolist()
        return (
            [(nodes.names[row], sorted(nodes.pods[row])) for row in rows],
            {name: column[rows].tolist() for name, column in nodes.requested.items()},
            [self.cache.is_assumed(uid) for row in rows for uid in sorted(nodes.pods[row])],
            [(name, sorted(pod.uid for pod in nominator.nominated_pods_for_node(name))) for name in nominator.nodes()],
            sorted((each.uid, each.sub_queue, each.attempts, each.timestamp) for each in self.queue.queued()),
            sorted(self.queue.uids()),
            self.scheduler.decisions.last,
            (nodes.usage_changed.position, nodes.objects_changed.position, nodes.pods_changed.position),
            len(self.dispatcher.jobs),
            len(self.dispatcher.patches),
            len(self.recorder.said),
        )

    async def explain(self, name, namespace="default"):
        return json.loads(await self.inspector.explanation(namespace, name))

    async def simulate(self, *objects, count=""):
        body = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return json.loads(await self.inspector.simulation(json.dumps(body).encode(), count))


def pod_body(name="asked", cpu="1", scheduler="bayplan", **spec):
    """A pod as kubectl takes it."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }
