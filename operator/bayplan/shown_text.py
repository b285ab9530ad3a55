"""Text as people are shown it: strangers' text made harmless, counts with nouns, and names with numbers in order."""

import re
from typing import Final

_DIGITS: Final = re.compile(r"([0-9]+)")
_LONGEST: Final = 4096
"""Characters looked at; whatever is longer is in the order of its first so many, then of the whole text."""


def printable(text: str) -> str:
    """Return `text` with everything that is not printable escaped: line ends, terminal codes, marks of direction.

    Logs, tables and answers to people rely on it.
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text])


def shortened(text: str, length: int) -> str:
    """Return `text`, or so much of it that it has `length` characters with the dots at its end."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def one_line(text: str, length: int) -> str:
    """Return `text` printable, with a space for each run of white space, and at most `length` characters long.

    What the scheduler refuses a question with, and what a client shows of a refusal, are such lines.
    """
    # Escapes make it longer only, so what is cut off here would be cut off afterwards.
    return shortened(printable(" ".join(text.split())[: length + 1]), length)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return `count` with its noun, as "1 pod", "2 pods" and "12,000 pods"; `plural` is for nouns that add no "s"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def natural_key(text: str) -> tuple[tuple[tuple[str, int, str], ...], str]:
    """Return what to sort `text` by: runs of digits as numbers, the rest as text; equal only for equal texts.

    A number goes by how many digits it has without leading zeros, then by these, so that no size is too large.
    """
    parts = _DIGITS.split(text[:_LONGEST])
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    key = tuple((word, len(number.lstrip("0")), number.lstrip("0")) for word, number in pairs)
    return key, text
