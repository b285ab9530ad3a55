import asyncio
import logging
import time

import pytest
from tests.controller.kubernetes_api import CLAIMS, NODES, PODS, claim
from tests.faults.faults import BlackHole, Refuse
from tests.recorded_metrics import RecordedMetrics
from tests.waiting import until

from bayplan.api import kinds
from bayplan.api.backoff import ROLES_SECONDS, WatchTiming
from bayplan.api.credentials import Credentials
from bayplan.api.device_objects import ResourceSlice
from bayplan.api.kinds import resource_of
from bayplan.api.objects import Pod
from bayplan.api.storage_objects import PersistentVolumeClaim, StorageClass
from bayplan.api.workload_objects import ReplicaSet
from bayplan.cache.cache import Cache
from bayplan.controller.watches import STALE_SECONDS, Watches
from bayplan.framework.status import SUCCESS
from bayplan.groups.pod_groups import PodGroups
from bayplan.queue.queue_settings import QueueProfile, QueueSettings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.server.health import HealthChecks

CLASSES = resource_of(StorageClass).path
ASKED = (PersistentVolumeClaim, StorageClass, ReplicaSet)


class Scene:
    """Watches over a fake API server, without a scheduler."""

    def __init__(self, server):
        self.cache = Cache()
        self.claims, self.classes, self.sets = (self.cache.listers.of(kind) for kind in ASKED)
        self.wakes = []
        self.metrics = RecordedMetrics()
        self.later = 0.0
        self.watches = watches(
            server.url,
            self.cache,
            self.metrics,
            wake=lambda: self.wakes.append(1),
            clock=lambda: time.monotonic() + self.later,
        )
        self.health = HealthChecks()
        self.watches.add_readiness(self.health)
        self.tasks = []

    def start(self):
        self.tasks = [asyncio.create_task(work) for work in self.watches.work().values()]

    async def end(self):
        assert not any(task.done() for task in self.tasks)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def failing(self):
        lines = self.health.report("readyz").text.splitlines()
        return [line.removeprefix("[-]") for line in lines if line.startswith("[-]")]


def watches(url, cache, metrics=None, wake=lambda: None, groups=None, **options):
    settings = QueueSettings({"bayplan": QueueProfile(lambda _: SUCCESS, {})})
    if groups is None:
        groups = PodGroups(cache)
    else:
        options["on_group_gone"] = lambda uid: None
    queue = SchedulingQueue(clock=lambda: 0.0, settings=settings, groups=groups, wake=wake)
    return Watches(
        Credentials(server=url),
        cache,
        queue,
        metrics or RecordedMetrics(),
        on_gone=lambda uid: None,
        timing=WatchTiming(first_delay=0.05, unserved_delay=0.2),
        **options,
    )


@pytest.fixture
async def scene(server):
    made = Scene(server)
    yield made
    await made.end()


