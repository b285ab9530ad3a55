"""Functions on lists."""

import math
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Final

from bayplan.cel.errors import EvaluationError, no_overload
from bayplan.cel.functions import apply, define
from bayplan.cel.values import NONE, ORDERED, Option, Uint, contains, equal, kind_of, sized

_MOST_COMPARISONS: Final = 1_000_000
_ORDERED_LISTS: Final = [f"list({kind})" for kind in ORDERED]


@define(".slice", "list, int, int")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@define(".flatten", "list", "list, int", complaint="target")
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = items
    # A list in a list is made by one level of the expression: more of them do not exist.
    for _ in range(min(depth, 100)):
        if not any(type(each) is list for each in flat):
            break
        sized(sum(len(each) if type(each) is list else 1 for each in flat))
        flat = [inner for each in flat for inner in (each if type(each) is list else (each,))]
    return flat


@define("@sortByAssociatedKeys", "list, list", complaint="name")
def _sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """The macro sortBy() stands for it, upstream as here; keys of more than one kind have no order."""
    if not keys:
        return items
    if kind_of(keys[0]) not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and any(type(each) is not type(keys[0]) for each in keys):
        raise EvaluationError("list elements must have the same type")
    if len(keys) > 1 and type(keys[0]) is float and any(map(math.isnan, keys)):
        raise EvaluationError("NaN values cannot be ordered")
    return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__)]


@define(".sort", "list", complaint="name")
def _sort(items: list[Any]) -> list[Any]:
    return _sorted_by(items, items)


@define("lists.range", "int")
def _range(length: int) -> list[int]:
    if length < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {length}")
    sized(length)
    return list(range(length))


@define(".reverse", "list")
def _reversed(items: list[Any]) -> list[Any]:
    return items[::-1]


define(".first", "list")(lambda items: Option(items[0]) if items else NONE)
define(".last", "list")(lambda items: Option(items[-1]) if items else NONE)


@define(".distinct", "list")
def _distinct(items: list[Any]) -> list[Any]:
    sized(len(items) ** 2, _MOST_COMPARISONS)
    unique: list[Any] = []
    for each in items:
        if not any(equal(each, other) for other in unique):
            unique.append(each)
    return unique


@define(".isSorted", *_ORDERED_LISTS)
def _is_sorted(items: list[Any]) -> bool:
    return not any(_follows(a, b) for a, b in pairwise(items))


def _follows(left: Any, right: Any) -> bool:
    # Upstream looks at the order only, and an error is none.
    try:
        return bool(apply("_>_", left, right))
    except EvaluationError:
        return False


for _kind, _zero in (("int", 0), ("uint", Uint(0)), ("double", 0.0)):
    define(".sum", f"list({_kind})")(lambda items, zero=_zero: reduce(partial(apply, "_+_"), items, zero))


def _best(items: list[Any], name: str, is_better: Callable[[Any, Any], bool]) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    for each in items[1:]:
        if kind_of(each) not in ORDERED:
            raise no_overload()
        if is_better(each, best):
            best = each
    return best


define(".max", *_ORDERED_LISTS)(lambda items: _best(items, "max", _follows))
define(".min", *_ORDERED_LISTS)(lambda items: _best(items, "min", lambda a, b: _follows(b, a)))


@define(".indexOf", "list, any")
def _index(items: list[Any], wanted: Any) -> int:
    return next((at for at, each in enumerate(items) if equal(each, wanted)), -1)


@define(".lastIndexOf", "list, any")
def _last_index(items: list[Any], wanted: Any) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if equal(items[at], wanted)), -1)


@define(".includes", "any, any")
def _includes(target: Any, wanted: Any) -> bool:
    if type(target) is list:
        return any(equal(each, wanted) for each in target)
    return equal(target, wanted) is True


@define("sets.contains", "list, list")
def _contains(items: list[Any], part: list[Any]) -> bool:
    sized(len(items) * len(part), _MOST_COMPARISONS)
    return all(contains(items, each) for each in part)


@define("sets.equivalent", "list, list")
def _equivalent(items: list[Any], others: list[Any]) -> bool:
    return _contains(items, others) and _contains(others, items)


@define("sets.intersects", "list, list")
def _intersects(items: list[Any], others: list[Any]) -> bool:
    sized(len(items) * len(others), _MOST_COMPARISONS)
    return any(contains(others, each) for each in items)
