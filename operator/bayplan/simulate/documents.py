"""Files of Kubernetes objects, cut into single objects that are not decoded yet."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.config.bounded_yaml import MalformedYAMLError, RefusedYAMLError, Rules, YAMLPlace, yaml_documents
from bayplan.config.document import Positions
from bayplan.config.errors import InputError, quote
from bayplan.simulate.decode_errors import field_error

MAX_DEPTH: Final = 64
"""Deepest nesting of YAML; Kubernetes objects stay far below."""
MAX_VALUES: Final = 20_000_000
"""Most values in the YAML documents of a file, counting those behind aliases each time."""
MAX_ALIASED: Final = 400_000
"""Most values of a file that stand behind aliases: decoding makes an object of each, however short the file is."""
MAX_LOCATED: Final = 8 << 20
"""Largest file, in bytes, in which the lines of fields are looked up."""

_JSON_START: Final = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_SCANNER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_BYTE: Final = re.compile(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)")
_LONE_SURROGATE: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u).{0,5}", re.DOTALL)
"""Half a surrogate pair so near the end of a file that msgspec takes the other half for cut off."""

T = TypeVar("T")


class ClusterFileError(InputError):
    """Raised for a cluster file that cannot be used; its one-line text names file, document, object and field."""


class Decoder(Generic[T]):
    """Decodes objects of one type from JSON bytes or plain values; null counts as absent, as for the API server."""

    def __init__(self, wanted: type[T]) -> None:
        self._wanted = wanted
        self._json = msgspec.json.Decoder(wanted)

    def __call__(self, value: Any) -> T:  # noqa: ANN401 - a value from YAML is anything
        """The object; raises one of DECODE_ERRORS where it does not fit the type."""
        if isinstance(value, msgspec.Raw):
            try:
                return self._json.decode(value)
            except msgspec.ValidationError:
                # Rare enough to pay twice: most writers leave nulls out where the type has none.
                value = msgspec.json.decode(value)
        return msgspec.convert(_without_nulls(value), self._wanted)


_NULL: Final = msgspec.Raw(b"null")
_ABSENT: Final = msgspec.Raw()


class _Outline(msgspec.Struct, rename="camel"):
    """What tells lists, answers of the API server and other objects apart, without reading what they hold."""

    api_version: str | None = None
    kind: str | None = None
    metadata: msgspec.Raw = _NULL
    items: msgspec.Raw = _ABSENT
    message: msgspec.Raw = _NULL


_outline: Final = msgspec.json.Decoder(_Outline)


class WrittenMetadata(msgspec.Struct, rename="camel", frozen=True):
    """What an object says it is called and where it came from; the values are whatever stands there."""

    name: Any = None
    namespace: Any = None
    generate_name: Any = None
    uid: Any = None
    resource_version: Any = None


class _Written(msgspec.Struct, frozen=True):
    metadata: WrittenMetadata = WrittenMetadata()


_written: Final = Decoder(_Written)


class Text:
    """The text of a file, in which fields are found; it is read again only if one is looked for."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._data = data

    @cached_property
    def positions(self) -> Positions:
        """Where its fields are."""
        return Positions(self._data)


class RawObject(msgspec.Struct, frozen=True):
    """One object of a file."""

    api_version: str
    kind: str
    value: msgspec.Raw
    """As JSON, in whichever way it was written."""
    where: str
    """Such as `cluster.yaml: document 3: items[4]`."""
    text: Text | None = None
    """Where its fields can be found; None where nobody asks for lines."""
    document: int = 1
    path: str = ""
    """That of the object in its document, such as `items[4]`."""


