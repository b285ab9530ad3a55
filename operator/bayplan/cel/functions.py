"""The functions of expressions, operators included, and which one a call means by the types of its arguments."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeVar

from bayplan.cel.errors import EvaluationError, no_overload
from bayplan.cel.kubernetes_types import Quantity, Semver
from bayplan.cel.values import KINDS, Option, kind_of

Function: TypeAlias = Callable[..., Any]
Run = TypeVar("Run", bound=Function)

_WORDS: Final = {**KINDS, Quantity: "quantity", Semver: "semver", Option: "optional"}
"""What signatures call the types of values."""


@dataclass(slots=True)
class Definition:
    """All ways to call a function of one name with a number of arguments, by its signatures.

    `complaint` is what calls get whose arguments fit none. Upstream says it with their types, with the type of the
    target before the name, with the name only where the first argument is of no type that stands first, or never.
    """

    name: str
    complaint: str
    overloads: dict[tuple[str, ...], Function] = field(default_factory=dict)
    by_types: dict[tuple[type, ...], Function] = field(default_factory=dict)
    """What was chosen before, unless elements of lists have a part in that."""
    deep: bool = False

    def chosen(self, values: list[Any]) -> Function:
        """Return what does the work for these arguments.

        Raises:
            EvaluationError: Nothing does.
        """
        for words, run in self.overloads.items():
            if all(map(_accepts, words, values)):
                if not self.deep:
                    self.by_types[tuple(map(type, values))] = run
                return run
        raise self._refusal(values)

    def only(self, words: tuple[str, ...]) -> "Definition":
        """Return the definition with one of its signatures alone."""
        return replace(self, overloads={words: self.overloads[words]}, by_types={})

    def _refusal(self, values: list[Any]) -> EvaluationError:
        first, *others = map(kind_of, values)
        if self.complaint == "types":
            return no_overload(f"{self.name}({', '.join((first, *others))})")
        if self.complaint == "target":
            return no_overload(f"{first}.{self.name}({', '.join(others)})")
        named = self.complaint == "name" and first not in {"string", *(words[0] for words in self.overloads)}
        return no_overload(self.name if named else "")


DEFINITIONS: Final[dict[tuple[str, int], Definition]] = {}
"""By name, which begins with a dot for a member, and the number of arguments including the target."""


def define(name: str, *signatures: str, complaint: str = "types") -> Callable[[Run], Run]:
    """Declare a function for arguments such as `int, list(string)`, in which any value is `any`."""

    def declared(run: Run) -> Run:
        for signature in signatures:
            words = tuple(signature.split(", ")) if signature else ()
            fresh = Definition(name.removeprefix("."), complaint)
            definition = DEFINITIONS.setdefault((name, len(words)), fresh)
            definition.overloads[words] = run
            definition.deep |= "(" in signature
        return run

    return declared


def apply(name: str, *values: Any) -> Any:
    """Return what the function gives.

    Raises:
        EvaluationError: It does not take these, or has no value for them.
    """
    definition = DEFINITIONS[name, len(values)]
    return (definition.by_types.get(tuple(map(type, values))) or definition.chosen([*values]))(*values)


def _accepts(word: str, value: Any) -> bool:
    """Of a list only the first element is looked at, as upstream does."""
    outer, _, inner = word.partition("(")
    if outer == "any":
        return True
    if _WORDS[type(value)] != outer:
        return False
    return not inner or not value or _WORDS[type(value[0])] == inner[:-1]