def warnings(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def missing(caplog):
    return [text for text in warnings(caplog) if text.startswith("permission missing")]


def storage_class(name):
    return {"metadata": {"name": name}, "provisioner": "example.com/disk"}


async def test_the_listers_hold_what_the_api_server_has_and_follow_it(scene, server):
    server.put(CLAIMS, claim("a"))
    server.put(CLASSES, storage_class("fast"))
    scene.start()
    await until(lambda: scene.watches.synced)
    assert scene.failing() == []
    assert [lister.synced for lister in (scene.claims, scene.classes, scene.sets)] == [True] * 3
    assert scene.classes.get("fast").provisioner == "example.com/disk"
    before = len(scene.wakes)
    server.put(CLAIMS, claim("a", volume="pv1"))
    server.put(CLAIMS, claim("b"))
    await until(lambda: len(scene.claims) == 2)
    assert scene.claims.get("default/a").spec.volume_name == "pv1"
    server.delete(CLAIMS, "default/a")
    await until(lambda: scene.claims.get("default/a") is None)
    assert len(scene.wakes) == before + 3


async def test_every_event_handled_is_told_with_its_resource(scene, server):
    server.put(CLAIMS, claim("a"))
    scene.start()
    await until(lambda: scene.watches.synced)
    server.put(CLAIMS, claim("a", volume="pv1"))
    server.delete(CLAIMS, "default/a")
    await until(lambda: scene.claims.synced and not len(scene.claims))
    assert scene.metrics.handled == [f"PersistentVolumeClaim{action}" for action in ("Add", "Update", "Delete")]


async def test_only_what_plugins_asked_for_is_watched(scene, server):
    scene.start()
    await until(lambda: scene.watches.synced)
    assert {seen.path for seen in server.requests} == {NODES, PODS, *(resource_of(kind).path for kind in ASKED)}


async def test_a_list_that_is_late_holds_the_start_and_readiness(scene, server):
    server.inject(BlackHole(), path=CLAIMS)
    scene.start()
    await until(lambda: scene.classes.synced and len(scene.failing()) == 1)
    assert scene.failing() == ["persistentvolumeclaims-synced failed: persistentvolumeclaims are not listed yet"]
    assert (scene.watches.synced, scene.claims.synced) == (False, False)


async def test_a_watch_that_is_silent_for_too_long_is_stale_until_the_server_answers_again(scene, server):
    scene.start()
    await until(lambda: server.watches(CLASSES) and server.watches(NODES))
    assert "[+]nodes-watched ok" in scene.health.report("readyz").text
    scene.later = STALE_SECONDS + 1
    assert "nodes-watched failed: the watch of nodes is stale" in scene.failing()
    assert "storageclasses-watched failed: the watch of storageclasses is stale" in scene.failing()
    assert scene.health.report("livez").healthy
    scene.later = 0.0
    asked = server.watches(NODES)
    server.end_watches()
    await until(lambda: server.watches(NODES) > asked)
    await until(lambda: scene.failing() == [])


async def test_a_kind_that_is_served_no_longer_is_not_stale(scene, server):
    scene.start()
    await until(lambda: server.watches(CLASSES))
    server.inject(Refuse(404, "NotFound"), path=CLASSES, times=1000)
    server.end_watches()
    await until(lambda: "storageclasses" not in " ".join(scene.failing()))
    refused = len(server.requests)
    await until(lambda: len(server.requests) > refused + 8)
    scene.later = STALE_SECONDS + 60
    assert not [line for line in scene.failing() if line.startswith("storageclasses")]


async def test_a_kind_the_api_server_does_not_serve_counts_as_empty_until_it_is_served(scene, server, caplog):
    server.put(CLASSES, storage_class("fast"))
    server.inject(Refuse(404, "NotFound"), path=CLASSES, times=2)
    scene.start()
    await until(lambda: scene.watches.synced)
    assert scene.failing() == []
    assert (scene.classes.synced, len(scene.classes)) == (True, 0)
    assert "storageclasses" not in scene.watches.states()
    await until(lambda: scene.classes.get("fast"))
    assert "storageclasses" in scene.watches.states()
    (warning,) = warnings(caplog)
    assert "does not serve this kind, going on with none kind=StorageClass apiVersion=storage.k8s.io/v1" in warning


async def test_a_kind_that_is_no_longer_served_keeps_its_objects_and_holds_nothing_up(scene, server, caplog):
    server.put(CLASSES, storage_class("fast"))
    scene.start()
    await until(lambda: scene.watches.synced and server.watches(CLASSES))
    before = server.watches(CLASSES)
    server.inject(Refuse(404, "NotFound"), path=CLASSES, times=2)
    server.end_watches()
    await until(lambda: warnings(caplog))
    assert scene.failing() == []
    assert scene.classes.get("fast")
    server.put(CLASSES, storage_class("slow"))
    await until(lambda: scene.classes.get("slow"))
    assert server.watches(CLASSES) > before
    (warning,) = (each for each in warnings(caplog) if "interrupted" not in each)
    assert "going on with what is known of it kind=StorageClass" in warning


async def test_an_api_server_that_serves_no_kind_but_nodes_and_pods_is_scheduled_on(scene, server, caplog):
    for kind in ASKED:
        server.inject(Refuse(404, "NotFound"), path=resource_of(kind).path, times=1000)
    scene.start()
    await until(lambda: scene.watches.synced)
    assert scene.failing() == []
    assert [(lister.synced, len(lister)) for lister in (scene.claims, scene.classes, scene.sets)] == [(True, 0)] * 3
    assert len(warnings(caplog)) == len(ASKED)


@pytest.mark.parametrize("collection", [NODES, PODS])
async def test_no_api_server_goes_without_nodes_and_pods(scene, server, collection):
    server.inject(Refuse(404), path=collection, times=1000)
    scene.start()
    await until(lambda: server.lists(collection) and scene.classes.synced)
    await asyncio.sleep(0.05)
    assert not scene.watches.synced
    assert len(scene.failing()) == 1


@pytest.mark.parametrize(
    ("resource", "granting"),
    [
        (resource_of(StorageClass), "manifests/base"),
        (kinds.NODES, "manifests/base"),
        (resource_of(ReplicaSet), "manifests/components/default-spreading"),
    ],
    ids=lambda each: getattr(each, "plural", None),
)
async def test_a_missing_permission_is_named_with_what_grants_it_and_ends_when_it_is_granted(
    scene, server, caplog, resource, granting
):
    server.inject(Refuse(403, "Forbidden"), path=resource.path, times=2)
    scene.start()
    reason = f"{resource.plural}-synced failed: the role does not allow to list and watch {resource.plural}"
    await until(lambda: scene.failing() == [reason])
    assert not scene.watches.synced
    await until(lambda: scene.watches.synced)
    assert scene.failing() == []
    (error,) = warnings(caplog)
    assert f"permission missing, grant list and watch resource={resource.plural}" in error
    assert f"grantedBy={granting} " in error
    assert "403 Forbidden" in error


async def test_a_refusal_that_passes_at_once_after_it_was_allowed_is_no_missing_permission(scene, server, caplog):
    scene.start()
    await until(lambda: scene.watches.synced and server.watches(CLAIMS))
    server.inject(Refuse(403), path=CLAIMS, times=2)
    server.end_watches()
    await until(lambda: len(scene.failing()) == 1)
    await until(lambda: scene.failing() == [])
    assert missing(caplog) == []


async def test_one_that_stays_for_seconds_is_named_once(scene, server, caplog):
    scene.start()
    await until(lambda: scene.watches.synced and server.watches(CLAIMS))
    server.inject(Refuse(403), path=CLAIMS, times=1000)
    server.end_watches()
    await until(lambda: missing(caplog))
    assert "grant list and watch resource=persistentvolumeclaims" in missing(caplog)[0]
    refused = len(server.requests)
    await until(lambda: len(server.requests) > refused)
    assert len(missing(caplog)) == 1


async def test_a_permission_that_is_withdrawn_later_makes_it_unready(scene, server):
    scene.start()
    await until(lambda: scene.watches.synced and server.watches(CLAIMS))
    server.put(CLAIMS, claim("a"))
    await until(lambda: len(scene.claims))
    server.inject(Refuse(403), path=CLAIMS, times=1)
    server.end_watches()
    await until(lambda: len(scene.failing()) == 1)
    await until(lambda: scene.failing() == [])


async def test_an_object_that_cannot_be_read_is_reported_and_the_others_go_on(scene, server, caplog):
    server.put(CLAIMS, claim("broken", volume=7))
    server.put(CLAIMS, claim("b"))
    scene.start()
    await until(lambda: scene.watches.synced)
    assert list(scene.claims.objects) == ["default/b"]
    assert scene.metrics.left_out == ["PersistentVolumeClaim"]
    assert "object cannot be read kind=PersistentVolumeClaim name='default/broken'" in caplog.text


def test_a_kind_nobody_can_watch_is_a_mistake_found_at_the_start():
    cache = Cache()
    cache.listers.of(Pod)
    with pytest.raises(LookupError, match="kind Pod is not known"):
        watches("https://127.0.0.1:1", cache)


@pytest.mark.parametrize(
    ("refusal", "why"),
    [(Refuse(404, "NotFound"), "which few clusters have"), (Refuse(403, "Forbidden"), "which may not be watched")],
    ids=["not served", "no right"],
)
async def test_devices_that_a_cluster_has_not_or_shows_to_nobody_hold_nothing_up(server, caplog, refusal, why):
    caplog.set_level(logging.INFO)
    slices = resource_of(ResourceSlice).path
    server.inject(refusal, path=slices, times=1000)
    scene = Scene(server)
    scene.cache.listers.of(ResourceSlice)
    scene.watches, scene.health = watches(server.url, scene.cache), HealthChecks()
    scene.watches.add_readiness(scene.health)
    scene.start()
    await until(lambda: scene.watches.synced, seconds=3 * ROLES_SECONDS)
    assert (scene.failing(), warnings(caplog)) == ([], [])
    lines = [record.message for record in caplog.records if "kind=ResourceSlice" in record.message]
    assert len(lines) == 1
    assert lines[0].startswith(f"going on without this kind, {why} kind=ResourceSlice")
    await scene.end()
