"""What a running scheduler remembers of its decisions, and how much memory that takes."""

import itertools
import tracemalloc
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod_info

from bayplan.framework.interface import CycleState
from bayplan.scheduler.decision import Placement
from bayplan.scheduler.recent_decisions import (
    ATTEMPTS_OF_A_POD,
    KEPT_DECISIONS,
    KEPT_TEXT_BYTES,
    LONGEST_MESSAGE,
    MOST_VICTIMS,
    RecentDecisions,
)

LONGEST_NAME = 253


def placement(node="n1", score=40):
    return Placement(node, score, 3, state=CycleState())


def test_decisions_are_told_in_order_with_their_numbers():
    decisions = RecentDecisions(now=itertools.count(1000.0).__next__)
    decisions.placed(make_pod_info("a"), placement(), 0.001, 5)
    decisions.failed(make_pod_info("b"), "0/5 nodes are available.", 0.002, evaluated=5)
    first, found = decisions.after(0, 10)
    assert (first, decisions.last) == (1, 2)
    assert [(each.name, each.node, each.score, each.feasible, each.evaluated) for each in found] == [
        ("a", "n1", 40, 3, 5),
        ("b", None, None, 0, 5),
    ]
    assert [(each.time, each.seconds, each.message) for each in found] == [
        (1000.0, 0.001, None),
        (1001.0, 0.002, "0/5 nodes are available."),
    ]


def test_only_decisions_after_the_number_are_told_and_so_many():
    decisions = RecentDecisions()
    for name in "abcde":
        decisions.placed(make_pod_info(name), placement(), 0.0, 1)
    first, found = decisions.after(2, 2)
    assert (first, [each.name for each in found]) == (3, ["c", "d"])
    assert decisions.after(5, 2) == (6, [])


def test_a_number_that_was_never_given_counts_from_the_first_kept():
    decisions = RecentDecisions()
    decisions.placed(make_pod_info("a"), placement(), 0.0, 1)
    for number in (-7, 2, 10**18):
        assert [each.name for each in decisions.after(number, 5)[1]] == ["a"], number


def test_the_victims_of_a_preemption_are_named_up_to_a_number():
    decisions = RecentDecisions()
    victims = [make_pod_info(f"v{number}") for number in range(MOST_VICTIMS + 1)]
    decisions.failed(make_pod_info("b"), "no", 0.0, preempted=victims)
    (told,) = decisions.after(0, 1)[1]
    assert told.preempted == tuple((each.namespace, each.name) for each in victims[:MOST_VICTIMS])


def test_the_last_attempts_on_a_pod_are_kept_the_oldest_first():
    decisions, pod = RecentDecisions(), make_pod_info("a")
    for number in range(ATTEMPTS_OF_A_POD + 2):
        decisions.failed(pod, f"no {number}", 0.0)
    told = [each.message for each in decisions.attempts_on(pod.uid)]
    assert told == [f"no {number}" for number in range(2, ATTEMPTS_OF_A_POD + 2)]
    assert decisions.attempts_on("another") == []


def test_a_pod_that_still_fails_outlives_those_that_failed_before_it_last_did():
    decisions, pod = RecentDecisions(), make_pod_info("waits")
    for number in range(3 * KEPT_TEXT_BYTES // LONGEST_MESSAGE):
        if number % 100 == 0:
            decisions.failed(pod, "still no", 0.0)
        decisions.failed(make_pod_info(f"p{number}"), "x" * LONGEST_MESSAGE, 0.0)
    assert len(decisions.attempts_on(pod.uid)) == ATTEMPTS_OF_A_POD


def test_decisions_with_the_longest_names_take_no_more_than_their_bound():
    decisions, names = RecentDecisions(), itertools.count()

    def long_name():
        return str(next(names)).rjust(LONGEST_NAME, "n")

    tracemalloc.start()
    for _ in range(2 * KEPT_DECISIONS):
        pod = make_pod_info(long_name(), namespace=long_name())
        decisions.placed(pod, placement(node=long_name(), score=10**6), 0.5, 5000)
        del pod
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < KEPT_DECISIONS * 2048
    assert decisions.last == 2 * KEPT_DECISIONS


def test_failures_with_the_longest_messages_of_wide_characters_take_no_more_than_their_bound():
    decisions = RecentDecisions()
    tracemalloc.start()
    for number in range(3000):
        pod = make_pod_info(f"p{number}")
        victims = [SimpleNamespace(namespace=f"a{number}", name=f"v{number}-{each}") for each in range(50)]
        decisions.failed(pod, chr(0x1F600 + number % 7) * 50_000, 0.5, preempted=victims)
        del pod, victims
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 2 * KEPT_TEXT_BYTES
    assert decisions.after(0, 1)[0] > 1


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.text(max_size=30)), max_size=60), st.integers(0, 70))
def test_whatever_was_decided_is_told_from_any_number_on(happened, after):
    decisions, expected = RecentDecisions(), []
    for is_placed, pod, message in happened:
        if is_placed:
            decisions.placed(make_pod_info(f"p{pod}"), placement(), 0.0, 1)
        else:
            decisions.failed(make_pod_info(f"p{pod}"), message, 0.0)
        expected.append((f"p{pod}", None if is_placed else message))
    first, found = decisions.after(after, 1000)
    known = after if after <= len(expected) else 0
    assert first == known + 1
    assert [(each.name, each.message) for each in found] == expected[known:]
