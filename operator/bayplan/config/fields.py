"""Strict reading of decoded objects: fields are read by name and type, and one that is never read is an error.

Durations are read and written as Kubernetes does: `1h15m30.5s` (Go: time.ParseDuration and Duration.String).
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from bayplan.config.errors import (
    FieldError,
    FieldWarning,
    child,
    did_you_mean,
    forbidden,
    invalid,
    item,
    repeated,
    required,
    unsupported,
)
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from bayplan.config.settings import OWN, Int64, Setting, broken_rules, settings_of

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file is read by, and what is found in it; all of its objects share it."""

    errors: list[FieldError] = field(default_factory=list)
    """What is wrong."""
    notes: list[FieldWarning] = field(default_factory=list)
    """What an old format says and today's has no successor for."""
    known: frozenset[str] = frozenset()
    """The plugins that may be enabled and configured."""
    gates: FeatureGates = DEFAULT_FEATURE_GATES
    """Which features are on; arguments of those that are off are errors."""
    directory: Path = Path()
    """Where files are looked for that the file names."""


class Fields:
    """One object of the file. A missing or null field reads as None, one of a wrong type too, after noting the error.

    Collects all errors in its reading; the caller ends with `finish`, or uses it as a context manager.
    """

    def __init__(self, value: object, path: str = "", reading: Reading | None = None) -> None:
        self.path = path
        self.reading = Reading() if reading is None else reading
        self.errors = self.reading.errors
        self._read: set[str] = set()
        self._value: Mapping[str, Any] = {}
        if isinstance(value, dict):
            self._value = value
        elif value is not None:
            self.errors.append(invalid(path, value, "must be an object"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def at(self, name: str) -> str:
        """The path of the field `name`."""
        return child(self.path, name)

    def has(self, name: str) -> bool:
        """Whether the field is given and not null. It then counts as read."""
        self._read.add(name)
        return self._value.get(name) is not None

    def raw(self, name: str) -> Any:  # noqa: ANN401 - the caller checks the type
        """The value as decoded, None when missing; the field then counts as read."""
        self._read.add(name)
        return self._value.get(name)

    def boolean(self, name: str) -> bool | None:
        """A boolean."""
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return value
        self.invalid(name, value, "must be true or false")
        return None

    def integer(self, name: str, bits: int = 32) -> int | None:
        """An integer of `bits` bits; a float without a fraction is one too, as in kube-scheduler."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.invalid(name, value, "must be an integer")
            return None
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            self.invalid(name, value, f"does not fit into {bits} bits")
            return None
        return value

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.invalid(name, value, "must be a number")
            return None
        if abs(value) > 1e38:
            self.invalid(name, value, "does not fit into a 32-bit float")
            return None
        return float(value)

    def string(self, name: str) -> str | None:
        """A string."""
        value = self.raw(name)
        if value is None or isinstance(value, str):
            return value
        self.invalid(name, value, _not_a_string(value))
        return None

    def choice(self, name: str, kind: type[_Choice], default: str = "") -> _Choice | None:
        """A word of an enumeration; `default` stands in for a missing one."""
        word = self.string(name) or default
        if word in list(kind):
            return kind(word)
        if isinstance(self.raw(name) or "", str):
            self.errors.append(unsupported(self.at(name), word, list(kind)))
        return None

    def data(self, name: str) -> bytes | None:
        """Bytes in base64; errors never show them."""
        value = self.raw(name)
        if value is None:
            return None
        try:
            if isinstance(value, str):
                return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
        self.errors.append(FieldError(self.at(name), "Invalid value: must be base64"))
        return None

    def duration(self, name: str) -> timedelta | None:
        """A duration such as `1m30s`."""
        value = self.raw(name)
        if value is None:
            return None
        duration = parse_duration(value) if isinstance(value, str) else None
        if duration is None:
            self.invalid(name, value, 'must be a duration such as "15s"')
            return None
        return duration

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of strings; a null element is an empty one."""
        result = []
        for path, value in self._items(name):
            if value is None or isinstance(value, str):
                result.append(value or "")
            else:
                self.errors.append(invalid(path, value, _not_a_string(value)))
        return tuple(result)

    def string_map(self, name: str) -> dict[str, str] | None:
        """An object whose values are strings."""
        return self.optional(name, lambda fields: {key: fields.string(key) or "" for key in fields.keys()})  # noqa: SIM118

    def keys(self) -> list[str]:
        """The names of the fields that are there."""
        return list(self._value)

    def nested(self, name: str) -> "Fields":
        """An object; a missing one reads as empty."""
        return Fields(self.raw(name), self.at(name), self.reading)

    def optional(self, name: str, decode: Callable[["Fields"], _T]) -> _T | None:
        """An object, decoded; None when it is missing."""
        if not self.has(name):
            return None
        with self.nested(name) as fields:
            return decode(fields)

    def objects(self, name: str, decode: Callable[["Fields"], _T]) -> tuple[_T, ...]:
        """A list of objects, each decoded; a null element is an empty one."""
        result = []
        for path, value in self._items(name):
            with Fields(value, path, self.reading) as fields:
                result.append(decode(fields))
        return tuple(result)

    def setting(self, setting: Setting) -> object:
        """The value of a field by its type."""
        if isinstance(setting.hint, type) and issubclass(setting.hint, StrEnum):
            return self.choice(setting.key, setting.hint) if self.string(setting.key) else None
        return _READERS[setting.hint](self, setting.key)

    def build(self, kind: type[_T], *, zero_counts: bool = True, checked: bool = True, **given: object) -> _T:
        """Return a dataclass or wire object, its fields read under their names in camel case; `given` were read before.

        A field that is missing or null gets the default of `kind`; with `zero_counts=False`, 0 and "" also mean the
        default. Unless `checked` is false, values that break the rules of their fields are errors.
        """
        missing = [each for each in settings_of(kind) if each.name not in given]
        with self.nested(OWN) if any(each.own for each in missing) else nullcontext(self) as own:
            for each in missing:
                value = (own if each.own else self).setting(each)
                if value is not None and (value or zero_counts or value is False):
                    given[each.name] = value
        built = kind(**given)
        if checked:
            self.errors += broken_rules(built, self.path)
        return built

    def finish(self) -> None:
        """Note every field that was not read."""
        for name in (each for each in self._value if each not in self._read):
            hint = did_you_mean(name, self._read, self.errors)
            self.errors.append(FieldError(self.at(name), f"unknown field{hint}"))

    def _items(self, name: str) -> Iterator[tuple[str, Any]]:
        value = self.raw(name)
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield item(self.at(name), index), element
        elif value is not None:
            self.invalid(name, value, "must be a list")

    def invalid(self, name: str, value: object, detail: str) -> None:
        """Note that the value of the field `name` breaks a rule."""
        self.errors.append(invalid(self.at(name), value, detail))

    def once(self, name: str, names: Iterable[str]) -> None:
        """Note each of the names, those of the elements of the list `name`, that is one of those before it."""
        self.errors += repeated((f"{item(self.at(name), index)}.name", each) for index, each in enumerate(names))

    def forbid(self, name: str, detail: str) -> None:
        """Note that the field `name` must not be given."""
        self.errors.append(forbidden(self.at(name), detail))

    def require(self, name: str, detail: str = "") -> None:
        """Note that the field `name` must be given."""
        self.errors.append(required(self.at(name), detail))

    def note(self, name: str, text: str) -> None:
        """Note what became of the field `name` of an old format."""
        self.reading.notes.append(FieldWarning(self.at(name), text))


_READERS: Final[Mapping[object, Callable[[Fields, str], object]]] = {
    str: Fields.string,
    bool: Fields.boolean,
    bool | None: Fields.boolean,
    int: Fields.integer,
    int | None: Fields.integer,
    Int64: lambda fields, name: fields.integer(name, 64),
    str | None: Fields.string,
    tuple[str, ...]: Fields.strings,
    list[str] | None: lambda fields, name: list(fields.strings(name)) or None,
    float: Fields.number,
    timedelta: Fields.duration,
    bytes: Fields.data,
}


def required_name(fields: Fields) -> str:
    """The `name` of a list element; missing is an error."""
    name = fields.string("name")
    if not name and not (fields.has("name") and name is None):
        fields.require("name")
    return name or ""


def _not_a_string(value: object) -> str:
    if isinstance(value, bool | int | float):
        return "must be a string; put it in quotes"
    return "must be a string"


_UNIT_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(rf"([-+]?)((?:{_PART.pattern})+)", re.ASCII)
_MAX_CHARACTERS: Final = 64
_MAX_NANOSECONDS: Final = 2**63 - 1


def parse_duration(text: str) -> timedelta | None:
    """The duration, or None when `text` is none; what is below a microsecond is rounded away from zero."""
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return timedelta()
    match = _WHOLE.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if match is None:
        return None
    nanoseconds = sum(Fraction(number) * _UNIT_NANOSECONDS[unit] for number, unit in _PART.findall(match[2]))
    if nanoseconds > _MAX_NANOSECONDS:
        return None
    microseconds = -(-nanoseconds // 1000)
    return timedelta(microseconds=-microseconds if match[1] == "-" else microseconds)


def format_duration(duration: timedelta) -> str:
    """The duration as Go prints it: `15s`, `10m0s`, `1.5ms`."""
    microseconds = duration // timedelta(microseconds=1)
    if microseconds == 0:
        return "0s"
    sign = "-" if microseconds < 0 else ""
    microseconds = abs(microseconds)
    if microseconds < 1000:
        return f"{sign}{microseconds}µs"
    if microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 1000)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 1_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
