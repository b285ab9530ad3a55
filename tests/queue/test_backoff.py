import pytest

from bayplan.queue.queued_pod import backoff_expiration, backoff_seconds, is_backing_off, release_time


@pytest.mark.parametrize(
    ("count", "initial", "maximum", "seconds"),
    [
        (0, 1, 10, 0),
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
def test_the_wait_doubles_with_each_failure_up_to_the_maximum(count, initial, maximum, seconds):
    assert backoff_seconds(count, initial, maximum) == seconds


@pytest.mark.parametrize(
    ("timestamp", "count", "expiration"),
    [(100.0, 1, 101), (100.46, 1, 101), (100.99, 1, 101), (100.99, 2, 102), (100.5, 9, 110)],
)
def test_backoff_expires_on_a_whole_second(timestamp, count, expiration):
    assert backoff_expiration(timestamp, count, 1, 10) == expiration


def test_a_pod_without_failures_does_not_back_off():
    assert backoff_expiration(100.0, 0, 1, 10) is None
    assert not is_backing_off(None, 0.0)


def test_a_maximum_of_zero_turns_back_off_off():
    assert backoff_expiration(100.0, 3, 1, 0) is None


@pytest.mark.parametrize(
    ("now", "waits"), [(100.5, True), (101.0, True), (101.99, True), (102.0, False), (150.0, False)]
)
def test_the_second_of_expiry_belongs_to_the_wait(now, waits):
    assert is_backing_off(101, now) is waits


def test_release_is_the_first_moment_without_back_off():
    release = release_time(101)
    assert not is_backing_off(101, release)
    assert is_backing_off(101, release - 0.001)


@pytest.mark.parametrize(("errors", "wait"), [(1, 1.54), (2, 2.54), (3, 4.54)])
def test_the_real_wait_is_the_backoff_and_up_to_a_second_more(errors, wait):
    failed_at = 100.46
    expiration = backoff_expiration(failed_at, errors, 1, 10)
    assert expiration is not None
    assert release_time(expiration) - failed_at == pytest.approx(wait)
