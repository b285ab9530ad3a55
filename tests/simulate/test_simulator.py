import itertools
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.cache_checks import assert_adds_up
from tests.simulate.explained import run_explained

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import ReplicaSet, Service
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration, load_configuration
from bayplan.scheduler.decision import Placement
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.report import encode
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import scoring

EXAMPLES = Path(__file__).parents[2] / "examples/cluster"


def simulator(nodes=(), pods=(), *, configuration=None, clock=None):
    ticks = itertools.count()
    result = Simulator(configuration or default_configuration(), clock=clock or (lambda: float(next(ticks))))
    result.add(ClusterObjects(nodes=list(nodes), pods=[PodInfo(pod) for pod in pods]))
    return result


def placements(report):
    return {pod.name: pod.attempts[-1].node for pod in report.pods}


def ratio_configuration(tmp_path, shape):
    points = "\n".join(f"          - {{utilization: {u}, score: {s}}}" for u, s in shape)
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- schedulerName: bayplan\n  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
        "        type: RequestedToCapacityRatio\n        resources:\n"
        "        - {name: intel.com/foo, weight: 5}\n        - {name: cpu, weight: 3}\n"
        "        - {name: memory, weight: 1}\n"
        f"        requestedToCapacityRatio:\n          shape:\n{points}\n"
    )
    return load_configuration(file)


def fit_scores(report):
    nodes = report.pods[0].attempts[0].nodes
    return {name: verdict.scores["NodeResourcesFit"] for name, verdict in nodes.items()}


def example(cpu="2"):
    """The worked example, with the pending pod's cpu."""
    nodes = [
        make_node("node-1", cpu=8, memory="1Gi", allocatable={"intel.com/foo": 4}),
        make_node("node-2", cpu=8, memory="1Gi", allocatable={"intel.com/foo": 8}),
    ]
    pods = [
        make_pod("one", node="node-1", cpu=1, memory="256Mi", requests={"intel.com/foo": 1}),
        make_pod("two", node="node-2", cpu=6, memory="512Mi", requests={"intel.com/foo": 2}),
        make_pod("pending", cpu=cpu, memory="256Mi", requests={"intel.com/foo": 2}),
    ]
    return nodes, pods


def test_the_worked_example_scores_60_and_69_and_picks_node_2():
    configuration = load_configuration(EXAMPLES / "worked-example-config.yaml")
    result = Simulator(configuration)
    result.add(read_cluster([str(EXAMPLES / "worked-example.yaml")]))
    report = run_explained(result)
    assert fit_scores(report) == {"node-1": 60, "node-2": 69}
    assert placements(report) == {"pending": "node-2"}


def test_the_reversed_shape_picks_the_emptier_node(tmp_path):
    configuration = ratio_configuration(tmp_path, [(0, 10), (100, 0)])
    report = run_explained(simulator(*example(cpu="1"), configuration=configuration))
    assert fit_scores(report) == {"node-1": 44, "node-2": 35}
    assert placements(report) == {"pending": "node-1"}


def test_with_the_reversed_shape_a_resource_used_up_does_not_count_as_in_kube_scheduler(tmp_path):
    # With 2 cores node-2's cpu is full and scores 0: it is left out of the mean instead of lowering it.
    configuration = ratio_configuration(tmp_path, [(0, 10), (100, 0)])
    report = run_explained(simulator(*example(cpu="2"), configuration=configuration))
    assert fit_scores(report) == {"node-1": 40, "node-2": 46}


def test_pods_are_tried_by_priority_then_creation_then_order():
    pods = [
        make_pod("late", created="2026-01-02T00:00:00Z"),
        make_pod("early", created="2026-01-01T00:00:00Z"),
        make_pod("early-too", created="2026-01-01T00:00:00Z"),
        make_pod("urgent", priority=5, created="2026-01-03T00:00:00Z"),
    ]
    report = simulator([make_node()], pods).run()
    assert [pod.name for pod in report.pods] == ["urgent", "early", "early-too", "late"]


def test_a_pod_placed_takes_the_room_of_the_next():
    pods = [make_pod("first", cpu=3, priority=1), make_pod("second", cpu=3)]
    report = simulator([make_node("n1", cpu=4)], pods).run()
    first, second = (pod.attempts for pod in report.pods)
    assert [(a.node, a.message, a.feasible_nodes) for a in first] == [("n1", None, 1)]
    refused = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert [(a.node, a.message, a.feasible_nodes) for a in second] == [(None, refused, 0)]


