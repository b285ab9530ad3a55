"""What the macros do: loops over lists and maps, and names for values."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from bayplan.cel.errors import EvaluationError, LimitExceededError, StoppedError, no_overload
from bayplan.cel.list_library import sorted_by
from bayplan.cel.values import MAPS, NONE, NOTHING, Option, key_of, keys, kind_of, shown, sized

Frame: TypeAlias = list[Any]
"""The device, the steps that are left, then the variables, each in its place."""

Code: TypeAlias = Callable[[Frame], Any]
"""Works out a value."""

Loop: TypeAlias = Callable[[Frame], Iterator[None]]
"""Sets the variables to one element after the other."""

DEVICE, STEPS, FIRST_VARIABLE = range(3)

GO_NAMES: Final = {
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
}


def loop(source: Code, places: tuple[int, ...], weight: int) -> Loop:
    """Return the loop over what `source` gives, with one variable or two, that takes `weight` steps an element."""
    first, second = places[0], places[-1]
    two = len(places) > 1

    def run(frame: Frame) -> Iterator[None]:
        value = source(frame)
        for key, element in _elements(value, two=two):
            frame[STEPS] -= weight
            if frame[STEPS] < 0:
                raise LimitExceededError
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
    name = GO_NAMES[kind_of(value)]
    raise EvaluationError(
        f"unsupported comprehension range type: {name}" if two else f"got '{name}', expected iterable type"
    )


def logic(terms: Callable[[Frame], Iterable[Code]], *, decisive: bool) -> Code:
    """Return || or exists(), which one true term decides, or && or all(), which one false one does."""

    def run(frame: Frame) -> bool:
        problem: EvaluationError | None = None
        for term in terms(frame):
            try:
                value = term(frame)
            except StoppedError:
                raise
            except EvaluationError as error:
                problem = problem or error
                continue
            if value is decisive:
                return bool(value)
            if type(value) is not bool:
                problem = problem or no_overload()
        if problem is not None:
            raise problem
        return not decisive

    return run


def accumulation(elements: Loop, condition: Code | None, body: Code, collected: Callable[[], Any]) -> Code:
    """Return the loop that collects what `body` gives where `condition` holds.

    `collected` makes the empty result: see `Listed` and `Mapped`. An error ends nothing: upstream's is the
    last of the condition, or the first of the body.
    """

    def run(frame: Frame) -> Any:
        result = collected()
        problem: EvaluationError | None = None
        for _ in elements(frame):
            try:
                chosen = True if condition is None else condition(frame)
                if type(chosen) is not bool:
                    raise no_overload()
            except StoppedError:
                raise
            except EvaluationError as error:
                problem = error
                continue
            if not chosen or problem is not None:
                continue
            try:
                result.take(body(frame), frame)
            except StoppedError:
                raise
            except EvaluationError as error:
                problem = error
        if problem is not None:
            raise problem
        return result.value()

    return run


class Listed:
    """A list of what a loop gives: map(), filter(), transformList()."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def take(self, item: Any, _frame: Frame) -> None:
        """Add an element."""
        self._items.append(item)

    def value(self) -> list[Any]:
        """Return the list."""
        sized(len(self._items))
        return self._items


class Mapped:
    """A map of what a loop gives: by its key for transformMap(), all its entries for transformMapEntry()."""

    def __init__(self, key_place: int | None) -> None:
        self._key_place = key_place
        self._entries: dict[Any, Any] = {}

    def take(self, item: Any, frame: Frame) -> None:
        """Add an entry, or those of a map."""
        if self._key_place is not None:
            self._insert(key_of(frame[self._key_place]), item)
            return
        if type(item) not in MAPS:
            raise no_overload(f"cel.@mapInsert(map, {kind_of(item)})")
        for key, value in item.items():
            self._insert(key, value)

    def _insert(self, key: Any, value: Any) -> None:
        if key in self._entries:
            raise EvaluationError(f"insert failed: key {shown(key[0] if type(key) is tuple else key)} already exists")
        self._entries[key] = value

    def value(self) -> dict[Any, Any]:
        """Return the map."""
        return self._entries


def sort_by(source: Code, place: int, elements: Loop, body: Code) -> Code:
    """Return sortBy(): the list, kept in `place` for `elements`, in the order of what `body` gives for each."""
    ordered = accumulation(elements, None, body, Listed)

    def run(frame: Frame) -> Any:
        items = frame[place] = source(frame)
        keys_of_items = ordered(frame)
        if type(items) is not list:
            raise no_overload("@sortByAssociatedKeys")
        return sorted_by(items, keys_of_items)

    return run


def bound(place: int, value: Code, body: Code) -> Code:
    """Return cel.bind(): `body` with a name for `value`, whose error is one only where the name is read."""

    def run(frame: Frame) -> Any:
        try:
            frame[place] = value(frame)
        except StoppedError:
            raise
        except EvaluationError as error:
            frame[place] = error
        return body(frame)

    return run


def variable(place: int) -> Code:
    """Return what reads a variable."""

    def run(frame: Frame) -> Any:
        value = frame[place]
        if isinstance(value, EvaluationError):
            raise value
        return value

    return run


def mapped_option(option: Code, place: int, body: Code, *, flat: bool) -> Code:
    """Return optMap(), or with `flat` optFlatMap(): `body` of the value if there is one."""

    def run(frame: Frame) -> Any:
        value = option(frame)
        if type(value) is not Option:
            raise no_overload(f"hasValue({kind_of(value)})")
        if value.value is NOTHING:
            return NONE
        frame[place] = value.value
        result = body(frame)
        return result if flat else Option(result)

    return run


def alternative(option: Code, other: Code, *, unwrapped: bool) -> Code:
    """Return or(), or with `unwrapped` orValue(): `other` is worked out only if it is needed."""

    def run(frame: Frame) -> Any:
        value = option(frame)
        if type(value) is not Option:
            raise no_overload()
        if value.value is NOTHING:
            return other(frame)
        return value.value if unwrapped else value

    return run
