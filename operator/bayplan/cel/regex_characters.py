"""Sets of characters of regular expressions, by the names that RE2 has for them."""

from collections.abc import Callable
from typing import Final, TypeAlias

Test: TypeAlias = Callable[[str], bool]
"""Says whether one character matches."""

PERL: Final = {"d": "0-9", "s": "\t\n\f\r ", "w": "0-9A-Za-z_"}
POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\x00-\x7f", "blank": "\t ", "cntrl": "\x00-\x1f\x7f-\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@[-`{-~", "space": "\t-\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
CATEGORIES: Final = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)


def ranges(spelled: str) -> tuple[tuple[str, str], ...]:
    """Return the first and last character of each range that `spelled` has, such as `0-9_`."""
    found, at = [], 0
    while at < len(spelled):
        if spelled[at + 1 : at + 2] == "-":
            found.append((spelled[at], spelled[at + 2]))
            at += 3
        else:
            found.append((spelled[at], spelled[at]))
            at += 1
    return tuple(found)


def within(spelled: str) -> Test:
    """Return the test for the ranges in `spelled`."""
    found = ranges(spelled)
    return lambda char: any(first <= char <= last for first, last in found)


def negation(test: Test) -> Test:
    """Return the test for all other characters."""
    return lambda char: not test(char)


def folded(test: Test) -> Test:
    """Return the test that does not tell upper from lower case."""

    def either(char: str) -> bool:
        return test(char) or any(len(other) == 1 and test(other) for other in (char.lower(), char.upper()))

    return either
