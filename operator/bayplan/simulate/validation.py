"""Checks objects of files by the API server's own OpenAPI document, and says what becomes of the mistakes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import CLAIM_TEMPLATES, CRD_POD_GROUPS, NODES, POD_GROUPS, PODS, RESOURCES
from bayplan.config.errors import FieldError, child, did_you_mean, invalid, item, quote, required, unsupported
from bayplan.simulate.documents import ClusterFileError, RawObject, title, written_metadata
from bayplan.simulate.field_rules import RULES
from bayplan.simulate.input_files import objects_in
from bayplan.simulate.workloads import WORKLOADS

READ: Final = frozenset(
    {
        ("scheduling.k8s.io/v1", "PriorityClass"),
        *WORKLOADS,
        *(
            (each.api_version, each.kind)
            for each in (NODES, PODS, POD_GROUPS, CRD_POD_GROUPS, CLAIM_TEMPLATES, *RESOURCES)
        ),
    }
)
"""The kinds that are checked, by apiVersion and kind."""
MOST_ERRORS: Final = 100
"""How many errors of an object are told."""
TWICE: Final = object()
"""Stands for the value of a key that an object of a file gives more than once."""

_FILE: Final = Path(__file__).with_name("openapi.json")
_NEVER_EMPTY: Final = ("containerPort", "port", "name", "claimName", "mountPath", "path", "provisioner", "schedule")
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "string": ((str,), "must be a string"),
    "int-or-string": ((str, int), "must be a string or an integer"),
    "integer": ((int,), "must be an integer"),
    "number": ((int, float), "must be a number"),
    "boolean": ((bool,), "must be true or false"),
    "object": ((dict,), "must be an object"),
    "array": ((list,), "must be a list"),
}

Schema = Mapping[str, Any]


def published_errors(api_version: str, kind: str, value: object) -> list[FieldError]:
    """Return what is wrong with the fields of an object; no more than MOST_ERRORS.

    Nothing is said of what other kinds hold, nor of kinds of groups that are not Kubernetes' own but for PodGroups.
    """
    named = (api_version or "v1", kind)
    kinds = _kinds()
    if named in READ:
        return list(islice(_defined(kinds[named], value, ""), MOST_ERRORS))
    # Groups of custom kinds have a dot in their names.
    is_own = "." not in named[0].partition("/")[0] or any(version == named[0] for version, _ in kinds)
    if is_own and named not in kinds:
        if isinstance(value, dict) and not value.get("apiVersion"):
            return [required("apiVersion", f"kind {quote(kind)} is none of v1")]
        return [FieldError("kind", f"no matches for kind {quote(kind)} in version {quote(named[0])}")]
    return []


@cache
def _definitions() -> Mapping[str, Schema]:
    definitions: Mapping[str, Schema] = msgspec.json.decode(_FILE.read_bytes())["definitions"]
    return definitions


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    definitions = _definitions().items()
    return {
        (each["apiVersion"], each["kind"]): name for name, schema in definitions for each in schema.get("kinds", ())
    }


def _defined(name: str, value: Any, path: str) -> Iterator[FieldError]:  # noqa: ANN401 - a value of a file is anything
    """Yield the errors in a value that has a definition, or else what the API server refuses beyond that."""
    # A quantity may be a number, of which the document knows nothing.
    errors = () if name == _QUANTITY else _errors(_definitions()[name], value, path)
    is_right = True
    for each in errors:
        is_right = False
        yield each
    rule = RULES.get(name.rpartition(".")[2])
    if is_right and rule is not None:
        for each in rule(value):
            dot = "." if path and each.path[:1] not in ("", "[") else ""
            yield FieldError(path + dot + each.path, each.message)


def _errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:  # noqa: ANN401 - as above
    """Yield the errors in a value that is not null."""
    if "$ref" in schema:
        yield from _defined(schema["$ref"].removeprefix("#/definitions/"), value, path)
        return
    form = "int-or-string" if schema.get("format") == "int-or-string" else schema["type"]
    types, text = _TYPES[form]
    if isinstance(value, float) and int in types and value.is_integer():
        value = int(value)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        quotes = "; put it in quotes" if types == (str,) and isinstance(value, bool | int | float) else ""
        yield invalid(path, value, f"{text}{quotes}")
    elif isinstance(value, dict):
        yield from _members(schema, value, path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            where = item(path, index)
            yield from [required(where)] if inner is None else _errors(schema["items"], inner, where)
    elif isinstance(value, int):
        bits = 32 if schema.get("format") == "int32" else 64
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            yield invalid(path, value, f"does not fit into {bits} bits")
    elif "enum" in schema and value not in schema["enum"]:
        yield unsupported(path, value, schema["enum"])


def _members(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    fields, needed = schema.get("properties", {}), schema.get("required", ())
    for name, inner in value.items():
        where = child(path, name)
        known = fields.get(name) or schema.get("additionalProperties")
        if known is None and fields:
            yield FieldError(where, f"unknown field{did_you_mean(name, fields)}")
        elif inner is TWICE:
            yield FieldError(where, "is given twice")
        # Words that need not be given may be empty, too.
        elif known is not None and inner is not None and (inner or name in needed or "enum" not in known):
            yield from _errors(known, inner, where)
    # The API server takes zero for most that is missing, but for words that have to be one of a few, ports and names.
    for name in needed:
        if (name in _NEVER_EMPTY or "enum" in fields[name]) and (given := value.get(name)) in (None, ""):
            # An empty one of a few words is told of above.
            yield from [required(child(path, name))] if given is None or "enum" not in fields[name] else ()


class Validate(StrEnum):
    """What becomes of objects that the API server would refuse, as kubectl calls it."""

    STRICT = "strict"
    WARN = "warn"
    IGNORE = "ignore"


class Validation:
    """Collects the mistakes in objects that people wrote; `mode` says whether they end the reading."""

    def __init__(self, mode: Validate) -> None:
        self.lines: list[str] = []
        self._mode = mode

    def objects_in(self, files: Iterable[str], *, are_added: bool = False) -> Iterator[RawObject]:
        """Yield the objects in `files` that can be taken in, and note what is wrong with the others.

        What came from an API server is taken as it is, unless it is added.

        Raises:
            ClusterFileError: a file cannot be read, or there are more mistakes than anybody reads.
        """
        is_checked = self._mode is not Validate.IGNORE
        for raw in objects_in(files, located=is_checked):
            if not is_checked or (not are_added and came_from_server(raw)) or self._passes(raw):
                yield raw

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise ClusterFileError with the mistakes of all objects, and of what cannot be read, once all are read."""
        try:
            yield
        except ClusterFileError as error:
            raise ClusterFileError("\n".join((*self.lines[:MOST_ERRORS], str(error)))) from None
        if self._mode is Validate.STRICT and self.lines:
            raise ClusterFileError("\n".join(self.lines))

    def warnings(self) -> Iterator[str]:
        """Yield a line for each mistake that was let pass, up to those that anybody reads."""
        yield from (f"warning: {line}" for line in self.lines[:MOST_ERRORS])
        if (more := len(self.lines) - MOST_ERRORS) > 0:
            yield f"warning: ... and {more} more"

    def _passes(self, raw: RawObject) -> bool:
        try:
            value = json.loads(bytes(raw.value), object_pairs_hook=_object)
        except (*DECODE_ERRORS, ValueError):
            # Reading it tells of that.
            return True
        errors = published_errors(raw.api_version, raw.kind, value)
        self.lines += [f"{title(raw, str(error))}: {error}" for error in errors]
        if self._mode is Validate.STRICT and len(self.lines) > MOST_ERRORS:
            raise ClusterFileError(f"... and more errors: no more than {MOST_ERRORS} are told")
        return not errors or self._mode is Validate.WARN


NOTHING_CHECKED: Final = Validation(Validate.IGNORE)


def came_from_server(raw: RawObject) -> bool:
    """Whether an API server gave the object a uid or a version, as in snapshots and what `kubectl get` writes."""
    metadata = written_metadata(raw.value)
    return bool(metadata.uid or metadata.resource_version)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        fields |= {key: TWICE for key, number in Counter(key for key, _ in pairs).items() if number > 1}
    return fields
