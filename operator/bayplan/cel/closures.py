"""Closures that work out values: what operators, members, literals and calls become."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from bayplan.cel.errors import EvaluationError, LimitExceededError, StoppedError, no_overload
from bayplan.cel.functions import Definition
from bayplan.cel.macros import DEVICE, GO_NAMES, STEPS, Code, Frame
from bayplan.cel.numbers import Uint
from bayplan.cel.operators import calculate, negated
from bayplan.cel.semver import Semver
from bayplan.cel.values import (
    NOTHING,
    Option,
    compared,
    contains,
    equal,
    has_member,
    key_of,
    kind_of,
    member,
    optional_member,
)


class Constant:
    """The code of a value that is always the same.

    `literal` says that upstream holds it for a constant, too: a literal, or what a conversion makes of one.
    """

    __slots__ = ("literal", "value")

    def __init__(self, value: Any, *, literal: bool = True) -> None:
        self.value = value
        self.literal = literal

    def __call__(self, _frame: Frame) -> Any:
        """Return the value."""
        return self.value


def failure(message: str) -> Code:
    """Return code that has no value."""

    def run(_frame: Frame) -> Any:
        raise EvaluationError(message)

    return run


def field_of_device(name: str) -> Code:
    """Return what reads a field of the device."""
    read = attrgetter(name)
    return lambda frame: read(frame[DEVICE])


def attribute(section: str, domain: str, identifier: str) -> Code:
    """Return what reads one attribute or capacity of the device."""
    read = attrgetter(section)

    def run(frame: Frame) -> Any:
        value = read(frame[DEVICE])[domain].get(identifier, NOTHING)
        if value is NOTHING:
            raise EvaluationError(f"no such key: {identifier}")
        return value

    return run


def member_of(target: Code, key: Code, *, optional: bool, test: bool = False) -> Code:
    """Return what reads `target[key]`; as `test`, whether it is there."""
    read = has_member if test else optional_member if optional else member
    if isinstance(key, Constant):
        constant = key.value
        return lambda frame: read(target(frame), constant)

    def run(frame: Frame) -> Any:
        value = target(frame)
        found = key(frame)
        if type(found) not in _KEYS:
            raise EvaluationError(f"invalid qualifier type: {GO_NAMES[kind_of(found)]}")
        return read(value, found)

    return run


_KEYS: Final = frozenset((bool, int, Uint, float, str))


def equality(left: Code, right: Code, *, negative: bool) -> Code:
    """Return == or !=. Without an answer the one is an error and the other true."""

    def run(frame: Frame) -> bool:
        same = equal(left(frame), right(frame))
        if negative:
            return same is not True
        if same is None:
            raise no_overload()
        return same

    return run


_ORDERS: Final[dict[str, Callable[[int], bool]]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}


def comparison(name: str, left: Code, right: Code) -> Code:
    """Return < <= > or >=."""
    verdict = _ORDERS[name]

    def run(frame: Frame) -> bool:
        first, second = left(frame), right(frame)
        try:
            return verdict(compared(first, second))
        except StoppedError:
            raise
        except EvaluationError as error:
            # A value of a kind without any order is told apart from one beside a value of another kind.
            if kind_of(first) in _UNORDERED and str(error) == "no such overload":
                raise no_overload(name) from None
            raise

    return run


_UNORDERED: Final = frozenset(
    ("list", "map", "null_type", "type", "optional_type", "kubernetes.Quantity", "kubernetes.Semver")
)


_HASHED: Final = frozenset((bool, int, Uint, float, str, type(None)))


def membership(value: Code, container: Code) -> Code:
    """Return `in`."""
    constant = container.value if isinstance(container, Constant) and container.literal else None
    if constant == []:
        return Constant(False, literal=False)
    if type(constant) is list and all(type(each) in _HASHED for each in constant):

        def one_of(frame: Frame) -> bool:
            found = value(frame)
            if type(found) is Semver:
                # Upstream looks for it in a hash table, where a version cannot be.
                raise StoppedError("internal error: runtime error: hash of unhashable type cel.Semver")
            return contains(constant, found)

        return one_of

    def run(frame: Frame) -> bool:
        found = value(frame)
        return contains(container(frame), found)

    return run


def choice(condition: Code, chosen: Code, other: Code) -> Code:
    """Return `condition ? chosen : other`."""

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return chosen(frame)
        if value is False:
            return other(frame)
        raise no_overload()

    return run


def complement(value: Code) -> Code:
    """Return `!value`."""

    def run(frame: Frame) -> bool:
        found = value(frame)
        if type(found) is not bool:
            raise no_overload()
        return not found

    return run


def opposite(value: Code) -> Code:
    """Return `-value`."""
    return lambda frame: negated(value(frame))


def arithmetic(name: str, left: Code, right: Code) -> Code:
    """Return + - * / or %. What makes a text or list longer takes steps for its length."""

    def run(frame: Frame) -> Any:
        result = calculate(name, left(frame), right(frame))
        if type(result) is str or type(result) is list:
            spend(frame, len(result))
        return result

    return run


def spend(frame: Frame, length: int) -> None:
    """Take the steps that work on a text or list of `length` is worth.

    Raises:
        LimitExceededError: No so many are left.
    """
    frame[STEPS] -= length // 10
    if frame[STEPS] < 0:
        raise LimitExceededError


def call(definition: Definition, arguments: tuple[Code, ...], *, repeated: bool) -> Code:
    """Return the call of a function; `repeated`, in a loop, takes steps for the length of its first argument."""
    chosen = definition.chosen

    def run(frame: Frame) -> Any:
        values = [each(frame) for each in arguments]
        if repeated and values and type(values[0]) in (str, list):
            spend(frame, len(values[0]))
        return chosen(*values)(*values)

    return run


def listed(items: tuple[Code, ...], optional: frozenset[int]) -> Code:
    """Return a list literal."""
    if not optional and all(isinstance(each, Constant) for each in items):
        constants = [each for each in items if isinstance(each, Constant)]
        return Constant([each.value for each in constants], literal=all(each.literal for each in constants))

    def run(frame: Frame) -> list[Any]:
        found = []
        for place, item in enumerate(items):
            value = item(frame)
            if place in optional:
                value = _given(value, "list element")
            if value is not NOTHING:
                found.append(value)
        return found

    return run


def mapping(entries: tuple[tuple[Code, Code], ...], optional: frozenset[int]) -> Code:
    """Return a map literal."""

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for place, (key_code, value_code) in enumerate(entries):
            key, value = key_of(key_code(frame)), value_code(frame)
            if place in optional:
                value = _given(value, f"entry '{key}'")
            if value is not NOTHING:
                found[key] = value
        return found

    return run


def _given(value: Any, what: str) -> Any:
    """What an optional part of a literal has, or NOTHING."""
    if type(value) is not Option:
        raise EvaluationError(f"cannot initialize optional {what} from non-optional value {value}")
    return value.value
