"""What the documentation says of preemption: when it happens, on which node, and to whom."""

import pytest
from tests.builders import make_container, make_node, make_pod, make_selector
from tests.cli.test_main import exit_code
from tests.config.test_examples import EXAMPLES
from tests.plugins.preemption.worlds import World, make_budget
from tests.seeds.scenes import HIGH, LOW, MIDDLE, pending, running
from tests.simulate.test_simulator import simulator

from bayplan.api.objects import Container, PodAffinity, PodAffinityTerm, ResourceRequirements
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import load_configuration
from bayplan.scheduler.decision import FitError, Placement

ZONE = "failure-domain.beta.kubernetes.io/zone"


def test_preemption_is_on_by_default_and_off_with_disable_preemption():
    cluster = [make_node("n1", cpu="4"), running("old")]
    assert World(*cluster).preempt(pending()) == ("n1", ["old"])
    disabled = load_configuration(EXAMPLES / "disable-preemption-v1alpha1.yaml")
    outcome = World(*cluster, configuration=disabled).schedule(pending())
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims) == (None, ())
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_with_preemption_off_critical_pods_are_not_scheduled_on_a_full_cluster():
    disabled = load_configuration(EXAMPLES / "disable-preemption-v1alpha1.yaml")
    world = World(make_node("n1", cpu="4"), running("old"), configuration=disabled)
    assert isinstance(world.schedule(pending("critical", priority=2_000_001_000)), FitError)


@pytest.mark.usefixtures("logging_as_it_was")  # `bayplan run` sets it up before it complains
@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--disable-preemption", "No such option"),
        ("--disablePreemption=true", "No such option"),
        ("--feature-gates=PodPriority=0", "unrecognized feature gate: PodPriority"),
    ],
)
def test_preemption_cannot_be_switched_off_on_the_command_line(capsys, option, complaint):
    assert exit_code("run", option) == 2
    assert complaint in capsys.readouterr().err


def test_a_pod_that_fits_somewhere_evicts_nobody():
    world = World(make_node("n1", cpu="4"), running("old"), make_node("n2", cpu="4"))
    outcome = world.schedule(pending())
    assert isinstance(outcome, Placement)
    assert outcome.node_name == "n2"


def test_without_a_pending_pod_nobody_is_evicted():
    report = simulator([make_node("n1", cpu="2")], [running("old"), running("over")]).run()
    assert (report.summary.preempted, report.pods) == (0, [])


@pytest.mark.parametrize("priority", [HIGH, HIGH - 1, LOW, None, -5])
def test_nobody_is_evicted_for_a_pod_of_the_same_or_a_lower_priority(priority):
    world = World(make_node("n1", cpu="4"), running("old", priority=HIGH))
    assert world.preempt(pending(priority=priority)) == ("", [])


def test_a_pod_given_a_high_priority_by_mistake_evicts_others_until_the_priority_is_lowered():
    world = World(make_node("n1", cpu="4"), running("old", priority=MIDDLE))
    assert world.preempt(pending("mistaken", priority=HIGH)) == ("n1", ["old"])
    assert world.preempt(pending("mended", priority=LOW)) == ("", [])
    assert world.preempt(pending("mended", priority=None)) == ("", [])


def test_a_node_is_considered_only_if_the_pod_fits_there_without_all_pods_of_lower_priority():
    world = World(
        make_node("n1", cpu="4"),
        running("equal", priority=HIGH),
        running("a", cpu="1"),
        running("b", cpu="1"),
    )
    assert world.preempt(pending()) == ("", [])
    world.add(make_node("n2", cpu="4"), running("c", "n2", cpu="2", priority=HIGH - 1), running("d", "n2", cpu="1"))
    outcome = world.schedule(pending())
    assert [candidate.node_name for candidate in outcome.post_filter.candidates] == ["n2"]


def test_only_some_pods_of_lower_priority_are_evicted_when_that_is_enough():
    cluster = [running(f"p{index}", cpu="1", priority=index) for index in range(4)]
    world = World(make_node("n1", cpu="4"), *cluster)
    assert world.preempt(pending(cpu="1")) == ("n1", ["p0"])
    assert world.preempt(pending(cpu="2")) == ("n1", ["p1", "p0"])


def test_pods_of_higher_priority_are_victims_only_where_evicting_the_lowest_is_not_enough():
    world = World(make_node("n1", cpu="4"), running("low", cpu="2"), running("middle", cpu="2", priority=MIDDLE))
    assert world.preempt(pending(cpu="2")) == ("n1", ["low"])
    assert world.preempt(pending(cpu="3")) == ("n1", ["middle", "low"])


