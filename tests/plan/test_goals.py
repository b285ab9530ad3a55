"""Plans that free a node, make room for a pod, or leave fewer nodes in use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.group_builders import make_pod_group
from tests.plan.plans import budget, carried_out, nodes, reasons, rehearsal, running, steps, waiting

from bayplan.plan.goals import fewer, fit, free


def test_a_freed_node_is_closed_and_its_pods_land_elsewhere_the_largest_first():
    pods = [running("small", "n1", 1), running("large", "n1", 2), running("there", "n2", 1), running("on", "n3", 1)]
    plan = free(rehearsal(nodes("n1", "n2", "n3"), pods), ["n1"])
    assert plan.cordon == ["n1"]
    assert steps(plan) == [("large", "n1", "n2"), ("small", "n1", "n2")]
    assert (plan.reached, plan.nodes_in_use_before, plan.nodes_in_use) == (True, 3, 2)


def test_pods_of_daemon_sets_and_static_pods_stay_on_a_freed_node():
    pods = [running("agent", "n1", owner="DaemonSet/agent"), running("static", "n1", owner="Node/n1")]
    plan = free(rehearsal(nodes("n1", "n2"), pods), ["n1"])
    assert (plan.reached, plan.moves) == (True, [])


def test_several_nodes_are_closed_before_the_first_pod_leaves():
    pods = [running("a", "n1", 2), running("b", "n2", 1), running("c", "n3", 1)]
    plan = free(rehearsal(nodes("n1", "n2", "n3"), pods), ["n1", "n2"])
    assert steps(plan) == [("a", "n1", "n3"), ("b", "n2", "n3")]


NO_CONTROLLER = "has no controller: nothing would make it again"
SEVERAL = "is of more than one PodDisruptionBudget, default/x and default/y: the API server evicts none"
FOREIGN = "names the scheduler other, which no profile has: give --scheduler-name or --config"
FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."


@pytest.mark.parametrize(
    ("fields", "budgets", "reason"),
    [
        ({"owner": ""}, [], NO_CONTROLLER),
        ({}, [budget("x", 0, a="b")], "PodDisruptionBudget default/x allows no disruption"),
        ({}, [budget("x", 1, a="b"), budget("y", 1, a="b")], SEVERAL),
        ({"scheduler_name": "other"}, [], FOREIGN),
        ({"cpu": 5}, [], FULL),
    ],
)
def test_what_keeps_a_pod_on_its_node_is_told(fields, budgets, reason):
    pods = [running("p", "n1", labels={"a": "b"}, **fields), running("other", "n1")]
    plan = free(rehearsal(nodes("n1", "n2"), pods, budgets=budgets), ["n1"])
    assert not plan.reached
    assert reasons(plan) == {"p": reason}
    assert steps(plan) == [("other", "n1", "n2")]


def test_what_a_budget_does_not_allow_at_once_waits_for_it():
    pods = [running(name, "n1", labels={"a": "b"}) for name in ("p1", "p2", "p3")]
    plan = free(rehearsal(nodes("n1", "n2"), pods, budgets=[budget("x", 1, a="b")]), ["n1"])
    assert [move.waits_for for move in plan.moves] == [None, "default/x", "default/x"]
    assert plan.reached


def test_nobody_is_preempted_for_a_pod_that_moves():
    pods = [running("urgent", "n1", 3, priority=1000), running("low", "n2", 3)]
    plan = free(rehearsal(nodes("n1", "n2"), pods), ["n1"])
    assert not plan.reached
    assert reasons(plan) == {"urgent": FULL}


def test_pods_that_wait_take_their_room_before_anything_moves():
    pods = [running("p", "n1", 2), waiting("first", 3)]
    plan = free(rehearsal(nodes("n1", "n2"), pods), ["n1"])
    assert not plan.reached


def test_a_pod_that_fits_already_needs_no_move():
    pod = waiting("p", 4)
    plan = fit(rehearsal(nodes("n1", "n2"), [running("a", "n1"), pod]), pod)
    assert (plan.reached, plan.fits_on, plan.moves) == (True, "n2", [])


def test_a_pod_gets_the_node_from_which_the_fewest_have_to_go():
    pod = waiting("p", 4)
    pods = [running("a", "n1", 1), running("b", "n1", 1), running("c", "n2", 2), pod]
    plan = fit(rehearsal(nodes("n1", "n2"), pods), pod)
    assert (plan.cordon, plan.uncordon, plan.fits_on) == (["n2"], ["n2"], "n2")
    assert steps(plan) == [("c", "n2", "n1")]


def test_of_as_few_moves_the_least_important_pods_go():
    pod = waiting("p", 3)
    pods = [running("a", "n1", 2, priority=10), running("b", "n2", 2), running("c", "n3", 2, priority=10), pod]
    plan = fit(rehearsal(nodes("n1", "n2", "n3"), pods), pod)
    assert plan.fits_on == "n2"
    assert [name for name, *_ in steps(plan)] == ["b"]


def test_the_most_important_pods_of_the_node_stay():
    pod = waiting("p", 2)
    there = [running("keep", "n1", 2, priority=10), running("go", "n1", 1), running("too", "n1", 1)]
    others = [running("fixed2", "n2", 3, owner=""), running("fixed3", "n3", 3, owner="")]
    plan = fit(rehearsal(nodes("n1", "n2", "n3"), [*there, *others, pod]), pod)
    assert sorted(name for name, *_ in steps(plan)) == ["go", "too"]
    assert plan.fits_on == "n1"


def test_a_pod_that_no_moves_help_is_told_why():
    pod = waiting("p", 8)
    plan = fit(rehearsal(nodes("n1", "n2"), [pod]), pod)
    assert not plan.reached
    assert reasons(plan)["p"].startswith(
        "no node would take it without the pods that can move: too little room, or a rule of the pod"
    )


def test_pods_that_find_no_other_node_are_in_the_way_of_one_that_waits():
    pod = waiting("p", 4)
    plan = fit(rehearsal(nodes("n1", "n2"), [running("a", "n1", 3), running("b", "n2", 3), pod]), pod)
    assert reasons(plan) == dict.fromkeys(("a", "b"), FULL)


def test_a_pod_with_gates_is_not_made_room_for():
    pod = waiting("p", 4, gates=["later"])
    plan = fit(rehearsal(nodes("n1", "n2"), [running("a", "n1"), pod]), pod)
    assert reasons(plan) == {"p": "has gates"}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (1, "waiting for minCount pods from a gang to appear in scheduling queue"),
        (2, "not all of pod group default/g find room: w1: 0/2 nodes are available: 2 Insufficient cpu."),
    ],
)
def test_a_pod_whose_gang_stays_out_is_told_so(members, reason):
    gang = [waiting(f"w{number}", 4, group="g") for number in range(members)]
    there = [running("a", "n1", 2), running("b", "n2", 1), running("c", "n2", 1, owner="")]
    plan = fit(rehearsal(nodes("n1", "n2"), [*there, *gang], groups=[make_pod_group(least=2)]), gang[0])
    assert reasons(plan) == {"w0": reason}


def test_room_that_a_more_important_pod_would_take_is_none():
    pod = waiting("p", 4)
    first = waiting("first", 4, priority=10)
    plan = fit(rehearsal(nodes("n1", "n2"), [running("a", "n1", 2), running("b", "n2", 2), pod, first]), pod)
    assert set(reasons(plan).values()) == {"other pods that wait take the room"}


def test_fewer_nodes_are_in_use_by_emptying_those_with_least_to_move():
    pods = [running("a", "n1", 1), running("b", "n2", 2), running("c", "n3", 2), running("d", "n4", 1)]
    plan = fewer(rehearsal(nodes("n1", "n2", "n3", "n4"), pods), 2)
    assert plan.cordon == ["n1", "n4"]
    assert {name for name, *_ in steps(plan)} == {"a", "d"}
    assert (plan.reached, plan.nodes_in_use_before, plan.nodes_in_use) == (True, 4, 2)


def test_no_pod_moves_twice():
    pods = [running(f"p{number}", f"n{number}", 1) for number in range(4)]
    plan = fewer(rehearsal(nodes(*(f"n{number}" for number in range(4))), pods), 1)
    assert len(plan.moves) == 3
    assert {to for *_, to in steps(plan)} == {"n3"}


def test_a_node_that_cannot_be_emptied_is_left_whole_and_the_next_is_taken():
    pinned = running("pinned", "n1", 1, node_selector={"disk": "ssd"})
    pods = [pinned, running("b", "n2", 2), running("c", "n3", 2), running("alone", "n4", 1, owner="")]
    plan = fewer(rehearsal(nodes("n1", "n2", "n3", "n4"), pods), 3)
    assert plan.cordon == ["n2"]
    assert (plan.reached, [name for name, *_ in steps(plan)]) == (True, ["b"])


def test_as_few_nodes_as_can_be_are_left_where_fewer_cannot():
    pods = [running("a", "n1", 2), running("b", "n2", 2), running("c", "n3", 3)]
    plan = fewer(rehearsal(nodes("n1", "n2", "n3"), pods), 1)
    assert (plan.reached, plan.nodes_in_use) == (False, 2)
    assert plan.obstacles


def test_no_empty_node_is_begun():
    pods = [running("a", "n1", 3), running("b", "n2", 3)]
    plan = fewer(rehearsal(nodes("n1", "n2", "n3"), pods), 1)
    assert (plan.moves, plan.nodes_in_use) == ([], 2)
    assert "would begin n3, which is not in use" in reasons(plan).values()


def test_a_cluster_that_uses_as_few_needs_no_move():
    plan = fewer(rehearsal(nodes("n1", "n2"), [running("a", "n1", 3)]), 1)
    assert (plan.reached, plan.cordon, plan.moves) == (True, [], [])


@st.composite
def clusters(draw):
    names = [f"n{number}" for number in range(draw(st.integers(2, 5)))]
    pods = []
    for number in range(draw(st.integers(1, 12))):
        name, cpu = f"p{number}", draw(st.integers(1, 3))
        fields = {"priority": draw(st.sampled_from([0, 0, 10])), "labels": {"app": draw(st.sampled_from("ab"))}}
        if draw(st.booleans()):
            fields["node_selector"] = {"pool": draw(st.sampled_from("xy"))}
        pods.append((name, draw(st.sampled_from(names)), cpu, fields))
    return names, pods, draw(st.integers(1, 4))


def _cluster(drawn):
    names, pods, wanted = drawn
    made = nodes(*names, cpu=8)
    labelled = [
        structs.replace(node, metadata=structs.replace(node.metadata, labels={"pool": "xy"[number % 2]}))
        for number, node in enumerate(made)
    ]
    return labelled, [running(name, node, cpu, **fields) for name, node, cpu, fields in pods], waiting("w", wanted * 2)


@settings(deadline=None, max_examples=30)
@given(clusters())
def test_what_a_plan_says_is_what_happens_when_it_is_carried_out(drawn):
    made, pods, pod = _cluster(drawn)
    names = [node.metadata.name for node in made]
    asked = [
        (lambda each: free(each, names[:1]), pods),
        (lambda each: fewer(each, 1), pods),
        (lambda each: fit(each, pod), [*pods, pod]),
    ]
    for question, given_pods in asked:
        plan = question(rehearsal(made, given_pods))
        after = carried_out(made, given_pods, plan)
        for move in plan.moves:
            assert after.cache.node_of(move.uid) == move.to
        assert len({move.uid for move in plan.moves}) == len(plan.moves)
        assert int(after.cache.nodes.in_use().sum()) == plan.nodes_in_use
        if plan.fits_on is not None:
            assert after.cache.node_of(pod.uid) == plan.fits_on


@settings(deadline=None, max_examples=30)
@given(clusters())
def test_moves_that_were_tried_leave_nothing_behind(drawn):
    made, pods, pod = _cluster(drawn)
    used = rehearsal(made, [*pods, pod])
    before = {uid: used.simulator.cache.node_of(uid) for uid in (*(each.uid for each in pods), "w")}
    for node in made:
        used.cordon(node.metadata.name)
        for each in used.pods_on(node.metadata.name):
            used.move(each, node.metadata.name)
    used.take_back()
    assert {uid: used.simulator.cache.node_of(uid) for uid in before} == before
    fresh = rehearsal(made, [*pods, pod])
    assert steps(fewer(used, 1)) == steps(fewer(fresh, 1))
