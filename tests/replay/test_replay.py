from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.builders import make_pod_info
from tests.examples import examples
from tests.reference.autoscaler import replayed_one_pod_a_node
from tests.replay.traces import HOUR, PROVISION, make_pool, make_template, make_trace, replayed

from bayplan.config.load import default_configuration, load_configuration
from bayplan.config.types import ScoringStrategyType
from bayplan.replay.trace import TracePod
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.strategy_comparison import strategy_configuration

ROOT = Path(__file__).parents[2]
SPREADING = strategy_configuration(ScoringStrategyType.LEAST_ALLOCATED)


def test_a_node_is_paid_for_from_its_request_until_it_was_empty_for_long_enough():
    outcome = replayed(make_trace([(100.0, 1000.0)]), scale_down_after=300.0)
    assert outcome.node_hours == pytest.approx((PROVISION + 1000 + 300) / HOUR)
    assert outcome.core_hours_paid == pytest.approx(4 * outcome.node_hours)
    assert outcome.core_hours_asked == pytest.approx(1000 / HOUR)
    assert outcome.lower_bound_node_hours == pytest.approx(1000 / HOUR)
    assert outcome.wait_p50 == outcome.wait_p99 == PROVISION
    assert (outcome.nodes_made, outcome.most_nodes, outcome.waiting) == (1, 1, 0)


def test_a_pod_that_comes_before_an_empty_node_went_does_not_wait():
    outcome = replayed(make_trace([(0.0, 100.0), (PROVISION + 400.0, 100.0)]), scale_down_after=300.0)
    assert outcome.nodes_made == 1
    assert outcome.wait_p50 == 0.0
    assert outcome.node_hours == pytest.approx((PROVISION + 400 + 100 + 300) / HOUR)


def test_a_pod_that_came_when_there_was_no_node_backs_off_as_with_kube_scheduler():
    # While it backs off, the node that is there already is not requested once more.
    outcome = replayed(make_trace([(0.0, 100.0)]), provision=PROVISION + 1)
    assert (outcome.wait_p50, outcome.nodes_made) == (63.0, 1)


def test_a_new_node_waits_for_pods_that_back_off():
    outcome = replayed(make_trace([(0.0, 100.0)]), provision=0.0, scale_down_after=0.0)
    assert (outcome.bound, outcome.nodes_made) == (1, 1)
    assert outcome.node_hours == pytest.approx((outcome.wait_p50 + 100) / HOUR)


def test_nothing_counts_beyond_the_end_of_the_trace():
    outcome = replayed(make_trace([(HOUR - PROVISION - 100, 9000.0), (HOUR + 1, 1.0)]))
    assert outcome.pods == 1
    assert outcome.node_hours == pytest.approx((PROVISION + 100) / HOUR)
    assert outcome.core_hours_asked == pytest.approx(100 / HOUR)


def test_pods_that_wait_together_get_as_many_nodes_as_hold_them():
    outcome = replayed(make_trace([(0.0, 100.0)] * 9))
    assert (outcome.nodes_made, outcome.bound) == (3, 9)


def test_nodes_that_are_on_the_way_are_not_requested_twice():
    assert replayed(make_trace([(0.0, 500.0), (1.0, 500.0), (30.0, 500.0), (54.0, 500.0)])).nodes_made == 1


def test_a_pod_that_no_node_takes_waits_and_gets_no_node(caplog):
    outcome = replayed(make_trace([(0.0, 1.0)], templates=[make_template(cpu=5)]))
    assert caplog.messages == []
    assert (outcome.waiting, outcome.nodes_made, outcome.core_hours_paid, outcome.paid_over_asked) == (1, 0, 0.0, 0.0)


def test_a_fixed_pool_has_all_its_nodes_all_along_and_no_more():
    outcome = replayed(make_trace([(0.0, 100.0)] * 9, pools=[make_pool(count=2)]), autoscaled=False)
    assert (outcome.nodes_made, outcome.most_nodes, outcome.node_hours) == (2, 2, 2.0)
    assert (outcome.bound, outcome.wait_p50, outcome.wait_p99) == (9, 0.0, 100.0)


def test_what_departs_leaves_as_much_room_as_it_took():
    pods = [(float(at), 10.0, name) for at in range(20) for name in ("half", "whole")]
    templates = [make_template("half", cpu=2), make_template("whole", cpu=4)]
    outcome = replayed(make_trace(pods, pools=[make_pool(count=1)], templates=templates), autoscaled=False)
    assert outcome.bound == 40
    assert outcome.core_hours_asked == pytest.approx((20 * 2 + 20 * 4) * 10 / HOUR)


def test_pods_of_higher_priority_evict_and_evicted_ones_come_again_if_they_have_an_owner():
    low = [TracePod(0.0, 1000.0, "web", owner="placeholders"), TracePod(0.0, 1000.0, "web")]
    trace = make_trace(
        [*low, *[TracePod(10.0, 100.0, "web", priority=5)] * 2],
        templates=[make_template(cpu=4)],
        pools=[make_pool(count=2)],
    )
    outcome = replayed(trace, autoscaled=False)
    assert (outcome.evicted, outcome.pods, outcome.bound, outcome.waiting) == (2, 5, 5, 0)
    assert [(each.priority, each.pods, each.p99) for each in outcome.waits] == [(5, 2, 0.0), (0, 3, 100.0)]
    assert outcome.core_hours_asked == pytest.approx(4 * (2 * 10 + 2 * 100 + 1000) / HOUR)


