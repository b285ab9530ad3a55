"""Times as objects carry them (RFC 3339 text) and as the scheduler compares them (seconds since the epoch)."""

from datetime import UTC, datetime
from typing import Final

_YEARS: Final = 400
_SECONDS_OF_YEARS: Final = 146_097 * 86_400
"""The calendar repeats after that many years."""
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def parse_time(text: str) -> float:
    """Return the time in seconds since the epoch; one without a zone is taken as UTC.

    Raises:
        ValueError: the text is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:
        raise ValueError(str(error)) from None


def format_time(seconds: float) -> str:
    """Return any time that `parse_time` gives as text in UTC, in whole seconds.

    A zone can carry the first and the last year into years that Python's calendar does not have.
    """
    shift = _YEARS if seconds < _FIRST else -_YEARS if seconds >= _LAST + 1 else 0
    moment = datetime.fromtimestamp(seconds + shift // _YEARS * _SECONDS_OF_YEARS, UTC)
    return f"{moment.year - shift:04}-{moment:%m-%dT%H:%M:%SZ}"
