"""Arithmetic: what + - * / % and the sign of a number give, with upstream's errors (common/types/overflow.go)."""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from bayplan.cel.errors import EvaluationError, no_overload
from bayplan.cel.numbers import Uint, int64_or_none
from bayplan.cel.values import sized

Binary = Callable[[Any, Any], Any]


def _int(value: int) -> int:
    if int64_or_none(value) is None:
        raise EvaluationError("integer overflow")
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _rest(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    # Upstream refuses the one case whose quotient has no place, though its rest is 0.
    if (left, right) == (-(2**63), -1):
        raise EvaluationError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _ratio(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _joined(left: Any, right: Any) -> Any:
    sized(len(left) + len(right))
    return left + right


def _kinds(whole: Callable[[int, int], int], real: Binary | None) -> dict[tuple[type, type], Binary]:
    found: dict[tuple[type, type], Binary] = {
        (int, int): lambda left, right: _int(whole(left, right)),
        (Uint, Uint): lambda left, right: _uint(whole(int(left), int(right))),
    }
    return found if real is None else found | {(float, float): real}


BINARY: Final[dict[str, dict[tuple[type, type], Binary]]] = {
    "_+_": _kinds(operator.add, operator.add) | {(kind, kind): _joined for kind in (str, bytes, list)},
    "_-_": _kinds(operator.sub, operator.sub),
    "_*_": _kinds(operator.mul, operator.mul),
    "_/_": _kinds(_quotient, _ratio),
    "_%_": _kinds(_rest, None),
}
"""What an operator does, by the types of its operands."""

_LEFT: Final = {name: {left for left, _ in kinds} for name, kinds in BINARY.items()}


def calculate(name: str, left: Any, right: Any) -> Any:
    """Return what the operator gives.

    Raises:
        EvaluationError: It does not take these, or the result has no place.
    """
    found = BINARY[name].get((type(left), type(right)))
    if found is None:
        plain = type(left) in _LEFT[name] or type(left) is str
        raise no_overload("" if plain else name)
    return found(left, right)


def negated(value: Any) -> Any:
    """Return what the sign makes of a number.

    Raises:
        EvaluationError: It is no signed number, or the smallest one.
    """
    if type(value) is int:
        return _int(-value)
    if type(value) is float:
        return -value
    raise no_overload("" if type(value) in (bool, str) else "-_")
