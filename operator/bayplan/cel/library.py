"""Functions on values of any kind: conversions, sizes, quantities, versions and options."""

import math
import re
from collections.abc import Callable
from typing import Any, Final

from bayplan.api.quantity import INT64_MAX, INT64_MIN, parse_int64
from bayplan.cel.errors import EvaluationError
from bayplan.cel.functions import define
from bayplan.cel.kubernetes_types import Quantity, Semver
from bayplan.cel.values import NONE, NOTHING, Kind, Option, Uint, kind_of, shown, uint_of

CONVERSIONS: Final = frozenset(["bool", "bytes", "double", "dyn", "int", "string", "type", "uint"])
"""Upstream works these out of constants when an expression is compiled: an error then is one of the expression."""

_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_UINT: Final = re.compile("0*([0-9]{1,20})")
_DOUBLE: Final = re.compile(r"[+-]?(?:inf(?:inity)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)|nan", re.IGNORECASE)


def _unconverted(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


define("dyn", "any")(lambda value: value)
for _name in ("int", "uint", "double", "string", "bool", "bytes"):
    define(_name, _name)(lambda value: value)
define("type", "any")(lambda value: Kind(kind_of(value)))


@define("int", "uint", "double")
def _int(value: float) -> int:
    if not INT64_MIN < value <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return int(value)


define("uint", "int", "double")(uint_of)
define("double", "int", "uint")(float)


@define("int", "string")
def _int_of_text(text: str) -> int:
    number = parse_int64(text)
    if number is None:
        raise _unconverted("int")
    return number


@define("uint", "string")
def _uint_of_text(text: str) -> Uint:
    match = _UINT.fullmatch(text)
    if match is None or int(match[1]) >= 2**64:
        raise _unconverted("uint")
    return Uint(match[1])


@define("double", "string")
def _double_of_text(text: str) -> float:
    number = float(text) if _DOUBLE.fullmatch(text) else None
    if number is None or (math.isinf(number) and "n" not in text.lower()):
        raise _unconverted("double")
    return number


@define("bool", "string")
def _bool_of_text(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise _unconverted("bool")
    return text in _TRUE


define("bytes", "string")(str.encode)
define("string", "bool", "int", "uint", "double")(shown)


@define("string", "bytes")
def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


define("size", "string", "bytes", "list", "map", complaint="name")(len)
define(".size", "string", "bytes", "list", "map", complaint="name")(len)


@define("semver", "string", "string, bool")
def _semver(text: str, normalise: bool = False) -> Semver:
    return Semver.normalised(text) if normalise else Semver.parse(text)


def _parses(parse: Callable[..., object]) -> Callable[..., bool]:
    def parses(*arguments: object) -> bool:
        try:
            parse(*arguments)
        except EvaluationError:
            return False
        return True

    return parses


define("quantity", "string")(Quantity.parse)
define("isQuantity", "string")(_parses(Quantity.parse))
define("isSemver", "string", "string, bool")(_parses(_semver))

_COMPARED: Final = ("quantity, quantity", "semver, semver")
define(".compareTo", *_COMPARED)(lambda left, right: (left.key > right.key) - (left.key < right.key))
define(".isLessThan", *_COMPARED)(lambda left, right: left.key < right.key)
define(".isGreaterThan", *_COMPARED)(lambda left, right: left.key > right.key)
define("sign", "quantity")(lambda amount: (amount.value > 0) - (amount.value < 0))
define(".isInteger", "quantity")(lambda amount: amount.as_int64() is not None)
define(".asApproximateFloat", "quantity")(Quantity.as_float)
define(".add", "quantity, quantity")(Quantity.plus)
define(".sub", "quantity, quantity")(lambda left, right: left.plus(right, -1))
define(".add", "quantity, int")(lambda left, right: left.plus(Quantity(right, 0, small=True)))
define(".sub", "quantity, int")(lambda left, right: left.plus(Quantity(right, 0, small=True), -1))


@define(".asInteger", "quantity")
def _as_integer(amount: Quantity) -> int:
    number = amount.as_int64()
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _as_signed(number: int) -> int:
    # Upstream keeps 64 bits and takes the highest for a sign.
    return number if number <= INT64_MAX else number - 2**64


define(".major", "semver")(lambda version: _as_signed(version.major))
define(".minor", "semver")(lambda version: _as_signed(version.minor))
define(".patch", "semver")(lambda version: _as_signed(version.patch))

define("optional.of", "any")(Option)
define("optional.none", "")(lambda: NONE)
define(".hasValue", "optional")(lambda option: option.value is not NOTHING)


@define(".value", "optional")
def _value(option: Option) -> object:
    if option.value is NOTHING:
        raise EvaluationError("optional.none() dereference")
    return option.value


@define("optional.ofNonZeroValue", "any")
def _of_non_zero(value: Any) -> Option:
    zero = value.value is NOTHING if type(value) is Option else not isinstance(value, Quantity | Semver) and not value
    return NONE if zero else Option(value)


@define("optional.unwrap", "list(optional)")
@define(".unwrapOpt", "list(optional)")
def _unwrapped(options: list[Any]) -> list[Any]:
    if any(type(each) is not Option for each in options):
        raise EvaluationError("value is not optional")
    return [each.value for each in options if each.value is not NOTHING]
