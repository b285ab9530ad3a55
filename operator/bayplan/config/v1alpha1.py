"""KubeSchedulerConfiguration v1alpha1 and v1alpha2, as far as it is about one scheduler with a provider or a policy."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bayplan.config.document import read_document
from bayplan.config.errors import ConfigurationError, FieldError, forbidden, required, unsupported
from bayplan.config.fields import Fields
from bayplan.config.policy import decode_policy
from bayplan.config.process_settings import decode_process_settings
from bayplan.config.profiles import Support, decode_profile
from bayplan.config.types import (
    DEFAULT_SCHEDULER_NAME,
    PluginEntry,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)

API_VERSIONS: Final = ("kubescheduler.config.k8s.io/v1alpha1", "kubescheduler.config.k8s.io/v1alpha2")

_DEFAULT_PROVIDER: Final = "DefaultProvider"
_PREEMPTION: Final = "DefaultPreemption"


def decode_v1alpha1(
    document: Mapping[str, Any], directory: Path, support: Support, errors: list[FieldError]
) -> SchedulerConfiguration:
    """The configuration as v1 would say it; a policy file is looked for from `directory`."""
    with Fields(document, "", errors) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        configuration = decode_process_settings(fields)
        name = fields.string("schedulerName") or DEFAULT_SCHEDULER_NAME
        profile = _algorithm(fields, directory, support)
        if fields.boolean("disablePreemption"):
            profile = _without_preemption(profile)
        return replace(configuration, profiles=(replace(profile, scheduler_name=name),))


def _algorithm(fields: Fields, directory: Path, support: Support) -> Profile:
    profile = decode_profile(Fields(None, "", []), support, DEFAULT_SCHEDULER_NAME)
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
                return _policy_profile(directory / path, file, support) or profile


def _policy_profile(path: Path, file: Fields, support: Support) -> Profile | None:
    found: list[FieldError] = []
    try:
        document = read_document(path, found)
        if (document.get("kind"), document.get("apiVersion")) == ("Policy", "v1"):
            configuration = decode_policy(document, support, found)
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
