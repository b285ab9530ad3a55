"""The JSON Schema of KubeSchedulerConfiguration v1, from the types that the decoders fill.

Names, types, defaults, words, ranges and descriptions are those of the types. What depends on several fields is left
to `bayplan config check`. The schema refuses nothing that is read.
"""

import ast
import base64
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Final, cast, get_args, get_origin

import msgspec

from bayplan.config.connections import Extender, LeaderElection
from bayplan.config.fields import format_duration
from bayplan.config.labels import API_RULES
from bayplan.config.plugin_args import TAKE_ARGUMENTS, default_args
from bayplan.config.plugin_sets import (
    FORMER_PLUGINS,
    IMPLEMENTED_PLUGINS,
    OWN_PLUGINS,
    REMOVED_PLUGINS,
    UPSTREAM_PLUGINS,
)
from bayplan.config.settings import ANY_DURATION, NOT_NEGATIVE_DURATION, OWN, Int64, camel_case, settings_of
from bayplan.config.types import (
    API_VERSION,
    KIND,
    PLUGIN_SET_KEYS,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    WeightedStrategy,
)
from bayplan.config.v1 import POD_GROUP_POINTS

Schema = dict[str, Any]
_SNAKE_CASE: Final = re.compile(r"(?<=`)[a-z]+(?:_[a-z]+)+(?=`)")


def configuration_schema() -> Schema:
    """Return the schema that `bayplan config schema` prints and docs/configuration.schema.json publishes."""
    definitions = _Definitions()
    root = definitions.body(SchedulerConfiguration, skip=("profiles", "extenders", "feature_gates"))
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **root.pop("properties"),
        "profiles": _list_of(definitions.reference(Profile), "How pods are scheduled, by their `schedulerName`."),
        "extenders": _list_of(definitions.reference(Extender), "In the order they are called."),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{KIND} as bayplan reads it",
        **root,
        "properties": properties,
        "required": ["apiVersion", "kind"],
        "$defs": dict(sorted(definitions.made.items())),
    }


