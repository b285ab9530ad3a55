import pytest
from tests.builders import make_pod_info

from bayplan.queue.queued_pod import QueuedPodInfo, backs_off_until


def backing_off(until):
    return QueuedPodInfo(make_pod_info(), 100.0, 0, backs_off_until=until)


@pytest.mark.parametrize(
    ("failures", "initial", "maximum", "seconds"),
    [
        (1, 1, 10, 1),
        (2, 1, 10, 2),
        (3, 1, 10, 4),
        (4, 1, 10, 8),
        (5, 1, 10, 10),
        (6, 1, 10, 10),
        (10**9, 1, 10, 10),
        (1, 5, 3, 3),
        (3, 3, 12, 12),
        (3, 3, 11, 11),
        (1, 60, 60, 60),
    ],
)
def test_the_wait_doubles_with_each_failure_up_to_the_maximum(failures, initial, maximum, seconds):
    assert backs_off_until(100.0, failures, initial, maximum) == 100 + seconds + 1


@pytest.mark.parametrize(
    ("failed_at", "failures", "until"),
    [(100.0, 1, 102), (100.46, 1, 102), (100.99, 1, 102), (100.99, 2, 103), (100.5, 9, 111)],
)
def test_backoff_ends_on_a_whole_second(failed_at, failures, until):
    assert backs_off_until(failed_at, failures, 1, 10) == until


def test_a_pod_without_failures_does_not_back_off():
    assert not backing_off(None).backs_off(0.0)


def test_a_maximum_of_zero_turns_back_off_off():
    assert backs_off_until(100.0, 3, 1, 0) is None


@pytest.mark.parametrize(
    ("now", "waits"), [(100.5, True), (101.0, True), (101.999, True), (102.0, False), (150.0, False)]
)
def test_the_second_of_expiry_belongs_to_the_wait(now, waits):
    assert backing_off(backs_off_until(100.0, 1, 1, 10)).backs_off(now) is waits


@pytest.mark.parametrize(("errors", "wait"), [(1, 1.54), (2, 2.54), (3, 4.54)])
def test_the_real_wait_is_the_backoff_and_up_to_a_second_more(errors, wait):
    failed_at = 100.46
    until = backs_off_until(failed_at, errors, 1, 10)
    assert until is not None
    assert until - failed_at == pytest.approx(wait)
