import json

import numpy as np
import pytest
from tests.builders import make_node, make_pod, make_selector
from tests.plugins.preemption.worlds import NOW, World, make_budget

from bayplan.api.objects import PodAffinity, PodAffinityTerm, PodCondition, TopologySpreadConstraint
from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import ConfigurationError
from bayplan.config.load import load_configuration
from bayplan.framework.candidate import CRITERIA, Candidate, choose, deciding_criterion, start_time
from bayplan.framework.interface import Rejections
from bayplan.framework.status import Code, Status
from bayplan.scheduler.cycle import FitError, Placement


def low(name, node="n1", **fields):
    return make_pod(name, uid=name, node=node, **{"cpu": "2", "priority": 1, **fields})


def high(name="high", **fields):
    return make_pod(name, uid=name, **{"cpu": "3", "priority": 10, **fields})


def minute(number):
    return f"2026-01-01T00:{number:02}:00Z"


def test_only_as_many_pods_as_needed_are_evicted_the_least_important_first():
    world = World(
        make_node("n1", cpu="4"),
        low("old", cpu="1", start_time=minute(1)),
        low("young", cpu="1", start_time=minute(9)),
        low("lowest", cpu="1", priority=0, start_time=minute(0)),
        low("important", cpu="1", priority=5, start_time=minute(9)),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["young", "lowest"])


def test_pods_of_equal_or_higher_priority_are_never_victims():
    world = World(make_node("n1", cpu="4"), low("equal", priority=10), low("higher", priority=11))
    assert world.post_filter_message(high()) == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_every_node_that_cannot_help_is_counted_with_its_reason():
    world = World(
        make_node("tainted", cpu="4", taints=["x:NoSchedule"]),
        make_node("small", cpu="2"),
        make_node("equals", cpu="4"),
        make_node("mixed", cpu="4"),
        low("a", "equals", cpu="4", priority=10),
        low("b", "mixed", priority=10),
        low("c", "mixed"),
    )
    outcome = world.schedule(high())
    assert outcome.nominated_node_name == ""
    assert outcome.diagnosis.post_filter_message == (
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )
    assert outcome.message.startswith(
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu. "
    )


def test_a_pod_that_may_never_preempt_says_so_and_keeps_its_nomination():
    world = World(make_node("n1", cpu="4"), low("a"))
    outcome = world.schedule(high(preemption_policy="Never"))
    assert outcome.nominated_node_name is None
    assert outcome.diagnosis.post_filter_message == "preemption: not eligible due to preemptionPolicy=Never."


def terminating(name, reason="PreemptionByScheduler", status="True", **fields):
    condition = PodCondition(type="DisruptionTarget", status=status, reason=reason)
    return low(name, deleting=True, conditions=[condition], **fields)


