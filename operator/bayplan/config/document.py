"""One YAML or JSON document to plain values, for files nobody has checked.

JSON is read as YAML, of which it is a part. Scalars become what kube-scheduler's decoder makes of them
(sigs.k8s.io/yaml, on YAML 1.1): `yes` and `on` are true, dates are strings. Size, depth and the expansion of aliases
are bounded, and building uses no recursion, so no file makes this slow or deep.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bayplan.config.errors import ConfigurationError, FieldError, child, item, quote

MAX_BYTES: Final = 1024 * 1024
"""Largest file, in bytes: what a ConfigMap can hold."""
MAX_VALUES: Final = 20_000
"""Most values in a document, counting those behind aliases each time."""
MAX_DEPTH: Final = 64
"""Deepest nesting."""

_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"))
_FALSE: Final = frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"))
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0o?([0-7_]+)|0x([0-9a-fA-F_]+)|(0|[1-9][0-9_]*))")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.DOTALL | re.IGNORECASE)
_MAX_NUMBER_CHARACTERS: Final = 64
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_CONTAINER_TAGS: Final = frozenset(("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


def read_document(path: Path, errors: list[FieldError]) -> dict[str, Any]:
    """The object in the file at `path`; a repeated key goes to `errors` and its last value counts.

    Raises:
        ConfigurationError: the file cannot be read, is too large, is no UTF-8, is no YAML or JSON, holds several
            documents or none, or no object.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError([FieldError("", f"cannot be read: {reason}")], file=str(path)) from None
    try:
        return parse_document(data, errors)
    except ConfigurationError as error:
        raise ConfigurationError(error.errors, file=str(path)) from None


