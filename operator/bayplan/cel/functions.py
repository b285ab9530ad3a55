"""The functions of expressions: their signatures, and which one a call means by the types of its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from bayplan.cel.errors import EvaluationError, no_overload
from bayplan.cel.values import KINDS, NOTHING, Option, kind_of

Function: TypeAlias = Callable[..., Any]
Run = TypeVar("Run", bound=Function)

_SHORT: Final = {
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "optional": "optional_type",
}
_ANY: Final = frozenset(["dyn", "A", "B"])
NAMESPACES: Final = frozenset(["cel", "lists", "optional", "sets", "strings"])
"""What looks like the target of a call, but is the beginning of a function's name."""

ORDERED: Final = ["int", "uint", "double", "bool", "string", "bytes"]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of a signature: its name as errors have it, and what it is a list, map or option of."""

    name: str
    inner: tuple["Type", ...] = ()


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function."""

    arguments: tuple[Type, ...]
    result: Type
    run: Function


@dataclass(slots=True)
class Definition:
    """All ways to call a function of one name, as a member or not, with a number of arguments.

    `complaint` is what calls get whose arguments fit none. Upstream says it with their types, with the type of the
    target before the name, with the name only, or neither.
    """

    name: str
    overloads: list[Overload]
    complaint: str
    by_types: dict[tuple[type, ...], Function]
    shallow: bool = True

    def chosen(self, *arguments: Any) -> Function:
        """Return what does the work for these arguments.

        Raises:
            EvaluationError: Nothing does.
        """
        types = tuple(map(type, arguments))
        found = self.by_types.get(types)
        if found is not None:
            return found
        for overload in self.overloads:
            if all(map(accepts, overload.arguments, arguments)):
                if self.shallow:
                    self.by_types[types] = overload.run
                return overload.run
        raise self.refusal(arguments)

    def refusal(self, arguments: tuple[Any, ...]) -> EvaluationError:
        """Return the error for arguments that fit no overload."""
        if self.complaint == "types":
            return no_overload(f"{self.name}({', '.join(map(kind_of, arguments))})")
        if self.complaint == "target":
            return no_overload(f"{kind_of(arguments[0])}.{self.name}({', '.join(map(kind_of, arguments[1:]))})")
        return no_overload(self.name if self.complaint == "name" and type(arguments[0]) is not str else "")


DEFINITIONS: Final[dict[tuple[str, bool, int], Definition]] = {}
"""By name, whether it is a member, and the number of arguments including the target."""


def define(*signatures: str, complaint: str = "types") -> Callable[[Run], Run]:
    """Declare a function under each of `signatures`, such as `string.charAt(int): string`."""

    def declared(run: Run) -> Run:
        for signature in signatures:
            _declare(signature, run, complaint)
        return run

    return declared


def accepts(wanted: Type, value: Any) -> bool:
    """Return whether a value is of a type; of a list only the first element is looked at, as upstream does."""
    if wanted.name in _ANY:
        return True
    if KINDS[type(value)] != wanted.name:
        return False
    if not wanted.inner or not value:
        return True
    if wanted.name == "list":
        return accepts(wanted.inner[0], value[0])
    if isinstance(value, Option) and value.value is not NOTHING:
        return accepts(wanted.inner[0], value.value)
    return True


def type_of(text: str) -> Type:
    """Return the type that is written as `int` or `list(string)`."""
    name, _, inner = text.partition("(")
    parts = _split(inner[:-1]) if inner else []
    return Type(_SHORT.get(name, name), tuple(type_of(each) for each in parts))


def _declare(signature: str, run: Function, complaint: str) -> None:
    left, _, result = signature.partition("): ")
    opening, depth = len(left), 1
    while depth:
        opening -= 1
        depth += (left[opening] == ")") - (left[opening] == "(")
    head, arguments = left[:opening], left[opening + 1 :]
    target, dot, name = head.rpartition(".")
    if target in NAMESPACES:
        target, dot, name = "", "", head
    types = [type_of(each) for each in ([target] if dot else []) + _split(arguments)]
    key = (name, bool(dot), len(types))
    definition = DEFINITIONS.setdefault(key, Definition(name, [], complaint, {}))
    definition.overloads.append(Overload(tuple(types), type_of(result), run))
    definition.shallow &= all(inner.name in _ANY for each in types for inner in each.inner)


def _split(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for at, char in enumerate(f"{text},"):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [each for each in found if each]