def raw_objects(data: bytes, name: str, *, located: bool = False) -> Iterator[RawObject]:
    """Yield the objects in `data`, with lists taken apart; `name` is the file's, for messages.

    With `located` messages name line and column, but for JSON values one after the other.

    JSON is recognised by its first characters and goes straight through msgspec, also where several values follow each
    other, such as one a line; all else is YAML.

    Raises:
        ClusterFileError: neither YAML nor JSON, or something in it is no object with a kind.
    """
    if not data.strip():
        raise ClusterFileError(f"{name}: is empty")
    text = Text(name, data) if located and len(data) <= MAX_LOCATED else None
    if not _JSON_START.match(data):
        yield from _yaml_objects(data, name, text)
        return
    document = _json_document(data, name)
    if document is not None:
        yield from _split(document, name, text)
    elif (values := _json_values(data)) is not None:
        for number, value in enumerate(values, 1):
            yield from _split(value, f"{name}: object {number}")
    else:
        yield from _yaml_objects(data, name, text)


def title(raw: RawObject, text: str = "") -> str:
    """Return where an object stands, its kind and its name, as messages begin.

    `text` is what follows. It begins with the path of a field, which has a line and a column if the file is known.
    """
    _, name = names(raw)
    where = raw.where
    if raw.text is not None:
        path = f"{raw.path}.{text}" if raw.path else text
        if (place := raw.text.positions.place(path, raw.document)) is not None:
            where = f"{raw.text.name}:{place.line}:{place.column}"
    return f'{where}: {raw.kind} "{name}"' if name else f"{where}: {raw.kind}"


def names(raw: RawObject) -> tuple[str, str]:
    """Return the namespace and name of an object that may be malformed, safe to print."""
    meta = written_metadata(raw.value)
    return printable(meta.namespace), printable(meta.name)


def written_metadata(value: msgspec.Raw) -> WrittenMetadata:
    """Return the metadata of an object that may be malformed, which then says nothing."""
    try:
        return _written(value).metadata
    except DECODE_ERRORS:
        return WrittenMetadata()


def printable(value: object) -> str:
    """Return text on one line, "" for what is none and cut to the length that names have."""
    if not isinstance(value, str):
        return ""
    value = value[:253]
    return value if value.isascii() and value.isprintable() else ascii(value)[1:-1]


def _json_document(data: bytes, name: str) -> msgspec.Raw | None:
    """The JSON value; None where more text follows it, as in YAML documents written in JSON's style."""
    try:
        return msgspec.json.decode(data, type=msgspec.Raw)
    except DECODE_ERRORS as error:
        if "trailing characters" in str(error):
            return None
        raise ClusterFileError(f"{name}: is not valid JSON: {_json_problem(str(error), data)}") from None


def _json_values(data: bytes) -> list[msgspec.Raw] | None:
    """The JSON values that follow each other; None where something else is between them, as in YAML."""
    try:
        return [msgspec.json.decode(line, type=msgspec.Raw) for line in data.splitlines() if line.strip()]
    except DECODE_ERRORS:
        pass
    # Objects over several lines, as `jq .items[]` writes them.
    try:
        text = data.decode()
        values: list[msgspec.Raw] = []
        position = _next_value(text, 0)
        while position < len(text):
            _, end = _SCANNER.raw_decode(text, position)
            values.append(msgspec.json.decode(text[position:end], type=msgspec.Raw))
            position = _next_value(text, end)
    except (*DECODE_ERRORS, ValueError):
        return None
    return values


