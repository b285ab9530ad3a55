import io
import json

import pytest
from tests.replay.traces import make_trace, replayed

from bayplan.replay.outcome import mean_of, print_summary, quantile
from bayplan.replay.outcome import replayed as summed_up
from bayplan.replay.trace import TracePod
from bayplan.simulate.report import encode
from bayplan.simulate.tables import Printer

OUTCOME = replayed(make_trace([(0.0, 100.0)]))


def printed(*configurations):
    text = io.StringIO()
    print_summary(Printer(text), configurations)
    return text.getvalue()


def test_the_interval_of_a_mean_is_that_of_student():
    # The textbook's: 2, 4 and 6 have a standard deviation of 2, and t is 4.303 for two degrees of freedom.
    assert mean_of([2.0, 4.0, 6.0]).mean == 4.0
    assert mean_of([2.0, 4.0, 6.0]).confidence95 == pytest.approx(4.303 * 2 / 3**0.5)
    assert mean_of([5.0]).confidence95 is None
    assert mean_of([1.0] * 50).confidence95 == 0.0


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_a_quantile_is_a_value_that_the_share_does_not_exceed(share, value):
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == value
    assert quantile([], share) == 0.0


def test_each_configuration_has_a_column():
    lines = printed(summed_up("one.yaml", [OUTCOME]), summed_up("two.yaml", [OUTCOME, OUTCOME])).splitlines()
    assert lines[:2] == ["A: one.yaml", "B: two.yaml"]
    row = next(each for each in lines if each.startswith("pods bound"))
    assert row.split()[2:] == ["1", "1", "±", "0"]


def test_waits_are_told_by_priority_where_there_are_several():
    several = replayed(make_trace([(0.0, 10.0), TracePod(0.0, 10.0, "web", priority=5)]))
    assert "priority" not in printed(summed_up("a", [OUTCOME]))
    assert "wait p99, priority 5" in printed(summed_up("a", [several]))
    assert "wait p50, priority 0" in printed(summed_up("a", [several]))


def test_programs_get_every_outcome_and_the_means():
    (told,) = json.loads(encode([summed_up("a", [OUTCOME])]))
    assert told["paidOverAsked"]["mean"] == OUTCOME.paid_over_asked
    assert told["outcomes"][0]["nodeHours"] == OUTCOME.node_hours
