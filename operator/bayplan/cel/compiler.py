"""Turns the tree of an expression into code, and says what of a device it reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from bayplan.cel import closures, macros
from bayplan.cel import list_library as _lists
from bayplan.cel import text_library as _texts
from bayplan.cel.closures import Constant
from bayplan.cel.errors import CompileError, EvaluationError, StoppedError
from bayplan.cel.functions import DEFINITIONS, NAMESPACES, Definition
from bayplan.cel.lexer import problem_at
from bayplan.cel.library import CONVERSIONS
from bayplan.cel.macro_calls import MACROS
from bayplan.cel.macros import FIRST_VARIABLE, Code
from bayplan.cel.syntax import Call, Index, ListOf, Literal, Name, Node, Select
from bayplan.cel.values import Kind, Option

Path = tuple[str, ...]

# Importing them is what declares their functions.
LIBRARIES: Final = (_lists, _texts)

_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "allow_multiple_allocations",
}
_SECTIONS: Final = ("attributes", "capacity")
_TYPES: Final = {
    name: Kind(name)
    for name in ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"]
}
_REFUSED: Final = frozenset(
    [
        *("url", "isURL", "getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"),
        *("ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
        *("isLinkLocalUnicast", "isGlobalUnicast", "cidr", "isCIDR", "containsIP", "containsCIDR", "masked"),
        *("prefixLength", "format", "format.named", "validate", "duration", "timestamp", "getFullYear", "getMonth"),
        *("getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds"),
        "getMilliseconds",
    ]
)


class Compiler:
    """Compiles one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, list[int]] = {}
        self._nodes = 0
        self._loops = 0
        self.size = FIRST_VARIABLE
        self._paths: set[Path] = set()

    def code(self, node: Node) -> Code:  # noqa: PLR0911 - one for each kind of node
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
            case Select():
                return self.select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case ListOf():
                return closures.listed(tuple(map(self.code, node.items)), node.optional)
        entries = tuple((self.code(key), self.code(value)) for key, value in node.entries)
        return closures.mapping(entries, node.optional)

    def read(self) -> frozenset[Path] | None:
        """Return the paths of what the code reads of a device, or None when that may be anything."""
        whole = any(path[0] in _SECTIONS and len(path) < 3 for path in self._paths)
        return None if whole else frozenset(self._paths)

    def _name(self, node: Name) -> Code:
        if (places := self._places.get(node.name)) is not None:
            return macros.variable(places[-1])
        if node.name in _TYPES:
            return Constant(_TYPES[node.name])
        if node.name == "device":
            raise problem_at(self._text, node.at, "bayplan reads fields of device only, never device itself")
        raise problem_at(self._text, node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _is_device(self, node: Node) -> bool:
        return isinstance(node, Name) and node.name == "device" and "device" not in self._places

    def select(self, node: Select) -> Code:
        """Return the code of `node`, which may be a test for has()."""
        if self._is_device(node.target):
            field = _FIELDS.get(node.field)
            if field is None:
                raise problem_at(self._text, node.at, f"undefined field '{node.field}'")
            self._paths.add((node.field,))
            if node.test:
                return Constant(True)
            read = closures.field_of_device(field)
            return (lambda frame: Option(read(frame))) if node.optional else read
        return self._member(node.target, Literal(node.field, node.at), optional=node.optional, test=node.test)

    def _index(self, node: Index) -> Code:
        if self._is_device(node.target):
            raise problem_at(
                self._text, node.at, "found no matching overload for '_[_]' applied to '(kubernetes.DRADevice, string)'"
            )
        return self._member(node.target, node.key, optional=node.optional)

    def _member(self, target: Node, key: Node, *, optional: bool, test: bool = False) -> Code:
        path = self._path(target)
        identifier = _text_of(key)
        if path is not None and identifier is not None:
            self._paths.add((*path, identifier))
            domain = path[1:]
            if domain and not optional and not test:
                return closures.attribute(path[0], domain[0], identifier)
            read = self._of_path(path)
        else:
            read = self.code(target)
        return closures.member_of(read, self.code(key), optional=optional, test=test)

    def _path(self, node: Node) -> Path | None:
        """The section of the device, and the domain if it is given, that `node` stands for."""
        if isinstance(node, Select) and not node.optional and not node.test:
            if self._is_device(node.target) and node.field in _SECTIONS:
                return (node.field,)
            outer, key = self._path(node.target), node.field
        elif isinstance(node, Index) and not node.optional:
            outer, key = self._path(node.target), _text_of(node.key) or ""
        else:
            return None
        return (*outer, key) if outer is not None and len(outer) == 1 and key else None

    def _of_path(self, path: Path) -> Code:
        read = closures.field_of_device(path[0])
        return closures.member_of(read, Constant(path[1]), optional=False) if len(path) > 1 else read

    def _call(self, node: Call) -> Code:
        if node.name[0] in "_!-":
            operator = self._operator(node)
            if operator is not None:
                return operator
        target, name = node.target, node.name
        if isinstance(target, Name) and target.name in NAMESPACES and target.name not in self._places:
            name = f"{target.name}.{name}"
            target = None
        macro = MACROS.get((name, target is not None, len(node.args)))
        if macro is not None:
            return macro(self, node)
        arguments = (*((target,) if target is not None else ()), *node.args)
        definition = DEFINITIONS.get((name, target is not None, len(arguments)))
        if definition is None:
            raise self._undeclared(node, name)
        codes = tuple(map(self.code, arguments))
        if name in ("matches", "find", "findAll") and isinstance(codes[1], Constant):
            self._check_regex(node, name, codes[1].value)
            definition = replace(definition, complaint="", by_types={})
        return self._worked_out(definition, codes) or closures.call(definition, codes, repeated=self._loops > 0)

    def _worked_out(self, definition: Definition, codes: tuple[Code, ...]) -> Code | None:
        """What a call of constants gives, unless that takes too long."""
        constants = [each for each in codes if isinstance(each, Constant)]
        if not codes or len(constants) < len(codes):
            return None
        values = [each.value for each in constants]
        converted = definition.name in CONVERSIONS and all(each.literal for each in constants)
        try:
            return Constant(definition.chosen(*values)(*values), literal=converted)
        except StoppedError:
            return None
        except EvaluationError as error:
            if converted:
                raise CompileError(f"program instantiation failed: {error}") from None
            return closures.failure(str(error))

    def _check_regex(self, node: Call, name: str, pattern: Any) -> None:
        try:
            _texts.compiled(pattern)
        except EvaluationError as error:
            if name == "matches":
                raise problem_at(self._text, node.at, "invalid matches argument") from None
            raise CompileError(f"program instantiation failed: {error}") from None

    def _undeclared(self, node: Call, name: str) -> CompileError:
        if name in _REFUSED:
            return problem_at(self._text, node.at, f"bayplan has no function '{name}' in device selectors")
        known = any(each == name for each, _, _ in DEFINITIONS)
        what = (
            f"found no matching overload for '{name}'"
            if known
            else f"undeclared reference to '{name}' (in container '')"
        )
        return problem_at(self._text, node.at, what)

    def _operator(self, node: Call) -> Code | None:
        name = node.name
        if name not in _OPERATORS:
            return None
        codes = tuple(map(self.code, node.args))
        return _OPERATORS[name](name, codes)

    @contextmanager
    def variables(self, *names: str) -> Iterator[tuple[int, ...]]:
        """Give names a meaning, each its place, until the end of the block."""
        places = []
        for name in names:
            places.append(self.size)
            self._places.setdefault(name, []).append(self.size)
            self.size += 1
        yield tuple(places)
        for name in names:
            self._places[name].pop()
            if not self._places[name]:
                del self._places[name]

    def loop(self, node: Call, names: int) -> tuple[macros.Loop, list[Code], tuple[int, ...]]:
        """Return the loop over the target, the code of the arguments after `names` variables, and their places."""
        assert node.target is not None
        source = self.code(node.target)
        variables = [self.variable_name(each) for each in node.args[:names]]
        before = self._nodes
        self._loops += 1
        with self.variables(*variables) as places:
            bodies = [self.code(each) for each in node.args[names:]]
        self._loops -= 1
        return macros.loop(source, places, self._nodes - before + 1), bodies, places

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


_OPERATORS: Final[dict[str, Callable[[str, tuple[Code, ...]], Code]]] = {
    "_&&_": lambda _, codes: macros.logic(lambda _: codes, decisive=False),
    "_||_": lambda _, codes: macros.logic(lambda _: codes, decisive=True),
    "_?_:_": lambda _, codes: closures.choice(*codes),
    "!_": lambda _, codes: closures.complement(*codes),
    "-_": lambda _, codes: closures.opposite(*codes),
    "_==_": lambda _, codes: closures.equality(*codes, negative=False),
    "_!=_": lambda _, codes: closures.equality(*codes, negative=True),
    "_in_": lambda _, codes: closures.membership(*codes),
}
_OPERATORS.update(dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), lambda name, codes: closures.comparison(name, *codes)))
_OPERATORS.update(
    dict.fromkeys(("_+_", "_-_", "_*_", "_/_", "_%_"), lambda name, codes: closures.arithmetic(name, *codes))
)
