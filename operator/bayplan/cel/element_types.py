"""The types of lists, where upstream chooses a function by them before it runs anything.

It takes a list of which nothing says the type for one of the first type that a function has. All else is chosen by the
values themselves.
"""

from collections.abc import Sequence
from typing import Final

from bayplan.cel.functions import Definition
from bayplan.cel.syntax import Call, Literal, Member, Name, Node
from bayplan.cel.values import kind_of

_ANY: Final = "any"
"""What has no type before it runs, such as an attribute."""
_OPEN: Final = "open"
"""A list of elements that may still turn out to be of any one type."""
_KEEPING: Final = ((".slice", 2), (".distinct", 0), (".reverse", 0), (".flatten", 0), (".sort", 0), (".sortBy", 2))
"""What gives elements of the list that it is called on, with the number of its arguments."""


def narrowed(definition: Definition, target: Node) -> Definition:
    """Return the definition with the one signature that upstream has chosen for this target by its type, if it has."""
    elements = _elements(target)
    if elements in (None, _ANY):
        return definition
    chosen = [each for each in definition.overloads if elements in (_OPEN, each[0][len("list(") : -1])][:1]
    return definition.only(chosen[0]) if chosen else definition


def _elements(node: Node) -> str | None:
    """The type of the elements of the list that `node` is, `_OPEN`, `_ANY`, or None where the values say it."""
    if _is_any(node):
        return _ANY
    match node:
        case Call("[]", ()):
            return _OPEN
        case Call("[]", (Literal() as first, *_)):
            return kind_of(first.value)
        case Call("_+_" | "_?_:_", (*_, one, other)):
            found = _elements(one), _elements(other)
            return _ANY if node.name == "_?_:_" and _ANY in found else _joined(*found)
        case Call(name, (target, *rest)) if (name, len(rest)) in _KEEPING:
            return _kept(name, _elements(target), rest)
    return None


def _kept(name: str, elements: str | None, arguments: Sequence[Node]) -> str | None:
    if name == ".sort":
        return "int" if elements == _OPEN else elements
    return _OPEN if elements == _ANY and (name != ".sortBy" or _has_type(arguments[1])) else elements


def _joined(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    known = {left, right} - {_ANY, _OPEN}
    return min(known) if known else _OPEN if _OPEN in (left, right) else _ANY


def _has_type(node: Node) -> bool:
    """Whether upstream knows the type of an expression over the elements of what has none."""
    match node:
        case Call(("_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "_?_:_") as name, arguments):
            return any(map(_has_type, arguments[name == "_?_:_" :]))
        case Call(name):
            return name not in ("dyn", ".value", ".orValue")
    return isinstance(node, Literal)


def _is_any(node: Node) -> bool:
    if isinstance(node, Call) and node.name in ("dyn", ".orValue"):
        return node.name == "dyn" or (isinstance(node.args[0], Member) and _is_any(node.args[0]))
    dotted = False
    while isinstance(node, Member):
        dotted |= node.dotted
        node = node.target
    return dotted and isinstance(node, Name)