class _Definitions:
    """Collects a definition for each type that is reached."""

    def __init__(self) -> None:
        self.made: dict[str, Schema] = {}

    def reference(self, kind: type) -> Schema:
        """Where the definition of a type is; it is made if it was not yet."""
        if kind.__name__ not in self.made:
            self.made[kind.__name__] = {}
            self.made[kind.__name__] = self._definition(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def body(self, kind: type, *, skip: tuple[str, ...] = ()) -> Schema:
        """An object with the fields of a type."""
        described, defaults = _field_docstrings(kind), _defaults(kind)
        must: list[str] = []
        properties: Schema = {}
        for each in settings_of(kind):
            if each.name in skip:
                continue
            rule = API_RULES.get(kind, {}).get(each.name, each.rule)
            found = {**self._value(each.hint), **rule.schema}
            properties[each.key] = found if rule.required else _or_null(found)
            if rule.required:
                must.append(each.key)
            if each.name in described:
                properties[each.key]["description"] = described[each.name]
            if (default := _plain(defaults.get(each.name))) is not None:
                properties[each.key]["default"] = default
        return {**_object(inspect.getdoc(kind) or "", properties), **({"required": must} if must else {})}

    def _definition(self, kind: type) -> Schema:
        if kind is Profile:
            return self._profile()
        if kind is Plugins:
            return self._plugins()
        if kind is PluginEntry:
            named = {"anyOf": [{"enum": ["*", *sorted(IMPLEMENTED_PLUGINS)]}, {"type": "string", "minLength": 1}]}
            body = self.body(kind)
            body["properties"]["name"] |= named
            return body | {"required": ["name"]}
        if kind is PluginSet:
            body = self.body(kind)
            body["properties"]["enabled"]["items"] = {
                "allOf": [self.reference(PluginEntry), {"properties": {"name": _plugin_name()}}]
            }
            return body
        if kind in {ScoringStrategy, WeightedStrategy}:
            return self._strategy(kind)
        body = self.body(kind)
        if kind is LeaderElection:
            body |= _ELECTION
        return body

    def _strategy(self, kind: type) -> Schema:
        body = self.body(ScoringStrategy)
        points = body["properties"].pop("shape")
        points.pop("default", None)
        ratio = _object("The function of RequestedToCapacityRatio.", {"shape": {**points, "minItems": 1}})
        body["properties"]["requestedToCapacityRatio"] = {**ratio, "type": ["object", "null"], "required": ["shape"]}
        if kind is WeightedStrategy:
            own = self.body(kind, skip=("strategy",))
            body |= {"description": own["description"], "properties": {**own["properties"], **body["properties"]}}
        return {**body, **_RATIO}

    def _profile(self) -> Schema:
        body = self.body(Profile, skip=("plugins", "plugin_config"))
        body["properties"] |= {
            "plugins": {"anyOf": [self.reference(Plugins), {"type": "null"}], "description": "What runs."},
            "pluginConfig": _list_of(self._plugin_config(), "Arguments of plugins."),
        }
        return body

    def _plugins(self) -> Schema:
        described = _field_docstrings(Plugins)
        sets: Schema = {}
        for attribute, key in PLUGIN_SET_KEYS.items():
            sets[key] = {
                "anyOf": [self.reference(PluginSet), {"type": "null"}],
                "description": described[attribute],
            }
        for key in POD_GROUP_POINTS:
            nothing = {"type": ["array", "null"], "maxItems": 0}
            sets[key] = _or_null(_object("For pods that are scheduled together: empty.", {"enabled": nothing}))
            sets[key]["properties"]["disabled"] = _list_of(self.reference(PluginEntry), "Has no effect.")
        return _object(inspect.getdoc(Plugins) or "", sets)

    def _plugin_config(self) -> Schema:
        """A plugin's arguments: its own for one of kube-scheduler's or bayplan's, any object for others."""
        rules = [
            {
                "if": {"properties": {"name": {"const": plugin}}, "required": ["name"]},
                "then": {"properties": {"args": {"anyOf": [self._args(plugin), {"type": "null"}]}}},
            }
            for plugin in sorted(UPSTREAM_PLUGINS | OWN_PLUGINS)
        ]
        args = {"type": ["object", "null"], "description": "What the plugin is told; each has fields of its own."}
        name = {**_plugin_name(), "description": "The plugin's name; each once."}
        return {**_object("The arguments of a plugin.", {"name": name, "args": args}), "required": ["name"]} | {
            "allOf": rules
        }

    def _args(self, plugin: str) -> Schema:
        head = {"apiVersion": {"enum": [API_VERSION, "", None]}, "kind": {"enum": [f"{plugin}Args", "", None]}}
        if plugin not in TAKE_ARGUMENTS:
            return _object(f"{plugin} takes no arguments.", head)
        kind = type(default_args(plugin))
        if kind.__name__ not in self.made:
            body = self.body(kind)
            fields = body["properties"]
            if own := {each.key: fields.pop(each.key) for each in settings_of(kind) if each.own}:
                fields[OWN] = _or_null(_object("What bayplan adds to kube-scheduler's arguments.", own))
            self.made[kind.__name__] = body | {"properties": {**head, **fields}}
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _value(self, hint: Any) -> Schema:  # noqa: ANN401  any annotation
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is UnionType:
            return self._value(next(each for each in arguments if each is not NoneType))
        if origin in {tuple, list}:
            return {"type": "array", "items": _or_null(self._value(arguments[0]))}
        if is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
            return self.reference(cast("type", hint))
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            return {"type": "string", "enum": [str(each) for each in hint]}
        return dict(_SCALARS[hint])


_BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_ELECTION: Final = {
    "if": {"properties": {"leaderElect": {"const": False}}, "required": ["leaderElect"]},
    "else": {
        "properties": {
            **{
                name: {"anyOf": [{"type": "null"}, {"type": "string", **NOT_NEGATIVE_DURATION.schema}]}
                for name in ("leaseDuration", "renewDeadline", "retryPeriod")
            },
            "resourceLock": {"enum": ["leases", "", None]},
        }
    },
}
"""Of LeaderElection: nothing is checked where nobody is elected."""
_RATIO: Final = {
    "if": {"properties": {"type": {"const": "RequestedToCapacityRatio"}}},
    "then": {"properties": {"requestedToCapacityRatio": {"type": "object"}}, "required": ["requestedToCapacityRatio"]},
    "else": {"properties": {"requestedToCapacityRatio": {"type": "null"}}},
}
"""Of a scoring strategy: only one type has a function, and that one must."""
_SCALARS: Final[Mapping[Any, Schema]] = {
    Int64: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    dict[str, str]: {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    float: {"type": "number", "minimum": -1e38, "maximum": 1e38},
    bytes: {"type": "string", "contentEncoding": "base64", "pattern": _BASE64},
    timedelta: {"type": "string", "pattern": ANY_DURATION},
}


def _object(description: str, properties: Schema) -> Schema:
    return {"description": description, "type": "object", "properties": properties, "additionalProperties": False}


def _or_null(schema: Schema) -> Schema:
    """The same, or what says nothing: null, and no word where a word is expected."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    words = {"enum": [*schema["enum"], "", None]} if "enum" in schema else {}
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {**schema, **words, "type": [*types, "null"]}


def _list_of(element: Schema, description: str) -> Schema:
    return {"type": ["array", "null"], "items": {"anyOf": [element, {"type": "null"}]}, "description": description}


def _plugin_name() -> Schema:
    """Known names are offered; a plugin from outside may have any but those that are gone."""
    gone = sorted({*REMOVED_PLUGINS, *FORMER_PLUGINS, *(UPSTREAM_PLUGINS - IMPLEMENTED_PLUGINS)})
    own = {"type": "string", "minLength": 1, "not": {"enum": gone}}
    return {"anyOf": [{"enum": sorted(IMPLEMENTED_PLUGINS)}, own]}


def _field_docstrings(kind: type) -> dict[str, str]:
    """The text below each field of a class, which is there in its source only."""
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except OSError:
        # Installed without sources: fields go without a description.
        return {}
    (body,) = (each.body for each in source.body if isinstance(each, ast.ClassDef))
    return {
        field.target.id: _SNAKE_CASE.sub(lambda name: camel_case(name[0]), " ".join(text.value.value.split()))
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _defaults(kind: type) -> dict[str, Any]:
    if not is_dataclass(kind):
        # The API's own types: zero values that say nothing.
        return {}
    return {each.name: each.default for each in dataclass_fields(kind) if each.default is not MISSING}


def _plain(value: Any) -> Any:  # noqa: ANN401  any default
    """A default as the file would say it; None for one that says nothing."""
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, timedelta):
        return format_duration(value) if value else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() or None
    if isinstance(value, bool | int | float):
        return value
    return value if isinstance(value, str) and value else None
