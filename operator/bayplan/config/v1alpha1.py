"""KubeSchedulerConfiguration v1alpha1 and v1alpha2, of the time before profiles: a provider or a policy.

Sources, of releases 1.16 and 1.17: staging kube-scheduler/config/v1alpha1/types.go and
pkg/scheduler/apis/config/v1alpha1/defaults.go.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayplan.config.document import read_document
from bayplan.config.errors import (
    ConfigurationError,
    FieldError,
    FieldNote,
    forbidden,
    quote_unprintable,
    required,
    unsupported,
)
from bayplan.config.feature_gates import FeatureGates
from bayplan.config.fields import Fields
from bayplan.config.plugin_args import default_args
from bayplan.config.policy import decode_hard_weight, decode_policy
from bayplan.config.types import (
    DEFAULT_SCHEDULER_NAME,
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PluginEntry,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    VolumeBindingArgs,
)
from bayplan.config.v1 import decode_process_settings, decode_profile

_DEFAULT_PROVIDER: Final = "DefaultProvider"
_AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
_PREEMPTION: Final = "DefaultPreemption"
_OLD_LOCKS: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
_ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
_RENAMED_POINTS: Final[Mapping[str, str]] = {"postFilter": "preScore"}
"""Extension points that have another name since v1alpha2."""


def decode_v1alpha1(
    document: Mapping[str, Any],
    directory: Path,
    known: frozenset[str],
    errors: list[FieldError],
    notes: list[FieldNote],
    *,
    gates: FeatureGates,
) -> SchedulerConfiguration:
    """The configuration as v1 would say it; a policy file is looked for from `directory`.

    To be used only when `errors` stays empty. `notes` gets what v1 cannot say.
    """
    document = _with_todays_lock(document, errors, notes)
    with Fields(document, "", errors) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        settings = decode_process_settings(fields, parallelism=16, delay_cache_until_active=False)
        name = fields.string("schedulerName") or DEFAULT_SCHEDULER_NAME
        unserved = "has no successor; use --bind-address and --http-port of bayplan run"
        notes.extend(FieldNote(key, unserved) for key in _ADDRESSES if fields.string(key))
        hard_weight = decode_hard_weight(fields)
        algorithm = _algorithm(fields, directory, known, notes, hard_weight, gates=gates)
        profile = _with_bind_timeout(fields, algorithm.profiles[0])
        if fields.boolean("disablePreemption"):
            profile = _without_preemption(profile)
        return replace(settings, profiles=(replace(profile, scheduler_name=name),), extenders=algorithm.extenders)


def _with_todays_lock(
    document: Mapping[str, Any], errors: list[FieldError], notes: list[FieldNote]
) -> Mapping[str, Any]:
    """The document with the lock of `leaderElection` as v1 names it."""
    election = document.get("leaderElection")
    if not isinstance(election, dict):
        return document
    election = dict(election)
    for old, new in (("lockObjectName", "resourceName"), ("lockObjectNamespace", "resourceNamespace")):
        value, named = election.pop(old, None), election.get(new)
        if value and named and value != named:
            errors.append(forbidden(f"leaderElection.{old}", f"may not be given together with another {new}"))
        elif value:
            election[new] = value
    lock = election.get("resourceLock")
    if isinstance(lock, str) and lock in _OLD_LOCKS:
        election["resourceLock"] = "leases"
        notes.append(FieldNote("leaderElection.resourceLock", f"is leases: Kubernetes has no {lock} lock any more"))
    return {**document, "leaderElection": election}


def _algorithm(
    fields: Fields,
    directory: Path,
    known: frozenset[str],
    notes: list[FieldNote],
    hard_weight: int | None,
    *,
    gates: FeatureGates,
) -> SchedulerConfiguration:
    """One profile, and the extenders, that `algorithmSource`, `plugins` and `pluginConfig` say."""
    with fields.nested("algorithmSource") as source:
        provider = source.string("provider")
        if provider and provider not in {_DEFAULT_PROVIDER, _AUTOSCALER_PROVIDER}:
            supported = [_DEFAULT_PROVIDER, _AUTOSCALER_PROVIDER]
            source.errors.append(unsupported(source.at("provider"), provider, supported))
        found = None
        if source.has("policy"):
            if provider:
                source.errors.append(forbidden(source.at("policy"), "may not be given together with provider"))
            found = _policy(source, directory, known, notes, hard_weight)
    profile = _own_plugins(fields, known, gates, notes)
    if found is not None:
        for key in ("plugins", "pluginConfig"):
            if fields.raw(key):
                fields.errors.append(forbidden(key, "may not be given together with a policy"))
        return found
    config: dict[str, PluginArgs] = dict(profile.plugin_config)
    if hard_weight and config.get("InterPodAffinity") == default_args("InterPodAffinity"):
        config["InterPodAffinity"] = InterPodAffinityArgs(hard_weight)
    if provider == _AUTOSCALER_PROVIDER:
        packing = ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED)
        fit = config.get("NodeResourcesFit")
        given = fit if isinstance(fit, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        config["NodeResourcesFit"] = replace(given, scoring_strategy=packing)
    return SchedulerConfiguration(profiles=(replace(profile, plugin_config=config),))


def _own_plugins(fields: Fields, known: frozenset[str], gates: FeatureGates, notes: list[FieldNote]) -> Profile:
    """The default profile with `plugins` and `pluginConfig`, whose extension points had other names."""
    plugins = fields.raw("plugins")
    if isinstance(plugins, dict):
        plugins = dict(plugins)
        if plugins.pop("unreserve", None):
            notes.append(FieldNote("plugins.unreserve", "is part of reserve: a plugin that reserves also unreserves"))
        renamed = [point for point in plugins if point in _RENAMED_POINTS]
        notes.extend(FieldNote(f"plugins.{old}", f"is called {_RENAMED_POINTS[old]} today") for old in renamed)
        plugins = {_RENAMED_POINTS.get(point, point): value for point, value in plugins.items()}
    given = {"plugins": plugins, "pluginConfig": fields.raw("pluginConfig")}
    with Fields(given, "", fields.errors) as block:
        return decode_profile(block, known, gates, DEFAULT_SCHEDULER_NAME)


def _policy(
    source: Fields, directory: Path, known: frozenset[str], notes: list[FieldNote], hard_weight: int | None
) -> SchedulerConfiguration | None:
    with source.nested("policy") as policy:
        if policy.has("configMap"):
            detail = "is not supported; mount the ConfigMap and name the file"
            policy.errors.append(forbidden(policy.at("configMap"), detail))
            policy.raw("file")
            return None
        with policy.nested("file") as file:
            path = file.string("path")
            if not path:
                file.errors.append(required(file.at("path")))
                return None
            return _policy_file(directory / path, file, known, notes, hard_weight)


def _policy_file(
    path: Path, file: Fields, known: frozenset[str], notes: list[FieldNote], hard_weight: int | None
) -> SchedulerConfiguration | None:
    wrong: list[FieldError] = []
    said: list[FieldNote] = []
    configuration = None
    try:
        document = read_document(path, wrong, only_regular=True)
        if (document.get("kind"), document.get("apiVersion")) == ("Policy", "v1"):
            configuration = decode_policy(document, known, wrong, said, hard_weight)
        else:
            wrong.append(FieldError("kind", "must be Policy, and apiVersion v1"))
    except ConfigurationError as error:
        wrong += error.errors
    shown = quote_unprintable(str(path))
    file.errors += [FieldError(file.at("path"), f"{shown}: {each}") for each in wrong]
    notes += [FieldNote(file.at("path"), f"{shown}: {each}") for each in said]
    return configuration


def _with_bind_timeout(fields: Fields, profile: Profile) -> Profile:
    """The profile with VolumeBinding's argument, which stood at the top level."""
    config: dict[str, PluginArgs] = dict(profile.plugin_config)
    seconds = fields.integer("bindTimeoutSeconds", 64)
    if seconds is not None:
        if seconds < 0:
            fields.invalid("bindTimeoutSeconds", seconds, "must be non-negative")
        if isinstance(given := config.get("VolumeBinding"), VolumeBindingArgs):
            config["VolumeBinding"] = replace(given, bind_timeout_seconds=seconds)
    return replace(profile, plugin_config=config)


def _without_preemption(profile: Profile) -> Profile:
    """`disablePreemption`: DefaultPreemption is held back from postFilter, as if v1 disabled it there."""
    post_filter = PluginSet(profile.plugins.post_filter.enabled, (PluginEntry(_PREEMPTION),))
    return replace(profile, plugins=replace(profile.plugins, post_filter=post_filter))
