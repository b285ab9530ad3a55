import pytest
from tests.plugins.preemption.worlds import low, minute

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import CRITERIA, Candidate, choose, deciding_criterion, start_time


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
