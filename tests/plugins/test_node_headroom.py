import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.config.configurations import V1, load
from tests.plugins.scenes import Scene, sign
from tests.reference.filters import node_headroom

from bayplan.config.bayplan_args import NodeHeadroomArgs, ResourceHeadroom
from bayplan.config.convert import to_effective
from bayplan.config.errors import ConfigurationError
from bayplan.framework.interface import CycleState
from bayplan.plugins.node_headroom import NodeHeadroom
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

TENTH = NodeHeadroomArgs((ResourceHeadroom("cpu", 10),))


def filtered(pod, *objects, args=TENTH):
    return Scene(*objects).rejections(NodeHeadroom(args), pod)


def test_a_tenth_stays_free():
    node, placed = make_node("n", cpu="10"), make_pod(node="n", cpu="8")
    assert filtered(make_pod(cpu="1"), node, placed) == {}
    assert filtered(make_pod(cpu="1001m"), node, placed) == {"n": (1, ["Insufficient cpu beside the head room"])}


def test_an_amount_stays_free_of_what_the_pod_asks_for():
    args = NodeHeadroomArgs((ResourceHeadroom("cpu", amount="2"), ResourceHeadroom("memory", amount="1Gi")))
    node = make_node("n", cpu="4", memory="4Gi")
    assert filtered(make_pod(cpu="2"), node, args=args) == {}
    assert filtered(make_pod(cpu="3"), node, args=args) == {"n": (2, ["Insufficient cpu beside the head room"])}


def test_the_number_of_pods_can_have_head_room():
    args = NodeHeadroomArgs((ResourceHeadroom("pods", amount="2"),))
    node = make_node("n", pods=3)
    assert filtered(make_pod(), node, args=args) == {}
    assert filtered(make_pod(), node, make_pod(node="n"), args=args).keys() == {"n"}


@pytest.mark.parametrize("fields", [{"owner": "DaemonSet/cni"}, {"owner": "Node/n"}, {"priority": 2_000_001_000}])
def test_pods_of_daemon_sets_static_and_critical_pods_may_take_it(fields):
    assert filtered(make_pod(cpu="4", **fields), make_node("n", cpu="4")) == {}


def test_nodes_that_keep_it_score_most():
    scene = Scene(make_node("full", cpu="10"), make_node("roomy", cpu="10"), make_pod(node="full", cpu="9"))
    assert scene.scores(NodeHeadroom(TENTH), make_pod(cpu="1")) == {"full": 0, "roomy": 100}


def test_pods_that_may_take_it_are_told_apart_from_others_alike():
    plugin = NodeHeadroom(TENTH)
    assert sign(plugin, cpu="1") == sign(plugin, cpu="1", memory="1Gi") != sign(plugin, cpu="1", owner="DaemonSet/d")


NAMES = ("cpu", "memory", "pods", "example.com/gpu")
HEADROOM = st.builds(
    lambda name, of_all, amount: ResourceHeadroom(name, of_all, "" if of_all else str(amount)),
    st.sampled_from(NAMES),
    st.integers(0, 100),
    st.integers(0, 5),
)
REQUESTS = st.fixed_dictionaries({name: st.integers(0, 4) for name in NAMES if name != "pods"})
OWNERS = st.sampled_from([None, "DaemonSet/d", "ReplicaSet/r"])


@given(
    st.builds(
        NodeHeadroomArgs,
        st.lists(HEADROOM, unique_by=lambda each: each.name).map(tuple),
        st.sampled_from([1, 2_000_000_000]),
    ),
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), REQUESTS), max_size=6),
    REQUESTS,
    OWNERS,
    st.integers(0, 2),
)
def test_it_says_what_the_reference_says(args, placed, requests, owner, priority):
    gpu = {"example.com/gpu": 3}
    nodes = [
        make_node("a", cpu=8, memory=8, pods=4, allocatable=gpu),
        make_node("b", cpu=3, memory=99, pods=2),
        make_node("c", cpu=0, memory=None),
    ]
    scene = Scene(*nodes, *(make_pod(node=node, requests=asked) for node, asked in placed))
    pod = make_pod(requests=requests, owner=owner, priority=priority)
    info = make_pod_info(requests=requests, owner=owner, priority=priority)
    verdicts = {host.name: node_headroom(info, host, args) for host in scene.hosts()}
    assert scene.rejections(NodeHeadroom(args), pod) == {name: each for name, each in verdicts.items() if each}
    table = scene.cache.nodes
    rows = table.rows().tolist()
    scores = NodeHeadroom(args).score_few(CycleState(), info, table, rows)
    assert scores == [0 if verdicts[table.names[row]] else 100 for row in rows]


