"""Lines of the log as text or as JSON, from messages whose fields are read out of their templates."""

import json
import logging
import math
import re
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from bayplan.shown_text import printable

Value = str | int | float | bool | None
"""What a key of a line may have in JSON."""

_CONVERSION: Final = r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z])"
_FIELD: Final = re.compile(rf" (\w+)=({_CONVERSION})([^\s%]*)")
_ANY: Final = re.compile(rf"%%|{_CONVERSION}")

V2: Final = logging.INFO - 2
"""Each placement and each verdict; what a watch was interrupted by."""

V4: Final = logging.INFO - 4
"""Why a pod is held in the queue; single failures that another line counts."""

V5: Final = logging.INFO - 5
"""Each move of a pod in the queue."""

V10: Final = logging.INFO - 10
"""Each plugin's score of each node; the same as DEBUG."""

HIDDEN: Final = "[hidden]"
# A password may have a "/" or an "@" that should have been escaped; what follows a host's colon is a port and a "/".
_USERINFO: Final = re.compile(r"(?<=://)(?:[^/\s:]*:(?!\d+/)\S*|[^/\s]+)(?=@)")
_BEARER: Final = re.compile(r"(?i)\b(bearer\s+)[^\s'\",]+")
# A JSON web token, as service accounts and OpenID providers have them: its first part is the base64 of '{"'.
_TOKEN: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
LONGEST_TEXT: Final = 16 * 1024
"""Characters of a message, or of one value in JSON; so long a line is passed on whole by container runtimes."""

LONGEST_TRACEBACK: Final = 64 * 1024
"""Characters of a traceback."""

# Made once: `json.dumps` would make one for each line.
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode
_PODS: Final = frozenset({"pod", "victim", "preemptor"})
_MESSAGE_KEYS: Final = {"error": "err"}


class _Field(NamedTuple):
    key: str
    conversion: str
    kind: str
    unit: str


class _Template(NamedTuple):
    text: str
    arguments: int
    fields: Sequence[_Field]


def caller(record: logging.LogRecord) -> str:
    """Return where the record was made, as klog has it: folder, file and line."""
    return _place(record.pathname, record.lineno)


@lru_cache(maxsize=1024)
def _place(path: str, line: int) -> str:
    return f"{'/'.join(PurePath(path).parts[-2:])}:{line}"


def split(record: logging.LogRecord) -> tuple[str, list[tuple[str, Value]]]:
    """Return the record's message, and its keys with their values as JSON has them.

    A template is "what happened key=%s other=%d": the text may have conversions of its own, and nothing but keys comes
    after it. Any other, as libraries have, is all message.
    """
    arguments = record.args
    if not arguments or not isinstance(arguments, tuple) or not isinstance(record.msg, str):
        return record.getMessage(), []
    template = _parse(record.msg)
    if len(arguments) != template.arguments + len(template.fields):
        return record.getMessage(), []
    of_text, of_fields = arguments[: template.arguments], arguments[template.arguments :]
    text = template.text % of_text if of_text else template.text.replace("%%", "%")
    return text, [
        (field.key, _value(field, argument)) for field, argument in zip(template.fields, of_fields, strict=True)
    ]


@lru_cache(maxsize=1024)
def _parse(template: str) -> _Template:
    first = _FIELD.search(template)
    fields: list[_Field] = []
    end = len(template)
    if first is not None:
        end = position = first.start()
        while (match := _FIELD.match(template, position)) is not None:
            fields.append(_Field(match[1], match[2], match[3], match[4]))
            position = match.end()
        if position != len(template):
            end, fields = len(template), []
    text = template[:end]
    return _Template(text, sum(match[0] != "%%" for match in _ANY.finditer(text)), fields)


