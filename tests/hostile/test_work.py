"""Twice as much of anything a user may write must not be four times the work: what takes squares takes minutes."""

import sys

import pytest
from tests.builders import make_node, make_pod_info
from tests.hostile.world import HOST, ZONE, World, expression, near_pods, node, node_affinity, pod, spread, term

from bayplan.cache.cache import Cache
from bayplan.cache.node_tree import NodeTree


def tolerations_and_taints(world, n):
    taints = [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(n)]
    for index in range(3):
        world.add_node(node(f"tainted-{index}", taints=[*taints, {"key": f"own-{index}", "effect": "NoExecute"}]))
    tolerations = [{"key": f"k{i}", "operator": "Equal", "value": "v"} for i in reversed(range(n))]
    return pod(tolerations=tolerations, topologySpreadConstraints=[spread(HOST, nodeTaintsPolicy="Honor")])


def disks(world, n):
    for index in range(4):
        held = [{"name": f"v{i}", "iscsi": {"iqn": f"held-{i}"}} for i in range(n)]
        held += [{"name": f"r{i}", "rbd": {"pool": "p", "image": "i", "monitors": [f"held-{i}"]}} for i in range(n)]
        world.place(pod(f"with-disks-{index}", volumes=held), f"n{index}")
    wanted = [{"name": f"v{i}", "iscsi": {"iqn": f"mine-{i}"}} for i in range(n)]
    wanted += [{"name": f"r{i}", "rbd": {"pool": "p", "image": "i", "monitors": [f"mine-{i}"]}} for i in range(n)]
    return pod(volumes=wanted)


def host_ports(world, n):
    def containers(net):
        ports = [{"hostPort": 80, "hostIP": f"10.{net}.{i // 256}.{i % 256}"} for i in range(n)]
        return [{"name": "c", "ports": ports}]

    for index in range(4):
        world.place(pod(f"with-ports-{index}", containers=containers(1)), f"n{index}")
    return pod(containers=containers(2))


def node_selector_terms(world, n):
    for index in range(n // 10):
        world.add_node(node(f"more-{index}", labels={"size": str(index)}))
    return pod(**node_affinity([{"matchExpressions": [expression("size", "Gt", str(i + n))]} for i in range(n)]))


def node_selector_keys(world, n):
    for index in range(n // 10):
        world.add_node(node(f"more-{index}"))
    return pod(**node_affinity([{"matchExpressions": [expression(f"k{i}", "NotIn", "v") for i in range(n)]}]))


def a_selector_over_pods(world, n):
    for index in range(n // 10):
        world.place(pod(f"more-{index}", labels={"app": f"b{index}"}), "n0")
    return pod(**near_pods("podAntiAffinity", [term(HOST, *[expression(f"k{i}", "DoesNotExist") for i in range(n)])]))


def pod_affinity_terms(world, n):
    for index in range(n // 10):
        world.place(pod(f"more-{index}", labels={"app": f"b{index}"}), "n0")
    terms = [term(ZONE, expression("app", "In", f"b{i}")) for i in range(n)]
    return pod(**near_pods("podAffinity", terms, preferred=True))


def spread_keys(world, n):
    for index in range(n // 10):
        world.add_node(node(f"more-{index}"))
    return pod(topologySpreadConstraints=[spread(f"k{i}") for i in range(n)])


def _work(action):
    """How many lines of Python run and functions are called."""
    count = 0

    def step(frame, event, argument):
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    sys.setprofile(step)
    try:
        action()
    finally:
        sys.setprofile(None)
        sys.settrace(before)
    return count


def _work_of_a_pod(family, n):
    world = World()
    document = family(world, n)
    count = _work(lambda: world.schedule(document))
    assert "hostile" in world.outcomes
    world.assert_unharmed()
    return count


@pytest.mark.parametrize(
    "family",
    [
        tolerations_and_taints,
        disks,
        host_ports,
        node_selector_terms,
        node_selector_keys,
        a_selector_over_pods,
        pod_affinity_terms,
        spread_keys,
    ],
    ids=lambda family: family.__name__,
)
def test_twice_as_much_is_at_most_some_more_than_twice_the_work(family):
    once, twice = _work_of_a_pod(family, 300), _work_of_a_pod(family, 600)
    assert twice < 2.5 * once, f"{once} steps for 300, {twice} for 600"


def test_zones_of_one_node_beside_a_large_one_are_put_in_turn_in_steps_that_grow_with_the_nodes():
    def work_of(nodes):
        tree = NodeTree()
        for i in range(nodes):
            tree.set(make_node(f"n{i}", labels={ZONE: "large" if i % 2 else f"z{i}"}))
        return _work(tree.in_turn)

    assert work_of(2000) < 2.5 * work_of(1000)


def test_pods_are_summed_once_for_all_the_resources_that_a_node_brings():
    def work_of(names):
        cache = Cache()
        cache.set_node(make_node("n"))
        for i in range(500):
            cache.set_pod(make_pod_info(f"p{i}", uid=f"p{i}", node="n"))
        return _work(lambda: cache.set_node(make_node("n", allocatable={f"example.com/{i}": 1 for i in range(names)})))

    assert work_of(40) < 2.5 * work_of(10)


def test_thousands_of_terms_on_nodes_cost_other_pods_next_to_nothing():
    def work_among(terms):
        world = World()
        far = [term(HOST, expression("app", "In", f"b{i}")) for i in range(terms)]
        world.place(pod("as-placed", **near_pods("podAntiAffinity", far)), "n1")
        world.assert_unharmed()
        return _work(lambda: world.schedule(pod("of-another-shape", labels={"app": "web"})))

    assert work_among(2000) < 1.2 * work_among(20)
