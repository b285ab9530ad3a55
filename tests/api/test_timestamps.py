from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.meta_objects import format_time, parse_time


def test_a_time_without_a_zone_is_in_utc():
    assert (
        parse_time("2026-01-01T00:00:00") == parse_time("2026-01-01T00:00:00Z") == parse_time("2026-01-01T02:00+02:00")
    )


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z"])
def test_text_that_is_no_time_is_an_error(text):
    with pytest.raises(ValueError, match=r"Invalid isoformat string|month must be in"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "in_utc"),
    [
        ("0001-01-01T00:00:00+14:00", "0000-12-31T10:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("0987-06-05T04:03:02.9Z", "0987-06-05T04:03:02Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59-14:00", "10000-01-01T13:59:59Z"),
    ],
)
def test_every_time_that_can_be_read_can_be_written(text, in_utc):
    assert format_time(parse_time(text)) == in_utc


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_written_is_what_was_read_to_the_second(moment: datetime):
    # Seconds since the epoch are floats, which tell the last microseconds of a far year no more.
    moment = moment.replace(microsecond=moment.microsecond // 10_000 * 10_000)
    assert format_time(parse_time(moment.isoformat())) == moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
