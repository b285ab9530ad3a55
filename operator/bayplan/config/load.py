"""From a file to the effective configuration: the entry of this package."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayplan.config.document import read_document
from bayplan.config.errors import ConfigurationError, FieldError, forbidden, invalid, required, show_value, unsupported
from bayplan.config.fields import Fields
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS
from bayplan.config.policy import decode_policy
from bayplan.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    NodeResourcesFitArgs,
    PluginEntry,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.config.v1 import decode_process_settings, decode_profile, decode_v1

_BETA_VERSIONS: Final = tuple(f"kubescheduler.config.k8s.io/v1beta{number}" for number in (1, 2, 3))
_ALPHA_VERSIONS: Final = ("kubescheduler.config.k8s.io/v1alpha1", "kubescheduler.config.k8s.io/v1alpha2")

_DEFAULT_PROVIDER: Final = "DefaultProvider"
_PREEMPTION: Final = "DefaultPreemption"


def load_configuration(
    path: Path, *, scheduler_name: str | None = None, known_plugins: frozenset[str] = IMPLEMENTED_PLUGINS
) -> SchedulerConfiguration:
    """The effective configuration in the file: decoded strictly, defaulted, merged and validated.

    Reads KubeSchedulerConfiguration v1, v1alpha1 and v1alpha2, and Policy v1, as YAML or JSON.

    Args:
        path: the file.
        scheduler_name: renames the only profile.
        known_plugins: plugins that may be enabled and configured; other names are errors.

    Raises:
        ConfigurationError: with everything that is wrong; its text has one line per error, each with the file's name.
    """
    errors: list[FieldError] = []
    document = read_document(path, errors)
    version, kind = document.get("apiVersion"), document.get("kind")
    if (version, kind) == (API_VERSION, KIND):
        configuration = decode_v1(document, known_plugins, errors)
    elif kind == KIND and version in _ALPHA_VERSIONS:
        configuration = _decode_v1alpha1(document, path.parent, known_plugins, errors)
    elif (version, kind) == ("v1", "Policy"):
        configuration = decode_policy(document, known_plugins, errors)
    else:
        raise ConfigurationError([*errors, *_wrong_kind(version, kind)], file=str(path))
    if scheduler_name is not None:
        configuration = rename_profile(configuration, scheduler_name, errors)
    if errors:
        raise ConfigurationError(errors, file=str(path))
    return configuration


def default_configuration(
    *, scheduler_name: str | None = None, known_plugins: frozenset[str] = IMPLEMENTED_PLUGINS
) -> SchedulerConfiguration:
    """What bayplan does without a file: one profile, `bayplan` unless named, that packs by cpu and memory.

    Raises:
        ConfigurationError: `scheduler_name` is empty.
    """
    if scheduler_name == "":
        raise ConfigurationError([required("--scheduler-name")])
    name = DEFAULT_SCHEDULER_NAME if scheduler_name is None else scheduler_name
    profile = decode_profile(Fields(None, "", []), known_plugins, name)
    packing = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED))
    config = {**profile.plugin_config, "NodeResourcesFit": packing}
    return SchedulerConfiguration(profiles=(replace(profile, plugin_config=config),))


def rename_profile(
    configuration: SchedulerConfiguration, name: str, errors: list[FieldError]
) -> SchedulerConfiguration:
    """The configuration with its only profile called `name`; several profiles are an error."""
    if not name:
        errors.append(required("--scheduler-name"))
    if len(configuration.profiles) != 1:
        count = len(configuration.profiles)
        errors.append(forbidden("--scheduler-name", f"renames the only profile, but there are {count}"))
        return configuration
    return replace(configuration, profiles=(replace(configuration.profiles[0], scheduler_name=name),))


def _wrong_kind(version: object, kind: object) -> list[FieldError]:
    if kind == KIND and version in _BETA_VERSIONS:
        detail = (
            f"was removed from kube-scheduler; change it to {API_VERSION} and move resource scoring plugins to "
            "the scoringStrategy of NodeResourcesFit"
        )
        return [invalid("apiVersion", version, detail)]
    if kind is None or kind == "":
        return [required("kind", f"{KIND} or Policy")]
    if kind not in (KIND, "Policy"):
        return [unsupported("kind", kind, [KIND, "Policy"])]
    supported = [API_VERSION] if kind == KIND else ["v1"]
    if version is None or version == "":
        return [required("apiVersion", f"{supported[0]} for kind {show_value(kind)}")]
    return [unsupported("apiVersion", version, supported)]


def _decode_v1alpha1(
    document: Mapping[str, Any], directory: Path, known: frozenset[str], errors: list[FieldError]
) -> SchedulerConfiguration:
    """The configuration as v1 would say it; a policy file is looked for from `directory`."""
    with Fields(document, "", errors) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        configuration = decode_process_settings(fields, parallelism=16, delay_cache_until_active=False)
        name = fields.string("schedulerName") or DEFAULT_SCHEDULER_NAME
        profile = _algorithm(fields, directory, known)
        if fields.boolean("disablePreemption"):
            profile = _without_preemption(profile)
        return replace(configuration, profiles=(replace(profile, scheduler_name=name),))


def _algorithm(fields: Fields, directory: Path, known: frozenset[str]) -> Profile:
    profile = decode_profile(Fields(None, "", []), known, DEFAULT_SCHEDULER_NAME)
    with fields.nested("algorithmSource") as source:
        provider = source.string("provider")
        if provider is not None and provider != _DEFAULT_PROVIDER:
            source.errors.append(unsupported(source.at("provider"), provider, [_DEFAULT_PROVIDER]))
        if not source.has("policy"):
            return profile
        if provider is not None:
            source.errors.append(forbidden(source.at("policy"), "may not be given together with provider"))
        with source.nested("policy") as policy:
            if policy.has("configMap"):
                detail = "is not supported; mount the ConfigMap and name the file"
                policy.errors.append(forbidden(policy.at("configMap"), detail))
                return profile
            with policy.nested("file") as file:
                path = file.string("path")
                if not path:
                    file.errors.append(required(file.at("path")))
                    return profile
                return _policy_profile(directory / path, file, known) or profile


def _policy_profile(path: Path, file: Fields, known: frozenset[str]) -> Profile | None:
    found: list[FieldError] = []
    try:
        document = read_document(path, found)
        if (document.get("kind"), document.get("apiVersion")) == ("Policy", "v1"):
            configuration = decode_policy(document, known, found)
        else:
            found.append(FieldError("kind", "must be Policy, and apiVersion v1"))
    except ConfigurationError as error:
        found += error.errors
    if not found:
        return configuration.profiles[0]
    file.errors += [FieldError(file.at("path"), f"{path}: {each}") for each in found]
    return None


def _without_preemption(profile: Profile) -> Profile:
    """`disablePreemption`: DefaultPreemption is held back from postFilter, as if v1 disabled it there."""
    post_filter = PluginSet(profile.plugins.post_filter.enabled, (PluginEntry(_PREEMPTION),))
    return replace(profile, plugins=replace(profile.plugins, post_filter=post_filter))
