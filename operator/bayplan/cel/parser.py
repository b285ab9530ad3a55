"""Parses an expression by the precedence of its operators."""

from bayplan.cel.errors import CompileError
from bayplan.cel.lexer import Token, number, problem_at, tokens
from bayplan.cel.syntax import Call, Literal, Member, Name, Node

LONGEST = 10 * 1024
"""The API server takes no longer expression."""

DEEPEST = 96
"""How many levels of an expression may stand in one another: Python's stack bears some five times as many."""

_BINARY = {"||": 1, "&&": 2}
_BINARY |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3)
_BINARY |= dict.fromkeys("+-", 4) | dict.fromkeys("*/%", 5)
_TERNARY = 0
_UNARY = 6
_CLOSED = {"[": "]", "{": "}"}
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
    parser.expect("<EOF>")
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._next = 0
        self._depth = 0

    def expression(self, least: int) -> Node:
        """An expression whose operators bind at least as strongly as `least`."""
        depth = self._depth
        self._deeper()
        left = self._operand()
        while True:
            token = self._peek()
            strength = _BINARY.get(token.text)
            if strength is not None and strength >= max(least, 1):
                self._take()
                left = self._joined(token, left, self.expression(strength + 1))
            elif token.text == "?" and least == _TERNARY:
                self._take()
                chosen = self.expression(1)
                self.expect(":")
                left = Call("_?_:_", (left, chosen, self.expression(_TERNARY)), token.at)
            else:
                break
        self._depth = depth
        return left

    def _joined(self, token: Token, left: Node, right: Node) -> Node:
        name = f"_{token.text}_"
        if token.text in ("&&", "||"):
            # One node for a chain, so that a long one is not deep.
            terms = left.args if isinstance(left, Call) and left.name == name else (left,)
            return Call(name, (*terms, right), token.at)
        self._deeper()
        return Call(name, (left, right), token.at)

    def _deeper(self) -> None:
        # Each operator of a chain such as a + b + c is a level; what encloses the chain takes them back.
        self._depth += 1
        if self._depth > DEEPEST:
            raise problem_at(self._text, self._peek().at, f"expression recursion limit exceeded: {DEEPEST}")

    def _operand(self) -> Node:
        sign = self._peek()
        if sign.text not in ("!", "-"):
            return self._members(self._primary())
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
        while (token := self._peek()).text in (".", "["):
            self._deeper()
            self._take()
            optional = self._accept("?")
            if token.text == "[":
                target = Member(target, self.expression(_TERNARY), token.at, optional=optional)
                self.expect("]")
                continue
            field = self._take()
            if field.kind != "name" or field.text in _CONSTANTS or field.text == "in":
                raise self._unexpected(field)
            if not optional and self._peek().text == "(" and field.text[0] != "`":
                at = self._take().at
                target = Call(f".{field.text}", (target, *self._arguments()), at)
            else:
                key = Literal(field.text.strip("`"), token.at)
                target = Member(target, key, token.at, dotted=True, optional=optional)
        return target

    def _primary(self) -> Node:  # noqa: PLR0911 - one way for each thing an operand may begin with
        token = self._take()
        if token.kind == "number":
            return Literal(number(self._text, token), token.at)
        if token.kind == "value":
            return Literal(token.value, token.at)
        if token.text == "(":
            inner = self.expression(_TERNARY)
            self.expect(")")
            return inner
        if token.text in _CLOSED:
            closing = _CLOSED[token.text]
            return Call(f"{token.text}{closing}", self._parts(closing), token.at)
        if token.text == ".":
            token = self._take()
        if token.kind != "name" or token.text == "in" or token.text[0] == "`":
            raise self._unexpected(token)
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.at)
        if self._peek().text == "(":
            at = self._take().at
            return Call(token.text, self._arguments(), at)
        return Name(token.text, token.at)

    def _arguments(self) -> tuple[Node, ...]:
        if self._accept(")"):
            return ()
        found = [self.expression(_TERNARY)]
        while not self._accept(")"):
            self.expect(",")
            found.append(self.expression(_TERNARY))
        return tuple(found)

    def _parts(self, closing: str) -> tuple[Node, ...]:
        """The parts of a list or a map up to its end."""
        found: list[Node] = []
        while not self._accept(closing):
            at, optional = self._peek().at, self._accept("?")
            if closing == "}":
                found.append(self.expression(_TERNARY))
                self.expect(":")
            part = self.expression(_TERNARY)
            found.append(Call("?", (part,), at) if optional else part)
            if not self._accept(","):
                self.expect(closing)
                break
        return tuple(found)

    def expect(self, text: str) -> None:
        token = self._take()
        if token.text != text:
            raise self._unexpected(token)

    def _accept(self, sign: str) -> bool:
        accepted = self._peek().text == sign
        self._next += accepted
        return accepted

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _unexpected(self, token: Token) -> CompileError:
        return problem_at(self._text, token.at, f"Syntax error: mismatched input '{token.text}'")