def parse_document(data: bytes, errors: list[FieldError]) -> dict[str, Any]:
    """The object in `data`, as `read_document` reads it."""
    if len(data) > MAX_BYTES:
        raise _error(f"is larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(f"is not UTF-8 text: byte {error.start} is wrong") from None
    if text.lstrip().startswith("{"):
        # The one thing of JSON that YAML does not have: characters past 16 bits escaped as surrogate pairs.
        text = _ESCAPE.sub(_join_surrogates, text)
    builder = _Builder()
    try:
        _feed(builder, text)
    except yaml.YAMLError as error:
        raise _error(_yaml_problem(error)) from None
    errors += builder.errors
    if builder.result is None:
        raise _error("is empty")
    if not isinstance(builder.result, dict):
        raise _error("must be an object with apiVersion and kind")
    return builder.result


def resolve_scalar(text: str) -> Any:  # noqa: ANN401 - a plain scalar is any of the five kinds
    """What an unquoted scalar means: None, bool, int, float or str."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    number = _resolve_number(text) if len(text) <= _MAX_NUMBER_CHARACTERS else None
    return text if number is None else number


def _resolve_number(text: str) -> int | float | None:
    if match := _INTEGER.fullmatch(text):
        sign, *candidates = match.groups()
        for digits, base in zip(candidates, (2, 8, 16, 10), strict=True):
            if digits and (digits := digits.replace("_", "")):
                return -int(digits, base) if sign == "-" else int(digits, base)
    elif _FLOAT.fullmatch(text):
        special = text[-1].isalpha()
        return float(text.replace(".", "") if special else text)
    return None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _join_surrogates(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    return chr(0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + int(escape[2], 16) - 0xDC00)


def _error(message: str, path: str = "") -> ConfigurationError:
    return ConfigurationError([FieldError(path, message)])


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"is neither YAML nor JSON: {line}{error.problem or error.context}"
    if isinstance(error, yaml.reader.ReaderError):
        return f"is neither YAML nor JSON: character {error.position} is not allowed"
    return "is neither YAML nor JSON"


@dataclass(slots=True)
class _Frame:
    """A container that is still open."""

    value: dict[str, Any] | list[Any]
    path: str
    anchor: str | None
    first: int
    """How many values had been counted when it opened."""
    height: int = 1
    """Levels below and including it, so far."""
    key: str | None = None
    """The key whose value comes next, in a mapping."""
    merging: bool = False
    """Whether that key merges its value into the mapping."""
    merges: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class _Anchored:
    value: Any
    size: int
    height: int


class _Builder:
    """Builds values from YAML events, with every key checked and every alias accounted for."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.result: Any = None
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0

    def scalar(self, event: yaml.ScalarEvent) -> None:
        tag = event.tag
        if tag is not None and tag not in {_STRING_TAG, "!"}:
            raise self._here(f"tag {quote(tag)} is not supported", event)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            self._take_key(frame, event)
            return
        value = resolve_scalar(event.value) if event.implicit[0] else event.value
        self._count_values(1, event)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, 0)
        self._add(value, 0)

    def open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if event.tag is not None and event.tag not in _CONTAINER_TAGS and event.tag != "!":
            raise self._here(f"tag {quote(event.tag)} is not supported", event)
        path = self._next_path(event)
        if len(self._stack) >= MAX_DEPTH:
            raise self._here(f"is nested more than {MAX_DEPTH} levels deep", event)
        self._count_values(1, event)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Frame(value, path, event.anchor, self._count))

    def close(self) -> None:
        frame = self._stack.pop()
        for merged in frame.merges:
            for key, value in merged.items():
                frame.value.setdefault(key, value)  # type: ignore[union-attr]  # only mappings have merges
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchored(frame.value, self._count - frame.first + 1, frame.height)
        self._add(frame.value, frame.height)

    def alias(self, event: yaml.AliasEvent) -> None:
        self._next_path(event)
        anchored = self._anchors.get(event.anchor or "")
        if anchored is None:
            raise self._here(f"alias {quote(event.anchor or '')} has no anchor before it", event)
        if len(self._stack) + anchored.height > MAX_DEPTH:
            raise self._here(f"is nested more than {MAX_DEPTH} levels deep", event)
        self._count_values(anchored.size, event)
        self._add(anchored.value, anchored.height)

    def _take_key(self, frame: _Frame, event: yaml.ScalarEvent) -> None:
        assert isinstance(frame.value, dict)
        key = event.value
        self._count_values(1, event)
        if key in frame.value:
            line = _line(event)
            message = f"line {line}: key {quote(key)} already set in map"
            self.errors.append(FieldError(child(frame.path, key), message))
        frame.key = key
        # A plain `<<` merges what follows it; a quoted one is an ordinary key.
        frame.merging = key == "<<" and event.implicit[0]
        if not frame.merging:
            frame.value.setdefault(key, None)

    def _add(self, value: Any, height: int) -> None:  # noqa: ANN401 - any decoded value
        if not self._stack:
            self.result = value
            return
        frame = self._stack[-1]
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.merging:
            self._merge(frame, value)
        else:
            assert frame.key is not None
            frame.value[frame.key] = value
        frame.key = None

    def _merge(self, frame: _Frame, value: Any) -> None:  # noqa: ANN401 - any decoded value
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self.errors.append(FieldError(frame.path, "map merge requires map or sequence of maps as the value"))
            return
        frame.merges.extend(sources)

    def _next_path(self, event: yaml.Event) -> str:
        if not self._stack:
            return ""
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            return item(frame.path, len(frame.value))
        if frame.key is None:
            raise self._here("a key must be a string", event)
        return child(frame.path, frame.key)

    def _count_values(self, count: int, event: yaml.Event) -> None:
        self._count += count
        if self._count > MAX_VALUES:
            raise self._here(f"holds more than {MAX_VALUES} values, counting aliases", event)

    def _here(self, message: str, event: yaml.Event) -> ConfigurationError:
        path = self._stack[-1].path if self._stack else ""
        return _error(f"line {_line(event)}: {message}", path)


def _feed(builder: _Builder, text: str) -> None:
    documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _error(f"line {_line(event)}: must hold one document")
        elif isinstance(event, yaml.ScalarEvent):
            builder.scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            builder.open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            builder.close()
        elif isinstance(event, yaml.AliasEvent):
            builder.alias(event)
