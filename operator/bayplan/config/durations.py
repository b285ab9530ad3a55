"""Durations as Kubernetes writes them: `1h15m30.5s` (Go: time.ParseDuration and Duration.String)."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

_UNIT_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(rf"([-+]?)((?:{_PART.pattern})+)", re.ASCII)
_MAX_CHARACTERS: Final = 64
_MAX_NANOSECONDS: Final = 2**63 - 1


def parse_duration(text: str) -> timedelta | None:
    """The duration, or None when `text` is none; what is below a microsecond is rounded away from zero."""
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return timedelta()
    match = _WHOLE.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None:
        return None
    nanoseconds = sum(Fraction(number) * _UNIT_NANOSECONDS[unit] for number, unit in _PART.findall(match[2]))
    if nanoseconds > _MAX_NANOSECONDS:
        return None
    microseconds = -(-nanoseconds // 1000)
    return timedelta(microseconds=-microseconds if match[1] == "-" else microseconds)


def format_duration(duration: timedelta) -> str:
    """The duration as Go prints it: `15s`, `10m0s`, `1.5ms`."""
    microseconds = duration // timedelta(microseconds=1)
    if microseconds == 0:
        return "0s"
    sign = "-" if microseconds < 0 else ""
    microseconds = abs(microseconds)
    if microseconds < 1000:
        return f"{sign}{microseconds}µs"
    if microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 1000)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
