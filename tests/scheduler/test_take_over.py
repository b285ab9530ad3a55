"""A scheduler that goes on with another engine: what it had under way, and what it decides from then on."""

import asyncio
import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace as Hook

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_pod_info
from tests.plugins.volume_scenes import claim, delayed_class, pod_with, volume
from tests.scheduler.scene import Binder, Scene
from tests.waiting import until

from bayplan.config.bayplan_args import DefaultPreemptionArgs
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    NodeResourcesFitArgs,
    PluginEntry,
    PluginSet,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.framework.interface import Wait
from bayplan.framework.status import Status
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.binder import BindError
from bayplan.scheduler.decision import Placement

GPU = "example.com/gpu"
PACKING = default_configuration()
(PROFILE,) = PACKING.profiles


def with_args(**args):
    return replace(PACKING, profiles=(replace(PROFILE, plugin_config={**PROFILE.plugin_config, **args}),))


def without(plugin):
    disabled = PluginSet(PROFILE.plugins.multi_point.enabled, disabled=(PluginEntry(plugin),))
    names = tuple(each for each in PROFILE.plugins.multi_point.enabled if each.name != plugin)
    plugins = replace(PROFILE.plugins, multi_point=replace(disabled, enabled=names))
    return replace(PACKING, profiles=(replace(PROFILE, plugins=plugins),))


SPREADING = with_args(NodeResourcesFit=NodeResourcesFitArgs())
IGNORING = with_args(
    NodeResourcesFit=NodeResourcesFitArgs(
        ignored_resources=(GPU,),
        scoring_strategy=ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED),
    )
)
UNTAINTED = without("TaintToleration")
PATIENT = with_args(DefaultPreemption=DefaultPreemptionArgs(minimum_runtime_seconds=10**9))
SAMPLING = replace(PACKING, percentage_of_nodes_to_score=30)
CONFIGURATIONS = st.sampled_from([PACKING, SPREADING, IGNORING, UNTAINTED, PATIENT, SAMPLING])


def engine_of(scene, configuration, **fields):
    """The engine of another configuration on what the scene has."""
    frameworks = build_frameworks(
        configuration,
        scene.cache.nodes,
        scene.cache.listers,
        scene.queue.nominator,
        waiting_pods=scene.framework.waiting_pods,
    )
    return scene.engine(frameworks, **fields)


async def take_over(scene, configuration, changed=("bayplan",), **fields):
    engine = engine_of(scene, configuration, **fields)
    await scene.scheduler.take_over(engine, changed)
    scene.frameworks, scene.cycle = engine.frameworks, engine.cycle
    (scene.framework,) = engine.frameworks.values()
    scene.check()
    return engine


NODES = st.lists(
    st.builds(
        lambda cpu, memory, gpu, taints: {
            "cpu": cpu,
            "memory": f"{memory}Gi",
            "allocatable": {GPU: gpu} if gpu else {},
            "taints": taints,
        },
        st.integers(1, 8),
        st.integers(1, 8),
        st.integers(0, 2),
        st.sampled_from([(), (), ("a=b:NoSchedule",)]),
    ),
    min_size=1,
    max_size=6,
)
REQUESTS = st.builds(lambda cpu, gpu: {"cpu": cpu, **({GPU: gpu} if gpu else {})}, st.integers(0, 5), st.integers(0, 2))
PODS = st.lists(st.fixed_dictionaries({"requests": REQUESTS, "priority": st.integers(0, 2)}), max_size=6)


def fill(scene, nodes):
    for number, fields in enumerate(nodes):
        scene.node(f"n{number}", **fields)


def said_of(outcome):
    """All that a decision says, but what plugins noted for themselves."""
    if isinstance(outcome, Placement):
        return outcome.node_name, outcome.score, outcome.feasible_nodes, outcome.unscored
    victims = [pod.uid for pod in outcome.post_filter.victims]
    return outcome.message, outcome.diagnosis.rejector_plugins, outcome.post_filter.nominated_node_name, victims


