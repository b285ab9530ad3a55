"""Closures that work out values: what members, calls and loops become."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, TypeAlias

from bayplan.cel.errors import TOO_LONG, EvaluationError, StoppedError
from bayplan.cel.functions import Definition
from bayplan.cel.values import (
    MAPS,
    NOTHING,
    NUMBERS,
    Option,
    has_member,
    keys,
    kind_of,
    member,
    optional_member,
)

Frame: TypeAlias = list[Any]
"""The device, the steps that are left, then the variables, each in its place."""

Code: TypeAlias = Callable[[Frame], Any]
"""Works out a value."""

Loop: TypeAlias = Callable[[Frame], Iterator[None]]
"""Sets the variables to one element after the other."""

DEVICE, STEPS, FIRST_VARIABLE = range(3)

_GO_NAMES: Final = {"list": "*types.baseList", "map": "*types.baseMap", "null_type": "types.Null"}
_GO_NAMES.update({"type": "*types.Type", "optional_type": "*types.Optional"})
_GO_NAMES.update({"kubernetes.Quantity": "cel.Quantity", "kubernetes.Semver": "cel.Semver"})
_KEYS: Final = NUMBERS | {bool, str}
_LONG: Final = frozenset((str, bytes, list))


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


def field_of_device(name: str, *, optional: bool = False) -> Code:
    """Return what reads a field of the device, which always is there."""
    read = attrgetter(name)
    if optional:
        return lambda frame: Option(read(frame[DEVICE]))
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


def member_of(target: Code, key: Code, *, optional: bool, test: bool) -> Code:
    """Return what reads `target[key]`; as `test`, whether it is there."""
    read = has_member if test else optional_member if optional else member

    def run(frame: Frame) -> Any:
        value, found = target(frame), key(frame)
        if type(found) not in _KEYS:
            raise EvaluationError(f"invalid qualifier type: {_go_name(found)}")
        return read(value, found)

    return run


def call(definition: Definition, arguments: tuple[Code, ...], *, repeated: bool) -> Code:
    """Return the call of a function; `repeated`, in a loop, takes steps for the lengths of texts and lists."""
    known, chosen = definition.by_types.get, definition.chosen
    if len(arguments) == 2 and not repeated:
        first, second = arguments

        def binary(frame: Frame) -> Any:
            left, right = first(frame), second(frame)
            return (known((type(left), type(right))) or chosen([left, right]))(left, right)

        return binary

    def run(frame: Frame) -> Any:
        values = [each(frame) for each in arguments]
        if repeated:
            frame[STEPS] -= sum(len(each) // 10 for each in values if type(each) in _LONG)
            if frame[STEPS] < 0:
                raise StoppedError(TOO_LONG)
        return (known(tuple(map(type, values))) or chosen(values))(*values)

    return run


def loop(source: Code, places: tuple[int, ...], weight: int) -> Loop:
    """Return the loop over what `source` gives, with one variable or two, that takes `weight` steps an element."""
    first, second = places[0], places[-1]
    two = len(places) > 1

    def run(frame: Frame) -> Iterator[None]:
        for key, element in _elements(source(frame), two=two):
            frame[STEPS] -= weight
            if frame[STEPS] < 0:
                raise StoppedError(TOO_LONG)
            frame[first] = key
            frame[second] = element
            yield

    return run


def _elements(value: Any, *, two: bool) -> Iterator[tuple[Any, Any]]:
    kind = type(value)
    if kind is list:
        return enumerate(value) if two else zip(value, value, strict=True)
    if kind in MAPS:
        return zip(keys(value), value.values() if two else keys(value), strict=True)
    name = _go_name(value)
    raise EvaluationError(
        f"unsupported comprehension range type: {name}" if two else f"got '{name}', expected iterable type"
    )


def _go_name(value: Any) -> str:
    kind = kind_of(value)
    return _GO_NAMES.get(kind) or f"types.{kind.capitalize()}"
