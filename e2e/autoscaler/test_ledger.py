"""What a run's ledger makes of pods and nodes that come and go."""

import pytest

from bayplan.replay.trace import TracePod
from e2e.autoscaler.ledger import Ledger, Live
from e2e.autoscaler.workload import trace_for

MINUTES = 1.0
ONE_CPU = TracePod(0.0, 10.0, "cpu-1000m", owner="job")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(trace_for(1, MINUTES))


def live(ledger: Ledger) -> Live:
    return ledger.live(seconds=60.0, cpu_idle=0.5, create_p99=0.01)


def test_a_node_is_paid_for_from_when_it_is_first_seen_until_it_is_not(ledger: Ledger) -> None:
    ledger.nodes([], ["a"], 12.0)
    ledger.nodes(["a"], ["a", "b"], 24.0)
    ledger.nodes(["a", "b"], ["b"], 36.0)
    found = live(ledger).outcome
    assert found.node_hours == pytest.approx((24 + 36) / 3600)
    assert found.core_hours_paid == pytest.approx(16 * found.node_hours)
    assert (found.nodes_made, found.most_nodes) == (2, 2)


def test_what_pods_ask_for_counts_while_they_are_on_nodes(ledger: Ledger) -> None:
    ledger.came("u", ONE_CPU, 0.0)
    ledger.bound("u", "a", 2.0)
    ledger.ended("u", 38.0)
    found = live(ledger).outcome
    assert found.core_hours_asked == pytest.approx(36 / 3600)
    assert found.lower_bound_node_hours == pytest.approx(36 / 3600)
    assert (found.wait_p50, found.bound, found.waiting, found.evicted) == (2.0, 1, 0, 0)


def test_a_pod_that_was_evicted_counts_as_one_and_its_successor_as_another(ledger: Ledger) -> None:
    ledger.came("u", ONE_CPU, 0.0)
    ledger.bound("u", "a", 1.0)
    ledger.ended("u", 5.0, evicted=True)
    ledger.came("v", ONE_CPU, 5.0)
    found = live(ledger).outcome
    assert (found.pods, found.bound, found.waiting, found.evicted) == (2, 1, 1, 1)


def test_how_long_a_node_that_went_was_empty_counts_from_its_last_pod(ledger: Ledger) -> None:
    ledger.nodes([], ["a", "b"], 0.0)
    for uid, begin, end in (("u", 1.0, 10.0), ("v", 2.0, 20.0), ("w", 25.0, 30.0)):
        ledger.came(uid, ONE_CPU, begin)
        ledger.bound(uid, "a", begin)
        ledger.ended(uid, end)
    ledger.nodes(["a", "b"], ["b"], 42.0)
    assert live(ledger).empty_seconds == pytest.approx(12.0)


def test_how_long_new_nodes_took_is_the_wait_of_their_first_pods(ledger: Ledger) -> None:
    for uid, node, bound in (("u", "a", 4.0), ("v", "a", 9.0), ("w", "b", 2.0), ("x", "c", 3.0)):
        ledger.came(uid, ONE_CPU, 0.0)
        ledger.bound(uid, node, bound)
    assert live(ledger).new_node_seconds == 3.0


def test_the_same_seed_gives_the_same_pods_at_two_a_second() -> None:
    assert [*trace_for(3, 10).pods] == [*trace_for(3, 10).pods]
    assert [*trace_for(3, 10).pods] != [*trace_for(4, 10).pods]
    assert len(trace_for(3, 10).pods) == pytest.approx(1200, rel=0.1)
