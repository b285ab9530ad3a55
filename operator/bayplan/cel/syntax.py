"""The tree of an expression: nodes without behaviour, each with the place in the text that errors about it name."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, or what was worked out of constants."""

    value: object
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable or a type."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """`target.field`, `target.?field` or, as `test`, has(target.field)."""

    target: "Node"
    field: str
    at: int
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`target[key]` or `target[?key]`."""

    target: "Node"
    key: "Node"
    at: int
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`name(args)`, `target.name(args)`, or an operator, whose name is as upstream's `_+_`."""

    name: str
    args: tuple["Node", ...]
    at: int
    target: "Node | None" = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, ?b]`; `optional` has the places of elements with a question mark."""

    items: tuple["Node", ...]
    optional: frozenset[int]
    at: int


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{k: v, ?k: v}`; `optional` has the places of entries with a question mark."""

    entries: tuple[tuple["Node", "Node"], ...]
    optional: frozenset[int]
    at: int


Node: TypeAlias = Literal | Name | Select | Index | Call | ListOf | MapOf
