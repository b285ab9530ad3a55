"""Amounts and versions, the types that Kubernetes adds to the language.

Amounts are as `quantity()` of an expression gives them: exact, signed, and integers only where upstream says so. A
version is a semantic one (semver 2.0.0), read as strictly as upstream reads it.
"""

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Final, TypeAlias

from bayplan.api.quantity import BINARY_EXPONENTS, DECIMAL_EXPONENTS, INT64_MAX, INT64_MIN
from bayplan.cel.errors import EvaluationError
from bayplan.shown_text import printable

_GRAMMAR = re.compile(r"([+-]?+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[+-]?+[0-9]*+)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,10})")
_NANO: Final = 9
_LONGEST: Final = 4096
_EXACT: Final = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_MAX_BINARY = INT64_MAX * 10**_NANO
_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_DIGITS = re.compile(r"[0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]+")
_PARTS: Final = 3
_LARGEST: Final = 2**64

_Identifier: TypeAlias = tuple[int, int, str]


class Quantity:
    """An amount: `value` times ten to the power of `scale`, as apimachinery pkg/api/resource keeps it.

    `small` says whether it is kept as an int64: only such a one may be an integer. `key` is the exact amount, by which
    amounts are compared.
    """

    __slots__ = ("key", "scale", "small", "value")

    def __init__(self, value: int, scale: int, *, small: bool) -> None:
        self.value, self.scale, self.small = value, scale, small
        self.key = _EXACT.scaleb(Decimal(value), scale)

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Return the amount in `text`; what is finer than a nano is rounded away from zero.

        Raises:
            EvaluationError: It is no quantity, or beyond what any device has.
        """
        match = _GRAMMAR.fullmatch(text)
        if match is None or not text or len(text) > _LONGEST:
            raise EvaluationError(_WRONG)
        sign, whole, decimals, suffix = match.groups(default="")
        exponent, binary = _exponents(suffix)
        whole = whole.lstrip("0") or "0"
        precision = 18 - len(whole) - len(decimals)
        if binary:
            precision = -1 if decimals else 15 - len(whole) - int(binary * 3 / 10) - 1
        amount, scale = int(whole + decimals) << binary, exponent - len(decimals)
        small = precision >= 0 and scale >= -_NANO
        if not small:
            if not match[2] and not decimals:
                raise EvaluationError("unable to parse numeric part of quantity")
            if amount and scale < -_NANO:
                amount, scale = -(-amount // 10 ** min(-_NANO - scale, 2 * _LONGEST)), -_NANO
            if binary and amount * 10 ** (_NANO + scale) > _MAX_BINARY:
                amount, scale = INT64_MAX, 0
        return cls(-amount if sign == "-" else amount, scale, small=small)

    def plus(self, other: "Quantity", sign: int = 1) -> "Quantity":
        """Return the sum, or with `sign` -1 the difference."""
        # Upstream's sign of the smallest int64 overflows, and it stays what it is.
        addend = other.value if sign > 0 or (other.small and other.value == INT64_MIN) else -other.value
        if self.small and other.small:
            if not other.value:
                return self
            if not self.value:
                return Quantity(addend, other.scale, small=True)
        scale = min(self.scale, other.scale)
        left, right = self.value * 10 ** (self.scale - scale), addend * 10 ** (other.scale - scale)
        amount = left + right
        fits = all(INT64_MIN <= each <= INT64_MAX for each in (left, right, amount))
        return Quantity(amount, scale, small=self.small and other.small and fits)

    def as_int64(self) -> int | None:
        """Return the integer that it is kept as, if it is."""
        if not self.small or self.scale < 0 or self.scale > _NANO * 2:
            return None
        amount: int = self.value * 10**self.scale
        return amount if INT64_MIN <= amount <= INT64_MAX else None

    def as_float(self) -> float:
        """Return the nearest floating-point number, or one beside it; infinity where none is near."""
        base = float(Decimal(self.value))
        return base * float(f"1e{self.scale}") if self.scale else base


def _exponents(suffix: str) -> tuple[int, int]:
    if suffix in BINARY_EXPONENTS:
        return 0, BINARY_EXPONENTS[suffix]
    if suffix in DECIMAL_EXPONENTS:
        return DECIMAL_EXPONENTS[suffix], 0
    match = _EXPONENT.fullmatch(suffix)
    if match is None or abs(int(match[1])) > _LONGEST:
        raise EvaluationError("unable to parse quantity's suffix")
    return int(match[1]), 0


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
