"""Pod groups are read wherever they are served, and nowhere are they missed."""

import asyncio
import logging

import pytest
from tests.builders import make_pod_info
from tests.controller.test_watches import watches
from tests.faults.faults import BlackHole, Refuse, RequestFault
from tests.waiting import until

from bayplan.api.backoff import ROLES_SECONDS
from bayplan.api.kinds import CRD_POD_GROUPS, POD_GROUPS
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource, PodGroupKey
from bayplan.groups.pod_groups import PodGroups
from bayplan.server.health import HealthChecks

NATIVE, CRD = GroupSource.NATIVE, GroupSource.CRD
KEY = PodGroupKey(CRD, "default", "g")
OFF = "going on without this kind, which"


class Scene:
    def __init__(self, server):
        self.groups = PodGroups(Cache())
        self.wakes = []
        self.watches = watches(server.url, Cache(), groups=self.groups, wake=lambda: self.wakes.append(1))
        self.tasks = [asyncio.create_task(work) for work in self.watches.work().values()]
        self.health = HealthChecks()
        self.watches.add_readiness(self.health)

    async def end(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def served(self):
        return {source for source in GroupSource if self.groups.is_served(source)}

    def is_ready(self):
        return self.health.report("readyz").healthy


@pytest.fixture
async def open_scene(server):
    opened = []

    def scene():
        opened.append(Scene(server))
        return opened[-1]

    yield scene
    for each in opened:
        await each.end()


class Absence(RequestFault):
    """Nothing is served until it is over."""

    is_over = False

    async def serve(self, request, act):
        return await act() if self.is_over else await Refuse(404, "NotFound").serve(request, act)


def lines(caplog):
    return [each for each in caplog.records if each.message.startswith(OFF) and "kind=PodGroup" in each.message]


def pod_group(name="g", least=3, **others):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": least}, **others}


async def test_groups_of_both_kinds_are_known_and_followed(open_scene, server):
    server.put(CRD_POD_GROUPS.path, pod_group())
    native = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    server.put(POD_GROUPS.path, {"metadata": {"name": "g", "namespace": "default"}, "spec": native})
    scene = open_scene()
    await until(lambda: scene.watches.synced)
    assert scene.served() == {NATIVE, CRD}
    assert [scene.groups.get(KEY._replace(source=source)).least for source in (NATIVE, CRD)] == [2, 3]
    assert scene.groups.of(make_pod_info(labels={POD_GROUP_LABEL: "g"})) == KEY
    before = len(scene.wakes)
    server.put(CRD_POD_GROUPS.path, pod_group(least=5))
    await until(lambda: scene.groups.get(KEY).least == 5)
    server.delete(CRD_POD_GROUPS.path, "default/g")
    await until(lambda: scene.groups.get(KEY) is None)
    assert len(scene.wakes) == before + 2


async def test_where_neither_kind_is_served_nothing_waits_and_one_quiet_line_tells_it(open_scene, server, caplog):
    caplog.set_level(logging.INFO)
    for resource in (POD_GROUPS, CRD_POD_GROUPS):
        server.inject(Refuse(404, "NotFound"), path=resource.path, times=1000)
    scene = open_scene()
    await until(lambda: scene.watches.synced and len(lines(caplog)) == 2)
    await asyncio.sleep(0.3)
    assert [record.levelno for record in lines(caplog)] == [logging.INFO] * 2
    assert not [record for record in caplog.records if record.levelno > logging.INFO]
    assert (scene.served(), scene.is_ready()) == (set(), True)
    assert not {each for each in scene.watches.states() if each.startswith("podgroups")}


async def test_a_kind_that_appears_at_run_time_is_read_from_then_on(open_scene, server):
    server.put(CRD_POD_GROUPS.path, pod_group())
    server.inject(Refuse(404, "NotFound"), path=CRD_POD_GROUPS.path, times=2)
    scene = open_scene()
    await until(lambda: scene.served() == {NATIVE, CRD})
    assert scene.groups.get(KEY).least == 3


async def test_pods_of_a_kind_that_vanishes_wait_for_their_groups_as_half_a_gang_might_start_otherwise(
    open_scene, server, caplog
):
    scene = open_scene()
    await until(lambda: scene.watches.synced and server.watches(CRD_POD_GROUPS.path))
    absence = Absence()
    server.inject(absence, path=CRD_POD_GROUPS.path, times=1000)
    server.end_watches()
    gone = "this kind is gone, pods that need it wait kind=PodGroup"
    await until(lambda: gone in caplog.text, seconds=3 * ROLES_SECONDS)
    told = [record for record in caplog.records if record.message.startswith(gone)]
    assert [(record.levelno, "status=404" in record.message) for record in told] == [(logging.WARNING, True)]
    assert (scene.served(), scene.is_ready()) == ({NATIVE, CRD}, True)
    # What helps against a stale watch, a new process, would not know that there were groups.
    name = "podgroups.scheduling.x-k8s.io"
    assert name not in scene.watches.states()
    server.put(CRD_POD_GROUPS.path, pod_group())
    absence.is_over = True
    await until(lambda: scene.groups.get(KEY) is not None, seconds=10)
    assert name in scene.watches.states()


async def test_a_role_without_the_right_is_no_trouble_once_roles_are_read_for_sure(open_scene, server, caplog):
    caplog.set_level(logging.INFO)
    server.inject(Refuse(403, "Forbidden"), path=POD_GROUPS.path, times=1000)
    scene = open_scene()
    await until(lambda: scene.served() == {CRD})
    assert not scene.watches.synced
    await until(lambda: scene.watches.synced, seconds=3 * ROLES_SECONDS)
    assert [(record.levelno, "status=403" in record.message) for record in lines(caplog)] == [(logging.INFO, True)]
    assert scene.is_ready()


async def test_the_start_waits_for_a_list_that_is_late_as_half_a_gang_might_start_otherwise(open_scene, server):
    server.inject(BlackHole(), path=CRD_POD_GROUPS.path)
    scene = open_scene()
    await until(lambda: scene.served() == {NATIVE})
    assert (scene.watches.synced, scene.is_ready()) == (False, False)


async def test_a_group_that_cannot_be_read_is_told_and_others_are_known(open_scene, server, caplog):
    server.put(CRD_POD_GROUPS.path, pod_group("bad", least="many"))
    server.put(CRD_POD_GROUPS.path, pod_group())
    scene = open_scene()
    await until(lambda: scene.watches.synced)
    assert [group.key for group in scene.groups] == [KEY]
    assert "object cannot be read kind=PodGroup name='default/bad'" in caplog.text
