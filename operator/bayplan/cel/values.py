"""The values of expressions: what kind each is of, equality and order, and what is found in containers.

A value is a bool, int, Uint, float, str, bytes, None, list, dict, Quantity, Semver, Kind or Option. Booleans among the
keys of a dict are wrapped, as Python takes True for 1.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from bayplan.cel.errors import TOO_LONG, EvaluationError, StoppedError, no_overload
from bayplan.cel.kubernetes_types import Quantity, Semver

_LEAST_POWER: Final = -4
_MOST_POWER: Final = 5

LARGEST: Final = 100_000
"""No text or list is longer: an expression of 10 KiB could otherwise make one that fills the memory."""


class Uint(int):
    """An unsigned integer of 64 bits: a kind of its own, equal to an int of the same amount."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """What type() gives."""

    name: str


class Option:
    """An optional value; without one its `value` is NOTHING."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


NOTHING: Final = object()
NONE: Final = Option(NOTHING)


class Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain: a domain that is not there has none, which is no error."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Domains: "map",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Kind: "type",
    Option: "optional_type",
}

NUMBERS: Final = frozenset((int, Uint, float))
MAPS: Final = frozenset((dict, Domains))
ORDERED: Final = ("int", "uint", "double", "bool", "string", "bytes")
"""The kinds whose values have an order."""
# What upstream's own Equal of these types refuses to compare, instead of calling it different.
_STRICT: Final = frozenset((Quantity, Semver))


def kind_of(value: object) -> str:
    """Return the name of the type of `value`."""
    return KINDS[type(value)]


def equal(left: Any, right: Any) -> bool | None:
    """Return whether two values are equal, or None where upstream has no answer."""
    a, b = type(left), type(right)
    if a in MAPS and b in MAPS:
        return _equal_maps(left, right)
    if a is not b:
        has_no_answer = a in _STRICT and right is not None
        return None if has_no_answer else a in NUMBERS and b in NUMBERS and bool(left == right)
    if a is list:
        # An element without an answer counts as equal: common/types/list.go.
        return len(left) == len(right) and all(equal(x, y) is not False for x, y in zip(left, right, strict=True))
    if a is Option:
        is_empty = left.value is NOTHING or right.value is NOTHING
        return left.value is right.value if is_empty else equal(left.value, right.value)
    return bool(left.key == right.key if a in _STRICT else left == right)


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool | None:
    if len(left) != len(right):
        return False
    undecided = False
    for key, value in left.items():
        other = right.get(key, NOTHING)
        same = False if other is NOTHING else equal(value, other)
        if same is False:
            return False
        undecided |= same is None
    return None if undecided else True


def uint_of(value: float) -> Uint:
    """Return the unsigned integer that a number is, without what is behind its point.

    Raises:
        EvaluationError: It has no place in 64 bits.
    """
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def key_of(value: Any) -> Any:
    """Return what stands for `value` among the keys of a dict.

    Raises:
        EvaluationError: It can be no key.
    """
    kind = type(value)
    if kind is str or kind in NUMBERS:
        return value
    if kind is bool:
        return (value,)
    raise EvaluationError(f"unsupported key type: {kind_of(value)}")


def keys(mapping: dict[Any, Any]) -> Iterator[Any]:
    """Yield the keys of a dict as values."""
    for key in mapping:
        yield key[0] if type(key) is tuple else key


def shown(value: Any) -> str:
    """Return a value as upstream shows it in errors."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return _shown_double(value)
    if kind is list:
        return f"[{', '.join(map(shown, value))}]"
    return str(value)


def _shown_double(value: float) -> str:
    """Return a number as Go's %g shows it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    exact = Decimal(repr(value)).normalize()
    if _LEAST_POWER <= exact.adjusted() <= _MOST_POWER:
        return f"{exact:f}"
    return f"{value:.{len(exact.as_tuple().digits) - 1}e}"


def member(value: Any, key: Any) -> Any:
    """Return what `value` has at `key`.

    Raises:
        EvaluationError: It has nothing there.
    """
    if type(value) is Option:
        return optional_member(value, key)
    found = _found(value, key)
    if found is NOTHING:
        raise EvaluationError(f"{'index out of bounds' if type(value) is list else 'no such key'}: {shown(key)}")
    return found


def optional_member(value: Any, key: Any) -> Option:
    """Return what `value` has at `key`, if anything, as an Option.

    Raises:
        EvaluationError: The key is of a kind that `value` never has.
    """
    while type(value) is Option:
        value = value.value
    found = _found(value, key)
    return NONE if found is NOTHING else Option(found)


def has_member(value: Any, key: str) -> bool:
    """Return what has() says."""
    return optional_member(value, key) is not NONE


def _found(value: Any, key: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return value.get(key_of(key), NOTHING)
    if kind is Domains:
        return value[key] if type(key) is str else {}
    if kind is list:
        index = _index(key)
        return value[index] if 0 <= index < len(value) else NOTHING
    return NOTHING


def _index(key: Any) -> int:
    kind = type(key)
    if kind is int or (kind is Uint and key < 2**63) or (kind is float and key.is_integer() and abs(key) < 2**63):
        return int(key)
    if kind in NUMBERS:
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{kind_of(key)}' in list")


def contains(container: Any, value: Any) -> bool:
    """Return what `value in container` says.

    Raises:
        EvaluationError: It is no container.
    """
    kind = type(container)
    if kind is list:
        return any(equal(value, each) for each in container)
    if kind in MAPS:
        return key_of(value) in container
    raise no_overload()


def sized(length: int, most: int = LARGEST) -> None:
    """Stop the evaluation if a text or list of `length` would be too large to make, or so many steps too many.

    Raises:
        StoppedError: It would.
    """
    if length > most:
        raise StoppedError(TOO_LONG)