def test_where_the_lowest_pods_do_not_help_another_node_with_higher_ones_is_chosen():
    world = World(
        make_node("small", cpu="2"),
        make_node("large", cpu="4"),
        running("low", "small"),
        running("middle", "large", priority=MIDDLE),
    )
    assert world.preempt(pending()) == ("large", ["middle"])
    world.add(running("middle", "large", priority=HIGH, resource_version="2"))
    assert world.preempt(pending()) == ("", [])


def test_of_several_nodes_the_one_with_the_lowest_victims_is_chosen():
    priorities = {"n1": 30, "n2": 10, "n3": 20}
    world = World(*(make_node(name, cpu="4") for name in priorities))
    world.add(*(running(f"on-{name}", name, priority=priority) for name, priority in priorities.items()))
    assert world.preempt(pending()) == ("n2", ["on-n2"])


def test_a_node_with_higher_victims_is_chosen_where_the_lowest_are_guarded_by_a_budget():
    world = World(make_node("n1", cpu="4"), make_node("n2", cpu="4"))
    world.add(running("low", "n1", labels={"app": "a"}), running("middle", "n2", priority=MIDDLE))
    assert world.preempt(pending()) == ("n1", ["low"])
    world.add(make_budget(allowed=0, app="a"))
    assert world.preempt(pending()) == ("n2", ["middle"])


def test_a_budget_is_violated_where_no_other_victims_are_found():
    guarded = {"app": "a"}
    world = World(make_node("n1", cpu="4"), running("low", labels=guarded), make_budget(allowed=0, app="a"))
    assert world.preempt(pending()) == ("n1", ["low"])


def affinity(label: str, topology: str) -> PodAffinity:
    term = PodAffinityTerm(label_selector=make_selector(app=label), topology_key=topology)
    return PodAffinity(required_during_scheduling_ignored_during_execution=[term])


def test_nobody_is_evicted_on_a_node_whose_lower_pods_the_pending_pod_wants_to_be_with():
    host = "kubernetes.io/hostname"
    friend = {"labels": {"app": "friend"}}
    world = World(make_node("n1", cpu="4", labels={host: "n1"}), running("lower", **friend), running("other"))
    assert world.preempt(pending(cpu="2"))[0] == "n1"
    wanting = pending(cpu="2", pod_affinity=affinity("friend", host))
    assert world.preempt(wanting) == ("", [])

    # Another node is found where there is one: friends of the same priority stay.
    world.add(make_node("n2", cpu="4", labels={host: "n2"}))
    world.add(running("equal", "n2", priority=HIGH, **friend), running("victim", "n2"))
    assert world.preempt(wanting) == ("n2", ["victim"])


def test_no_pod_of_another_node_is_evicted_although_that_would_make_the_node_fit():
    world = World(
        make_node("n", cpu="4", labels={ZONE: "a", "for": "p"}),
        make_node("other", cpu="4", labels={ZONE: "a"}),
        running("q", "other", labels={"app": "q"}),
    )
    apart = PodInfo(pending("p", pod_anti_affinity=affinity("q", ZONE), node_selector={"for": "p"}))
    assert world.preempt(apart) == ("", [])
    world.cache.remove_pod("q")
    assert world.schedule(apart).node_name == "n"


def test_a_pod_that_lost_its_node_to_a_higher_one_makes_room_on_another():
    world = World(make_node("n1", cpu="4"), running("a", priority=0), make_node("n2", cpu="4"), running("b", "n2"))
    loser, winner = PodInfo(pending("loser")), PodInfo(pending("winner", priority=HIGH + 1))
    assert world.preempt(loser) == ("n1", ["a"])
    world.nominator.add(winner, "n1")
    assert world.preempt(loser) == ("n2", ["b"])


# Quality of service.

AMOUNTS = {"cpu": "2", "memory": "1Gi"}
GUARANTEED = Container(name="c", resources=ResourceRequirements(requests=AMOUNTS, limits=AMOUNTS))
BURSTABLE = make_container(cpu="2")


@pytest.mark.parametrize(("lower", "higher"), [(GUARANTEED, BURSTABLE), (BURSTABLE, GUARANTEED)])
def test_victims_are_chosen_by_priority_whatever_their_quality_of_service(lower, higher):
    world = World(
        make_node("n1", cpu="4"),
        running("lower", containers=[lower], priority=LOW),
        running("higher", containers=[higher], priority=LOW + 1),
    )
    assert world.preempt(pending(cpu="2")) == ("n1", ["lower"])


def test_a_best_effort_pod_of_high_priority_evicts_a_guaranteed_one_of_low_priority():
    world = World(make_node("n1", cpu="4", pods=1), running("guaranteed", containers=[GUARANTEED]))
    assert world.preempt(make_pod("best-effort", priority=HIGH)) == ("n1", ["guaranteed"])
