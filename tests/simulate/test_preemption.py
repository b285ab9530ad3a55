import json
from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.simulate.test_simulator import simulator

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.cycle import FitError
from bayplan.simulate.cluster import ClusterObjects
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
    report = full_cluster([high()]).run(explain=True)
    attempt = json.loads(encode(report))["pods"][0]["attempts"][0]
    compared = attempt["preemption"]
    assert compared["chosen"] == "n2"
    assert compared["why"] == "lowest priority of its most important victim"
    assert {each["node"]: each["worseBy"] for each in compared["candidates"]} == {"n1": compared["why"], "n2": None}
    (chosen,) = [each for each in compared["candidates"] if each["node"] == "n2"]
    assert chosen == {
        "node": "n2",
        "victims": ["default/low-n2"],
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
    report = simulator([make_node("n1", cpu="4")], [low, high()]).run(explain=True)
    (candidate,) = report.pods[0].attempts[0].preemption.candidates
    assert candidate.earliest_start_time == "0000-12-31T10:00:00Z"


def test_people_are_told_whom_a_pod_evicts_and_why_there():
    scene = full_cluster([high()])
    decision = scene.step(explain=True)
    assert pod_row(decision)[3] == "nominated to n2, evicting default/low-n2"
    assert isinstance(decision.outcome, FitError)
    out = StringIO()
    print_preemption(Printer(out), decision.pod, preemption(decision.outcome.candidates))
    first, _, chosen, other, *_ = out.getvalue().splitlines()
    assert first == "default/high: preemption chooses n2 (lowest priority of its most important victim)"
    assert chosen.startswith("*  n2")
    assert other.endswith("default/low-n1  lowest priority of its most important victim")
    scene.run()
    print_summary(Printer(out), scene.report().summary)
    assert "1 evicted" in out.getvalue()