def test_a_pod_whose_victims_still_terminate_does_not_preempt_again():
    world = World(make_node("n1", cpu="4"), terminating("a"), make_node("n2", cpu="4"), low("b", "n2"))
    outcome = world.schedule(high(nominated="n1"))
    assert (outcome.nominated_node_name, outcome.victims) == (None, ())
    assert outcome.diagnosis.post_filter_message == (
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


@pytest.mark.parametrize(
    "pod",
    [
        terminating("a", reason="EvictionByEvictionAPI"),
        terminating("a", status="False"),
        low("a", deleting=True),
        low("a"),
    ],
)
def test_pods_that_terminate_for_other_reasons_do_not_hold_preemption_back(pod):
    world = World(make_node("n1", cpu="4"), pod)
    assert world.preempt(high(nominated="n1")) == ("n1", ["a"])


def test_a_pod_nominated_to_a_node_that_can_no_longer_take_it_preempts_elsewhere():
    gone = make_node("n1", cpu="4", taints=["x:NoSchedule"])
    world = World(gone, terminating("a"), make_node("n2", cpu="4"), low("b", "n2"))
    assert world.preempt(high(nominated="n1")) == ("n2", ["b"])
    assert world.preempt(high(nominated="vanished")) == ("n2", ["b"])


def test_a_node_whose_budgets_hold_is_preferred_and_violations_are_counted():
    world = World(
        make_node("n1", cpu="4"),
        make_node("n2", cpu="4"),
        low("guarded", "n1", priority=0, labels={"app": "a"}),
        low("free", "n2", priority=5),
        make_budget(app="a"),
    )
    outcome = world.schedule(high())
    assert {each.node_name: each.pdb_violations for each in outcome.candidates} == {"n1": 1, "n2": 0}
    assert outcome.nominated_node_name == "n2"


def test_pods_that_would_violate_a_budget_are_spared_first():
    world = World(
        make_node("n1", cpu="4"),
        low("guarded", cpu="2", priority=0, labels={"app": "a"}),
        low("free", cpu="2", priority=5),
        make_budget(app="a"),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["free"])


def test_a_budget_that_allows_one_disruption_protects_the_less_important_pod():
    world = World(
        make_node("n1", cpu="4"),
        low("old", start_time=minute(1), labels={"app": "a"}),
        low("young", start_time=minute(2), labels={"app": "a"}),
        make_budget(allowed=1, app="a"),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["old"])


def test_disruptions_that_are_counted_already_violate_nothing():
    world = World(make_node("n1", cpu="4"), low("a", labels={"app": "a"}), make_budget(disrupted=["a"], app="a"))
    (candidate,) = world.schedule(high()).candidates
    assert candidate.pdb_violations == 0


def test_a_changed_budget_counts_at_once():
    world = World(make_node("n1", cpu="4"), low("a", labels={"app": "a"}), make_budget(allowed=1, app="a"))
    assert world.schedule(high()).candidates[0].pdb_violations == 0
    world.add(make_budget(allowed=0, app="a"))
    assert world.schedule(high()).candidates[0].pdb_violations == 1


def test_host_ports_are_freed_with_their_pods():
    world = World(make_node("n1", cpu="40"), low("a", host_ports=[80]), low("b", host_ports=[81]))
    assert world.preempt(high(host_ports=[80])) == ("n1", ["a"])


def test_a_pod_that_keeps_another_away_is_evicted():
    term = PodAffinityTerm(label_selector=make_selector(app="a"), topology_key="zone")
    apart = PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    world = World(
        make_node("n1", cpu="40", labels={"zone": "z"}), low("a", labels={"app": "a"}), low("b", labels={"app": "b"})
    )
    assert world.preempt(high(pod_anti_affinity=apart)) == ("n1", ["a"])


def test_preemption_leaves_the_node_table_as_it_was():
    world = World(make_node("n1", cpu="4"), low("a"), make_node("n2", cpu="4"), low("b", "n2", cpu="4"))
    nodes = world.cache.nodes
    before = (nodes.usage_changed.position, nodes.requested["cpu"].tolist(), nodes.pod_count.tolist())
    world.preempt(high())
    assert (nodes.usage_changed.position, nodes.requested["cpu"].tolist(), nodes.pod_count.tolist()) == before
    world.cache.validate()


def test_the_same_question_gets_the_same_answer_and_changes_are_seen():
    world = World(*(make_node(f"n{i}", cpu="4") for i in range(3)), *(low(f"p{i}", f"n{i}") for i in range(3)))
    pod = PodInfo(high())
    node, victims = world.preempt(pod)
    assert world.preempt(pod) == (node, victims)
    world.add(low(victims[0], node, priority=9, resource_version="2"))
    assert world.preempt(pod)[0] != node


def candidate(node="n", *pods, violations=0):
    return Candidate(node, tuple(PodInfo(each) for each in pods), violations)


CHEAP = low("a", priority=1, start_time=minute(5))


@pytest.mark.parametrize(
    ("better", "worse", "criterion"),
    [
        (candidate("n", low("a", priority=9)), candidate("m", CHEAP, violations=1), 0),
        (candidate("n", CHEAP, CHEAP, CHEAP), candidate("m", low("a", priority=2)), 1),
        (candidate("n", CHEAP, low("b", priority=-9)), candidate("m", CHEAP, CHEAP), 2),
        (candidate("n", CHEAP), candidate("m", CHEAP, low("b", priority=-(2**31))), 3),
        (candidate("n", low("a", start_time=minute(6))), candidate("m", CHEAP), 4),
        (candidate("n", low("a")), candidate("m", CHEAP), 4),
        (candidate("n", CHEAP), candidate("m", CHEAP), 5),
    ],
)
def test_candidates_are_compared_by_six_criteria_in_order(better, worse, criterion):
    assert choose([better, worse]) is better
    assert deciding_criterion(better, worse) == CRITERIA[criterion]
    if criterion < 5:
        assert choose([worse, better]) is better


def test_only_victims_of_the_highest_priority_count_for_the_start():
    assert candidate("n", CHEAP, low("b", priority=0, start_time=minute(0))).latest_start == start_time(PodInfo(CHEAP))


def test_a_start_that_is_no_time_counts_as_not_started():
    assert start_time(PodInfo(low("a", start_time="soon"))) == start_time(PodInfo(low("a"))) == float("inf")


def test_room_made_for_a_pod_is_kept_from_its_equals_and_inferiors():
    world = World(make_node("n1", cpu="4"))
    world.nominator.add(PodInfo(high("first", cpu="3")), "n1")
    assert world.schedule(high("equal", cpu="2")).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert isinstance(world.schedule(low("inferior", "", cpu="2")), FitError)
    assert isinstance(world.schedule(high("small", cpu="1")), Placement)
    assert isinstance(world.schedule(high("superior", cpu="2", priority=11)), Placement)


def test_room_is_free_again_when_the_nomination_ends():
    world = World(make_node("n1", cpu="4"))
    pod = PodInfo(high("equal", cpu="2"))
    world.nominator.add(PodInfo(high("first")), "n1")
    assert isinstance(world.schedule(pod), FitError)
    world.nominator.delete("first")
    assert isinstance(world.schedule(pod), Placement)
    world.nominator.add(PodInfo(high("first")), "n1")
    assert isinstance(world.schedule(pod), FitError)


def test_a_nominated_pod_takes_its_node_before_all_others():
    world = World(make_node("n1", cpu="40"), make_node("n2", cpu="4"))
    first = PodInfo(high("first"))
    world.nominator.add(first, "n2")
    assert world.schedule(first).node_name == "n2"
    assert world.schedule(high("other")).node_name == "n1"


def test_a_nominated_pod_goes_elsewhere_when_its_room_was_taken():
    world = World(make_node("n1", cpu="4"), make_node("n2", cpu="4"), low("thief", "n2", priority=99))
    first = PodInfo(high("first"))
    world.nominator.add(first, "n2")
    assert world.schedule(first).node_name == "n1"


def test_two_preemptors_never_count_on_the_same_room():
    world = World(make_node("n1", cpu="4"), make_node("n2", cpu="4"), low("a", "n1", cpu="4"), low("b", "n2", cpu="4"))
    nodes = set()
    for name in ("first", "second"):
        pod = PodInfo(high(name))
        node, _ = world.preempt(pod)
        world.nominator.add(pod, node)
        nodes.add(node)
    assert nodes == {"n1", "n2"}
    assert world.preempt(high("third")) == ("", [])


def test_pods_nominated_by_others_with_requests_that_cannot_be_read_are_left_out():
    world = World(make_node("n1", cpu="4"))
    world.nominator.add(PodInfo(high("first", cpu="lots")), "n1")
    assert isinstance(world.schedule(high("equal")), Placement)


def test_a_nomination_counts_for_pod_anti_affinity():
    term = PodAffinityTerm(label_selector=make_selector(app="a"), topology_key="zone")
    apart = PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    world = World(make_node("n1", cpu="40", labels={"zone": "z"}), make_node("n2", cpu="40", labels={"zone": "y"}))
    world.nominator.add(PodInfo(high("first", labels={"app": "a"})), "n1")
    assert world.schedule(high("other", pod_anti_affinity=apart)).node_name == "n2"
    outcome = world.schedule(high("other", pod_anti_affinity=apart, node_selector={"zone": "z"}))
    assert "didn't match pod anti-affinity rules" in outcome.message


def preempting_with(tmp_path, **own):
    file = tmp_path / "config.yaml"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "schedulerName": "bayplan",
                        "pluginConfig": [{"name": "DefaultPreemption", "args": {"bayplan.io": own}}],
                    }
                ],
            }
        )
    )
    return load_configuration(file)