def _value(field: _Field, argument: object) -> Value:
    """Return what `%s` and `%r` show as it is, unless JSON cannot say it, and numbers as they are rounded."""
    if field.unit:
        return f"{field.conversion % argument}{field.unit}"
    if field.kind in {"s", "r"}:
        if argument is None or isinstance(argument, str | bool | int):
            return argument
        return argument if isinstance(argument, float) and math.isfinite(argument) else str(argument)
    shown = field.conversion % argument
    try:
        number = float(shown)
    except ValueError:
        return shown
    if not math.isfinite(number):
        return shown
    return int(shown) if field.kind == "d" else number


def level_of(verbosity: int) -> int:
    """Return the level from which on lines are written at `-v verbosity`; 0 is INFO, each step one below it."""
    return max(logging.INFO - verbosity, 1)


def verbosity_of(level: int) -> int:
    """Return the smallest `-v` that writes lines of `level`."""
    return max(logging.INFO - level, 0)


def redacted(text: str) -> str:
    """Return `text` without users and passwords of URLs, bearer tokens and JSON web tokens.

    No line is meant to have any: this holds for what libraries and plugins put into their errors.
    """
    if "@" in text and "://" in text:
        text = _USERINFO.sub(HIDDEN, text)
    if "eyJ" in text:
        text = _TOKEN.sub(HIDDEN, text)
    if "earer" in text or "EARER" in text:
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return text


def cut(text: str, length: int) -> str:
    """Return the first `length` characters of `text`, with a word that it was longer."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"


class LoggingFormat(StrEnum):
    """What `--logging-format` takes."""

    TEXT = "text"
    JSON = "json"


class TextFormat(logging.Formatter):
    """A line for people: time, letter of the severity, logger, message with its keys and values.

    A traceback follows on lines that begin with two spaces: whatever an exception says, no line of it looks like one of
    the log's own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._shown = ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line end after it."""
        message = redacted(printable(cut(record.getMessage(), LONGEST_TEXT)))
        line = f"{self._time(record)} {_letter(record.levelno)} {record.name} {message}"
        trace = _traceback(self, record)
        if trace:
            line += "".join([f"\n  {printable(each)}" for each in trace.split("\n")])
        return line

    def _time(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second, self._shown = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._shown},{int(record.msecs):03d}"


class JsonFormat(logging.Formatter):
    """A line for machines, as component-base writes it: one object with `ts`, `caller`, `msg`, `v`, keys and values.

    Pods are objects of `name` and `namespace` and an error is `err`, as there. `level` and `logger` are ours; lines of
    level "error" have no `v`, as there. Upstream: component-base/logs/json/json.go.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, in ASCII and without a line end after it."""
        message, fields = split(record)
        entry: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "level": _level(record.levelno),
            "logger": record.name,
            "caller": caller(record),
            "msg": _shown(message),
        }
        if record.levelno < logging.ERROR:
            entry["v"] = verbosity_of(record.levelno)
        for key, value in fields:
            entry.setdefault(_MESSAGE_KEYS.get(key, key), _in_json(key, value))
        trace = _traceback(self, record)
        if trace:
            if record.exc_info and record.exc_info[1] is not None:
                entry.setdefault("err", _shown(str(record.exc_info[1])))
            entry["stacktrace"] = trace
        return _encode(entry)


FORMATS: Final[dict[LoggingFormat, Callable[[], logging.Formatter]]] = {
    LoggingFormat.TEXT: TextFormat,
    LoggingFormat.JSON: JsonFormat,
}


def _letter(level: int) -> str:
    return _level(level)[0].upper() if level < logging.CRITICAL else "C"


def _level(level: int) -> str:
    if level >= logging.ERROR:
        return "error"
    return "warning" if level >= logging.WARNING else "info"


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(record.stack_info)
    return redacted(cut("\n".join(parts), LONGEST_TRACEBACK))


def _shown(text: str) -> str:
    return redacted(cut(text, LONGEST_TEXT))


def _in_json(key: str, value: Value) -> Value | dict[str, str]:
    if not isinstance(value, str):
        return value
    shown = _shown(value)
    if key in _PODS:
        namespace, found, name = shown.partition("/")
        if found:
            return {"name": name, "namespace": namespace}
    return shown
