"""TopologyMostAllocated: a rack or a zone as the bin."""

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.config.configurations import V1, load
from tests.plugins.scenes import Scene
from tests.reference.strategies import topology_most_allocated

from bayplan.config.bayplan_args import TopologyMostAllocatedArgs, WeightedResource
from bayplan.plugins.node_resources.topology_most_allocated import TopologyMostAllocated
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

GPU, RACK = "example.com/gpu", "rack"


def by_rack(scene, **weights):
    resources = tuple(WeightedResource(GPU if name == "gpu" else name, each) for name, each in weights.items())
    return TopologyMostAllocated(TopologyMostAllocatedArgs(RACK, resources), scene.index)


def test_the_share_of_the_whole_domain_counts():
    scene = Scene(
        make_node("a1", cpu=10, labels={RACK: "a"}),
        make_node("a2", cpu=30, labels={RACK: "a"}),
        make_node("b", cpu=10, labels={RACK: "b"}),
        make_node("nowhere", cpu=10),
        make_pod("p", node="a1", cpu=10),
    )
    assert scene.scores(by_rack(scene, cpu=1), make_pod(cpu=2)) == {"a1": 30, "a2": 30, "b": 20, "nowhere": 0}


def test_without_a_node_that_has_the_label_all_score_nothing():
    scene = Scene(make_node("a"), make_node("b"))
    assert scene.scores(by_rack(scene, cpu=1), make_pod(cpu=2)) == {"a": 0, "b": 0}


def test_absurd_amounts_do_not_wrap():
    labels = {RACK: "a"}
    scene = Scene(*(make_node(f"n{index}", memory=2**62, labels=labels) for index in range(50)))
    scene.add(make_pod("p", node="n0", memory=2**62))
    assert set(scene.scores(by_rack(scene, memory=100), make_pod(memory=2**62)).values()) <= set(range(101))


NAMES = ("cpu", "memory", GPU)
AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})
NODES = st.lists(st.tuples(st.sampled_from([None, "", "a", "b"]), AMOUNTS), min_size=3, max_size=3)
PLACED = st.lists(st.tuples(st.integers(0, 2), AMOUNTS), max_size=6)
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 100), min_size=1)


@given(NODES, PLACED, AMOUNTS, WEIGHTS)
def test_columns_say_what_one_node_at_a_time_says(nodes, placed, asked, weights):
    scene = Scene()
    for index, (rack, amounts) in enumerate(nodes):
        labels = {} if rack is None else {RACK: rack}
        scene.add(make_node(f"n{index}", cpu=None, memory=None, allocatable=amounts, labels=labels))
    scene.add(*(make_pod(f"p{index}", node=f"n{node}", requests=each) for index, (node, each) in enumerate(placed)))
    hosts, info = scene.hosts(), make_pod_info(requests=asked)
    plugin = TopologyMostAllocated(
        TopologyMostAllocatedArgs(RACK, tuple(WeightedResource(*each) for each in weights.items())), scene.index
    )
    assert scene.scores(plugin, make_pod(requests=asked)) == {
        host.name: topology_most_allocated(info, hosts, host, RACK, weights) for host in hosts
    }


def test_pods_fill_a_rack_before_the_next_one_is_begun(tmp_path):
    profile = {
        "plugins": {"score": {"enabled": [{"name": "TopologyMostAllocated", "weight": 10}]}},
        "pluginConfig": [{"name": "TopologyMostAllocated", "args": {"topologyKey": RACK}}],
    }
    simulator = Simulator(load(tmp_path, V1 | {"profiles": [profile]}))
    nodes = [make_node(f"n{index}", cpu=4, labels={RACK: f"r{index % 3}"}) for index in range(9)]
    simulator.add(ClusterObjects(nodes=nodes, pods=[make_pod_info(f"p{index}", cpu=3) for index in range(4)]))
    assert simulator.run().summary.scheduled == 4
    table = simulator.cache.nodes
    used = [table.nodes[row].metadata.labels[RACK] for row in table.rows().tolist() if table.pods[row]]
    assert len(used) == 4
    assert len(set(used)) == 2
