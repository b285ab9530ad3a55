"""Gangs in the loop: bound whole or not at all, and what is said of members that wait."""

import asyncio
import json

import pytest
from tests.builders import make_pod
from tests.group_builders import make_pod_group
from tests.oracle.replay import loaded
from tests.scheduler.scene import Scene

from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.binder import BindError, BindResult
from bayplan.scheduler.pod_group_round import RoundStatus

WORKERS = ("a", "b", "c", "d")


def preempting(*others, name="bayplan", **own):
    """A profile whose preemption has these arguments, beside others without any."""
    args = [{"name": "DefaultPreemption", "args": {"bayplan.io": own}}]
    profiles = [{"schedulerName": name, "pluginConfig": args}, *({"schedulerName": other} for other in others)]
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return loaded(json.dumps({**kind, "profiles": profiles}))


class GangScene(Scene):
    """A scheduler that serves native groups, and a gang of four pods of one CPU each."""

    def __init__(self, least=4, members=WORKERS, configuration=None):
        super().__init__(configuration=configuration)
        self.groups.serve(GroupSource.NATIVE)
        self.statuses = []
        self.scheduler.rounds.on_round = lambda group, result: self.statuses.append(result.status)
        self.queue.set_group(make_pod_group(least=least))
        for name in members:
            self.pod(name, group="g")

    def begin(self):
        self.scheduler.schedule_one()

    def go_on(self):
        """One step of the round; True when it is over."""
        over = self.scheduler.rounds.go_on(0)
        self.check()
        return over

    def round(self, meanwhile=None):
        """A whole round; after its first step something happens `meanwhile`."""
        self.begin()
        assert self.scheduler.rounds.is_under_way
        if meanwhile is not None:
            assert not self.go_on()
            meanwhile()
        while not self.go_on():
            pass

    async def bind_all_but_the_first(self):
        """The bind of the first member fails, and those of the others do not."""
        first, *others = self.dispatcher.jobs
        self.binder.result, self.dispatcher.jobs[:] = BindError("no"), [first]
        await self.dispatcher.run()
        self.binder.result, self.dispatcher.jobs[:] = BindResult.BOUND, others
        await self.dispatcher.run()

    def bound(self):
        return sorted(uid for uid, _ in self.binder.bindings)


@pytest.fixture
def scene():
    return GangScene()


async def test_a_gang_that_fits_is_bound_whole_in_one_turn(scene):
    scene.node(cpu="4")
    scene.round()
    assert len(scene.dispatcher.jobs) == 4
    await scene.dispatcher.run()
    assert scene.bound() == list(WORKERS)
    assert scene.queue.uids() == set()
    assert scene.statuses == [RoundStatus.SCHEDULED]


async def test_binds_of_a_gang_are_told_from_those_that_need_not_wait_for_them(scene):
    scene.node(cpu="5")
    scene.pod("single")
    scene.round()
    scene.step()
    assert len(scene.dispatcher.jobs) == 5
    assert sorted(scene.dispatcher.of_many) == list(WORKERS)


