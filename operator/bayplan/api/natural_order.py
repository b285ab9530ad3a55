"""The order people expect of names with numbers: n2 before n10."""

import re
from typing import Final

_DIGITS: Final = re.compile(r"([0-9]+)")
_LONGEST: Final = 4096
"""Characters looked at; whatever is longer is in the order of its first so many, then of the whole text."""


def natural_key(text: str) -> tuple[tuple[tuple[str, int, str], ...], str]:
    """Return what to sort `text` by: runs of digits as numbers, the rest as text; equal only for equal texts.

    A number goes by how many digits it has without leading zeros, then by these, so that no size is too large.
    """
    parts = _DIGITS.split(text[:_LONGEST])
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    key = tuple((word, len(number.lstrip("0")), number.lstrip("0")) for word, number in pairs)
    return key, text
