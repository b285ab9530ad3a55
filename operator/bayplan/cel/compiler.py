"""Turns the tree of an expression into code, and says what of a device it reads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from bayplan.cel import closures, list_library, operators, text_library
from bayplan.cel.closures import FIRST_VARIABLE, Code, Constant, Frame
from bayplan.cel.errors import CompileError, EvaluationError, StoppedError
from bayplan.cel.functions import DEFINITIONS, Definition
from bayplan.cel.lexer import problem_at
from bayplan.cel.library import CONVERSIONS
from bayplan.cel.macros import ANY_NUMBER, MACROS
from bayplan.cel.syntax import Call, Literal, Member, Name, Node
from bayplan.cel.values import KINDS, Kind, kind_of

Path = tuple[str, ...]

# Importing them is what declares their functions.
LIBRARIES: Final = (list_library, operators, text_library)

_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "allow_multiple_allocations",
}
_SECTIONS: Final = ("attributes", "capacity")
_TYPES: Final = {name: Kind(name) for name in KINDS.values()}
_NAMESPACES: Final = frozenset(["cel", "lists", "optional", "sets", "strings"])
"""What looks like the target of a call, but is the beginning of a function's name."""
_OF_PATTERNS: Final = ("matches", "find", "findAll")

_ANY: Final = "any"
"""What has no type before it runs, such as an attribute."""
_OPEN: Final = "open"
"""A list of elements that may still turn out to be of any one type."""
_KEEPING: Final = ((".slice", 2), (".distinct", 0), (".reverse", 0), (".flatten", 0), (".sort", 0), (".sortBy", 2))
"""What gives elements of the list that it is called on, with the number of its arguments."""


