from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.config.fields import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("15s", 15),
        ("1.5s", 1.5),
        (".5m", 30),
        ("1h15m30.918273s", 4530.918273),
        ("10ms", 0.01),
        ("2us", 0.000002),
        ("2µs", 0.000002),
        ("-3s", -3),
        ("+3s", 3),
    ],
)
def test_durations_are_read_as_go_reads_them(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "s", "1 s", "1d", "1s2", "--1s", "\uff11s", "9" * 70 + "s", "999999999999h", "inf"]
)
def test_what_is_no_duration_is_none(text):
    assert parse_duration(text) is None


def test_a_nanosecond_does_not_become_nothing():
    assert parse_duration("1ns") == timedelta(microseconds=1)
    assert parse_duration("-1ns") == timedelta(microseconds=-1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (15, "15s"),
        (600, "10m0s"),
        (3600, "1h0m0s"),
        (0.0015, "1.5ms"),
        (0.000002, "2µs"),
        (-90.5, "-1m30.5s"),
    ],
)
def test_durations_are_written_as_go_writes_them(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


@given(st.integers(-(2**62) // 1000, 2**62 // 1000))
def test_a_written_duration_reads_back_equal(microseconds):
    duration = timedelta(microseconds=microseconds)
    assert parse_duration(format_duration(duration)) == duration