def _next_value(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return position if match is None else match.end()


def _json_problem(text: str, data: bytes) -> str:
    match = _BYTE.fullmatch(text)
    if match is None:
        if "truncated" in text and _LONE_SURROGATE.search(data[-16:]) is not None:
            return "invalid utf-16 surrogate pair at the end"
        return text
    line = data.count(b"\n", 0, int(match[2])) + 1
    return f"line {line}: {match[1]}"


def _yaml_objects(data: bytes, name: str, origin: Text | None) -> Iterator[RawObject]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ClusterFileError(f"{name}: is not UTF-8 text: line {line}") from None
    found = False
    try:
        for number, value in yaml_documents(text, Rules(MAX_DEPTH, MAX_VALUES, _refuse, max_aliased=MAX_ALIASED)):
            if value is not None:
                found = True
                where = f"{name}: document {number}"
                yield from _split(_as_json(value, where), where, origin, number)
    except MalformedYAMLError as error:
        advice = _advice(text, error.place.line if error.place else 0)
        raise ClusterFileError(f"{name}: is not valid YAML: {error}{advice}") from None
    except RefusedYAMLError as error:
        line, path = error.place.line, f"{error.place.path}: " if error.place.path else ""
        raise ClusterFileError(f"{name}: is not valid YAML: line {line}: {path}{error}{_advice(text, line)}") from None
    if not found:
        raise ClusterFileError(f"{name}: holds no objects")


def _as_json(value: object, where: str) -> msgspec.Raw:
    try:
        return msgspec.Raw(json.dumps(value, allow_nan=False).encode())
    except ValueError:
        raise ClusterFileError(f"{where}: holds a number that JSON does not have") from None


def _advice(text: str, number: int) -> str:
    """What is the matter with a line that is mostly not meant as YAML."""
    line = "".join(text.splitlines()[number - 1 : number])
    if "{{" in line:
        return "; a template has to be rendered first, as `helm template` does"
    return "; YAML is indented by spaces, and not by tabs" if line.strip(" ").startswith("\t") else ""


def _refuse(place: YAMLPlace, key: str | None) -> NoReturn:
    text = "only mappings can be merged with <<" if key is None else f"key {quote(key)} is given twice"
    raise RefusedYAMLError(text, place)


def _split(value: msgspec.Raw, where: str, text: Text | None = None, document: int = 1) -> Iterator[RawObject]:
    outline = _outline_of(value, where)
    if not outline.kind:
        raise ClusterFileError(f"{where}: kind: Required value")
    if outline.kind == "Status" and outline.api_version == "v1":
        told = msgspec.json.decode(outline.message) or ""
        message = quote(told) if isinstance(told, str) else "it cannot be read"
        raise ClusterFileError(f"{where}: is no cluster but an answer of the API server: {message}")
    if not _is_list(outline):
        yield RawObject(outline.api_version or "", outline.kind, value, where, text, document)
        return
    # Items of a typed list, such as the API server's own PodList, do not repeat the kind.
    item_kind = outline.kind.removesuffix("List")
    for index, item in enumerate(_list_items(outline, where)):
        path = f"items[{index}]"
        place = f"{where}: {path}"
        own = _outline_of(item, place)
        kind = own.kind or item_kind
        if not kind:
            raise ClusterFileError(f"{place}: kind: Required value")
        own.kind = kind
        if _is_list(own):
            raise ClusterFileError(f"{place}: a list inside a list is not supported")
        yield RawObject(own.api_version or outline.api_version or "", kind, item, place, text, document, path)


def _is_list(outline: _Outline) -> bool:
    """Whether an object is a list; one with a name is a custom resource whose kind ends like that of lists."""
    if not (outline.kind or "").endswith("List"):
        return False
    metadata = msgspec.json.decode(outline.metadata)
    return outline.kind == "List" or not (isinstance(metadata, dict) and metadata.get("name"))


def _outline_of(value: msgspec.Raw, where: str) -> _Outline:
    try:
        return _outline.decode(value)
    except DECODE_ERRORS as error:
        text = field_error(error)
        if text.endswith("must be an object"):
            text += " with apiVersion and kind"
        if text.startswith("Invalid value: list"):
            text += "; several objects are documents, or items of a List"
        raise ClusterFileError(f"{where}: {text}") from None


def _list_items(outline: _Outline, where: str) -> Sequence[msgspec.Raw]:
    if outline.items is _ABSENT:
        # An empty list has it. Under another name it would be a whole file that is passed over in silence.
        raise ClusterFileError(f"{where}: items: Required value")
    try:
        return msgspec.json.decode(outline.items, type=list[msgspec.Raw] | None) or ()
    except DECODE_ERRORS as error:
        raise ClusterFileError(f"{where}: items: {field_error(error)}") from None


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any decoded value
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
