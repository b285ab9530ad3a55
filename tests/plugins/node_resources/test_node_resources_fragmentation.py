"""NodeResourcesFragmentation: what stays useful for the pods that typically come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.config.configurations import V1, complaints, load
from tests.plugins.scenes import Scene, sign
from tests.reference.strategies import fragmentation_decrease, typical_pods

from bayplan.config.bayplan_args import NodeResourcesFragmentationArgs, WeightedResource
from bayplan.framework.interface import CycleState
from bayplan.plugins.node_resources.node_resources_fragmentation import (
    MOST_GONE,
    MOST_SHAPES,
    NodeResourcesFragmentation,
    TypicalPods,
)
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

GPU = "example.com/gpu"


def fragmentation(scene, weights, half_life=1000):
    resources = tuple(WeightedResource(*each) for each in weights.items())
    plugin = NodeResourcesFragmentation(NodeResourcesFragmentationArgs(resources, half_life), scene.cache.nodes)
    assert plugin.sign_inputs(make_pod_info())
    return plugin


def typical(scene, half_life=1000):
    pods = TypicalPods(scene.cache.nodes, ("cpu",), half_life)
    pods.catch_up()
    return pods


def shares(pods):
    return dict(zip([shape[0] // 1000 for shape in pods.shapes.tolist()], pods.shares.tolist(), strict=True))


def test_a_pod_takes_what_is_of_no_use_to_others():
    scene = Scene(
        make_node("four", cpu=8),
        make_node("five", cpu=9),
        make_pod("a", node="four", cpu=4),
        make_pod("b", node="five", cpu=4),
    )
    plugin = fragmentation(scene, {"cpu": 1})
    raw = scene.scores(plugin, make_pod(cpu=1))
    assert raw["five"] > 0 > raw["four"]
    nodes = scene.cache.nodes
    scores = np.array([*raw.values()], dtype=np.int64)
    info = make_pod_info(cpu=1)
    assert plugin.normalize_score(CycleState(), info, nodes, nodes.rows(), scores).tolist() == [0, 100]


def test_nodes_that_are_alike_score_alike():
    scene = Scene(make_node("a"), make_node("b"))
    nodes, plugin = scene.cache.nodes, fragmentation(scene, {"cpu": 1})
    scores = np.array([*scene.scores(plugin, make_pod(cpu=1)).values()], dtype=np.int64)
    info = make_pod_info(cpu=1)
    assert plugin.normalize_score(CycleState(), info, nodes, nodes.rows(), scores).tolist() == [0, 0]
    none = np.empty(0, dtype=np.int64)
    assert plugin.normalize_score(CycleState(), info, nodes, nodes.rows()[:0], none).tolist() == []


def test_what_is_typical_are_the_pods_that_came():
    scene = Scene(make_node("n", cpu=99), make_pod("d", node="n", cpu=1, owner="DaemonSet/d"), make_pod("z", node="n"))
    pods = typical(scene)
    assert shares(pods) == {}
    scene.add(make_pod("a", node="n", cpu=2), make_pod("b", node="n", cpu=2), make_pod("c", node="n", cpu=4))
    version = pods.version
    pods.catch_up()
    assert (shares(pods), pods.version > version) == ({2: 666, 4: 333}, True)


def test_pods_that_left_stay_typical_until_others_came():
    scene = Scene(make_node("n", cpu=9999))
    pods = typical(scene, half_life=10)
    for index in range(10):
        scene.add(make_pod(f"old{index}", uid=f"old{index}", node="n", cpu=1))
        pods.catch_up()
    for index in range(10):
        scene.cache.remove_pod(f"old{index}")
    pods.catch_up()
    assert shares(pods) == {1: 1000}
    for index in range(10):
        scene.add(make_pod(f"new{index}", uid=f"new{index}", node="n", cpu=2))
        pods.catch_up()
    found = shares(pods)
    assert 0 < found[1] < found[2]


@pytest.mark.parametrize("is_read_between", [True, False])
def test_a_node_that_comes_back_brings_no_new_pods(is_read_between):
    node = make_node("flapping", cpu=99)
    scene = Scene(make_node("n", cpu=99), node, make_pod("a", uid="a", node="flapping", cpu=1))
    pods = typical(scene)
    for _ in range(5):
        scene.cache.remove_node("flapping")
        if is_read_between:
            pods.catch_up()
        scene.add(node)
        pods.catch_up()
    scene.add(make_pod("b", uid="b", node="n", cpu=2))
    pods.catch_up()
    assert shares(pods) == {1: 500, 2: 500}


@pytest.mark.parametrize(
    ("others", "expected"), [(MOST_GONE - 1, {1: 250, 2: 250, 3: 500}), (MOST_GONE, {1: 500, 2: 250, 3: 250})]
)
def test_so_many_pods_that_left_are_known_again_and_no_more(others, expected):
    scene = Scene(make_node("n", cpu=99), make_pod("a", uid="a", node="n", cpu=1), make_pod("b", node="n", cpu=2))
    pods = typical(scene)
    scene.cache.remove_pod("a")
    for number in range(others):
        scene.add(make_pod(uid=f"other-{number}", node="n", owner="DaemonSet/d"))
        scene.cache.remove_pod(f"other-{number}")
    for name, cpu in (("a", 1), ("c", 3), ("d", 3)):
        scene.add(make_pod(name, uid=name, node="n", cpu=cpu))
        pods.catch_up()
    assert shares(pods) == expected


def test_what_is_typical_outlives_a_table_that_grows():
    scene = Scene(make_node("n", cpu=99), make_pod("old", uid="old", node="n", cpu=1))
    pods = typical(scene)
    scene.cache.remove_pod("old")
    scene.add(*(make_node(f"more{index}") for index in range(2 * scene.cache.nodes.capacity)))
    pods.catch_up()
    assert shares(pods) == {1: 1000}


def test_however_many_shapes_come_few_are_counted_and_the_frequent_one_stays():
    scene = Scene(make_node("n", cpu=99999))
    pods = typical(scene)
    for index in range(300):
        scene.add(make_pod(f"often{index}", node="n", cpu=1), make_pod(f"rare{index}", node="n", cpu=2 + index))
        pods.catch_up()
    found = shares(typical(scene))
    assert len(shares(pods)) <= MOST_SHAPES
    assert len(found) <= MOST_SHAPES
    assert found[1] > 400


def test_what_was_scored_by_other_typical_pods_is_scored_again():
    scene = Scene(make_node("n", cpu=99))
    plugin = fragmentation(scene, {"cpu": 1})
    before, signed = plugin.sign_inputs(make_pod_info()), sign(plugin, cpu=1)
    scene.add(make_pod("a", node="n", cpu=2))
    assert plugin.sign_inputs(make_pod_info()) != before
    assert sign(plugin, cpu=1) != signed


def test_absurd_amounts_do_not_wrap():
    scene = Scene(
        make_node("n", memory=2**62), make_pod("a", node="n", memory=2**61), make_pod("b", node="n", memory=2**62)
    )
    assert scene.scores(fragmentation(scene, {"memory": 100}), make_pod(memory=1)) == {"n": 0}


NAMES = ("cpu", "memory", GPU)
AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})
PLACED = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), AMOUNTS), max_size=6)
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 100), min_size=1)


@given(st.lists(AMOUNTS, min_size=3, max_size=3), PLACED, AMOUNTS, WEIGHTS)
def test_columns_say_what_one_node_at_a_time_says(nodes, placed, asked, weights):
    made = [make_node(name, cpu=None, memory=None, allocatable=each) for name, each in zip("abc", nodes, strict=True)]
    scene = Scene(
        *made, *(make_pod(f"p{index}", node=node, requests=each) for index, (node, each) in enumerate(placed))
    )
    hosts, info = scene.hosts(), make_pod_info(requests=asked)
    assert scene.scores(fragmentation(scene, weights), make_pod(requests=asked)) == {
        host.name: fragmentation_decrease(info, hosts, host, weights) for host in hosts
    }
    pods = TypicalPods(scene.cache.nodes, NAMES, 1000)
    pods.catch_up()
    found = dict(zip(map(tuple, pods.shapes.tolist()), pods.shares.tolist(), strict=True))
    assert found == typical_pods([each for host in hosts for each in host.pods], NAMES)


def profile(**args):
    score = {"enabled": [{"name": "NodeResourcesFragmentation"}], "disabled": [{"name": "*"}]}
    config = [{"name": "NodeResourcesFragmentation", "args": args}]
    return V1 | {"profiles": [{"plugins": {"score": score}, "pluginConfig": config}]}


def test_it_learns_as_pods_are_scheduled(tmp_path):
    simulator = Simulator(load(tmp_path, profile(resources=[{"name": "cpu"}])))
    nodes = [make_node("four", cpu=8), make_node("five", cpu=9)]
    simulator.add(ClusterObjects(nodes=nodes, pods=[make_pod_info(f"p{index}", cpu=4) for index in range(2)]))
    simulator.run()
    table = simulator.cache.nodes
    free = dict(zip(table.names, (table.offered("cpu") - table.taken("cpu")).tolist(), strict=True))
    simulator.add(ClusterObjects(pods=[make_pod_info("small", cpu=1)]))
    simulator.run()
    placed = [each.name for each in table.pods[table.row("five")].values()]
    assert free["four"] % 4000 == 0
    assert "small" in placed


def test_a_half_life_is_one_pod_or_more(tmp_path):
    (told,) = complaints(tmp_path, profile(halfLifePods=0))
    assert told == "profiles[0].pluginConfig[0].args.halfLifePods: Invalid value: 0: must be greater than 0"