class Compiler:
    """Compiles one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, int] = {}
        self._nodes = 0
        self.in_loop = False
        """Whether what is compiled now may be worked out more than once."""
        self.size = FIRST_VARIABLE
        self._paths: list[Path] = []

    def code(self, node: Node) -> Code:
        """Return the code of `node`.

        Raises:
            CompileError: It means nothing.
        """
        self._nodes += 1
        match node:
            case Literal():
                return Constant(node.value)
            case Name():
                return self._name(node)
            case Member():
                return self.member(node)
        return self._call(node)

    def codes(self, nodes: tuple[Node, ...]) -> tuple[Code, ...]:
        """Return the code of each."""
        return tuple(map(self.code, nodes))

    def read(self) -> frozenset[Path] | None:
        """Return the paths of what the code reads of a device, or None when that may be anything."""
        whole = any(path[0] in _SECTIONS and len(path) < 3 for path in self._paths)
        return None if whole else frozenset(self._paths)

    def _name(self, node: Name) -> Code:
        if (place := self._places.get(node.name)) is not None:
            return _variable(place)
        if node.name in _TYPES:
            return Constant(_TYPES[node.name])
        if node.name == "device":
            raise self.problem(node.at, "bayplan reads fields of device only, never device itself")
        raise self.problem(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def member(self, node: Member, *, test: bool = False) -> Code:
        """Return the code of a member, or as `test` of whether it is there.

        Raises:
            CompileError: The device never has it.
        """
        outer, name = self._path(node.target), _text_of(node.key)
        if outer == ():
            if not node.dotted or name not in _FIELDS:
                raise self.problem(node.at, f"undefined field '{name or ''}'")
            self._paths.append((name,))
            return Constant(True) if test else closures.field_of_device(_FIELDS[name], optional=node.optional)
        target = self.code(node.target)
        if outer and name is not None:
            # Of what the target is, no more is read than this.
            self._paths.remove(outer)
            self._paths.append((*outer, name))
            if len(outer) > 1 and not node.optional and not test:
                return closures.attribute(outer[0], outer[1], name)
        return closures.member_of(target, self.code(node.key), optional=node.optional, test=test)

    def _path(self, node: Node) -> Path | None:
        """The device, a section of it, or a domain of that, where `node` stands for one."""
        if isinstance(node, Name):
            return () if node.name == "device" and "device" not in self._places else None
        if not isinstance(node, Member) or node.optional:
            return None
        outer, key = self._path(node.target), _text_of(node.key)
        if outer is None or not key or len(outer) > 1 or (not outer and key not in _SECTIONS):
            return None
        return *outer, key

    def _call(self, node: Call) -> Code:
        name, arguments = node.name, node.args
        if name[0] == "." and isinstance(space := arguments[0], Name) and space.name in _NAMESPACES - set(self._places):
            name, arguments = f"{space.name}{name}", arguments[1:]
        macro = MACROS.get((name, len(arguments))) or MACROS.get((name, ANY_NUMBER))
        if macro is not None:
            return macro(self, Call(name, arguments, node.at))
        definition = DEFINITIONS.get((name, len(arguments)))
        if definition is None:
            raise self._undeclared(node, name.removeprefix("."))
        codes = self.codes(arguments)
        if definition.deep:
            definition = _narrowed(definition, arguments[0])
        if definition.name in _OF_PATTERNS and isinstance(pattern := codes[1], Constant) and pattern.literal:
            self._check_pattern(node, definition, pattern)
            definition = replace(definition, complaint="", by_types={})
        return self._worked_out(definition, codes) or closures.call(definition, codes, repeated=self.in_loop)

    def _worked_out(self, definition: Definition, codes: tuple[Code, ...]) -> Code | None:
        """What a call of constants gives, if anything, and if that does not take too long."""
        constants = [each for each in codes if isinstance(each, Constant)]
        if not codes or len(constants) < len(codes):
            return None
        values = [each.value for each in constants]
        converted = definition.name in CONVERSIONS and all(each.literal for each in constants)
        try:
            return Constant(definition.chosen(values)(*values), literal=converted)
        except (EvaluationError, StoppedError) as error:
            if converted:
                raise CompileError(f"program instantiation failed: {error}") from None
            return None

    def _check_pattern(self, node: Call, definition: Definition, pattern: Constant) -> None:
        try:
            text_library.compiled(pattern.value)
        except EvaluationError as error:
            if definition.name == "matches":
                raise self.problem(node.at, "invalid matches argument") from None
            raise CompileError(f"program instantiation failed: {error}") from None

    def _undeclared(self, node: Call, name: str) -> CompileError:
        if any(known.removeprefix(".") == name for known, _ in (*DEFINITIONS, *MACROS)):
            return self.problem(node.at, f"found no matching overload for '{name}'")
        return self.problem(node.at, f"bayplan has no function '{name}' in device selectors")

    @contextmanager
    def variables(self, *names: str) -> Iterator[tuple[int, ...]]:
        """Give names a meaning, each its place, until the end of the block."""
        places = tuple(range(self.size, self.size + len(names)))
        self.size += len(names)
        outer, self._places = self._places, self._places | dict(zip(names, places, strict=True))
        yield places
        self._places = outer

    def loop(self, node: Call, names: int) -> tuple[closures.Loop, tuple[Code, ...], tuple[int, ...]]:
        """Return the loop over the target, the code of what follows so many variables, and the places of these."""
        source = self.code(node.args[0])
        before, outside = self._nodes, self.in_loop
        self.in_loop = True
        with self.variables(*map(self.variable_name, node.args[1 : names + 1])) as places:
            bodies = self.codes(node.args[names + 1 :])
        self.in_loop = outside
        return closures.loop(source, places, self._nodes - before + 1), bodies, places

    def variable_name(self, node: Node) -> str:
        """Return the name that a macro's argument is."""
        if isinstance(node, Name):
            return node.name
        raise self.problem(node.at, "argument must be a simple name")

    def problem(self, at: int, message: str) -> CompileError:
        """Return the error about what stands at `at`."""
        return problem_at(self._text, at, message)


def _text_of(node: Node) -> str | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def _variable(place: int) -> Code:
    def run(frame: Frame) -> object:
        value = frame[place]
        if isinstance(value, EvaluationError):
            raise value
        return value

    return run


def _narrowed(definition: Definition, target: Node) -> Definition:
    """Return the definition with the one signature that upstream has chosen for this target by its type, if it has.

    Upstream chooses a function by the types of lists before it runs anything. It takes a list of which nothing says the
    type for one of the first type that a function has. All else is chosen by the values themselves.
    """
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