def decide(scene, configuration, pods):
    """What is decided of each pod while those that fit are assumed one after the other."""
    engine, said = engine_of(scene, configuration), []
    (framework,) = engine.frameworks.values()
    for pod in pods:
        outcome = engine.cycle.schedule(pod, framework).outcome
        said.append(said_of(outcome))
        if isinstance(outcome, Placement):
            scene.cache.assume_pod(pod, outcome.node_name)
    return said


@settings(max_examples=30, deadline=None)
@given(NODES, st.lists(REQUESTS, max_size=8), CONFIGURATIONS, CONFIGURATIONS, PODS)
def test_afterwards_it_decides_as_one_that_was_started_with_the_new_configuration(nodes, before, first, second, after):
    running = Scene(configuration=first)
    fill(running, nodes)
    for number, requests in enumerate(before):
        running.pod(f"b{number}", requests=requests, cpu=None)
        while running.step() is not None:
            pass
    asyncio.run(take_over(running, second))

    fresh = Scene(configuration=second)
    fill(fresh, nodes)
    for each in running.cache.assumed_pods():
        spec = msgspec.structs.replace(each.pod.spec, node_name=running.cache.node_of(each.uid))
        fresh.assigned.on_add(msgspec.structs.replace(each.pod, spec=spec))
    pods = [make_pod_info(f"a{number}", uid=f"a{number}", **fields) for number, fields in enumerate(after)]

    (framework,), expected = running.frameworks.values(), decide(fresh, second, pods)
    said = []
    for pod in pods:
        outcome = running.cycle.schedule(pod, framework).outcome
        said.append(said_of(outcome))
        if isinstance(outcome, Placement):
            running.cache.assume_pod(pod, outcome.node_name)
    assert said == expected


async def test_the_next_decision_is_the_new_configurations(scene):
    scene.node("n1", cpu="8")
    scene.node("n2", cpu="4")
    scene.pod("first", cpu="1")
    await scene.attempt()
    assert scene.binder.bindings == [("first", "n2")], "the smaller node is fuller"
    await take_over(scene, SPREADING)
    scene.pod("second", cpu="1")
    await scene.attempt()
    assert scene.binder.bindings[1:] == [("second", "n1")], "the larger node is emptier"


async def test_what_is_assumed_and_nominated_stays(scene):
    scene.node("n1", cpu="4")
    for name in ("a", "b"):
        scene.pod(name)
        scene.step()
    scene.pod("kept", cpu="2")
    scene.queue.nominate(scene.queue.get("kept").pod_info, "n1")
    before = [pod.uid for pod in scene.cache.assumed_pods()]
    await take_over(scene, SPREADING)
    assert [pod.uid for pod in scene.cache.assumed_pods()] == before == ["a", "b"]
    assert scene.queue.nominator.nominated_node("kept") == "n1"
    await scene.dispatcher.run()
    assert scene.binder.bindings == [("a", "n1"), ("b", "n1")]


async def test_a_pod_whose_bind_fails_is_given_back_by_the_plugins_that_reserved_it(scene):
    log = []
    scene.framework.reserves = [
        Hook(name="Old", reserve=lambda *_: Status(), unreserve=lambda state, pod, node: log.append(pod.uid))
    ]
    scene.node()
    scene.pod()
    scene.step()
    scene.binder.result = BindError("no")
    await take_over(scene, SPREADING)
    await scene.dispatcher.run()
    scene.check()
    assert (log, scene.sub_queue_of(), scene.cache.node_of("p")) == (["p"], SubQueue.ERROR_BACKOFF, None)
    assert scene.queue.get("p").attempts == 1


async def test_a_bind_that_begins_later_is_the_new_binders(scene):
    scene.node()
    scene.pod()
    scene.step()
    successor = Binder()
    engine = engine_of(scene, SPREADING)
    await scene.scheduler.take_over(replace(engine, binder=successor), ["bayplan"])
    await scene.dispatcher.run()
    assert (scene.binder.bindings, successor.bindings) == ([], [("p", "n1")])


