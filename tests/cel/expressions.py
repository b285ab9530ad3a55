"""Random expressions by a grammar: most are of the types the API server lets pass, few have a value for each device."""

import random
from collections.abc import Callable

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'

DEVICES = [
    {
        "attributes": {
            "model": {"string": "A100"},
            "index": {"int": 3},
            "healthy": {"bool": True},
            "driver": {"version": "1.2.3-rc.1"},
            "other.example.com/family": {"string": "ampere"},
            "ports": {"ints": [3, 1, 2]},
            "modes": {"strings": ["mig", "vgpu"]},
        },
        "capacity": {"memory": {"value": "40Gi"}, "cores": {"value": "1500m"}},
        "allowMultipleAllocations": True,
    },
    {
        "attributes": {
            "model": {"string": ""},
            "index": {"int": -9223372036854775808},
            "healthy": {"bool": False},
            "driver": {"version": "10.0.0"},
            "ports": {"ints": []},
            "modes": {"strings": ["b", "a", "b"]},
            "flags": {"bools": [True, False]},
            "supported": {"versions": ["1.0.0", "2.0.0-a"]},
        },
        "capacity": {"memory": {"value": "0"}},
    },
    {
        "attributes": {
            "model": {"int": 7},
            "index": {"string": "12"},
            "driver": {"string": "1.2.3"},
            "modes": {"string": "mig"},
        }
    },
    {},
]

BY_HAND = {
    "attributes": {
        "model": {"string": "A100"},
        "n": {"int": 3},
        "b": {"bool": True},
        "v": {"version": "1.2.3-rc.1"},
        "li": {"ints": [3, 1, 2]},
        "ls": {"strings": ["a", "b"]},
        "lb": {"bools": [True, False]},
        "lv": {"versions": ["2.0.0", "1.0.0-a"]},
    },
    "capacity": {"memory": {"value": "40Gi"}, "cores": {"value": "1500m"}},
    "allowMultipleAllocations": True,
}
"""What the expressions by hand read."""

_TEXTS = ["A100", "", "a", "mig", "1.2.3", "40Gi", "12", "é\\n", "x-1"]
_INTEGERS = ["0", "1", "-1", "3", "9223372036854775807", "-9223372036854775808", "100"]
_DOUBLES = ["0.0", "1.5", "-2.5", "3.0", "1e30"]
_QUANTITIES = [
    "40Gi",
    "1",
    "1500m",
    "0",
    "-1",
    "1.5Gi",
    "1e3",
    "0.0000000001",
    "123456789012345678901",
    "x",
    "1k",
    "2Ei",
]
_VERSIONS = ["1.2.3", "1.2.3-rc.1", "10.0.0", "1.2", "v1.0.0", "1.2.3+b.1", "1.0.0-alpha.2", "01.0.0"]
_PATTERNS = [
    "^A",
    "[0-9]+",
    "a|b",
    "(?i)MIG",
    "x*",
    "^$",
    ".",
    "\\\\d{2}",
    "[^a-z]",
    "(a",
    "\\\\bm",
    "(mig|vgpu)$",
    "a{2,1}",
    "*",
]
_ORDERS = ["<", "<=", ">", ">="]
_NAMES = ["model", "index", "healthy", "driver", "ports", "modes", "flags", "supported", "missing"]


