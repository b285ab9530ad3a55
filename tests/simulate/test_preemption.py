import json
import logging
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_selector
from tests.simulate.explained import run_explained
from tests.simulate.test_simulator import simulator

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import PDBPolicy
from bayplan.config.load import default_configuration
from bayplan.framework.interface import PostFilterResult
from bayplan.framework.status import SUCCESS
from bayplan.scheduler.decision import FitError
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import encode, preemption
from bayplan.simulate.tables import Printer, pod_row, print_preemption, print_summary


def full_cluster(pods=()):
    nodes = [make_node(name, cpu="4") for name in ("n1", "n2")]
    low = [
        make_pod(f"low-{name}", uid=name, node=name, cpu="3", priority=priority, start_time="2026-01-01T00:00:00Z")
        for name, priority in (("n1", 5), ("n2", 1))
    ]
    return simulator(nodes, [*low, *pods])


def high(name="high", **fields):
    return make_pod(name, uid=name, **{"cpu": "2", "priority": 10, **fields})


def test_a_preemptor_is_nominated_its_victims_go_and_it_is_bound():
    scene = full_cluster([high()])
    report = scene.run()
    (pod,) = report.pods
    nominated, bound = pod.attempts
    assert (nominated.node, nominated.nominated_node_name, nominated.victims) == (None, "n2", ["default/low-n2"])
    assert nominated.message == (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: found a potential placement for pod on node n2, preempting 1 victims"
    )
    assert (bound.node, bound.victims) == ("n2", [])
    assert scene.cache.pod("n2") is None
    assert (report.summary.scheduled, report.summary.preempted, report.summary.unschedulable) == (1, 1, 0)


def test_preemptors_get_a_node_each_and_the_last_none():
    report = full_cluster([high("a", cpu="3"), high("b", cpu="3"), high("c", cpu="4")]).run()
    assert {pod.name: pod.attempts[-1].node for pod in report.pods} == {"a": "n2", "b": "n1", "c": None}
    assert report.summary.preempted == 2


def test_a_pod_placed_and_then_evicted_ends_evicted():
    scene = simulator([make_node("n1", cpu="4")], [make_pod("early", uid="early", cpu="4", priority=1)])
    assert scene.run().pods[0].attempts[-1].node == "n1"
    scene.add(ClusterObjects(pods=[PodInfo(high())]))
    report = scene.run()
    early, late = report.pods
    assert early.attempts[-1].message == "evicted to make room for default/high"
    assert late.attempts[-1].node == "n1"
    assert (report.summary.scheduled, report.summary.unschedulable, report.summary.preempted) == (2, 0, 1)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from([None, "n1", "elsewhere"]), st.booleans()),
        max_size=8,
    )
)
def test_seven_counts_add_up_to_all_pods_whoever_is_evicted(drawn):
    pods = [
        make_pod(f"p{i}", uid=f"p{i}", cpu=cpu, priority=priority, node=node, gates=["g"] if gated and not node else [])
        for i, (cpu, priority, node, gated) in enumerate(drawn)
    ]
    scene = simulator([make_node("n1", cpu="4"), make_node("n2", cpu="4")])
    for pod in pods:
        # One by one, so that later ones evict earlier ones.
        scene.add(ClusterObjects(pods=[PodInfo(pod)]))
        scene.run()
    counts = scene.report().summary
    parts = (counts.running, counts.finished, counts.other_schedulers, counts.scheduled, counts.unschedulable)
    assert sum(parts) + counts.gated + len(counts.skipped) == counts.pods == len(pods)


def test_an_explanation_compares_the_candidates():
    report = run_explained(full_cluster([high()]))
    attempt = json.loads(encode(report))["pods"][0]["attempts"][0]
    compared = attempt["preemption"]
    assert compared["chosen"] == "n2"
    assert compared["why"] == "lowest priority of its most important victim"
    assert {each["node"]: each["worseBy"] for each in compared["candidates"]} == {"n1": compared["why"], "n2": None}
    (chosen,) = [each for each in compared["candidates"] if each["node"] == "n2"]
    assert chosen == {
        "node": "n2",
        "victims": ["default/low-n2"],
        "victimPriorities": [1],
        "numPDBViolations": 0,
        "highestVictimPriority": 1,
        "prioritySum": 2**31 + 1,
        "numVictims": 1,
        "earliestStartTime": "2026-01-01T00:00:00Z",
        "worseBy": None,
    }
    assert "preemption" not in json.loads(encode(full_cluster([high()]).run()))["pods"][0]["attempts"][0]


def test_a_start_in_the_year_0_is_explained_too():
    # In UTC; the API server accepts it.
    low = make_pod("low", node="n1", cpu="3", start_time="0001-01-01T00:00:00+14:00")
    report = run_explained(simulator([make_node("n1", cpu="4")], [low, high()]))
    (candidate,) = report.pods[0].attempts[0].preemption.candidates
    assert candidate.earliest_start_time == "0000-12-31T10:00:00Z"


