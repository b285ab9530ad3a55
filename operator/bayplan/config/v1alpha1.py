"""KubeSchedulerConfiguration v1alpha1, of the time before profiles: a provider or a policy.

Sources, of releases 1.16 and 1.17: staging kube-scheduler/config/v1alpha1/types.go and
pkg/scheduler/apis/config/v1alpha1/defaults.go.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from bayplan.api.kubeconfig import is_address
from bayplan.config.connections import LeaderElection, decode_leader_election
from bayplan.config.document import parse_document, read_data
from bayplan.config.errors import ConfigurationError, FieldError, quote_unprintable, unsupported
from bayplan.config.fields import Fields
from bayplan.config.plugin_args import default_args
from bayplan.config.policy import decode_hard_weight, decode_policy
from bayplan.config.types import (
    DEFAULT_SCHEDULER_NAME,
    PLUGIN_SET_KEYS,
    InterPodAffinityArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    VolumeBindingArgs,
)
from bayplan.config.v1 import (
    decode_file,
    decode_plugin_config,
    decode_plugin_set,
    decode_process_settings,
    make_profile,
)

_AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
_PROVIDERS: Final = ("DefaultProvider", _AUTOSCALER_PROVIDER)
_OLD_LOCKS: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
_HOST_AND_PORT: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<plain>[^\[\]:]*)):(?P<port>[^\[\]:]*)")
_POINTS: Final[Mapping[str, str]] = {
    attribute: "postFilter" if attribute == "pre_score" else key
    for attribute, key in PLUGIN_SET_KEYS.items()
    if attribute not in {"pre_enqueue", "post_filter", "multi_point"}
}
"""The extension points that a plugin could be enabled at, by today's attribute: what was postFilter is preScore."""
_UNRESERVE: Final = "unreserve"


def decode_v1alpha1(fields: Fields) -> SchedulerConfiguration:
    """The configuration as v1 would say it; to be used only when there are no errors. What v1 cannot say is noted."""
    settings = decode_process_settings(fields, _leader_election, parallelism=16, delay_cache_until_active=False)
    name = fields.string("schedulerName") or DEFAULT_SCHEDULER_NAME
    for key in ("healthzBindAddress", "metricsBindAddress"):
        _check_address(fields, key)
    algorithm = _algorithm(fields, decode_hard_weight(fields))
    profile = _with_bind_timeout(fields, algorithm.profiles[0])
    if fields.boolean("disablePreemption"):
        # As if v1 disabled it there.
        post_filter = PluginSet(profile.plugins.post_filter.enabled, (PluginEntry("DefaultPreemption"),))
        profile = replace(profile, plugins=replace(profile.plugins, post_filter=post_filter))
    return replace(settings, profiles=(replace(profile, scheduler_name=name),), extenders=algorithm.extenders)


def _check_address(fields: Fields, key: str) -> None:
    """Refuse the address where 1.16 did, and tell that it is not served.

    What is no host with a port was no error: the default took its place before it was checked.
    """
    address = fields.string(key)
    if not address:
        return
    fields.note(key, "has no successor; use --bind-address and --secure-port of bayplan run")
    if (parts := _HOST_AND_PORT.fullmatch(address)) is None:
        return
    host, port = parts["bracketed"] or parts["plain"], parts["port"]
    if not (port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= 65535):
        fields.invalid(key, address, "must be between 1 and 65535, inclusive")
    if host and not is_address(host):
        fields.invalid(key, address, "must be a valid IP address, (e.g. 10.9.8.7)")


def path_in_v1alpha1(path: str) -> str:
    """The path that a field of the only profile has in a v1alpha1 file."""
    own = path.removeprefix("profiles[0].")
    for attribute, key in _POINTS.items():
        todays = f"plugins.{PLUGIN_SET_KEYS[attribute]}"
        if own == todays or own.startswith(f"{todays}."):
            return f"plugins.{key}{own.removeprefix(todays)}"
    return own


def _leader_election(fields: Fields) -> LeaderElection:
    """Which replica is at work, by a lock that may have its old kind and its old names."""
    lock = fields.string("resourceLock") or "leases"
    if lock in _OLD_LOCKS:
        fields.note("resourceLock", f"is leases: Kubernetes has no {lock} lock any more")
        lock = "leases"
    default = LeaderElection()
    return decode_leader_election(
        fields,
        resource_lock=lock,
        resource_name=_either(fields, "lockObjectName", "resourceName") or default.resource_name,
        resource_namespace=_either(fields, "lockObjectNamespace", "resourceNamespace") or default.resource_namespace,
    )