def test_pods_of_daemon_sets_keep_no_node_and_are_not_evicted():
    pool = make_pool(cpu=4, daemons={"cpu": 1})
    trace = make_trace([TracePod(0.0, 100.0, "web", priority=9)], templates=[make_template(cpu=3)], pools=[pool])
    outcome = replayed(trace, scale_down_after=10.0)
    assert (outcome.evicted, outcome.node_hours) == (0, pytest.approx((PROVISION + 110) / HOUR))


def test_packing_pays_for_fewer_nodes_than_spreading():
    pods = [(10.0 * at, 400.0 + 377 * (at * at % 7)) for at in range(200)]
    trace = make_trace(pods, templates=[make_template(cpu="300m")], seconds=6000.0)
    packed, spread = replayed(trace), replayed(trace, SPREADING)
    assert packed.paid_over_asked < spread.paid_over_asked
    assert packed.bound_over_asked <= packed.paid_over_asked


def test_pods_that_come_at_once_are_decided_as_in_a_simulation():
    cpus = [1, 2, 3, 2, 1, 3, 3, 2, 1, 1]
    pool = make_pool(count=4)
    simulator = Simulator(default_configuration())
    simulator.add(
        ClusterObjects(
            nodes=[pool.node(f"pool-{number}") for number in range(1, 5)],
            pods=[
                make_pod_info(f"p{at}", cpu=cpu, scheduler_name="bayplan", priority=at % 3)
                for at, cpu in enumerate(cpus)
            ],
        )
    )
    summary = simulator.run().summary
    templates = [make_template(str(cpu), cpu=cpu) for cpu in (1, 2, 3)]
    pods = [TracePod(0.0, HOUR, str(cpu), priority=at % 3) for at, cpu in enumerate(cpus)]
    outcome = replayed(make_trace(pods, templates=templates, pools=[pool], seconds=1.0), autoscaled=False)
    assert (outcome.waiting, outcome.evicted) == (summary.unschedulable, summary.preempted)
    assert outcome.waiting > 0


seconds = st.integers(0, 400).map(float)


@settings(max_examples=examples(60))
@given(st.lists(seconds, max_size=12), st.integers(1, 400).map(float))
def test_where_a_pod_fills_a_node_the_bill_is_that_of_the_scalar_autoscaler(arrivals, duration):
    # One runs all along: where there is no node at all, pods back off. The others are alike: any may be the next.
    pods = [(0.0, 1e6), *((at + 100, duration) for at in sorted(arrivals))]
    outcome = replayed(make_trace(pods, templates=[make_template(cpu=4)], seconds=700.0), scale_down_after=0.0)
    node_seconds, pod_seconds, bound = replayed_one_pod_a_node(pods, provision=PROVISION, end=700.0)
    assert outcome.node_hours * HOUR == pytest.approx(node_seconds)
    assert outcome.core_hours_asked * HOUR == pytest.approx(4 * pod_seconds)
    assert outcome.bound == bound


sizes = st.sampled_from(["1", "2", "3"])
traced = st.builds(
    TracePod, seconds, seconds, sizes, priority=st.sampled_from([None, 5]), owner=st.sampled_from(["", "owner"])
)


@settings(max_examples=examples(60))
@given(st.lists(traced, max_size=30), st.booleans(), st.sampled_from([0.0, 60.0]))
def test_no_replay_pays_less_than_the_bound_or_loses_a_pod(pods, autoscaled, scale_down_after):
    pods.sort(key=lambda each: each.arrival_seconds)
    pool = make_pool(count=3, daemons={"cpu": "100m"}, cpu="4100m")
    templates = [make_template(name, cpu=int(name)) for name in ("1", "2", "3")]
    trace = make_trace(pods, templates=templates, pools=[pool], seconds=1000.0)
    first, again = (replayed(trace, autoscaled=autoscaled, scale_down_after=scale_down_after) for _ in range(2))
    assert first.bound + first.waiting == first.pods >= len(pods)
    assert first.pods - first.evicted <= len(pods)
    assert first.node_hours >= first.lower_bound_node_hours - 1e-9
    assert first.core_hours_paid >= first.lower_bound_core_hours - 1e-9
    assert first.lower_bound_core_hours >= first.core_hours_asked - 1e-9
    assert all(each.nodes >= each.lower_bound_nodes for each in first.moments)
    assert sum(each.pods for each in first.waits) == first.bound
    assert structs.replace(first, seconds=0, decision_seconds=0) == structs.replace(
        again, seconds=0, decision_seconds=0
    )


def test_pods_that_say_how_long_they_run_have_nodes_drain_sooner():
    def node_hours(configuration, durations):
        # Each on a node of its own; then comes one that has room on either.
        pods = [TracePod(0.0, each, "most", expected_seconds=each) for each in durations]
        pods.append(TracePod(120.0, 2500.0, "little", expected_seconds=2500.0))
        trace = make_trace(pods, templates=[make_template("most", cpu=3), make_template("little", cpu=1)])
        outcome = replayed(trace, configuration, scale_down_after=10.0)
        assert (outcome.nodes_made, outcome.bound) == (2, 3)
        return outcome.node_hours

    ends_together = load_configuration(ROOT / "examples" / "expected-duration.yaml")
    orders = [(3000.0, 500.0), (500.0, 3000.0)]
    hinted, by_size = (
        [node_hours(configuration, each) for each in orders]
        for configuration in (ends_together, default_configuration())
    )
    assert hinted == pytest.approx([hinted[0]] * 2)
    assert hinted[0] == pytest.approx(min(by_size))
    assert max(by_size) > hinted[0] + 0.5
