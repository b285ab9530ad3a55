"""A configuration file as one object of plain values.

JSON is read as YAML, of which it is a part.
"""

import re
from pathlib import Path
from typing import Any, Final

from bayplan.config.bounded_file import UnreadableFileError, read_file
from bayplan.config.bounded_yaml import MalformedYAMLError, RefusedYAMLError, Rules, YAMLPlace, yaml_documents
from bayplan.config.errors import ConfigurationError, FieldError, Place, child, quote

MAX_BYTES: Final = 1024 * 1024
"""Largest file, in bytes: what a ConfigMap can hold."""
MAX_VALUES: Final = 20_000
"""Most values in a document, counting those behind aliases each time."""
MAX_DEPTH: Final = 64
"""Deepest nesting."""

_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.DOTALL | re.IGNORECASE)


def read_document(path: Path, errors: list[FieldError], *, only_regular: bool = False) -> dict[str, Any]:
    """Return the object in the file at `path`; a repeated key goes to `errors` and its last value counts.

    A pipe is read too, unless `only_regular`.

    Raises:
        ConfigurationError: the file cannot be read, is too large, is no UTF-8, is no YAML or JSON, holds several
            documents or none, or no object.
    """
    data = read_data(path, only_regular=only_regular)
    try:
        return parse_document(data, errors)
    except ConfigurationError as error:
        raise ConfigurationError(error.errors, file=str(path)) from None


def read_data(path: Path, *, only_regular: bool = False) -> bytes:
    """Return what `parse_document` takes: as much of the file at `path` as shows whether it is too large."""
    try:
        return read_file(path, MAX_BYTES + 1, only_regular=only_regular)
    except UnreadableFileError as error:
        raise ConfigurationError([FieldError("", str(error))], file=str(path)) from None


def parse_document(data: bytes, errors: list[FieldError]) -> dict[str, Any]:
    """Return the object in `data`, as `read_document` reads it."""
    if len(data) > MAX_BYTES:
        raise _error(f"is larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(f"is not UTF-8 text: byte {error.start} is wrong") from None
    if text.lstrip().startswith("{"):
        # The one thing of JSON that YAML does not have: characters past 16 bits escaped as surrogate pairs.
        text = _ESCAPE.sub(_join_surrogates, text)

    def note(at: YAMLPlace, key: str | None) -> None:
        place = Place(at.line, at.column)
        if key is None:
            errors.append(FieldError(at.container, "map merge requires map or sequence of maps as the value", place))
        else:
            message = f"line {at.line}: key {quote(key)} already set in map"
            errors.append(FieldError(child(at.container, key), message, place))

    rules = Rules(MAX_DEPTH, MAX_VALUES, note, one_document=True)
    try:
        documents = [value for _, value in yaml_documents(text, rules)]
    except MalformedYAMLError as error:
        place = Place(error.line, error.column) if error.line else None
        raise _error(f"is neither YAML nor JSON: {error}", place=place) from None
    except RefusedYAMLError as error:
        at = error.place
        raise _error(f"line {at.line}: {error}", at.container, Place(at.line, at.column)) from None
    if documents in ([], [None]):
        raise _error("is empty")
    if not isinstance(documents[0], dict):
        raise _error("must be an object with apiVersion and kind")
    return documents[0]


def _join_surrogates(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    return chr(0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + int(escape[2], 16) - 0xDC00)


def _error(message: str, path: str = "", place: Place | None = None) -> ConfigurationError:
    return ConfigurationError([FieldError(path, message, place)])