def test_running_pods_take_room_and_finished_ones_do_not():
    pods = [
        make_pod("running", node="n1", cpu=2),
        make_pod("done", node="n1", cpu=4, phase="Succeeded"),
        make_pod("failed", node="n1", cpu=4, phase="Failed"),
        make_pod("pending", cpu=2),
    ]
    report = simulator([make_node("n1", cpu=4)], pods).run()
    assert placements(report) == {"pending": "n1"}
    assert (report.summary.running, report.summary.finished) == (1, 2)


def test_pods_of_other_schedulers_and_pods_being_deleted_are_only_counted():
    pods = [make_pod("theirs", scheduler_name="default-scheduler"), make_pod("going", deleting=True), make_pod("ours")]
    report = simulator([make_node()], pods).run()
    assert [pod.name for pod in report.pods] == ["ours"]
    assert (report.summary.pods, report.summary.other_schedulers, report.summary.finished) == (3, 1, 1)


def test_room_is_kept_for_pods_of_other_schedulers_that_wait_for_it():
    theirs = make_pod("theirs", uid="theirs", scheduler_name="other", cpu="3", priority=5, nominated="n1")
    ours = [make_pod(f"ours-{priority}", uid=str(priority), cpu="2", priority=priority) for priority in (5, 6)]
    report = simulator([make_node("n1", cpu="4")], [theirs, *ours]).run()
    assert placements(report) == {"ours-6": "n1", "ours-5": None}
    report = simulator([make_node("n1", cpu="4")], [theirs, ours[0]]).run()
    assert placements(report) == {"ours-5": None}
    assert report.summary.other_schedulers == 1


def test_gated_pods_are_reported_with_their_message_and_take_nothing():
    report = simulator([make_node()], [make_pod("gated", gates=["example.com/wait"]), make_pod("free")]).run()
    gated = report.pods[-1]
    assert (gated.name, gated.attempts[0].node) == ("gated", None)
    assert "example.com/wait" in gated.attempts[0].message
    assert (report.summary.gated, report.summary.scheduled, report.summary.unschedulable) == (1, 1, 0)


def test_pods_on_nodes_that_were_not_given_are_counted_as_such():
    summary = simulator([make_node("n1")], [make_pod(node="elsewhere", cpu=1)]).run().summary
    assert (summary.nodes, summary.nodes_in_use, summary.on_unknown_nodes) == (1, 0, 1)


def test_the_summary_adds_up():
    nodes = [make_node("n1", cpu=4, memory="8Gi"), make_node("n2", cpu=4, memory="8Gi")]
    result = simulator(nodes, [make_pod("a", cpu=1, memory="1Gi"), make_pod("b", cpu=2, memory="1Gi")])
    result.add(ClusterObjects(skipped=[SkippedPod("default", "x", "f", "wrong")], ignored_kinds={"Service": 2}))
    summary = result.run().summary
    assert (summary.nodes, summary.nodes_in_use, summary.lower_bound_nodes) == (2, 1, 1)
    assert (summary.pods, summary.scheduled) == (3, 2)
    assert summary.ignored_kinds == {"Service": 2}
    cpu = summary.allocation["cpu"]
    assert (cpu.requested, cpu.allocatable, cpu.allocatable_in_use) == (3000, 8000, 4000)
    assert summary.allocation["pods"].requested == 2
    # The clock ticks once at each end of a decision.
    assert (summary.seconds, summary.decisions_per_second) == (2.0, 1.0)


def test_the_json_has_exactly_the_documented_fields():
    result = simulator([make_node("n1"), make_node("n2", taints=["a=b:NoSchedule"])], [make_pod("p", cpu=1)])
    report = json.loads(encode(run_explained(result)))
    assert set(report) == {"pods", "summary"}
    (pod,) = report["pods"]
    (attempt,) = pod.pop("attempts")
    assert pod == {"namespace": "default", "name": "p", "schedulerName": "bayplan"}
    nodes, explanation = attempt.pop("nodes"), attempt.pop("explanation")
    assert attempt == {"node": "n1", "nominatedNodeName": None, "victims": [], "message": None, "feasibleNodes": 1}
    assert nodes["n2"]["rejectedBy"] == "TaintToleration"
    assert len(nodes["n2"].pop("reasons")) == 1
    assert nodes["n2"] == {"rejectedBy": "TaintToleration", "scores": {}, "score": 0}
    assert nodes["n1"] == {"rejectedBy": None, "reasons": [], "scores": {}, "score": 0}
    unexplained = json.loads(encode(simulator([make_node()], [make_pod()]).run()))
    assert not {"nodes", "explanation"} & set(unexplained["pods"][0]["attempts"][0])
    assert explanation["groups"] == [
        {
            "count": 1,
            "plugin": "TaintToleration",
            "causes": [{"kind": "taint", "key": "a", "value": "b", "effect": "NoSchedule"}],
            "nodes": {"first": ["n2"], "more": 0, "unknown": False},
        }
    ]


