import asyncio
import contextlib
import logging

import numpy as np
import pytest
from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi, node, pod
from tests.faults.faults import BlackHole, CutAfterLine, Delay, Garbage, Refuse, Reset, StreamError
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.api.kinds import resource_of
from bayplan.api.objects import Pod
from bayplan.api.reflector import Timing
from bayplan.api.storage_objects import PersistentVolumeClaim, StorageClass
from bayplan.api.workload_objects import ReplicaSet
from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.controller.app import App, ServeOptions
from bayplan.controller.watches import Watches
from bayplan.framework.cluster_event import ActionType, EventRegistration, EventResource, cluster_event
from bayplan.framework.status import Code, Reason
from bayplan.framework.traits import Reads, Traits
from bayplan.plugins import registry
from bayplan.queue.queue_profile import QueueProfile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.observer import NoObserver
from bayplan.server.health import HealthChecks

CLAIMS = resource_of(PersistentVolumeClaim).path
CLASSES = resource_of(StorageClass).path
ASKED = (PersistentVolumeClaim, StorageClass, ReplicaSet)


class Scene:
    """Watches over a fake API server, without a scheduler."""

    def __init__(self, server, asked=ASKED):
        self.cache = Cache()
        self.claims, self.classes, *_ = [self.cache.listers.of(kind) for kind in asked]
        self.woken = 0
        self.observer = Observer()
        queue = SchedulingQueue(clock=lambda: 0.0, profiles={"bayplan": QueueProfile(lambda _: None, {})})
        self.watches = Watches(
            Credentials(server=server.url),
            self.cache,
            queue,
            self.observer,
            wake=self._wake,
            on_gone=lambda uid: None,
            timing=Timing(first_delay=0.05),
        )
        self.health = HealthChecks()
        self.watches.add_readiness(self.health)

    def _wake(self):
        self.woken += 1

    def failing(self):
        lines = self.health.readyz().text.splitlines()
        return [line.removeprefix("[-]") for line in lines if line.startswith("[-]")]


class Observer(NoObserver):
    def __init__(self):
        self.left_out = []

    def undecodable(self, kind):
        self.left_out.append(kind)


@contextlib.asynccontextmanager
async def watching(*faults, objects=()):
    async with KubernetesApi() as server:
        for collection, obj in objects:
            server.put(collection, obj)
        for fault, options in faults:
            server.inject(fault, **options)
        scene = Scene(server)
        tasks = [asyncio.create_task(work) for work in scene.watches.work().values()]
        try:
            yield scene, server
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def claim(name, volume=""):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"volumeName": volume}}


def storage_class(name):
    return {"metadata": {"name": name}, "provisioner": "example.com/disk"}


async def test_the_listers_hold_what_the_api_server_has_and_follow_it():
    async with watching(objects=[(CLAIMS, claim("a")), (CLASSES, storage_class("fast"))]) as (scene, server):
        await until(lambda: scene.watches.synced)
        assert scene.failing() == []
        assert all(lister.synced for lister in (scene.claims, scene.classes, scene.cache.listers.of(ReplicaSet)))
        assert scene.classes.get("fast").provisioner == "example.com/disk"
        before = scene.woken
        server.put(CLAIMS, claim("a", volume="pv1"))
        server.put(CLAIMS, claim("b"))
        await until(lambda: len(scene.claims) == 2)
        assert scene.claims.get("default/a").spec.volume_name == "pv1"
        server.delete(CLAIMS, "default/a")
        await until(lambda: scene.claims.get("default/a") is None)
        assert scene.woken == before + 3


async def test_each_watch_is_logged_by_its_name(caplog):
    caplog.set_level(logging.INFO)
    async with KubernetesApi() as server:
        server.inject(StreamError(500), method="WATCH", path=PODS, times=6)
        app = App(default_configuration(), Credentials(server=server.url), ServeOptions("127.0.0.1", 0))
        running = asyncio.create_task(app.run())
        try:
            for name in ("nodes", "pods", "nominations"):
                await until(lambda name=name: f"listed watch={name} " in caplog.text)
            for name in ("pods", "nominations"):
                await until(lambda name=name: f"watch interrupted watch={name} " in caplog.text)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_only_what_plugins_asked_for_is_watched():
    async with watching() as (scene, server):
        await until(lambda: scene.watches.synced)
        listed = {seen.path for seen in server.requests}
        assert listed == {NODES, PODS, *(resource_of(kind).path for kind in ASKED)}


async def test_a_list_that_is_late_holds_the_start_and_readiness():
    async with watching((BlackHole(), {"path": CLAIMS})) as (scene, _):
        await until(lambda: scene.classes.synced and len(scene.failing()) == 1)
        assert scene.failing() == ["persistentvolumeclaims-synced failed: persistentvolumeclaims are not listed yet"]
        assert not scene.watches.synced
        assert not scene.claims.synced


