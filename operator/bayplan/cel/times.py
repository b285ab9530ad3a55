"""Durations and points in time, in nanoseconds."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from bayplan.cel.errors import EvaluationError
from bayplan.cel.numbers import int64_or_none

_SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62135596800 * _SECOND
_LAST: Final = 253402300800 * _SECOND - 1
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LONGEST: Final = 128


class Duration(int):
    """A length of time."""

    __slots__ = ()


class Timestamp(int):
    """A point in time, since 1970 in UTC."""

    __slots__ = ()


def duration_or_error(nanoseconds: int) -> Duration:
    """Return the duration.

    Raises:
        EvaluationError: It has no place in 64 bits.
    """
    if int64_or_none(nanoseconds) is None:
        raise EvaluationError("integer overflow")
    return Duration(nanoseconds)


def timestamp_or_error(nanoseconds: int) -> Timestamp:
    """Return the point in time.

    Raises:
        EvaluationError: It is not within the years 1 to 9999.
    """
    if not _FIRST <= nanoseconds <= _LAST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def parse_duration(text: str) -> Duration | None:
    """Return the duration in `text` as Go writes it, such as 1h30m, or None when it is none."""
    if len(text) > _LONGEST or not _DURATION.fullmatch(text):
        return None
    total = 0
    for whole, decimals, unit in _PIECE.findall(text):
        total += int(whole or 0) * _UNITS[unit] + int(decimals or 0) * _UNITS[unit] // int(10 ** len(decimals))
    total = -total if text[0] == "-" else total
    return Duration(total) if int64_or_none(total) is not None else None


def parse_timestamp(text: str) -> Timestamp | None:
    """Return the point in time in `text` by RFC 3339, or None when it is none."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    moment, decimals, sign, hours, minutes = match.groups()
    zone = UTC
    try:
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            if int(minutes) > 59 or int(hours) > 24:
                return None
            zone = timezone(-offset if sign == "-" else offset)
        parsed = datetime.fromisoformat(moment).replace(tzinfo=zone)
    except ValueError:
        return None
    nanoseconds = int((decimals or "")[:9].ljust(9, "0"))
    return timestamp_or_error((parsed - _EPOCH) // timedelta(seconds=1) * _SECOND + nanoseconds)


def shown_duration(duration: Duration) -> str:
    """Return a duration in seconds, without zeros at the end."""
    text = repr(int(duration) / _SECOND) if abs(duration) < 10**16 * _SECOND else str(int(duration) // _SECOND)
    return f"{text.removesuffix('.0')}s" if "e" not in text else f"{float(text):.9f}".rstrip("0").rstrip(".") + "s"


def shown_timestamp(moment: Timestamp) -> str:
    """Return a point in time by RFC 3339, with as many decimals as it has."""
    seconds, nanoseconds = divmod(int(moment), _SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
    decimals = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{text}{decimals}Z"


def calendar(moment: Timestamp) -> datetime:
    """Return the point in time as a date and time of day in UTC, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=int(moment) // 1000)