async def test_a_pod_that_waits_for_a_permit_plugin_goes_on_waiting_where_all_plugins_find_it(scene):
    scene.framework.permits = [Hook(name="Gang", permit=lambda *_: Wait(600.0))]
    await scene.first_attempt()
    await take_over(scene, SPREADING)
    scene.framework.waiting_pods.get("p").allow("Gang")
    await asyncio.sleep(0)
    await scene.dispatcher.run()
    assert scene.binder.bindings == [("p", "n1")]


async def test_a_pod_rejected_later_by_a_permit_plugin_that_is_gone_does_not_wait_for_it(scene):
    scene.framework.permits = [Hook(name="Gang", permit=lambda *_: Wait(600.0))]
    await scene.first_attempt()
    await take_over(scene, SPREADING)
    scene.framework.waiting_pods.get("p").reject("Gang", "no company")
    await asyncio.sleep(0)
    scene.check()
    assert (scene.sub_queue_of(), scene.cache.node_of("p")) == (SubQueue.BACKOFF, None)


async def test_a_volume_that_is_being_bound_is_given_to_no_other_pod(scene):
    scene.node()
    scene.dispatcher.request = asyncio.Event().wait
    for each in (delayed_class(), claim("one"), claim("two"), volume("v")):
        scene.cache.listers.of(type(each)).set(each)
    scene.pending.changed(pod_with("one", name="p1", cpu="1"))
    scene.step()
    await take_over(scene, SPREADING)
    scene.pending.changed(pod_with("two", name="p2", cpu="1"))
    scene.step()
    assert (scene.cache.node_of("p1"), scene.cache.node_of("p2")) == ("n1", None)
    assert "didn't find available persistent volumes to bind" in scene.said()[-1][-1]
    scene.scheduler.stop()


async def test_a_pod_rejected_by_a_filter_that_is_gone_is_placed(scene):
    scene.node(taints=["a=b:NoSchedule"])
    scene.pod()
    await scene.attempt()
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    await take_over(scene, UNTAINTED)
    scene.after(15)
    await scene.attempt()
    assert (scene.binder.bindings, scene.queue.get("p")) == ([("p", "n1")], None)


async def test_what_was_replaced_is_let_go_of_without_a_garbage_collection(scene):
    scene.node("n1", cpu="8")
    for name in ("a", "b", "huge"):
        scene.pod(name, cpu="64" if name == "huge" else "1")
        await scene.attempt()
    engine = await take_over(scene, SPREADING)
    scene.pod("c")
    await scene.attempt()
    held = scene.queue.get("huge").pod_info
    gone = [weakref.ref(each) for each in (*engine.frameworks.values(), engine.cycle, *_plugins(engine))]
    del engine
    gc.disable()
    try:
        await take_over(scene, PACKING)
        scene.after(15)
        await scene.attempt()
        assert [each() for each in gone if each() is not None] == []
    finally:
        gc.enable()
    assert held.signature is not None


def _plugins(engine):
    (framework,) = engine.frameworks.values()
    return framework.plugins.values()


class Asked:
    """An ExtendedCycle whose extenders answer when they are told to."""

    def __init__(self, cycle):
        self.cycle = cycle
        self.pods = []
        self.answers = asyncio.Event()

    async def schedule(self, pod, framework):
        self.pods.append(pod.uid)
        await self.answers.wait()
        return self.cycle.schedule(pod, framework)


async def test_a_decision_that_extenders_are_asked_about_is_concluded_first(scene):
    scene.node("n1", cpu="8")
    scene.node("n2", cpu="4")
    first = engine_of(scene, PACKING)
    asked = Asked(first.cycle)
    await scene.scheduler.take_over(replace(first, extended=asked), [])
    running = asyncio.create_task(scene.scheduler.run())
    scene.pod("first")
    await until(lambda: asked.pods == ["first"])
    changing = asyncio.create_task(take_over(scene, SPREADING))
    scene.pod("second")
    await asyncio.sleep(0.01)
    assert not changing.done()
    asked.answers.set()
    await changing
    await until(lambda: len(scene.dispatcher.jobs) == 2)
    await scene.dispatcher.run()
    assert (asked.pods, scene.binder.bindings) == (["first"], [("first", "n2"), ("second", "n1")])
    scene.scheduler.stop()
    await running
