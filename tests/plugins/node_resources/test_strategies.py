"""The scores that kube-scheduler does not have: what each prefers, and that columns say what single nodes say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.config.configurations import V1, complaints, load
from tests.plugins.scenes import Scene, sign
from tests.reference.strategies import least_remainder, scarce_resource_avoidance

from bayplan.config.bayplan_args import (
    NodeResourcesLeastRemainderArgs,
    ScarceResourceAvoidanceArgs,
    WeightedResource,
)
from bayplan.config.convert import to_effective
from bayplan.framework.interface import CycleState
from bayplan.plugins.node_resources.node_resources_least_remainder import NodeResourcesLeastRemainder
from bayplan.plugins.node_resources.scarce_resource_avoidance import ScarceResourceAvoidance

GPU = "example.com/gpu"


def remainder(scene, **weights):
    resources = tuple(WeightedResource(GPU if name == "gpu" else name, weight) for name, weight in weights.items())
    plugin = NodeResourcesLeastRemainder(NodeResourcesLeastRemainderArgs(resources), scene.cache.nodes)
    assert plugin.sign_inputs(make_pod_info())
    return plugin


def test_nodes_with_a_scarce_resource_come_late_for_pods_that_do_not_ask_for_it():
    plugin = ScarceResourceAvoidance(ScarceResourceAvoidanceArgs((GPU,)))
    scene = Scene(make_node("gpus", allocatable={GPU: 2}), make_node("plain"))
    assert scene.scores(plugin, make_pod(cpu=1)) == {"gpus": 50, "plain": 100}
    assert scene.scores(plugin, make_pod(cpu=1, memory=1)) == {"gpus": 0, "plain": 100}
    assert scene.scores(plugin, make_pod(requests={GPU: 1})) == {"gpus": 100, "plain": 100}


def test_the_smaller_of_two_nodes_with_the_same_share_leaves_less():
    scene = Scene(make_node("large", cpu=100), make_node("small", cpu=20), make_pod("a", node="large", cpu=40))
    scores = scene.scores(remainder(scene, cpu=1), make_pod(cpu=10))
    assert scores["small"] < scores["large"]


def test_idle_gpus_remain_though_the_pod_does_not_ask_for_them():
    scene = Scene(
        make_node("idle", allocatable={GPU: 2}), make_node("none"), make_node("used", cpu=5, allocatable={GPU: 2})
    )
    scene.add(make_pod("a", node="used", cpu=1, requests={GPU: 2}))
    scores = scene.scores(remainder(scene, cpu=1, gpu=1), make_pod(cpu=1))
    assert scores["none"] == scores["used"] < scores["idle"]


def test_a_larger_node_changes_what_remainders_compare_by():
    scene = Scene(make_node("n", cpu=4))
    plugin = remainder(scene, cpu=1)
    signed = sign(plugin, cpu=1)
    scene.add(make_node("larger", cpu=8))
    assert plugin.sign_inputs(make_pod_info()) == (8000,)
    assert sign(plugin, cpu=1) != signed


def test_absurd_amounts_do_not_wrap():
    scene = Scene(make_node("n", memory=2**62), make_node("over", memory=1), make_pod("a", node="over", memory=2**62))
    scores = scene.scores(remainder(scene, memory=100), make_pod(memory=1))
    assert scores == {"n": 2**10, "over": 0}


NAMES = ("cpu", "memory", GPU)
AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 100), min_size=1)
PLACED = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), AMOUNTS), max_size=6)


def scene_of(nodes, placed):
    made = [make_node(name, cpu=None, memory=None, allocatable=each) for name, each in zip("abc", nodes, strict=True)]
    return Scene(
        *made, *(make_pod(f"p{index}", node=node, requests=asked) for index, (node, asked) in enumerate(placed))
    )


@given(st.lists(AMOUNTS, min_size=3, max_size=3), PLACED, AMOUNTS, WEIGHTS, st.sets(st.sampled_from(NAMES)))
def test_columns_say_what_one_node_at_a_time_says(nodes, placed, asked, weights, chosen):
    scene, pod = scene_of(nodes, placed), make_pod(requests=asked)
    info, hosts = make_pod_info(requests=asked), scene.hosts()
    scarce = ScarceResourceAvoidance(ScarceResourceAvoidanceArgs(tuple(chosen)))
    assert scene.scores(scarce, pod) == {
        host.name: scarce_resource_avoidance(info, host, tuple(chosen)) for host in hosts
    }
    resources = tuple(WeightedResource(*each) for each in weights.items())
    least = NodeResourcesLeastRemainder(NodeResourcesLeastRemainderArgs(resources), scene.cache.nodes)
    assert least.sign_inputs(info)
    assert scene.scores(least, pod) == {host.name: least_remainder(info, hosts, host, weights) for host in hosts}


def profile(plugin, args, **enabled):
    score = {"enabled": [{"name": plugin, **enabled}]}
    return V1 | {"profiles": [{"plugins": {"score": score}, "pluginConfig": [{"name": plugin, "args": args}]}]}


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        ("ScarceResourceAvoidance", {"resources": [GPU]}),
        ("NodeResourcesLeastRemainder", {"resources": [{"name": "cpu", "weight": 5}]}),
        ("TopologyMostAllocated", {"topologyKey": "rack", "resources": [{"name": "cpu", "weight": 5}]}),
        ("NodeResourcesFragmentation", {"resources": [{"name": GPU, "weight": 5}], "halfLifePods": 50}),
    ],
)
def test_arguments_are_read_and_shown_as_they_are(tmp_path, plugin, args):
    (shown,) = to_effective(load(tmp_path, profile(plugin, args)))["profiles"]
    assert {each["name"]: each["args"] for each in shown["pluginConfig"]}[plugin] == args


@pytest.mark.parametrize(
    ("plugin", "resources", "complaint"),
    [
        ("ScarceResourceAvoidance", [1], "[0]: Invalid value: 1: must be a string; put it in quotes"),
        ("NodeResourcesLeastRemainder", [{"weight": 1}], "[0].name: Required value"),
        ("NodeResourcesLeastRemainder", [{"name": "cpu"}, {"name": "cpu"}], '[1].name: Duplicate value: "cpu"'),
    ],
)
def test_wrong_arguments_are_named(tmp_path, plugin, resources, complaint):
    (told,) = complaints(tmp_path, profile(plugin, {"resources": resources}))
    assert told.startswith(f"profiles[0].pluginConfig[0].args.resources{complaint}")


def test_what_each_resource_adds_is_told():
    scene = Scene(make_node("n", cpu=10, memory=100), make_pod("a", node="n", cpu=2, memory=50))
    plugin = remainder(scene, cpu=1, memory=2)
    told = plugin.resource_scores(make_pod_info(cpu=3, memory=25), scene.cache.nodes, 0)
    shown = [(each.resource, each.before, each.after, each.allocatable, each.weight) for each in told]
    assert shown == [("cpu", 2000, 5000, 10000, 1), ("memory", 50, 75, 100, 2)]
    assert [each.score for each in told] == [50, 75]


def test_a_pod_that_asks_for_nothing_is_scored():
    scene = Scene(make_node("n", cpu=1, memory="200Mi"))
    assert remainder(scene, cpu=1).score(CycleState(), make_pod_info(), scene.cache.nodes, scene.cache.nodes.rows()) > 0
