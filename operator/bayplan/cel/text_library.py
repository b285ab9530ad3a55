"""Functions on texts."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import re2

from bayplan.cel.errors import EvaluationError
from bayplan.cel.functions import define
from bayplan.cel.lexer import PLAIN
from bayplan.cel.values import shown, sized

_REGEX: Final = re2.Options()
_REGEX.log_errors = False
# The library keeps 128 expressions, each with so much memory at most: 64 MiB where somebody tries for that.
_REGEX.max_mem = 2**19
_IN_GO: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""What RE2 says otherwise than Go's package."""
_ESCAPES_OF_PATTERN: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_ILLEGAL: Final = "Illegal regex: "

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002"
_SPACE += "\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_ESCAPES = str.maketrans({char: f"\\{letter}" for letter, char in (*PLAIN.items(), *zip('\\"', '\\"', strict=True))})

define(".contains", "string, string", complaint="")(lambda text, part: part in text)
define(".startsWith", "string, string", complaint="")(str.startswith)
define(".endsWith", "string, string", complaint="")(str.endswith)
define(".lowerAscii", "string")(lambda text: text.translate(_LOWER))
define(".upperAscii", "string")(lambda text: text.translate(_UPPER))
define(".trim", "string")(lambda text: text.strip(_SPACE))
define("strings.quote", "string")(lambda text: f'"{text.translate(_ESCAPES)}"')


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@define(".charAt", "string, int")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


@define(".indexOf", "string, string", "string, string, int")
def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


@define(".lastIndexOf", "string, string", "string, string, int")
def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


@define(".replace", "string, string, string", "string, string, string, int")
def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    sized(len(text) + text.count(old) * len(new) if times else 0)
    return text.replace(old, new, times if -1 <= times < 2**31 else -1)


@define(".split", "string, string", "string, string, int")
def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not separator:
        pieces = list(text)
        return pieces if most < 0 or most >= len(pieces) else [*pieces[: most - 1], text[most - 1 :]]
    return text.split(separator, most - 1 if 0 < most < 2**31 else -1)


@define(".substring", "string, int", "string, int, int")
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = max(start, len(text))
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


@define(".join", "list(string)", "list(string), string")
def _join(pieces: list[Any], separator: str = "") -> str:
    for each in pieces:
        if type(each) is not str:
            raise EvaluationError(f"join: invalid input: {shown(each)}")
    sized(sum(map(len, pieces)) + len(separator) * len(pieces))
    return separator.join(pieces)


def compiled(pattern: str, prefix: str = "") -> Any:
    """Return the regular expression, with `prefix` before the error if there is one.

    Raises:
        EvaluationError: It is none; what is wrong is told in Go's words.
    """
    try:
        return _kept(pattern)
    except re2.error as error:
        told: bytes = error.args[0]
        what, _, piece = told.decode(errors="replace").partition(": ")
        raise EvaluationError(f"{prefix}error parsing regexp: {_IN_GO.get(what, what)}: `{piece}`") from None


@lru_cache(maxsize=128)
def _kept(pattern: str) -> Any:
    if "\\C" in _ESCAPES_OF_PATTERN.findall(pattern):
        raise re2.error(b"invalid escape sequence: \\C")
    # The library looks at each of its options before it finds what it keeps itself.
    return re2.compile(pattern, _REGEX)


def _found(pattern: str, text: str, prefix: str = "") -> Iterator[bytes]:
    """Yield what Go's package finds.

    RE2 goes by bytes: an empty match within a character is none, nor is one right after another match.
    """
    encoded, last = text.encode(), -1
    for match in compiled(pattern, prefix).finditer(encoded):
        within = encoded[match.start() : match.start() + 1]
        if match.end() > match.start() or (match.start() != last and not b"\x80" <= within < b"\xc0"):
            yield match.group()
        last = match.end()


@define("matches", "string, string", complaint="name")
@define(".matches", "string, string", complaint="name")
def _matches(text: str, pattern: str) -> bool:
    return next(_found(pattern, text), None) is not None


@define(".find", "string, string")
def _find(text: str, pattern: str) -> str:
    return next(_found(pattern, text, _ILLEGAL), b"").decode()


@define(".findAll", "string, string", "string, string, int")
def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = _found(pattern, text, _ILLEGAL)
    return [each.decode() for each in islice(found, most if most >= 0 else None)]