async def test_a_kind_the_api_server_does_not_serve_counts_as_empty_until_it_is_served(caplog):
    missing = (Refuse(404, "NotFound"), {"path": CLASSES, "times": 2})
    async with watching(missing, objects=[(CLASSES, storage_class("fast"))]) as (scene, server):
        await until(lambda: scene.watches.synced)
        assert scene.failing() == []
        assert scene.classes.synced
        assert len(scene.classes) == 0
        assert "storageclasses" not in scene.watches.states()
        await until(lambda: server.lists(CLASSES) >= 2)
        await until(lambda: scene.classes.get("fast"))
        assert "storageclasses" in scene.watches.states()
        (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert "does not serve this kind, going on without kind=StorageClass" in warning.message


@pytest.mark.parametrize("collection", [NODES, PODS])
async def test_no_api_server_goes_without_nodes_and_pods(collection):
    async with watching((Refuse(404), {"path": collection, "times": 1000})) as (scene, server):
        await until(lambda: server.lists(collection) and scene.classes.synced)
        await asyncio.sleep(0.05)
        assert not scene.watches.synced
        assert len(scene.failing()) == 1


@pytest.mark.parametrize(("collection", "plural"), [(CLASSES, "storageclasses"), (NODES, "nodes")])
async def test_a_missing_permission_is_named_and_ends_when_it_is_granted(caplog, collection, plural):
    async with watching((Refuse(403, "Forbidden"), {"path": collection, "times": 2})) as (scene, _):
        reason = f"{plural}-synced failed: the role does not allow to list and watch {plural}"
        await until(lambda: scene.failing() == [reason])
        assert not scene.watches.synced
        await until(lambda: scene.watches.synced)
        assert scene.failing() == []
        (error,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert f"permission missing, grant list and watch resource={plural}" in error.message
        assert "403 Forbidden" in error.message


async def test_a_permission_that_is_withdrawn_later_makes_it_unready():
    async with watching() as (scene, server):
        await until(lambda: scene.watches.synced and server.watches(CLAIMS))
        server.put(CLAIMS, claim("a"))
        await until(lambda: len(scene.claims))
        server.inject(Refuse(403), path=CLAIMS, times=1)
        server.end_watches()
        await until(lambda: len(scene.failing()) == 1)
        await until(lambda: scene.failing() == [])


@pytest.mark.parametrize(
    ("fault", "method"),
    [
        (Refuse(500), "GET"),
        (Reset(), "GET"),
        (Garbage(), "GET"),
        (StreamError(410, "Expired"), "WATCH"),
        (StreamError(500), "WATCH"),
        (CutAfterLine(), "WATCH"),
    ],
    ids=repr,
)
async def test_the_lister_is_exact_after_whatever_fails(fault, method):
    fail = (fault, {"path": CLAIMS, "method": method})
    async with watching(fail, objects=[(CLAIMS, claim("a")), (CLAIMS, claim("b"))]) as (scene, server):
        await until(lambda: server.lists(CLAIMS))
        server.put(CLAIMS, claim("c"))
        server.delete(CLAIMS, "default/a")
        await until(lambda: set(scene.claims.objects) == {"default/b", "default/c"})


async def test_an_object_that_cannot_be_read_is_reported_and_the_others_go_on(caplog):
    broken = {"metadata": {"name": "broken", "namespace": "default"}, "spec": {"volumeName": 7}}
    async with watching(objects=[(CLAIMS, broken), (CLAIMS, claim("b"))]) as (scene, _):
        await until(lambda: scene.watches.synced)
        assert list(scene.claims.objects) == ["default/b"]
        assert scene.observer.left_out == ["PersistentVolumeClaim"]
        assert "object cannot be read kind=PersistentVolumeClaim name='default/broken'" in caplog.text


def test_a_kind_nobody_can_watch_is_a_mistake_found_at_the_start():
    cache = Cache()
    cache.listers.of(Pod)
    queue = SchedulingQueue(clock=lambda: 0.0, profiles={"bayplan": QueueProfile(lambda _: None, {})})
    credentials = Credentials(server="https://127.0.0.1:1")
    with pytest.raises(LookupError, match="kind Pod is not known"):
        Watches(credentials, cache, queue, NoObserver(), wake=lambda: None, on_gone=lambda uid: None)


class WaitsForItsClaim:
    """Rejects every node while the claim named like the pod is missing."""

    name = "NodeName"
    traits = Traits(reads=Reads.CLUSTER)

    def __init__(self, claims):
        self._claims = claims

    def sign_pod(self, pod):
        return pod.key

    def filter(self, state, pod, nodes, rows):
        assert self._claims.synced, "asked before the claims are known"
        found = self._claims.get(pod.key) is not None
        return np.full(len(rows), Code.SUCCESS if found else Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)

    def reasons(self, state, pod, nodes, rows):
        return [Reason("claim not found", np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self):
        return (EventRegistration(cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)),)


async def test_a_running_scheduler_binds_a_pod_once_the_claim_it_waits_for_is_there(monkeypatch):
    plugin = registry.InTreePlugin(
        WaitsForItsClaim, lambda args, handle: WaitsForItsClaim(handle.listers.of(PersistentVolumeClaim))
    )
    monkeypatch.setitem(registry.IN_TREE, "NodeName", plugin)
    async with KubernetesApi() as server:
        server.put(NODES, node("n1"))
        server.put(CLAIMS, claim("early"))
        server.put(PODS, pod("early"))
        server.put(PODS, pod("late"))
        server.inject(Delay(0.2), path=CLAIMS)

        def node_of(name):
            return server.objects[PODS][f"default/{name}"]["spec"].get("nodeName")

        app = App(default_configuration(), Credentials(server=server.url), ServeOptions("127.0.0.1", 0))
        running = asyncio.create_task(app.run())
        try:
            await until(lambda: node_of("early") == "n1" and app.parts.queue.pending()["unschedulable"])
            server.put(CLAIMS, claim("late"))
            await until(lambda: node_of("late") == "n1")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
