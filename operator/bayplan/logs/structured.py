"""Splits a record into its message and its keys with values, by the template it was logged with."""

import logging
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Final, NamedTuple

Value = str | int | float | bool | None
"""What a key of a line may have in JSON."""

_CONVERSION: Final = r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z])"
_FIELD: Final = re.compile(rf" (\w+)=({_CONVERSION})([^\s%]*)")
_ANY: Final = re.compile(rf"%%|{_CONVERSION}")


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
