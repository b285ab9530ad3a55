"""What a soak's figures must be like for it to pass."""

import pytest

from e2e.controlplane.failing_webhook import HANGS_31
from e2e.soak.bad_namespace import BadRound
from e2e.soak.instances import Ending, Sample
from e2e.soak.ledger import Latency
from e2e.soak.plan import Plan
from e2e.soak.verdict import (
    Check,
    bad_namespace_checks,
    coverage_checks,
    ending_checks,
    memory_checks,
    percentiles,
    promise_checks,
    terms,
)

HOUR, SHORT = Plan(minutes=60), Plan(minutes=4)
MB = 1_000_000


def samples(
    memory: dict[int, float], *, leads: bool = True, pid: int = 1, minutes: int = 60, since: int = 0
) -> list[Sample]:
    """A look every ten seconds; `memory` is in MB from a minute on."""
    rows = []
    for second in range(since * 60, minutes * 60, 10):
        megabytes = memory[max(minute for minute in memory if minute * 60 <= second)]
        rows.append(Sample(float(second), "bayplan-0", pid, leads, int(megabytes * MB), 0.0, 0))
    return rows


def failed(checks: list[Check]) -> list[str]:
    return [each.name for each in checks if not each.passed]


@pytest.mark.parametrize(
    ("memory", "passes"),
    [
        ({0: 100, 10: 150}, True),
        ({0: 100, 59: 104}, True),
        ({0: 100, 59: 106}, False),
        ({0: 100, 30: 106, 40: 100}, False),
        ({0: 100, 30: 60}, True),
    ],
)
def test_memory_may_grow_by_a_twentieth_from_minute_10_on(memory: dict[int, float], passes: bool) -> None:
    assert (failed(memory_checks(samples(memory), HOUR)) == []) is passes


@pytest.mark.parametrize(("memory", "passes"), [({0: 50, 2: 100, 3: 109}, True), ({0: 50, 2: 100, 3: 111}, False)])
def test_in_four_minutes_it_may_grow_by_a_tenth_from_minute_2_on(memory: dict[int, float], passes: bool) -> None:
    assert (failed(memory_checks(samples(memory, minutes=4), SHORT)) == []) is passes


def test_in_four_minutes_a_leader_is_judged_before_the_restart_that_may_cost_it_its_lease() -> None:
    rows = [each for each in samples({0: 100}, minutes=4) if each.seconds < SHORT.restarts_at[1]]
    assert failed(memory_checks(rows, SHORT)) == []


def test_a_standby_that_becomes_leader_is_judged_as_each_of_them() -> None:
    rows = samples({0: 100}, leads=False, minutes=30) + samples({30: 130}, since=30)
    assert [(each.leads, each.first_minute, each.growth) for each in terms(rows, HOUR)] == [
        (False, 10, 0),
        (True, 35, 0),
    ]
    assert failed(memory_checks(rows, HOUR)) == []


def test_a_process_that_was_started_again_is_another() -> None:
    rows = samples({0: 100}, pid=1, minutes=30) + samples({30: 130}, pid=2, since=30)
    assert [each.pid for each in terms(rows, HOUR)] == [1, 2]


def test_what_was_sampled_after_the_last_creation_does_not_count() -> None:
    rows = samples({0: 100, 60: 200}, minutes=62)
    assert failed(memory_checks(rows, HOUR)) == []


def test_a_soak_in_which_nobody_led_for_long_enough_has_shown_nothing() -> None:
    assert failed(memory_checks(samples({0: 100}, leads=False), HOUR)) == ["a leader's memory was judged"]


def test_whoever_is_told_to_end_does_with_0() -> None:
    told = [Ending(300, "bayplan-0", 0, told=True), Ending(300, "bayplan-1", 0, told=True)]
    assert failed(ending_checks(told, [])) == []
    assert failed(ending_checks([], [])) == ["exit code 0 at SIGTERM"]
    assert failed(ending_checks([*told, Ending(300, "bayplan-2", -9, told=True)], [])) == ["exit code 0 at SIGTERM"]


@pytest.mark.parametrize(
    ("seconds", "code", "passes"),
    [(165, 1, True), (165, -6, False), (120, 1, False), (250, 1, False)],
)
def test_only_a_leader_that_could_not_renew_may_end_by_itself(seconds: float, code: int, passes: bool) -> None:
    endings = [Ending(seconds, "bayplan-0", code, told=False), Ending(300, "bayplan-1", 0, told=True)]
    assert (failed(ending_checks(endings, [(150, 163)])) == []) is passes


def test_two_endings_at_one_restart_are_one_too_many() -> None:
    endings = [Ending(165, f"bayplan-{index}", 1, told=False) for index in range(2)]
    endings += [Ending(300, "bayplan-0", 0, told=True)]
    assert len(failed(ending_checks(endings, [(150, 163)]))) == 1


def test_each_broken_promise_fails_a_check_of_its_own() -> None:
    assert failed(promise_checks([], [], {"bayplan-0": ""})) == []
    assert len(failed(promise_checks(["a was on n1 and is on n2"], [], {"bayplan-0": ""}))) == 1
    assert len(failed(promise_checks([], ["a (plain)"], {"bayplan-0": ""}))) == 1
    assert len(failed(promise_checks([], [], {"bayplan-0": '{"differences": {"pods": 1}}'}))) == 1


def test_a_soak_without_what_it_is_for_fails() -> None:
    counts = {"created": 30_000, "preempted": 1, "resized": 1, "node changes": 1}
    assert failed(coverage_checks(counts, SHORT, created_seconds=300, restarts=[])) == []
    assert len(failed(coverage_checks({**counts, "created": 26_000}, SHORT, created_seconds=300, restarts=[]))) == 1
    assert len(failed(coverage_checks({"created": 30_000}, SHORT, created_seconds=300, restarts=[]))) == 3


@pytest.mark.parametrize(("created", "failures"), [(25_300, 0), (25_100, 1)])
def test_no_pods_are_asked_for_while_the_api_server_is_away(created: int, failures: int) -> None:
    counts = {"created": created, "preempted": 1, "resized": 1, "node changes": 1}
    away = [(60.0, 72.0), (293.0, 305.0)]
    assert len(failed(coverage_checks(counts, SHORT, created_seconds=300, restarts=away))) == failures


@pytest.mark.parametrize(
    ("after", "sent", "seconds", "failures"),
    [(12.0, 130, 4.0, 0), (None, 130, 4.0, 1), (30.0, 130, 4.0, 1), (12.0, 130, 6.0, 1), (12.0, 170, 1.0, 1)],
)
def test_while_a_webhook_fails_others_are_bound_and_its_own_pods_soon_after(
    after: float | None, sent: float, seconds: float, failures: int
) -> None:
    rounds, latencies = [BadRound(HANGS_31, 20, 40, after)], [Latency("plain", sent, seconds)]
    assert len(failed(bad_namespace_checks(rounds, latencies, SHORT, started=100))) == failures


def test_a_soak_without_a_bad_namespace_is_not_judged_by_it_and_one_without_its_rounds_fails() -> None:
    assert bad_namespace_checks([], [], Plan(bad_pods=0), started=0) == []
    assert len(failed(bad_namespace_checks([], [Latency("plain", 1, 1)], SHORT, started=0))) == 2


def test_percentiles_are_of_measured_values() -> None:
    assert percentiles([]) is None
    found = percentiles([Latency("plain", 0.0, float(seconds)) for seconds in range(1, 101)])
    assert found is not None
    assert (found.pods, found.p50, found.p99, found.longest) == (100, 50, 99, 100)