def test_people_are_told_whom_a_pod_evicts_and_why_there():
    scene = full_cluster([high()])
    decision = scene.step()
    assert pod_row(decision)[3] == "nominated to n2, evicting default/low-n2"
    assert isinstance(decision.outcome, FitError)
    out = StringIO()
    print_preemption(Printer(out), decision.pod, preemption(decision.outcome.post_filter.candidates))
    first, heading, chosen, other, *_ = out.getvalue().splitlines()
    assert heading.endswith("CHOSEN NODE HAS")
    assert "default/low-n2 (priority 1)" in chosen
    assert first == "default/high: preemption chooses n2 (lowest priority of its most important victim)"
    assert chosen.startswith("*  n2")
    assert other.endswith("default/low-n1 (priority 5)  lowest priority of its most important victim")
    scene.run()
    print_summary(Printer(out), scene.report().summary)
    assert "1 evicted" in out.getvalue()


def with_budget(allowed, policy=PDBPolicy.PREFER, pods=2, **covered):
    """A database pod on each of two nodes, of which so many may be disrupted, and pods that need the nodes."""
    default = default_configuration()
    profile = default.profiles[0]
    args = replace(profile.plugin_config["DefaultPreemption"], pdb_policy=policy)
    profile = replace(profile, plugin_config={**profile.plugin_config, "DefaultPreemption": args})
    scene = simulator(configuration=replace(default, profiles=(profile,)))
    budget = PodDisruptionBudget(
        ObjectMeta(name="b", namespace="default"),
        PodDisruptionBudgetSpec(make_selector(**covered)),
        PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
    running = [make_pod(f"db-{n}", uid=n, node=n, cpu="4", labels={"app": "db"}) for n in ("n1", "n2")]
    waiting = [high(f"p{number}", cpu="4") for number in range(pods)]
    nodes = [make_node(name, cpu="4") for name in ("n1", "n2")]
    scene.add(ClusterObjects(nodes=nodes, pods=[*map(PodInfo, (*running, *waiting))], looked_up=[budget]))
    return scene


@pytest.mark.parametrize("allowed", [0, 1, 2])
@pytest.mark.parametrize("covered", [{"app": "db"}, {}], ids=["some", "all"])
def test_a_strict_budget_loses_no_more_pods_than_it_allows(allowed, covered):
    assert with_budget(allowed, PDBPolicy.STRICT, **covered).run().summary.preempted == allowed


def test_an_eviction_counts_against_its_budget():
    scene = with_budget(1, app="db")
    violations = [
        [each.pdb_violations for each in decision.outcome.post_filter.candidates]
        for decision in iter(scene.step, None)
        if isinstance(decision.outcome, FitError)
    ]
    assert violations == [[0, 0], [1]]


@pytest.mark.parametrize("room", ["too small", "taken"])
def test_nominated_pods_that_fit_nowhere_are_given_up(room):
    holder = [make_pod("holder", uid="holder", node="n1", cpu="4", priority=100)] if room == "taken" else []
    waiting = [high(name, cpu="5" if room == "too small" else "4", nominated="n1") for name in ("a", "b", "c")]
    scene = simulator([make_node("n1", cpu="4")], [*holder, *waiting])
    report = scene.run()
    assert report.summary.unschedulable == 3
    assert sum(len(pod.attempts) for pod in report.pods) <= 6
    for pod in waiting:
        assert scene.queue.nominator.nominated_node(pod.metadata.uid) is None
        assert not scene.queue.newest(pod.metadata.uid).pod.status.nominated_node_name


def test_pods_carry_the_nominations_that_run_would_write_on_them():
    scene = full_cluster([high("low", priority=6, cpu="4"), high("top", priority=20, cpu="4")])
    named = []
    while scene.step() is not None:
        pods = [scene.queue.newest(uid) for uid in ("top", "low")]
        named.append([pod and pod.pod.status.nominated_node_name for pod in pods])
    assert named[:2] == [["n2", ""], ["n2", "n1"]]


def test_a_simulation_ends_even_if_a_plugin_has_pods_tried_again_for_ever(caplog):
    class Wanderer:
        name = "Wanderer"

        def post_filter(self, state, pod, nodes, rejections):
            here = scene.queue.nominator.nominated_node(pod.uid)
            return PostFilterResult(SUCCESS, "n2" if here == "n1" else "n1")

    full = [make_pod(f"top-{node}", uid=node, node=node, cpu="4", priority=100) for node in ("n1", "n2")]
    scene = simulator(
        [make_node(name, cpu="4") for name in ("n1", "n2")], [*full, high("a"), high("b", nominated="n1")]
    )
    scene.frameworks["bayplan"].post_filters = [Wanderer()]
    with caplog.at_level(logging.WARNING):
        report = scene.run()
        assert scene.step() is None
    assert report.summary.unschedulable == 2
    assert caplog.text.count("simulation ended") == 1