def _either(fields: Fields, old: str, new: str) -> str | None:
    value, named = fields.string(old), fields.string(new)
    if value and named and value != named:
        fields.forbid(old, f"may not be given together with another {new}")
    return value or named


def _algorithm(fields: Fields, hard_weight: int | None) -> SchedulerConfiguration:
    """One profile, and the extenders, that `algorithmSource`, `plugins` and `pluginConfig` say."""
    with fields.nested("algorithmSource") as source:
        provider = source.string("provider")
        if provider and provider not in _PROVIDERS:
            source.errors.append(unsupported(source.at("provider"), provider, _PROVIDERS))
        found = None
        if provider and source.raw("policy") is not None:
            source.note("policy", "is not read, as a provider is named")
        elif source.has("policy"):
            found = _policy(source, hard_weight)
    profile = make_profile(fields.optional("plugins", _plugins), decode_plugin_config(fields))
    if found is not None:
        for key in ("plugins", "pluginConfig"):
            if fields.raw(key):
                fields.forbid(key, "may not be given together with a policy")
        return found
    if hard_weight and profile.plugin_config.get("InterPodAffinity") == default_args("InterPodAffinity"):
        profile = profile.with_args("InterPodAffinity", InterPodAffinityArgs(hard_weight))
    if provider == _AUTOSCALER_PROVIDER:
        packing = ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED)
        profile = profile.with_args("NodeResourcesFit", replace(profile.fit, scoring_strategy=packing))
    return SchedulerConfiguration(profiles=(profile,))


def _plugins(fields: Fields) -> Plugins:
    """What is enabled, at the extension points of today."""
    sets = {}
    for attribute, key in _POINTS.items():
        if (todays := PLUGIN_SET_KEYS[attribute]) != key and fields.has(key):
            fields.note(key, f"is called {todays} today")
        sets[attribute] = PluginSet(_enabled(fields, key))
    undoing = _enabled(fields, _UNRESERVE)
    if undoing:
        fields.note(_UNRESERVE, "is part of reserve: a plugin that reserves also unreserves")
        reserving = {entry.name for entry in sets["reserve"].enabled}
        for entry in undoing:
            if entry.name not in reserving:
                fields.note(_UNRESERVE, f"{quote_unprintable(entry.name)} is dropped: it is not enabled at reserve")
    return Plugins(**sets)


def _enabled(fields: Fields, key: str) -> tuple[PluginEntry, ...]:
    with fields.nested(key) as block:
        listed = decode_plugin_set(block)
    if listed.disabled:
        # A provider's predicates and priorities were no plugins yet.
        block.note("disabled", "has no effect, as in v1alpha1: use v1 to disable default plugins")
    return listed.enabled


def _policy(source: Fields, hard_weight: int | None) -> SchedulerConfiguration | None:
    with source.nested("policy") as policy:
        if policy.has("configMap"):
            policy.forbid("configMap", "is not supported; mount the ConfigMap and name the file")
            policy.raw("file")
            return None
        with policy.nested("file") as file:
            if path := file.string("path"):
                return _policy_file(file.reading.directory / path, file, hard_weight)
            file.require("path")
            return None


def _policy_file(path: Path, file: Fields, hard_weight: int | None) -> SchedulerConfiguration | None:
    reading = replace(file.reading, errors=[], notes=[])
    configuration = None
    try:
        document = parse_document(read_data(path, only_regular=True), reading.errors)
        if (document.get("kind"), document.get("apiVersion")) == ("Policy", "v1"):
            configuration = decode_file(lambda policy: decode_policy(policy, hard_weight), document, reading)
        else:
            reading.errors.append(FieldError("kind", "must be Policy, and apiVersion v1"))
    except ConfigurationError as error:
        reading.errors.extend(error.errors)
    shown = quote_unprintable(str(path))
    file.errors += [FieldError(file.at("path"), f"{shown}: {each}") for each in reading.errors]
    for each in reading.notes:
        file.note("path", f"{shown}: {each}")
    return configuration


def _with_bind_timeout(fields: Fields, profile: Profile) -> Profile:
    """The profile with VolumeBinding's argument, which stood at the top level."""
    seconds, given = fields.integer("bindTimeoutSeconds", 64), profile.plugin_config.get("VolumeBinding")
    if seconds is not None and seconds < 0:
        fields.invalid("bindTimeoutSeconds", seconds, "must be non-negative")
    if seconds is None or not isinstance(given, VolumeBindingArgs):
        return profile
    return profile.with_args("VolumeBinding", replace(given, bind_timeout_seconds=seconds))