def test_strict_budgets_are_never_violated(tmp_path):
    objects = [make_node("n1", cpu="4"), low("a", labels={"app": "a"}), make_budget(app="a")]
    assert World(*objects).preempt(high()) == ("n1", ["a"])
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    assert strict.post_filter_message(high()) == (
        "preemption: 0/1 nodes are available: 1 node(s) where no victims can be found without violating a "
        "PodDisruptionBudget."
    )
    # A budget that changes wakes nobody.
    assert strict.schedule(high()).retry_after == 10
    strict.add(make_node("n2", cpu="4"), low("b", "n2", priority=9))
    outcome = strict.schedule(high())
    assert (outcome.nominated_node_name, outcome.victims[0].name) == ("n2", "b")
    assert outcome.evicts
    assert not World(*objects).schedule(high()).evicts


def test_strict_budgets_count_the_pods_that_are_evicted_and_no_others(tmp_path):
    objects = [
        make_node("n1", cpu="4"),
        low("important", cpu="1", priority=5, labels={"app": "a"}),
        low("large", cpu="3", labels={"app": "a"}),
        make_budget(app="a", allowed=1),
    ]
    assert World(*objects).schedule(high()).candidates[0].pdb_violations == 1
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    (candidate,) = strict.schedule(high()).candidates
    assert ([victim.name for victim in candidate.victims], candidate.pdb_violations) == (["large"], 0)