class Grammar:
    """Makes expressions, each time others."""

    def __init__(self, dice: random.Random):
        self._dice = dice
        self._variables: list[tuple[str, str]] = []

    def selector(self) -> str:
        """An expression that is true or false."""
        return self._of("bool", self._dice.choice((1, 2, 2, 3, 4)))

    def _pick(self, *options: str) -> str:
        return self._dice.choice(options)

    def _of(self, kind: str, depth: int) -> str:
        fitting = [name for name, of in self._variables if of in (kind, "dyn")]
        if fitting and self._dice.random() < 0.5:
            return self._dice.choice(fitting)
        if depth <= 0 or self._dice.random() < 0.15:
            return self._leaf(kind)
        makers: dict[str, list[Callable[[int], str]]] = {
            "bool": [self._comparison] * 4
            + [self._logic] * 4
            + [self._test] * 3
            + [self._quantifier] * 3
            + [self._method] * 4,
            "int": [self._arithmetic, self._counted, self._converted],
            "double": [
                lambda d: f"double({self._of('int', d)})",
                lambda d: f"{self._of('double', d)} + {self._of('double', d)}",
            ],
            "string": [self._text, lambda d: f"string({self._of(self._pick('int', 'double', 'bool'), d)})"],
            "quantity": [
                lambda d: (
                    f"{self._of('quantity', d)}.{self._pick('add', 'sub')}"
                    f"({self._of(self._pick('quantity', 'int'), d)})"
                )
            ],
            "version": [lambda d: f"semver({self._of('string', d)}, {self._of('bool', 0)})"],
            "ints": [self._list("int")],
            "strings": [self._list("string"), lambda d: f"{self._of('string', d)}.split({self._of('string', 0)})"],
            "dyn": [
                lambda d: self._leaf("dyn"),
                lambda d: (
                    f"{ATTRIBUTES}.?{self._pick(*_NAMES)}.orValue({self._of(self._pick('int', 'string', 'bool'), d)})"
                ),
            ],
        }
        text = self._dice.choice(makers[kind])(depth - 1)
        return f"({text})" if " " in text else text

    def _leaf(self, kind: str) -> str:
        if self._dice.random() < 0.4 or kind == "dyn":
            return f"{ATTRIBUTES}.{self._pick(*_NAMES)}"
        if kind == "quantity" and self._dice.random() < 0.5:
            return f"{CAPACITY}.{self._pick('memory', 'memory', 'cores', 'missing')}"
        return {
            "bool": lambda: self._pick("true", "false", "device.allowMultipleAllocations"),
            "int": lambda: self._pick(*_INTEGERS),
            "double": lambda: self._pick(*_DOUBLES),
            "string": lambda: self._pick(*(f'"{each}"' for each in _TEXTS), "device.driver"),
            "quantity": lambda: f'quantity("{self._pick(*_QUANTITIES)}")',
            "version": lambda: f'semver("{self._pick(*_VERSIONS)}")',
            "ints": lambda: self._pick("[]", "[1]", "[3, 1, 2]", "[1, 1]"),
            "strings": lambda: self._pick("[]", '["mig"]', '["b", "a"]', '["A100", "H100"]'),
        }[kind]()

    def _comparison(self, depth: int) -> str:
        kind = self._pick(
            "int", "int", "string", "string", "double", "bool", "quantity", "version", "ints", "strings", "dyn"
        )
        if kind in ("quantity", "version"):
            method = self._pick("isLessThan", "isGreaterThan", "compareTo")
            text = f"{self._of(kind, depth)}.{method}({self._of(kind, depth)})"
            return f"{text} {self._pick(*_ORDERS)} 0" if method == "compareTo" else text
        signs = ["==", "!="] + (_ORDERS if kind in ("int", "string", "double", "dyn") else [])
        return f"{self._of(kind, depth)} {self._pick(*signs)} {self._of(kind, depth)}"

    def _logic(self, depth: int) -> str:
        form = self._pick("{} && {}", "{} || {}", "!{}", "{} ? {} : {}", "{} && {} && {}", "{} || {} || {}")
        return form.format(*(self._of("bool", depth) for _ in range(form.count("{}"))))

    def _test(self, depth: int) -> str:
        name = self._pick(*_NAMES)
        return self._pick(
            f"has({ATTRIBUTES}.{name})",
            f'"{name}" in {ATTRIBUTES}',
            f"{ATTRIBUTES}.?{name}.hasValue()",
            f"type({self._of('dyn', depth)}) == {self._pick('int', 'string', 'bool', 'list')}",
            f"{self._of('int', depth)} in {self._of('ints', depth)}",
            f"{self._of('string', depth)} in {self._of('strings', depth)}",
            f"{self._of('dyn', depth)}.includes({self._of('string', depth)})",
            f"{self._pick('isQuantity', 'isSemver')}({self._of('string', depth)})",
            f"{self._of('quantity', depth)}.isInteger()",
            f"sets.{self._pick('contains', 'equivalent', 'intersects')}"
            f"({self._of('strings', depth)}, {self._of('strings', depth)})",
            f"{self._of(self._pick('ints', 'strings'), depth)}.isSorted()",
            f"cel.bind(a, {ATTRIBUTES}, a.{name} == {self._of(self._pick('int', 'string'), depth)})",
        )

    def _quantifier(self, depth: int) -> str:
        kind = self._pick("int", "string")
        source = self._of(f"{kind}s", depth)
        name = f"v{len(self._variables)}"
        if self._dice.random() < 0.3:
            self._variables += [(f"i{name}", "int"), (name, kind)]
            body = self._of("bool", depth)
            del self._variables[-2:]
            return f"{source}.{self._pick('all', 'exists', 'existsOne')}(i{name}, {name}, {body})"
        self._variables.append((name, kind))
        body = self._of("bool", depth)
        self._variables.pop()
        return f"{source}.{self._pick('all', 'exists', 'exists_one')}({name}, {body})"

    def _method(self, depth: int) -> str:
        text = self._of("string", depth)
        method = self._pick("contains", "startsWith", "endsWith", "matches")
        argument = f'"{self._pick(*_PATTERNS)}"' if method == "matches" else self._of("string", depth)
        return f"{text}.{method}({argument})"

    def _arithmetic(self, depth: int) -> str:
        return f"{self._of('int', depth)} {self._pick('+', '-', '*', '/', '%')} {self._of('int', depth)}"

    def _counted(self, depth: int) -> str:
        return self._pick(
            f"size({self._of(self._pick('string', 'ints', 'strings'), depth)})",
            f"{self._of('version', depth)}.{self._pick('major', 'minor', 'patch')}()",
            f"{self._of('ints', depth)}.{self._pick('sum', 'max', 'min')}()",
            f"{self._of('string', depth)}.{self._pick('indexOf', 'lastIndexOf')}({self._of('string', depth)})",
            f"{self._of('strings', depth)}.indexOf({self._of('string', depth)})",
            f"{self._of('quantity', depth)}.{self._pick('compareTo', 'compareTo')}({self._of('quantity', depth)})",
            f"{self._of('quantity', depth)}.asInteger()",
            f"sign({self._of('quantity', depth)})",
            f"{self._of('ints', depth)}[{self._of('int', 0)}]",
        )

    def _converted(self, depth: int) -> str:
        return f"int({self._of(self._pick('string', 'double', 'int'), depth)})"

    def _text(self, depth: int) -> str:
        text = self._of("string", depth)
        number = self._pick("0", "1", "2", "-1", "9")
        return self._pick(
            f"{text} + {self._of('string', depth)}",
            f"{text}.{self._pick('lowerAscii', 'upperAscii', 'trim')}()",
            f"{text}.charAt({number})",
            f"{text}.substring({number})",
            f"{text}.substring({number}, {self._pick('1', '2', '3')})",
            f"{text}.replace({self._of('string', depth)}, {self._of('string', 0)})",
            f"{self._of('strings', depth)}.join({self._of('string', 0)})",
            f'{text}.find("{self._pick(*_PATTERNS)}")',
            f"strings.quote({text})",
        )

    def _list(self, kind: str) -> Callable[[int], str]:
        def made(depth: int) -> str:
            source = self._of(f"{kind}s", depth)
            name = f"v{len(self._variables)}"
            self._variables.append((name, kind))
            mapped = self._of(kind, depth)
            kept = self._of("bool", depth)
            self._variables.pop()
            return self._pick(
                f"{source}.map({name}, {mapped})",
                f"{source}.filter({name}, {kept})",
                f"{source}.map({name}, {kept}, {mapped})",
                f"{source}.sortBy({name}, {mapped})" if " " not in source else f"{source}.distinct()",
                f"{source}.{self._pick('sort', 'distinct', 'reverse')}()",
                f"{source} + {self._of(f'{kind}s', depth)}",
                f"{source}.slice({self._pick('0', '1')}, {self._pick('1', '2')})",
                f"[{self._of(kind, depth)}, {self._of(kind, depth)}]",
            )

        return made
