"""Semantic versions (semver 2.0.0), read as strictly as upstream reads them."""

import re
from typing import Final, TypeAlias

from bayplan.cel.errors import EvaluationError
from bayplan.shown_text import printable

_DIGITS = re.compile(r"[0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]+")
_PARTS: Final = 3
_LARGEST: Final = 2**64

_Identifier: TypeAlias = tuple[int, int, str]


class Semver:
    """A version; `key` is what versions are compared by, in which what follows `+` has no part."""

    __slots__ = ("key", "major", "minor", "patch", "text")

    def __init__(self, text: str, numbers: tuple[int, int, int], prerelease: tuple[_Identifier, ...]) -> None:
        self.text = text
        self.major, self.minor, self.patch = numbers
        # A version without a pre-release comes after all that have one.
        self.key = (numbers, not prerelease, prerelease)

    @classmethod
    def parse(cls, text: str) -> "Semver":
        """Return the version in `text`.

        Raises:
            EvaluationError: It is none.
        """
        if not text:
            raise EvaluationError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != _PARTS:
            raise EvaluationError("No Major.Minor.Patch elements found")
        major, minor = _number(parts[0], "Major number"), _number(parts[1], "Minor number")
        rest, plus, build = parts[2].partition("+")
        rest, minus, prerelease = rest.partition("-")
        patch = _number(rest, "Patch number")
        identifiers = tuple(_identifier(each) for each in prerelease.split(".")) if minus else ()
        for each in build.split(".") if plus else ():
            if not each:
                raise EvaluationError("Build meta data is empty")
            if not _WORD.fullmatch(each):
                raise EvaluationError(f"Invalid character(s) found in build meta data {_quoted(each)}")
        return cls(text, (major, minor, patch), identifiers)

    @classmethod
    def normalised(cls, text: str) -> "Semver":
        """Return the version in `text`, which may begin with v, have leading zeros and lack its last numbers.

        Raises:
            EvaluationError: It is none even so.
        """
        parts = text.removeprefix("v").split(".", 2)
        for place, part in enumerate(parts):
            if len(part) > 1:
                rest = part.lstrip("0")
                parts[place] = rest if rest[:1].isascii() and rest[:1].isdigit() else f"0{rest}"
        if len(parts) < _PARTS:
            if set("+-") & set(parts[-1]):
                raise EvaluationError("short version cannot contain PreRelease/Build meta data")
            parts += ["0"] * (_PARTS - len(parts))
        return cls.parse(".".join(parts))

    def __repr__(self) -> str:
        return f"Semver({self.text})"


def _quoted(text: str) -> str:
    """Return `text` in quotation marks, escaped as Go's %q does."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{printable(escaped)}"'


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} {_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} must not contain leading zeroes {_quoted(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > len(str(_LARGEST)) or int(text) >= _LARGEST:
        raise EvaluationError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _identifier(text: str) -> _Identifier:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        return 0, _number(text, "Numeric PreRelease version"), ""
    if not _WORD.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return 1, 0, text
