"""How many more of a pod fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_selector

from bayplan.api.objects import PodAffinity, PodAffinityTerm, Volume
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.simulate.capacity import capacity_lines, how_many_fit
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator


def fits(nodes, pods, pod, asked=None):
    configuration = default_configuration()
    simulator = Simulator(configuration)
    simulator.add(ClusterObjects(nodes=list(nodes), pods=[PodInfo(each) for each in pods]))
    simulator.run()
    return how_many_fit(simulator, configuration, PodInfo(pod), asked)


def away_from(app):
    term = PodAffinityTerm(label_selector=make_selector(app=app), topology_key="kubernetes.io/hostname")
    return PodAffinity(required_during_scheduling_ignored_during_execution=[term])


def test_as_many_fit_as_nodes_have_room_for_beside_what_they_have():
    nodes = [make_node("a", cpu=4), make_node("b", cpu=2), make_node("c", cpu=1)]
    found = fits(nodes, [make_pod("x", cpu=1, node="a")], make_pod("p", cpu=1))
    assert (found.fits, found.per_node, found.asked) == (6, {"a": 3, "b": 2, "c": 1}, None)
    assert found.stopped_by == "nodes are full by cpu on 3"


def test_pods_that_wait_are_placed_first():
    assert fits([make_node("a", cpu=4)], [make_pod("x", cpu=3)], make_pod("p", cpu=1)).fits == 1


def test_no_more_are_counted_than_asked_for():
    found = fits([make_node("a", cpu=4), make_node("b", cpu=4)], [], make_pod("p", cpu=1), asked=5)
    assert (found.fits, found.asked, found.stopped_by) == (5, 5, None)
    assert capacity_lines(found) == [
        "Fits:  5 more of default/p of the 5 asked for, on 2 nodes",
        "       4 on a",
        "       1 on b",
    ]


def test_copies_that_only_take_room_are_counted_however_many_fit():
    found = fits([make_node("a", pods=3_000_000_000)], [], make_pod("p"))
    assert (found.fits, found.stopped_by) == (3_000_000_000, "nodes are full by pods on 1")
    assert capacity_lines(found)[0] == "Fits:  3,000,000,000 more of default/p, on 1 node"


def test_copies_that_are_placed_one_after_the_other_end_at_a_number_and_say_so(monkeypatch):
    monkeypatch.setattr("bayplan.simulate.capacity.MAX_COPIES", 3)
    nodes = [make_node(f"n{number}", labels={"kubernetes.io/hostname": f"n{number}"}) for number in range(9)]
    pod = make_pod("p", labels={"app": "a"}, pod_anti_affinity=away_from("a"))
    found = fits(nodes, [], pod)
    assert (found.fits, found.stopped_by) == (3, "is not tried after so many")
    assert fits(nodes, [], pod, asked=3).stopped_by is None


def test_where_none_fits_the_reason_is_the_schedulers():
    found = fits([make_node("a", cpu=1)], [], make_pod("p", cpu=2))
    assert (found.fits, found.per_node) == (0, {})
    assert found.stopped_by.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_nobody_is_evicted_for_a_copy():
    found = fits([make_node("a", cpu=1)], [make_pod("x", cpu=1, node="a")], make_pod("p", cpu=1, priority=9))
    assert found.fits == 0


@settings(max_examples=25, deadline=None)
@given(
    cpus=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    running=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=4),
    cpu=st.integers(0, 2),
)
def test_the_short_way_gives_what_placing_them_one_by_one_gives(cpus, running, cpu):
    nodes = [make_node(f"n{number}", cpu=each, pods=6) for number, each in enumerate(cpus)]
    pods = [make_pod(f"x{number}", cpu=each, node=f"n{row % len(cpus)}") for number, (row, each) in enumerate(running)]
    pod = make_pod("p", cpu=cpu)
    # A rule about pods that there are none of changes nothing, but has copies placed one by one.
    slow = make_pod("p", cpu=cpu, pod_anti_affinity=away_from("nobody"))
    short, long = fits(nodes, pods, pod), fits(nodes, pods, slow)
    assert (short.fits, short.per_node) == (long.fits, long.per_node)


def test_volumes_that_every_node_has_leave_the_way_short(monkeypatch):
    monkeypatch.setattr(Simulator, "step", lambda *_, **__: pytest.fail("copies are placed one by one"))
    nodes = [make_node("a", cpu=4)]
    simulator = Simulator(configuration := default_configuration())
    simulator.add(ClusterObjects(nodes=nodes))
    pod = PodInfo(make_pod("p", cpu=1, volumes=[Volume(name="kube-api-access")]))
    assert how_many_fit(simulator, configuration, pod, None).fits == 4


def test_volumes_that_one_pod_of_a_node_may_use_count():
    disk = Volume(name="data", gce_persistent_disk={"pdName": "d"})
    assert fits([make_node("a", cpu=4)], [], make_pod("p", cpu=1, volumes=[disk])).per_node == {"a": 1}


@pytest.mark.parametrize("asked", [None, 3])
def test_rules_between_copies_count(asked):
    nodes = [make_node(name, cpu=8, labels={"kubernetes.io/hostname": name}) for name in ("a", "b")]
    found = fits(nodes, [], make_pod("p", cpu=1, labels={"app": "p"}, pod_anti_affinity=away_from("p")), asked)
    assert (found.fits, found.per_node) == (2, {"a": 1, "b": 1})
    assert "didn't match pod anti-affinity rules" in found.stopped_by


@pytest.mark.parametrize("cycle", ["by node", "one by one"])
def test_a_pod_is_counted_without_its_scheduling_gates_which_are_told(cycle):
    affinity = away_from("none") if cycle == "one by one" else None
    pod = make_pod("p", cpu=1, pod_anti_affinity=affinity, gates=["wait"])
    found = fits([make_node("a", cpu=4)], [], pod)
    assert (found.fits, found.scheduling_gates) == (4, ["wait"])
    assert "       Counted without its scheduling gates: wait" in capacity_lines(found)


def test_nodes_that_are_not_named_are_counted_in_plain_english():
    found = fits([make_node(name, cpu=1) for name in "abcd"], [], make_pod("p", cpu=1))
    assert capacity_lines(found)[1] == "       1 on a, b, c and 1 other"
