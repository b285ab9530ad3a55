"""What Kubernetes' published OpenAPI document says against an object: fields, types and enumerations.

`openapi.json` is that document, cut to the fields of the kinds in READ, and with the names of all kinds there are.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from bayplan.api.kinds import NODES, PODS, RESOURCES
from bayplan.api.quantity import QuantityError, nano
from bayplan.config.errors import FieldError, child, invalid, item, quote, required, unsupported
from bayplan.simulate.field_rules import RULES
from bayplan.simulate.workloads import WORKLOADS

READ: Final = frozenset(
    {
        ("scheduling.k8s.io/v1", "PriorityClass"),
        *WORKLOADS,
        *((each.api_version, each.kind) for each in (NODES, PODS, *RESOURCES)),
    }
)
"""The kinds that are checked, by apiVersion and kind."""
MOST_ERRORS: Final = 100
"""How many errors of an object are told."""

_FILE: Final = Path(__file__).with_name("openapi.json")
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "string": ((str,), "must be a string"),
    "int-or-string": ((str, int), "must be a string or an integer"),
    "integer": ((int,), "must be an integer"),
    "number": ((int, float), "must be a number"),
    "boolean": ((bool,), "must be true or false"),
    "object": ((dict,), "must be an object"),
}

Schema = Mapping[str, Any]
Check = Callable[[Any], list[FieldError]]
"""Gives the errors in a value that is not null; their paths begin at it."""


class RepeatingDict(dict[str, Any]):
    """An object of a file with the keys that it gives more than once, of which the last counts."""

    repeated: Sequence[str] = ()


def published_errors(api_version: str, kind: str, value: object) -> list[FieldError]:
    """Return what is wrong with the fields of an object; no more than MOST_ERRORS.

    Nothing is said of what other kinds hold, nor of kinds of groups that are not Kubernetes' own.
    """
    named = (api_version or "v1", kind)
    kinds = _kinds()
    if named in READ:
        return _definition(kinds[named])(value)[:MOST_ERRORS]
    # Groups of custom kinds have a dot in their names.
    is_own = "." not in named[0].partition("/")[0] or any(version == named[0] for version, _ in kinds)
    if is_own and named not in kinds:
        return [FieldError("kind", f"no matches for kind {quote(kind)} in version {quote(named[0])}")]
    return []


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = msgspec.json.decode(_FILE.read_bytes())
    return document


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    definitions = _document()["definitions"].items()
    return {
        (each["apiVersion"], each["kind"]): name for name, schema in definitions for each in schema.get("kinds", ())
    }


@cache
def _definition(name: str) -> Check:
    check = _quantity if name == _QUANTITY else _check(_document()["definitions"][name])
    rule = RULES.get(name.rpartition(".")[2])
    return check if rule is None else lambda value: check(value) or list(rule(value))


def _check(schema: Schema, *, may_be_empty: bool = False) -> Check:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        # Looked up when it is needed: definitions may be inside themselves.
        return partial(_defined, name)
    if "properties" in schema:
        needed = schema.get("required", ())
        fields = {name: _check(each, may_be_empty=name not in needed) for name, each in schema["properties"].items()}
        # The API server takes zero for most that is missing, but for words that have to be one of a few.
        return partial(_object, fields, [name for name in needed if "enum" in schema["properties"][name]])
    if "additionalProperties" in schema:
        return partial(_map, _check(schema["additionalProperties"]))
    if schema.get("type") == "array":
        return partial(_array, _check(schema["items"]))
    enum = schema.get("enum", ())
    form = "int-or-string" if schema.get("format") == "int-or-string" else schema["type"]
    bits = 32 if schema.get("format") == "int32" else 64
    return partial(_scalar, form, bits, enum, "" if may_be_empty else None)


def _defined(name: str, value: object) -> list[FieldError]:
    return _definition(name)(value)


def _object(fields: Mapping[str, Check], needed: Iterable[str], value: object) -> list[FieldError]:
    if not isinstance(value, dict):
        return [invalid("", value, "must be an object")]
    errors: list[FieldError] = []
    for name, inner in value.items():
        check = fields.get(name)
        if check is None:
            close = difflib.get_close_matches(name[:64], fields, n=1) if len(errors) < MOST_ERRORS else ()
            hint = f', did you mean "{close[0]}"?' if close else ""
            errors.append(FieldError(child("", name), f"unknown field{hint}"))
        elif inner is not None and (found := check(inner)):
            errors += _inside(child("", name), found)
    errors += [required(name) for name in needed if value.get(name) is None]
    if isinstance(value, RepeatingDict):
        errors += [FieldError(child("", name), "is given twice") for name in value.repeated]
    return errors


def _map(check: Check, value: object) -> list[FieldError]:
    if not isinstance(value, dict):
        return [invalid("", value, "must be an object")]
    inside = ((name, inner) for name, inner in value.items() if inner is not None)
    return [error for name, inner in inside for error in _inside(child("", name), check(inner))]


def _array(check: Check, value: object) -> list[FieldError]:
    if not isinstance(value, list):
        return [invalid("", value, "must be a list")]
    errors: list[FieldError] = []
    for index, inner in enumerate(value):
        if found := [required("")] if inner is None else check(inner):
            errors += _inside(item("", index), found)
    return errors


def _scalar(form: str, bits: int, enum: Sequence[str], also: str | None, value: object) -> list[FieldError]:
    types, text = _TYPES[form]
    if isinstance(value, float) and int in types and value.is_integer():
        value = int(value)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        quotes = "; put it in quotes" if types == (str,) and isinstance(value, bool | int | float) else ""
        return [invalid("", value, f"{text}{quotes}")]
    if isinstance(value, int) and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return [invalid("", value, f"does not fit into {bits} bits")]
    if enum and value not in enum and value != also:
        return [unsupported("", value, enum)]
    return []


def _quantity(value: object) -> list[FieldError]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return [invalid("", value, "must be a quantity")]
    try:
        nano(value)
    except QuantityError as error:
        return [FieldError("", str(error))]
    return []


def _inside(name: str, errors: Iterable[FieldError]) -> list[FieldError]:
    """The errors of a value as those of what has it under this name."""
    joined = ((each, name + ("" if each.path[:1] in ("", "[") else ".") + each.path) for each in errors)
    return [FieldError(path, each.message) for each, path in joined][:MOST_ERRORS]
