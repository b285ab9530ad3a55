"""Extenders as a scheduling Policy of Kubernetes 1.16 spells them (pkg/scheduler/api/v1/types.go ExtenderConfig)."""

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from typing import Any

from bayplan.config.connections import Extender, ExtenderManagedResource, ExtenderTLSConfig, decode_extender
from bayplan.config.errors import FieldNote
from bayplan.config.fields import Fields, camel_case


def decode_policy_extender(fields: Fields, notes: list[FieldNote]) -> Extender:
    """One extender of a policy, as today's configuration says it.

    Keys of any case work, as they did: `enableHttps`, `BindVerb`. `httpTimeout` may be in nanoseconds. An `apiVersion`,
    which samples of old have, meant nothing, and `notes` gets that.
    """
    value = {key: fields.raw(key) for key in fields.keys() if key != "apiVersion"}  # noqa: SIM118  not a mapping
    if fields.raw("apiVersion"):
        notes.append(FieldNote(fields.at("apiVersion"), "has no effect, as in 1.16"))
    plain = _renamed(value, Extender)
    if isinstance(tls := plain.get("tlsConfig"), dict):
        plain["tlsConfig"] = _renamed(tls, ExtenderTLSConfig)
    if isinstance(managed := plain.get("managedResources"), list):
        plain["managedResources"] = [
            _renamed(each, ExtenderManagedResource) if isinstance(each, dict) else each for each in managed
        ]
    if type(plain.get("httpTimeout")) in {int, float}:
        nanoseconds = Fields(plain, fields.path, fields.errors).integer("httpTimeout", 64) or 0
        plain["httpTimeout"] = f"{nanoseconds}ns"
    with Fields(plain, fields.path, fields.errors) as renamed:
        return decode_extender(renamed)


def _renamed(value: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """`value` with the fields of `kind` under the names they have today, and others as they are."""
    names = {camel_case(each.name).casefold(): camel_case(each.name) for each in dataclass_fields(kind)}
    return {names.get(key.casefold(), key): each for key, each in value.items()}