def test_pods_are_spared_until_they_have_run_long_enough(tmp_path):
    configuration = preempting_with(tmp_path, minimumRuntimeSeconds=60)
    world = World(
        make_node("n1", cpu="4"), low("a", start_time=minute(1)), low("b", cpu="1"), configuration=configuration
    )
    world.now = NOW - 86_400 + 119
    pod = PodInfo(high(cpu="2"))
    assert world.preempt(pod) == ("", [])
    assert world.schedule(pod).retry_after == 1
    world.now += 1
    assert world.preempt(pod) == ("n1", ["a"])


def test_preemption_waits_for_an_autoscaler_if_told_to(tmp_path):
    configuration = preempting_with(tmp_path, preemptionDelaySeconds=30)
    world = World(make_node("n1", cpu="4"), low("a"), configuration=configuration)
    world.now = NOW - 86_400 + 29
    pod = PodInfo(high())
    assert world.schedule(pod).nominated_node_name is None
    assert world.schedule(pod).retry_after == 1
    assert world.post_filter_message(pod) == (
        "preemption: not eligible before preemptionDelaySeconds=30 have passed since the pod was created."
    )
    world.now += 1
    assert world.preempt(pod) == ("n1", ["a"])


def test_a_clock_that_is_behind_does_not_lengthen_the_delay(tmp_path):
    world = World(
        make_node("n1", cpu="4"), low("a"), configuration=preempting_with(tmp_path, preemptionDelaySeconds=30)
    )
    world.now = 0
    assert world.schedule(high()).retry_after == 30


def test_by_default_a_pod_waits_for_events_alone():
    world = World(make_node("n1", cpu="4"), low("a", cpu="4", priority=99), make_budget(app="a"))
    assert world.schedule(high()).retry_after is None


def test_nodes_that_take_the_pod_with_nobody_evicted_fail_the_preemption():
    world = World(make_node("n1", cpu="9"), make_node("n2", cpu="9"), low("a"), low("b", "n2"))
    (plugin,) = world.framework.post_filters
    nodes = world.cache.nodes
    pod = PodInfo(high())
    rejected = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE)

    def answer(count):
        rejections = Rejections(np.arange(count), np.array(rejected[:count], dtype=np.int8), world.framework.filters)
        return plugin.post_filter({}, pod, nodes, rejections)

    one = 'expected at least one victim pod on node "n1"'
    assert answer(1).status == Status(Code.ERROR, (f"preemption: {one}",))
    (text,) = answer(2).status.reasons
    assert text.startswith("preemption: [expected at least one victim pod on node ")
    assert text.endswith("]")
    assert one in text
    assert answer(2).nominated_node_name is None


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"pdbPolicy": "Maybe"}, "pdbPolicy"),
        ({"minimumRuntimeSeconds": -1}, "minimumRuntimeSeconds: Invalid value: -1: not in valid range"),
        ({"preemptionDelaySeconds": -1}, "preemptionDelaySeconds: Invalid value: -1: not in valid range"),
        ({"delay": 1}, "unknown field"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, own, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        preempting_with(tmp_path, **own)


def test_a_terminating_pod_that_is_taken_off_counts_less_than_nothing_for_spreads():
    apart = TopologySpreadConstraint(
        max_skew=1,
        topology_key="kubernetes.io/hostname",
        when_unsatisfiable="DoNotSchedule",
        label_selector=make_selector(app="c"),
    )
    world = World(
        *(
            make_node(name, cpu=cpu, labels={"kubernetes.io/hostname": name})
            for name, cpu in (("n1", "4"), ("n2", "1"))
        ),
        low("kept", cpu="1", priority=5, labels={"app": "c"}),
        low("ending", cpu="1", labels={"app": "c"}, deleting=True),
        low("large", cpu="2", priority=0),
    )
    # Only a count that was one too low lets the pod called kept stay.
    assert world.preempt(high(cpu="2", labels={"app": "c"}, spread=[apart])) == ("n1", ["ending", "large"])


def test_a_pod_that_begins_to_terminate_is_known_to_do_so_when_evictions_are_tried():
    apart = TopologySpreadConstraint(
        max_skew=1,
        topology_key="kubernetes.io/hostname",
        when_unsatisfiable="DoNotSchedule",
        label_selector=make_selector(app="c"),
    )
    world = World(
        *(
            make_node(name, cpu=cpu, labels={"kubernetes.io/hostname": name})
            for name, cpu in (("n1", "4"), ("n2", "1"))
        ),
        low("counted", cpu="1", labels={"app": "c"}),
        low("large", cpu="3", priority=0),
        low("other", "n2", cpu="1", priority=99, labels={"app": "c"}),
    )
    pod = PodInfo(high(cpu="2", labels={"app": "c"}, spread=[apart]))
    assert world.preempt(pod) == ("n1", ["large"])
    world.add(low("other", "n2", cpu="1", priority=99, labels={"app": "c"}, deleting=True))
    assert world.preempt(pod) == ("n1", ["counted", "large"])
