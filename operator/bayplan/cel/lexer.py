"""Tokens of an expression."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.api.quantity import INT64_MAX, INT64_MIN
from bayplan.cel.errors import CompileError
from bayplan.cel.values import Uint

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*)
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<number>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*|`[^`\n]*`)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
# Raw texts end at the first quotation mark; in others a backslash takes the next character with it.
_QUOTED = re.compile(r"(?P<prefix>[bB][rR]|[rR][bB]?|[bB])?(?P<quote>\"{3}|'{3}|\"|')", re.DOTALL)
_PIECE = re.compile(
    r"""(?P<text>[^\\]+)|\\(?:(?P<plain>[abfnrtv\\?"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})
    |u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|)""",
    re.VERBOSE,
)
PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
"""What a letter behind a backslash stands for."""
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: `kind` is name, value, sign or end; `value` is what a literal stands for."""

    kind: str
    text: str
    at: int
    value: object = None


def problem_at(text: str, at: int, message: str) -> CompileError:
    """Return the error that shows `message` with the line it is about, as upstream does."""
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    shown = text.split("\n")[line]
    return CompileError(
        f"compilation failed: ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {shown}\n | {'.' * column}^"
    )


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of `text`, the last of kind `end`.

    Raises:
        CompileError: There is something that is no token.
    """
    at = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if quoted is not None:
            end, value = _quoted_text(text, quoted)
            yield Token("value", text[at:end], at, value)
            at = end
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise problem_at(text, at, f"Syntax error: token recognition error at: '{text[at]}'")
        kind, piece = match.lastgroup, match[0]
        if kind == "double":
            yield Token("value", piece, at, float(piece))
        elif kind == "number":
            yield Token("number", piece, at)
        elif kind != "blank":
            yield Token(kind or "", piece, at)
        at = match.end()
    yield Token("end", "<EOF>", at)


def number(text: str, token: Token, *, negative: bool = False) -> int:
    """Return the integer that `token` is, of the kind it has.

    Raises:
        CompileError: It has no place in 64 bits.
    """
    piece = token.text
    unsigned = piece[-1] in "uU"
    digits = piece[:-1] if unsigned else piece
    hexadecimal = digits.startswith("0x")
    if len(digits) < 80:
        value = int(digits, 16 if hexadecimal else 10)
        signed = -value if negative else value
        if unsigned and not negative and value < 2**64:
            return Uint(value)
        if not unsigned and INT64_MIN <= signed <= INT64_MAX:
            return signed
    raise problem_at(text, token.at, f"invalid {'uint' if unsigned else 'int'} literal")


def _quoted_text(text: str, opening: re.Match[str]) -> tuple[int, object]:
    prefix, quote = (opening["prefix"] or "").lower(), opening["quote"]
    raw, is_bytes = "r" in prefix, "b" in prefix
    at = start = opening.end()
    while not text.startswith(quote, at):
        if at >= len(text) or (len(quote) == 1 and text[at] in "\r\n"):
            raise problem_at(
                text, opening.start(), f"Syntax error: token recognition error at: '{text[opening.start() : at]}'"
            )
        at += 1 if raw or text[at] != "\\" else 2
    try:
        pieces = [text[start:at]] if raw else [_unescaped(each, is_bytes) for each in _PIECE.finditer(text, start, at)]
    except ValueError as error:
        raise problem_at(text, opening.start(), str(error)) from None
    if not is_bytes:
        return at + len(quote), "".join(map(str, pieces))
    return at + len(quote), b"".join(each.encode() if isinstance(each, str) else each for each in pieces)


def _unescaped(piece: re.Match[str], is_bytes: bool) -> str | bytes:
    if piece["text"] or piece["plain"]:
        return piece["text"] or PLAIN.get(piece["plain"], piece["plain"])
    if (octet := piece["hex"] or piece["octal"]) is not None:
        code = int(octet, 16 if piece["hex"] else 8)
        return bytes((code,)) if is_bytes else chr(code)
    code_point = piece["short"] or piece["long"]
    if code_point is None or is_bytes:
        raise ValueError("unable to unescape string")
    code = int(code_point, 16)
    if code in _SURROGATES or code > 0x10FFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)
