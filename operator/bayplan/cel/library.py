"""Functions on values of any kind: conversions, sizes, quantities, versions and options."""

import math
from collections.abc import Callable
from typing import Any, Final

from bayplan.cel.errors import EvaluationError, LimitExceededError
from bayplan.cel.functions import Type, define
from bayplan.cel.numbers import Uint, int64_or_none
from bayplan.cel.quantity import Quantity
from bayplan.cel.semver import Semver
from bayplan.cel.values import NONE, NOTHING, Kind, Option, kind_of, shown_double

__all__ = ["CONVERSIONS", "Type"]

CONVERSIONS: Final = frozenset(["bool", "bytes", "double", "dyn", "int", "string", "type", "uint"])
"""Upstream works these out of constants when an expression is compiled: an error then is one of the expression."""

_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))


def _unconverted(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


@define("dyn(A): dyn", "int(int): int", "uint(uint): uint", "double(double): double", "string(string): string")
@define("bool(bool): bool", "bytes(bytes): bytes")
def _same(value: Any) -> Any:
    return value


@define("type(A): type")
def _type(value: Any) -> Kind:
    return Kind(kind_of(value))


@define("int(uint): int")
def _int(value: int) -> int:
    if int64_or_none(value) is None:
        raise EvaluationError("integer overflow")
    return int(value)


@define("int(double): int")
def _int_of_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


@define("uint(int): uint")
def _uint(value: int) -> Uint:
    if value < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


@define("uint(double): uint")
def _uint_of_double(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


@define("double(int): double", "double(uint): double")
def _double(value: int) -> float:
    return float(int(value))


def _number(text: str, *, signed: bool) -> int | None:
    digits = text[1:] if signed and text[:1] in ("+", "-") else text
    if not digits or not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > 20:
        return None
    number = int(digits.lstrip("0") or "0")
    return -number if text[0] == "-" else number


@define("int(string): int")
def _int_of_text(text: str) -> int:
    number = _number(text, signed=True)
    if number is None or int64_or_none(number) is None:
        raise _unconverted("int")
    return number


@define("uint(string): uint")
def _uint_of_text(text: str) -> Uint:
    number = _number(text, signed=False)
    if number is None or number >= 2**64:
        raise _unconverted("uint")
    return Uint(number)


@define("double(string): double")
def _double_of_text(text: str) -> float:
    word = text.lower().lstrip("+-")
    try:
        number = float(text) if text.isascii() and "_" not in text and text == text.strip() else None
    except ValueError:
        number = None
    if (
        number is None
        or (math.isinf(number) and word not in ("inf", "infinity"))
        or (word == "nan" and word != text.lower())
    ):
        raise _unconverted("double")
    return number


@define("bool(string): bool")
def _bool_of_text(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise _unconverted("bool")
    return text in _TRUE


@define("bytes(string): bytes")
def _bytes(text: str) -> bytes:
    return text.encode()


@define("string(bool): string")
def _text_of_bool(value: bool) -> str:
    return "true" if value else "false"


@define("string(int): string", "string(uint): string")
def _text_of_number(value: int) -> str:
    return str(int(value))


define("string(double): string")(shown_double)


@define("string(bytes): string")
def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@define("size(string): int", "size(bytes): int", "size(list(A)): int", "size(map(A, B)): int", complaint="name")
@define("string.size(): int", "bytes.size(): int", "list(A).size(): int", "map(A, B).size(): int", complaint="name")
def _size(value: Any) -> int:
    return len(value)


define("quantity(string): quantity")(Quantity.parse)
define("semver(string): semver")(Semver.parse)


@define("semver(string, bool): semver")
def _semver(text: str, normalise: bool) -> Semver:
    return Semver.normalised(text) if normalise else Semver.parse(text)


def _parses(parse: Callable[..., object], *arguments: object) -> bool:
    try:
        parse(*arguments)
    except EvaluationError:
        return False
    return True


define("isQuantity(string): bool")(lambda text: _parses(Quantity.parse, text))
define("isSemver(string): bool")(lambda text: _parses(Semver.parse, text))
define("isSemver(string, bool): bool")(lambda text, normalise: _parses(_semver, text, normalise))

define("quantity.compareTo(quantity): int", "semver.compareTo(semver): int")(lambda left, right: left.compare(right))
define("quantity.isLessThan(quantity): bool", "semver.isLessThan(semver): bool")(
    lambda a, b: a.key != b.key and a.compare(b) < 0
)
define("quantity.isGreaterThan(quantity): bool", "semver.isGreaterThan(semver): bool")(lambda a, b: a.compare(b) > 0)
define("sign(quantity): int")(lambda amount: (amount.value > 0) - (amount.value < 0))
define("quantity.isInteger(): bool")(lambda amount: amount.as_int64() is not None)
define("quantity.asApproximateFloat(): double")(Quantity.as_float)
define("quantity.add(quantity): quantity")(Quantity.plus)
define("quantity.sub(quantity): quantity")(lambda left, right: left.plus(right, -1))
define("quantity.add(int): quantity")(lambda left, right: left.plus(Quantity(right, 0, small=True)))
define("quantity.sub(int): quantity")(lambda left, right: left.plus(Quantity(right, 0, small=True), -1))


@define("quantity.asInteger(): int")
def _as_integer(amount: Quantity) -> int:
    number = amount.as_int64()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _part_of_version(name: str) -> Callable[[Semver], int]:
    def part(version: Semver) -> int:
        number: int = getattr(version, name)
        # Upstream keeps 64 bits and takes the highest for a sign.
        return number if number < 2**63 else number - 2**64

    return part


for _name in ("major", "minor", "patch"):
    define(f"semver.{_name}(): int")(_part_of_version(_name))


define("optional.of(A): optional(A)")(Option)
define("optional.none(): optional(A)")(lambda: NONE)
define("optional(A).hasValue(): bool")(lambda option: option.value is not NOTHING)


@define("optional(A).value(): A")
def _value(option: Option) -> object:
    if option.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return option.value


@define("optional.ofNonZeroValue(A): optional(A)")
def _of_non_zero(value: Any) -> Option:
    zero = value is NOTHING or (not value if not isinstance(value, Option) else value.value is NOTHING)
    return NONE if zero and not isinstance(value, Quantity | Semver) else Option(value)


@define("optional.unwrap(list(optional(A))): list(A)", "list(optional(A)).unwrapOpt(): list(A)")
def _unwrapped(options: list[Any]) -> list[Any]:
    if any(type(each) is not Option for each in options):
        raise EvaluationError("value is not optional")
    return [each.value for each in options if each.value is not NOTHING]


def within(operations: int) -> None:
    """Stop an evaluation whose function would take so many operations.

    Raises:
        LimitExceededError: They are more than one expression may take.
    """
    if operations > 1_000_000:
        raise LimitExceededError
