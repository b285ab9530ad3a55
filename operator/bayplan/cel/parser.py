"""Parses an expression by the precedence of its operators."""

from collections.abc import Callable
from typing import TypeVar

from bayplan.cel.errors import CompileError
from bayplan.cel.lexer import Token, number, problem_at, tokens
from bayplan.cel.syntax import Call, Index, ListOf, Literal, MapOf, Name, Node, Select

LONGEST = 10 * 1024
"""The API server takes no longer expression."""

DEEPEST = 96
"""How many levels of an expression may stand in one another: Python's stack bears some five times as many."""

_BINARY = {"||": 1, "&&": 2}
_BINARY |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3)
_BINARY |= dict.fromkeys("+-", 4) | dict.fromkeys("*/%", 5)
_Part = TypeVar("_Part")
_TERNARY = 0
_UNARY = 6
_RESERVED = frozenset(
    [
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    ]
)
_CONSTANTS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Node:
    """Return the tree of `text`.

    Raises:
        CompileError: It is no expression, longer than LONGEST, or its levels are more than DEEPEST.
    """
    if len(text.encode(errors="surrogatepass")) > LONGEST:
        raise CompileError(f"compilation failed: the expression is longer than {LONGEST} bytes")
    parser = _Parser(text)
    tree = parser.expression(_TERNARY)
    parser.expect("end", "<EOF>")
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._next = 0
        self._depth = 0

    def expression(self, least: int) -> Node:
        """An expression whose operators bind at least as strongly as `least`."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._problem(f"expression recursion limit exceeded: {DEEPEST}")
        depth = self._depth
        left = self._operand()
        while True:
            token = self._peek()
            strength = _BINARY.get(token.text) if token.kind in ("sign", "name") else None
            if strength is not None and strength >= max(least, 1):
                self._take()
                right = self.expression(strength + 1)
                left = self._joined(token, left, right)
            elif token.text == "?" and token.kind == "sign" and least == _TERNARY:
                self._take()
                chosen = self.expression(1)
                self.expect("sign", ":")
                left = Call("_?_:_", (left, chosen, self.expression(_TERNARY)), token.at)
            else:
                break
        self._depth = depth - 1
        return left

    def _joined(self, token: Token, left: Node, right: Node) -> Node:
        name = f"_{token.text}_"
        if token.text in ("&&", "||"):
            # One node for a chain, so that a long one is not deep.
            terms = left.args if isinstance(left, Call) and left.name == name and left.target is None else (left,)
            return Call(name, (*terms, right), token.at)
        self._deeper()
        return Call(name, (left, right), token.at)

    def _deeper(self) -> None:
        # Each operator of a chain such as a + b + c is a level; what encloses the chain takes them back.
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._problem(f"expression recursion limit exceeded: {DEEPEST}")

    def _operand(self) -> Node:
        token = self._peek()
        if token.kind == "sign" and token.text in "!-":
            return self._signed(token)
        return self._members(self._primary())

    def _signed(self, sign: Token) -> Node:
        odd = False
        while self._accept(sign.text):
            odd = not odd
        following = self._peek()
        if sign.text == "-" and odd and following.kind == "number":
            self._take()
            return self._members(Literal(number(self._text, following, negative=True), sign.at))
        if sign.text == "-" and odd and isinstance(following.value, float):
            self._take()
            return self._members(Literal(-following.value, sign.at))
        # Two signs are none, as in upstream's parser.
        operand = self.expression(_UNARY)
        return Call(f"{sign.text}_", (operand,), sign.at) if odd else operand

    def _members(self, target: Node) -> Node:
        while True:
            token = self._peek()
            if token.kind != "sign" or token.text not in ".[":
                return target
            self._deeper()
            self._take()
            optional = self._accept("?")
            if token.text == "[":
                target = Index(target, self.expression(_TERNARY), token.at, optional=optional)
                self.expect("sign", "]")
                continue
            field = self._take()
            if field.kind != "name" or field.text in _CONSTANTS or field.text == "in":
                raise self._unexpected(field)
            if not optional and self._peek().text == "(" and field.text[0] != "`":
                at = self._take().at
                target = Call(field.text, self._arguments(), at, target)
            else:
                target = Select(target, field.text.strip("`"), token.at, optional=optional)

    def _primary(self) -> Node:  # noqa: C901, PLR0911 - one way for each thing an operand may begin with
        token = self._take()
        if token.kind == "number":
            return Literal(number(self._text, token), token.at)
        if token.kind == "value":
            return Literal(token.value, token.at)
        if token.text == "(" and token.kind == "sign":
            inner = self.expression(_TERNARY)
            self.expect("sign", ")")
            return inner
        if token.text == "[" and token.kind == "sign":
            return self._list(token.at)
        if token.text == "{" and token.kind == "sign":
            return self._map(token.at)
        if token.text == "." and token.kind == "sign":
            token = self._take()
        if token.kind != "name" or token.text == "in" or token.text[0] == "`":
            raise self._unexpected(token)
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.at)
        if token.text in _RESERVED:
            raise problem_at(self._text, token.at, f"reserved identifier: {token.text}")
        if self._peek().text == "(":
            at = self._take().at
            return Call(token.text, self._arguments(), at)
        return Name(token.text, token.at)

    def _arguments(self) -> tuple[Node, ...]:
        found: list[Node] = []
        if self._accept(")"):
            return ()
        while True:
            found.append(self.expression(_TERNARY))
            if self._accept(")"):
                return tuple(found)
            self.expect("sign", ",")

    def _list(self, at: int) -> Node:
        items, optional = self._parts("]", lambda: self.expression(_TERNARY))
        return ListOf(items, optional, at)

    def _map(self, at: int) -> Node:
        entries, optional = self._parts("}", self._entry)
        return MapOf(entries, optional, at)

    def _entry(self) -> tuple[Node, Node]:
        key = self.expression(_TERNARY)
        self.expect("sign", ":")
        return key, self.expression(_TERNARY)

    def _parts(self, end: str, part: Callable[[], _Part]) -> tuple[tuple[_Part, ...], frozenset[int]]:
        """The parts of a literal up to its end, and the places of those with a question mark."""
        found: list[_Part] = []
        optional: set[int] = set()
        while not self._accept(end):
            if self._accept("?"):
                optional.add(len(found))
            found.append(part())
            if not self._accept(","):
                self.expect("sign", end)
                break
        return tuple(found), frozenset(optional)

    def expect(self, kind: str, text: str) -> None:
        token = self._take()
        if (token.kind, token.text) != (kind, text):
            raise self._unexpected(token)

    def _accept(self, sign: str) -> bool:
        token = self._peek()
        if token.kind != "sign" or token.text != sign:
            return False
        self._next += 1
        return True

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _unexpected(self, token: Token) -> CompileError:
        return problem_at(self._text, token.at, f"Syntax error: mismatched input '{token.text}'")

    def _problem(self, message: str) -> CompileError:
        return problem_at(self._text, self._peek().at, message)
