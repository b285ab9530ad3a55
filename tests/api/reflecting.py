"""A reflector that runs against a fake API server, and the view it gives."""

import asyncio
import contextlib
import random
from collections.abc import Callable

from tests.waiting import Sleeps

from bayplan.api.credentials import Credentials
from bayplan.api.objects import Pod
from bayplan.api.reflector import Reflector

PODS = "/api/v1/pods"


class View:
    """A handler that remembers what it was told, and objects to being told nonsense."""

    def __init__(self) -> None:
        self.objects: dict[str, object] = {}
        self.calls: list[str] = []
        self.synced = 0
        self.hook: Callable[[str], None] = lambda call: None

    def on_add(self, obj):
        assert obj.metadata.name not in self.objects
        self.objects[obj.metadata.name] = obj
        self._called("add", obj)

    def on_update(self, old, new):
        assert self.objects[new.metadata.name] is old
        assert old.metadata.uid == new.metadata.uid
        self.objects[new.metadata.name] = new
        self._called("update", new)

    def on_delete(self, obj):
        assert self.objects.pop(obj.metadata.name) is obj
        self._called("delete", obj)

    def on_synced(self):
        self.synced += 1
        self._called("synced", None)

    def versions(self):
        return {name: (obj.metadata.uid, obj.metadata.resource_version) for name, obj in self.objects.items()}

    def _called(self, what, obj):
        call = f"{what} {obj.metadata.name}" if obj else what
        self.calls.append(call)
        self.hook(call)


def pod(name, **spec):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def truth(server, collection=PODS):
    return {
        o["metadata"]["name"]: (o["metadata"]["uid"], o["metadata"]["resourceVersion"])
        for o in server.objects.get(collection, {}).values()
    }


@contextlib.asynccontextmanager
async def reflecting(server, *, view=None, path=PODS, object_type=Pod, sleeps=None, credentials=None, **options):
    view = view or View()
    reflector = Reflector(
        credentials or Credentials(server=server.url),
        path,
        object_type,
        handler=view,
        sleep=sleeps or Sleeps(),
        rng=random.Random(1),
        **options,
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector, view
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
