"""The macros: what each call of one is compiled to."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol

from bayplan.cel import macros
from bayplan.cel.errors import CompileError
from bayplan.cel.macros import Code
from bayplan.cel.syntax import Call, Name, Node, Select


class Scope(Protocol):
    """What macros need of the compiler: see there."""

    def code(self, node: Node) -> Code:
        """Return the code of `node`."""

    def select(self, node: Select) -> Code:
        """Return the code of a member or, for has(), its test."""

    def variables(self, *names: str) -> AbstractContextManager[tuple[int, ...]]:
        """Give names a meaning."""

    def variable_name(self, node: Node) -> str:
        """Return the name that an argument is."""

    def loop(self, node: Call, names: int) -> tuple[macros.Loop, list[Code], tuple[int, ...]]:
        """Return the loop over the target, the code of the other arguments, and the places of the variables."""

    def problem(self, at: int, message: str) -> CompileError:
        """Return the error about what stands at `at`."""


_QUANTIFIERS: Final = {"all": False, "exists": True}


def _has(scope: Scope, node: Call) -> Code:
    (argument,) = node.args
    if not isinstance(argument, Select) or argument.optional:
        raise scope.problem(argument.at, "invalid argument to has() macro")
    return scope.select(Select(argument.target, argument.field, argument.at, test=True))


def _quantifier(scope: Scope, node: Call) -> Code:
    elements, (body,), _ = scope.loop(node, len(node.args) - 1)
    return macros.logic(lambda frame: (body for _ in elements(frame)), decisive=_QUANTIFIERS[node.name])


def _exists_one(scope: Scope, node: Call) -> Code:
    elements, (condition,), places = scope.loop(node, len(node.args) - 1)
    found = macros.accumulation(elements, condition, macros.variable(places[0]), macros.Listed)
    return lambda frame: len(found(frame)) == 1


def _filter(scope: Scope, node: Call) -> Code:
    elements, (condition,), (place,) = scope.loop(node, 1)
    return macros.accumulation(elements, condition, macros.variable(place), macros.Listed)


def _transform(scope: Scope, node: Call) -> Code:
    elements, bodies, places = scope.loop(node, 1 if node.name == "map" else 2)
    condition = bodies[0] if len(bodies) > 1 else None
    key = places[0] if node.name == "transformMap" else None
    made: Callable[[], Any] = macros.Listed
    if node.name.startswith("transformMap"):
        made = partial(macros.Mapped, key)
    return macros.accumulation(elements, condition, bodies[-1], made)


def _sort_by(scope: Scope, node: Call) -> Code:
    assert node.target is not None
    with scope.variables(scope.variable_name(node.args[0])) as (whole,):
        elements, (body,), _ = scope.loop(
            Call(node.name, node.args, node.at, Name(scope.variable_name(node.args[0]), node.at)), 1
        )
    return macros.sort_by(scope.code(node.target), whole, elements, body)


def _bind(scope: Scope, node: Call) -> Code:
    name, value, body = node.args
    code = scope.code(value)
    with scope.variables(scope.variable_name(name)) as (place,):
        return macros.bound(place, code, scope.code(body))


def _opt_map(scope: Scope, node: Call) -> Code:
    assert node.target is not None
    option = scope.code(node.target)
    with scope.variables(scope.variable_name(node.args[0])) as (place,):
        return macros.mapped_option(option, place, scope.code(node.args[1]), flat=node.name == "optFlatMap")


def _alternative(scope: Scope, node: Call) -> Code:
    assert node.target is not None
    return macros.alternative(scope.code(node.target), scope.code(node.args[0]), unwrapped=node.name == "orValue")


Macro = Callable[[Scope, Call], Code]

MACROS: Final[dict[tuple[str, bool, int], Macro]] = {
    ("has", False, 1): _has,
    ("cel.bind", False, 3): _bind,
    ("sortBy", True, 2): _sort_by,
    ("filter", True, 2): _filter,
    ("or", True, 1): _alternative,
    ("orValue", True, 1): _alternative,
    ("optMap", True, 2): _opt_map,
    ("optFlatMap", True, 2): _opt_map,
    **{(name, True, count): _quantifier for name in _QUANTIFIERS for count in (2, 3)},
    ("exists_one", True, 2): _exists_one,
    **{(name, True, 3): _exists_one for name in ("exists_one", "existsOne")},
    **{("map", True, count): _transform for count in (2, 3)},
    **{
        (name, True, count): _transform
        for name in ("transformList", "transformMap", "transformMapEntry")
        for count in (3, 4)
    },
}
"""By name, whether it is a member, and the number of arguments without the target."""