def test_scores_of_the_chosen_node_add_up_to_its_total():
    result = simulator([make_node("n1"), make_node("n2", cpu=2)], [make_pod(cpu=1)])
    result.reader = scoring
    step = result.step()
    assert isinstance(step.outcome, Placement)
    assert sum(step.read.scores.values()) == step.outcome.score


def test_pods_can_arrive_between_decisions():
    result = simulator([make_node("n1", cpu=1)], [make_pod("a", cpu=1)])
    assert result.step().outcome.node_name == "n1"
    assert result.step() is None
    result.add(ClusterObjects(nodes=[make_node("n2", cpu=1)], pods=[PodInfo(make_pod("b", cpu=1))]))
    assert placements(result.run()) == {"a": "n1", "b": "n2"}


def test_what_plugins_asked_for_is_in_their_listers_before_the_first_decision():
    result = simulator()
    services, sets = result.cache.listers.of(Service), result.cache.listers.of(ReplicaSet)
    web = Service(metadata=ObjectMeta(name="web", namespace="default"))
    result.add(ClusterObjects(looked_up=[web]))
    assert (services.get("default/web"), services.synced) == (web, True)
    assert (len(sets), sets.synced) == (0, True)


sizes = st.lists(st.tuples(st.integers(1, 4000), st.integers(1, 4096), st.integers(0, 3)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(nodes=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=5), pods=sizes)
def test_no_node_is_overcommitted_and_the_same_input_gives_the_same_report(nodes, pods):
    def build():
        return simulator(
            [make_node(f"n{i}", cpu=cpu, memory=f"{gib}Gi", pods=4, uid=f"n{i}") for i, (cpu, gib) in enumerate(nodes)],
            [
                make_pod(f"p{i}", uid=f"p{i}", cpu=f"{cpu}m", memory=f"{mib}Mi", priority=priority)
                for i, (cpu, mib, priority) in enumerate(pods)
            ],
        )

    first = build()
    report = run_explained(first)
    assert_adds_up(first.cache)
    table = first.cache.nodes
    for name in ("cpu", "memory"):
        if name in table.requested:
            assert (table.requested[name] <= table.allocatable.get(name, table.requested[name])).all()
    assert len(report.pods) == len(pods)
    assert encode(report) == encode(run_explained(build()))
    for pod in report.pods:
        (attempt,) = pod.attempts
        feasible = [name for name, verdict in attempt.nodes.items() if verdict.rejected_by is None]
        assert len(feasible) == attempt.feasible_nodes
        assert (attempt.node is None) == (not feasible) == (attempt.message is not None)
        if attempt.node is not None:
            assert attempt.nodes[attempt.node].score == max(attempt.nodes[name].score for name in feasible)


def test_without_reports_it_decides_the_same_and_keeps_nothing_to_tell():
    nodes = [make_node("a", cpu=4), make_node("b", cpu=2)]
    pods = [
        *(make_pod(f"low-{number}", cpu=1, priority=number % 2) for number in range(8)),
        make_pod("wide", cpu=3, priority=7),
        make_pod("nowhere", cpu=9, priority=9),
    ]
    told, untold = Simulator(default_configuration()), Simulator(default_configuration(), reports=False)
    for each in (told, untold):
        each.add(ClusterObjects(nodes=nodes, pods=[PodInfo(pod) for pod in pods]))
    while (step := told.step()) is not None:
        other = untold.step()
        assert other is not None
        assert (other.pod.name, type(other.outcome)) == (step.pod.name, type(step.outcome))
        if isinstance(step.outcome, Placement):
            assert other.outcome.node_name == step.outcome.node_name
        else:
            assert other.outcome.post_filter.nominated_node_name == step.outcome.post_filter.nominated_node_name
            assert other.outcome.diagnosis.rejector_plugins == step.outcome.diagnosis.rejector_plugins
            assert (bool(step.outcome.diagnosis.reasons), other.outcome.diagnosis.reasons) == (True, {})
    assert untold.step() is None
    assert len(told.report().pods) == len(pods)
    assert not any(attempt.node or attempt.message for pod in untold.report().pods for attempt in pod.attempts)
