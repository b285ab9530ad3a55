"""What Kubernetes' published OpenAPI document says against an object: fields, types and enumerations.

`openapi.json` is that document, cut to the fields of the kinds in READ, and with the names of all kinds there are.
"""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from bayplan.api.kinds import CLAIM_TEMPLATES, CRD_POD_GROUPS, NODES, POD_GROUPS, PODS, RESOURCES
from bayplan.config.errors import FieldError, child, invalid, item, quote, required, unsupported
from bayplan.simulate.field_rules import RULES
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
            close = difflib.get_close_matches(name[:64], fields, n=1)
            yield FieldError(where, "unknown field" + (f', did you mean "{close[0]}"?' if close else ""))
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
