"""What is wrong with a configuration, in kube-scheduler's words (apimachinery: util/validation/field/errors.go)."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_MAX_LINES: Final = 100
_MAX_VALUE_CHARACTERS: Final = 200
_MAX_NAME_CHARACTERS: Final = 600
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_\-]{1,64}")

_NAMES: Final[dict[type, str]] = {dict: "object", list: "list", tuple: "list"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file a remark belongs."""

    line: int
    """Counted from 1."""
    column: int
    """Counted from 1, in characters."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A message about a field."""

    path: str
    """The field, such as `profiles[0].schedulerName`; empty for the whole file."""
    message: str
    """What is to be said of it, such as `Required value`."""
    place: Place | None = field(default=None, compare=False)
    """Where that is, where it is known."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class FieldError(Remark):
    """One complaint."""

    __slots__ = ()


class FieldWarning(Remark):
    """A warning: the value is legal but probably a mistake, or of an old format and without an exact equivalent."""

    __slots__ = ()


def line_of(file: str, remark: Remark, kind: str = "") -> str:
    """Say a remark as compilers do, so that editors find its place: `file:line:column: kind: path: message`.

    A remark about a flag, whose path begins with two dashes, gets no name of a file.
    """
    parts = [str(remark)]
    if kind:
        parts.insert(0, kind)
    if file and not remark.path.startswith("--"):
        place = remark.place
        parts.insert(0, quote_unprintable(file) + (f":{place.line}:{place.column}" if place is not None else ""))
    return ": ".join(parts)


class InputError(ValueError):
    """Raised where what a command was given cannot be used; `main` prints the lines of its text and exits with 2."""


class ConfigurationError(InputError):
    """Raised with every complaint about a configuration at once."""

    def __init__(self, errors: Iterable[FieldError], *, file: str = "") -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        self.file = file
        super().__init__(*self.errors)

    def __str__(self) -> str:
        lines = [line_of(self.file, error) for error in self.errors[:_MAX_LINES]]
        if len(self.errors) > _MAX_LINES:
            lines.append(line_of(self.file, FieldError("", f"... and {len(self.errors) - _MAX_LINES} more errors")))
        return "\n".join(lines)


def child(path: str, key: str) -> str:
    """The path of a field of the object at `path`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{quote(key)}]"
    return f"{path}.{key}" if path else key


def item(path: str, index: int) -> str:
    """The path of an element of the list at `path`."""
    return f"{path}[{index}]"


def quote(text: str) -> str:
    """`text` in double quotes, on one line, with nothing a terminal would act on, and not longer than is readable."""
    if len(text) > _MAX_VALUE_CHARACTERS:
        text = f"{text[:_MAX_VALUE_CHARACTERS]}..."
    return json.dumps(text, ensure_ascii=not text.isprintable())


def quote_unprintable(name: str) -> str:
    """A name as it is, in quotes when it is empty or no text for one line; a very long one without its middle."""
    if len(name) > _MAX_NAME_CHARACTERS:
        half = _MAX_NAME_CHARACTERS // 2
        name = f"{name[:half]}...{name[-half:]}"
    return name if name and name.isprintable() else quote(name)


def did_you_mean(name: str, known: Iterable[str], errors: Sequence[FieldError] = ()) -> str:
    """Which of the known names is nearly the given one, as the end of a sentence; nothing where none is.

    Searching takes long: beside more `errors` than are told there is none.
    """
    close = difflib.get_close_matches(name[:64], known, n=1) if len(errors) < _MAX_LINES else ()
    return f', did you mean "{close[0]}"?' if close else ""


def show_value(value: object) -> str:
    """A value as errors show it; objects and lists only by kind, since they may hold key material."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return _NAMES.get(type(value)) or str(value)


def invalid(path: str, value: object, detail: str) -> FieldError:
    """The value breaks a rule."""
    return FieldError(path, f"Invalid value: {show_value(value)}: {detail}")


def invalid_whole(path: str, value: object, detail: str) -> FieldError:
    """A list or an object breaks a rule; it is shown whole, as JSON, so it must not hold key material."""
    shown = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if len(shown) > _MAX_VALUE_CHARACTERS:
        shown = f"{shown[:_MAX_VALUE_CHARACTERS]}..."
    # Control characters are escaped in JSON; others may still act on a terminal.
    shown = shown if shown.isprintable() else shown.encode("ascii", "backslashreplace").decode()
    return FieldError(path, f"Invalid value: {shown}: {detail}")


def required(path: str, detail: str = "") -> FieldError:
    """A value is missing."""
    return FieldError(path, f"Required value: {detail}" if detail else "Required value")


def duplicate(path: str, value: object) -> FieldError:
    """The value was there before."""
    return FieldError(path, f"Duplicate value: {show_value(value)}")


def repeated(names: Iterable[tuple[str, object]]) -> Iterator[FieldError]:
    """Yield an error for each path whose name is that of one before it."""
    seen = set()
    for path, name in names:
        if name in seen:
            yield duplicate(path, name)
        seen.add(name)


def unsupported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """The value is none of a fixed list."""
    names = ", ".join(quote(name) for name in supported)
    return FieldError(path, f"Unsupported value: {show_value(value)}: supported values: {names}")


def forbidden(path: str, detail: str) -> FieldError:
    """The field must not be given here."""
    return FieldError(path, f"Forbidden: {detail}")
