"""The tree of an expression: nodes without behaviour, each with the place in the text that errors about it name."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: object
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable or a type."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Member:
    """`target[key]`, `target.key` as `dotted`, with a question mark as `optional`."""

    target: "Node"
    key: "Node"
    at: int
    dotted: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call by the name that is called, of which all else is a case.

    A member's name begins with a dot and its target is the first argument: `.size`. An operator has upstream's name:
    `_+_`. A list is `[]` of its elements, a map `{}` of its keys and values in turn, and `?` is before an optional one.
    """

    name: str
    args: tuple["Node", ...]
    at: int


Node: TypeAlias = Literal | Name | Member | Call
