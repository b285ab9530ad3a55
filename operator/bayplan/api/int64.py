"""Whole numbers as the API's Go code reads them from text."""

import re

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_INT64_DIGITS = 19
_DECIMAL = re.compile(r"([+-]?)([0-9]+)")


def parse_int64(text: str) -> int | None:
    """The number in `text` as strconv.ParseInt in base 10 reads it, or None when that fails; linear in the length.

    Python's int() would also take blanks, underscores and the digits of every script.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0")
    if len(digits) > _INT64_DIGITS:
        return None
    number = int(f"{match[1]}{digits or '0'}")
    return number if INT64_MIN <= number <= INT64_MAX else None