async def test_a_gang_that_does_not_fit_binds_nothing_and_each_member_is_told_why(scene):
    scene.node(cpu="2")
    scene.round()
    assert scene.dispatcher.jobs == []
    assert scene.cache.sizes().assumed_pods == 0
    said = {uid: message for uid, _, message in scene.said()}
    verdict = "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining"
    none = "pod group preemption: No preemption victims found for incoming preemptor"
    assert said["a"] == said["b"] == f"pod group is unschedulable, {verdict}, {none}"
    assert said["c"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert said["d"] == verdict
    assert {scene.sub_queue_of(uid) for uid in WORKERS} == {SubQueue.ERROR_BACKOFF}


async def test_a_gang_that_waits_is_bound_once_a_node_comes_and_its_back_off_is_over(scene):
    scene.node(cpu="2")
    scene.round()
    scene.node("n2", cpu="2")
    assert scene.queue.pop() is None
    scene.after(2)
    scene.round()
    await scene.dispatcher.run()
    assert scene.bound() == list(WORKERS)


async def test_a_text_that_changes_is_on_members_before_the_back_off_of_their_group_is_over(scene):
    scene.node(cpu="2")
    scene.round()
    scene.after(2)
    scene.node("tiny", cpu="100m")
    scene.round()
    scene.after(4)
    scene.node("n2", cpu="1")
    scene.dispatcher.patches.clear()
    scene.round()
    scene.after(2)
    scene.scheduler.write_texts(scene.now)
    assert scene.sub_queue_of("a") is SubQueue.ERROR_BACKOFF
    assert {message.partition("cannot be satisfied: ")[2][:24] for _, _, message in scene.dispatcher.patches} >= {
        "3 scheduled, 0 remaining"
    }


async def test_a_gang_that_failed_is_tried_again_once_something_happened_that_may_help(scene):
    scene.node(cpu="2")
    scene.round()
    scene.after(60)
    assert scene.scheduler.schedule_one() is None
    assert scene.sub_queue_of("a") is SubQueue.UNSCHEDULABLE
    scene.node("n2", cpu="2")
    scene.round()
    assert scene.statuses == [RoundStatus.UNSCHEDULABLE, RoundStatus.SCHEDULED]


@pytest.mark.parametrize(
    "own", [{"pdbPolicy": "Strict"}, {"minimumRuntimeSeconds": 600}, {"preemptionDelaySeconds": 60}]
)
async def test_a_gang_that_time_may_help_is_tried_again_after_each_back_off(own):
    scene = GangScene(configuration=preempting(**own))
    scene.node(cpu="2")
    for _ in range(3):
        scene.round()
        scene.after(60)


async def test_a_gang_that_time_may_help_in_the_profile_of_one_member_is_tried_again_after_each_back_off():
    scene = GangScene(members=(), configuration=preempting("bayplan", name="patient", minimumRuntimeSeconds=600))
    scene.groups.serve(GroupSource.CRD)
    scene.queue.set_group(make_pod_group("h", least=2, crd=True))
    for name, profile, priority in (("a", "bayplan", 1), ("b", "patient", 2)):
        scene.pod(name, scheduler_name=profile, priority=priority, cpu="4", labels={POD_GROUP_LABEL: "h"})
    scene.node(cpu="4")
    for _ in range(3):
        scene.round()
        scene.after(60)


async def test_a_round_goes_on_at_once_where_its_beginning_took_long():
    class SlowScene(GangScene):
        def clock(self):
            # Longer than the loop stays with decisions: the process was held up.
            self.now += 0.1
            return self.now

    scene = SlowScene()
    scene.node(cpu="4")
    task = asyncio.create_task(scene.scheduler.run())
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(scene.dispatcher.jobs) == 4
    scene.scheduler.stop()
    await task


async def test_nothing_else_is_decided_while_a_round_is_under_way(scene):
    scene.node(cpu="8")
    scene.begin()
    scene.go_on()
    scene.pod("single")
    task = asyncio.create_task(scene.scheduler.run())
    await asyncio.sleep(0)
    assert len(scene.dispatcher.jobs) == 5
    scene.scheduler.stop()
    await task
    await scene.dispatcher.run()
    assert [uid for uid, _ in scene.binder.bindings] == [*WORKERS, "single"]


async def test_an_engine_is_taken_over_only_between_rounds(scene):
    scene.node(cpu="4")
    scene.begin()
    scene.go_on()
    before = scene.scheduler.frameworks
    task = asyncio.create_task(scene.scheduler.take_over(scene.engine(dict(before)), []))
    await asyncio.sleep(0)
    assert scene.scheduler.frameworks is before
    while not scene.go_on():
        pass
    await task
    assert scene.scheduler.frameworks is not before


async def test_a_member_deleted_in_mid_round_leaves_nothing_bound_if_too_few_are_left(scene):
    scene.node(cpu="4")
    scene.round(lambda: scene.pending.gone("a"))
    assert scene.dispatcher.jobs == []
    assert scene.cache.sizes().assumed_pods == 0
    assert scene.queue.uids() == {"b", "c", "d"}
    assert scene.statuses == [RoundStatus.UNSCHEDULABLE]


async def test_a_member_deleted_in_mid_round_is_dropped_if_enough_are_left():
    scene = GangScene(least=3)
    scene.node(cpu="4")
    scene.round(lambda: scene.pending.gone("a"))
    await scene.dispatcher.run()
    assert scene.bound() == ["b", "c", "d"]
    assert scene.cache.node_of("a") is None


async def test_the_room_of_a_member_deleted_in_mid_round_goes_to_the_others_in_the_next_one():
    scene = GangScene(least=3)
    scene.node(cpu="3")
    scene.round(lambda: scene.pending.gone("a"))
    scene.after(2)
    scene.round()
    await scene.dispatcher.run()
    assert scene.statuses == [RoundStatus.UNSCHEDULABLE, RoundStatus.SCHEDULED]
    assert scene.bound() == ["b", "c", "d"]


async def test_a_least_number_that_is_raised_in_mid_round_counts():
    scene = GangScene(least=2)
    scene.node(cpu="3")
    scene.round(lambda: scene.queue.set_group(make_pod_group(least=4)))
    assert scene.dispatcher.jobs == []
    assert scene.cache.sizes().assumed_pods == 0
    scene.node("n2", cpu="1")
    scene.after(3)
    scene.round()
    await scene.dispatcher.run()
    assert scene.bound() == list(WORKERS)


@pytest.mark.parametrize("fits", [True, False])
async def test_what_a_round_came_to_is_said_of_the_group_made_anew_meanwhile(scene, fits):
    told = []
    scene.scheduler.rounds.on_round = lambda group, result: told.append((group.uid, result.status))
    scene.node(cpu="4" if fits else "3")

    def made_anew():
        scene.queue.remove_group(make_pod_group().key)
        scene.queue.set_group(make_pod_group(least=4, uid="anew"))

    scene.round(made_anew)
    assert told == [("anew", RoundStatus.SCHEDULED if fits else RoundStatus.UNSCHEDULABLE)]


@pytest.mark.parametrize("when", ["before its turn", "after its turn"])
async def test_a_member_bound_by_hand_in_mid_round_counts_where_it_is(scene, when):
    scene.node(cpu="4")
    scene.node("elsewhere", cpu="1", unschedulable=True)
    uid = "d" if when == "before its turn" else "a"
    scene.round(lambda: scene.assigned.on_add(make_pod(uid, uid=uid, cpu="1", group="g", node="elsewhere")))
    await scene.dispatcher.run()
    assert scene.bound() == sorted({*WORKERS} - {uid})
    assert scene.cache.node_of(uid) == "elsewhere"
    assert scene.queue.uids() == set()


async def test_a_member_whose_bind_fails_is_tried_again_as_a_late_one(scene):
    scene.node(cpu="4")
    scene.round()
    await scene.bind_all_but_the_first()
    scene.check()
    assert scene.queue.uids() == {"a"}
    scene.after(3)
    scene.round()
    await scene.dispatcher.run()
    assert scene.queue.uids() == set()


async def test_nobody_takes_the_room_of_a_member_whose_bind_fails(scene):
    scene.node(cpu="4")
    scene.round()
    await scene.bind_all_but_the_first()
    scene.pod("single")
    scene.step()
    assert scene.cache.node_of("single") is None
    scene.after(10)
    scene.round()
    await scene.dispatcher.run()
    assert {scene.cache.node_of(name) for name in WORKERS} == {"n1"}
    assert scene.queue.nominator.nominated_node("a") is None


async def test_the_room_of_a_member_whose_bind_fails_is_free_where_the_gang_is_whole_without_it():
    scene = GangScene(least=3)
    scene.node(cpu="4")
    scene.round()
    await scene.bind_all_but_the_first()
    scene.pod("single")
    scene.step()
    assert scene.cache.node_of("single") == "n1"


async def test_what_a_plugin_raises_costs_the_group_the_round_and_nothing_else(scene, monkeypatch):
    scene.node(cpu="4")

    def broken(state, pod, node):
        if pod.uid == "c":
            raise ValueError("broken")
        return original(state, pod, node)

    original = scene.framework.run_reserve
    monkeypatch.setattr(scene.framework, "run_reserve", broken)
    scene.round()
    assert scene.dispatcher.jobs == []
    assert scene.cache.sizes().assumed_pods == 0
    assert {uid: message for uid, _, message in scene.said()}["c"] == "broken"
    assert scene.statuses == [RoundStatus.ERROR]


async def test_a_round_that_stops_with_the_loop_leaves_nothing_assumed(scene):
    scene.node(cpu="4")
    scene.begin()
    scene.go_on()
    scene.scheduler.stop()
    await scene.scheduler.run()
    scene.check()
    assert scene.cache.sizes().assumed_pods == 0
    assert scene.queue.uids() == set(WORKERS)
