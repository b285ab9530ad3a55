"""Operators that work out all of their operands, with upstream's errors (common/types/overflow.go)."""

import math
import operator
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Final

from bayplan.api.quantity import INT64_MAX, INT64_MIN
from bayplan.cel.errors import EvaluationError, no_overload
from bayplan.cel.functions import define
from bayplan.cel.values import ORDERED, contains, equal, sized, uint_of


def _int(value: int) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise EvaluationError("integer overflow")
    return value


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _rest(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    # Upstream refuses the one case whose quotient has no place, though its rest is 0.
    if (left, right) == (INT64_MIN, -1):
        raise EvaluationError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _ratio(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _arithmetic(name: str, whole: Callable[[int, int], int], real: Callable[[float, float], float] | None) -> None:
    define(name, "int, int", complaint="name")(lambda left, right: _int(whole(left, right)))
    define(name, "uint, uint", complaint="name")(lambda left, right: uint_of(whole(left, right)))
    if real is not None:
        define(name, "double, double", complaint="name")(real)


_arithmetic("_+_", operator.add, operator.add)
_arithmetic("_-_", operator.sub, operator.sub)
_arithmetic("_*_", operator.mul, operator.mul)
_arithmetic("_/_", _quotient, _ratio)
_arithmetic("_%_", _rest, None)


@define("_+_", "string, string", "bytes, bytes", "list, list")
def _joined(left: Any, right: Any) -> Any:
    sized(len(left) + len(right))
    return left + right


define("-_", "int", complaint="name")(lambda value: _int(-value))
define("-_", "double")(operator.neg)
define("!_", "bool", complaint="")(operator.not_)


@define("-_", "bool")
def _no_number(_value: bool) -> bool:
    raise no_overload()


@define("_==_", "any, any")
def _same(left: Any, right: Any) -> bool:
    same = equal(left, right)
    if same is None:
        raise no_overload()
    return same


# Without an answer the one is an error and the other true.
define("_!=_", "any, any")(lambda left, right: equal(left, right) is not True)

define("_in_", "any, any")(lambda value, container: contains(container, value))

_NUMBERS: Final = list(product(ORDERED[:3], repeat=2))
_EXACT: Final = [*(each for each in _NUMBERS if "double" not in each), *((kind, kind) for kind in ORDERED[3:])]
_INEXACT: Final = [each for each in _NUMBERS if "double" in each]


def _of_doubles(holds: Callable[[float, float], bool], left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        raise EvaluationError("NaN values cannot be ordered")
    return holds(left, right)


for _name, _holds in (("_<_", operator.lt), ("_<=_", operator.le), ("_>_", operator.gt), ("_>=_", operator.ge)):
    define(_name, *map(", ".join, _EXACT), complaint="name")(_holds)
    define(_name, *map(", ".join, _INEXACT))(partial(_of_doubles, _holds))