def configuration(tmp_path, args, point="filter"):
    profile = {
        "schedulerName": "bayplan",
        "plugins": {point: {"enabled": [{"name": "NodeHeadroom", "weight": 10}]}} if point else {},
        "pluginConfig": [
            {"name": "NodeHeadroom", "args": args},
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
        ],
    }
    return load(tmp_path, V1 | {"profiles": [profile]})


@pytest.mark.parametrize(("point", "placed"), [("filter", 4), ("score", 4), (None, 1)])
def test_the_next_daemon_set_finds_room_on_nodes_that_are_packed(tmp_path, point, placed):
    names = [f"n{number}" for number in range(4)]
    simulator = Simulator(configuration(tmp_path, {"resources": [{"name": "cpu", "percentage": 10}]}, point))
    nodes = [make_node(name, cpu="4", memory="64Gi", labels={"name": name}) for name in names]
    simulator.add(ClusterObjects(nodes=nodes, pods=[make_pod_info(f"p{number}", cpu="1") for number in range(12)]))
    assert simulator.run().summary.scheduled == 12
    daemons = [make_pod_info(name, owner="DaemonSet/d", cpu="400m", node_selector={"name": name}) for name in names]
    simulator.add(ClusterObjects(pods=daemons))
    assert simulator.run().summary.scheduled == 12 + placed


@pytest.mark.parametrize(
    ("resource", "complaint"),
    [
        ({"percentage": 5}, "resources[0].name: Required value"),
        (
            {"name": "cpu", "percentage": 101},
            "resources[0].percentage: Invalid value: 101: not in valid range [0, 100]",
        ),
        ({"name": "cpu", "amount": "two"}, 'resources[0].amount: Invalid value: "two": must be a quantity'),
        ({"name": "cpu", "amount": "-1"}, 'resources[0].amount: Invalid value: "-1": must be a quantity'),
        ({"name": "cpu", "amount": "1", "percentage": 1}, "resources[0].amount: Forbidden: may not be given together"),
        ({"name": "cpu", "amount": True}, "resources[0].amount: Invalid value: true: must be a string"),
        ({"name": "cpu"}, "resources[0]: Required value: nothing is kept free without a percentage or an amount"),
        ({"name": "cpu", "percentage": 0}, "resources[0]: Required value: nothing is kept free"),
        ({"name": "cpu", "amount": 0}, "resources[0]: Required value: nothing is kept free"),
        ({"name": "cpu", "weight": 1}, "resources[0].weight: unknown field"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, resource, complaint):
    with pytest.raises(ConfigurationError) as error:
        configuration(tmp_path, {"resources": [resource]})
    assert f"profiles[0].pluginConfig[0].args.{complaint}" in str(error.value)


@pytest.mark.parametrize(("amount", "kept"), [(1, "1"), (0.5, "0.5"), ("500m", "500m")])
def test_an_amount_may_be_a_number(tmp_path, amount, kept):
    loaded = configuration(tmp_path, {"resources": [{"name": "cpu", "amount": amount}]})
    (profile,) = to_effective(loaded)["profiles"]
    shown = next(each["args"] for each in profile["pluginConfig"] if each["name"] == "NodeHeadroom")
    assert shown["resources"][0]["amount"] == kept


def test_a_resource_is_there_once(tmp_path):
    with pytest.raises(ConfigurationError, match=r"resources\[1\]\.name: Duplicate value"):
        configuration(tmp_path, {"resources": [{"name": "cpu"}, {"name": "cpu"}]})


def test_the_effective_configuration_shows_it(tmp_path):
    (profile,) = to_effective(configuration(tmp_path, {}))["profiles"]
    shown = next(each["args"] for each in profile["pluginConfig"] if each["name"] == "NodeHeadroom")
    assert shown["priorityThreshold"] == 2_000_000_000
    assert [each["name"] for each in shown["resources"]] == ["cpu", "memory"]
