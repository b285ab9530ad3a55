"""kube-scheduler's plugins, its default set, and which of a profile's plugins run where.

A plugin joins bayplan in `BAYPLAN_DECODERS`: it can be configured then. One of kube-scheduler's default set is part of
the default set here.
Sources: pkg/scheduler/apis/config/v1/default_plugins.go (also mergePluginSet) and pkg/scheduler/framework/runtime/
framework.go (expandMultiPointPlugins, getValidScoreWeights).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bayplan.config.bayplan_args import BAYPLAN_DECODERS
from bayplan.config.errors import ConfigurationError, FieldError, child, item, quote
from bayplan.config.types import (
    EXTENSION_POINTS,
    PLUGIN_SET_KEYS,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)

UPSTREAM_DEFAULT_PLUGINS: Final = (
    PluginEntry("SchedulingGates"),
    PluginEntry("PrioritySort"),
    PluginEntry("NodeName"),
    PluginEntry("NodeUnschedulable"),
    PluginEntry("TaintToleration", 3),
    PluginEntry("NodeAffinity", 2),
    PluginEntry("NodePorts"),
    PluginEntry("NodeResourcesFit", 1),
    PluginEntry("VolumeRestrictions"),
    PluginEntry("NodeVolumeLimits"),
    PluginEntry("VolumeBinding"),
    PluginEntry("VolumeZone"),
    PluginEntry("PodTopologySpread", 2),
    PluginEntry("InterPodAffinity", 2),
    PluginEntry("DynamicResources", 2),
    PluginEntry("DefaultPreemption"),
    PluginEntry("NodeResourcesBalancedAllocation", 1),
    PluginEntry("ImageLocality", 1),
    PluginEntry("DefaultBinder"),
    PluginEntry("NodeDeclaredFeatures"),
)
"""What kube-scheduler 1.37 enables at `multiPoint`, in its order, with its weights."""

UPSTREAM_PLUGINS: Final = frozenset(entry.name for entry in UPSTREAM_DEFAULT_PLUGINS) | {
    "DeferredPodScheduling",
    "GangScheduling",
    "PodGroupPodsCount",
    "TopologyPlacementGenerator",
}
"""Every plugin of kube-scheduler 1.37."""

REMOVED_PLUGINS: Final = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))
"""Plugins kube-scheduler once had, with an error text of their own."""

_SPREAD: Final = "PodTopologySpread spreads by its default constraints"
FORMER_PLUGINS: Final[Mapping[str, str]] = {
    "DefaultPodTopologySpread": _SPREAD,
    "NodeLabel": "give the pods a nodeAffinity, or NodeAffinity an addedAffinity",
    "NodePreferAvoidPods": "taint the nodes with PreferNoSchedule",
    "NodeResourceLimits": "it has no successor",
    "NodeResourcesLeastAllocated": "give NodeResourcesFit the scoringStrategy LeastAllocated",
    "NodeResourcesMostAllocated": "give NodeResourcesFit the scoringStrategy MostAllocated",
    "RequestedToCapacityRatio": "give NodeResourcesFit the scoringStrategy RequestedToCapacityRatio",
    "SelectorSpread": _SPREAD,
    "ServiceAffinity": "give the pods a podAffinity",
}
"""Plugins of kube-scheduler 1.17 to 1.20 that kube-scheduler does not know any more, and what to do instead.

Source: pkg/scheduler/framework/plugins/registry.go of these releases.
"""

COSCHEDULING: Final = "Coscheduling"
"""What of scheduler-plugins places the pods of a PodGroup together; here no plugin has to."""

OWN_PLUGINS: Final = frozenset(BAYPLAN_DECODERS) - UPSTREAM_PLUGINS
"""The plugins that kube-scheduler does not have; all take arguments, and none runs by default."""

IMPLEMENTED_PLUGINS: Final = frozenset(entry.name for entry in UPSTREAM_DEFAULT_PLUGINS).union(BAYPLAN_DECODERS)
"""The plugins bayplan has."""


DEFAULT_PLUGINS: Final = Plugins(multi_point=PluginSet(enabled=UPSTREAM_DEFAULT_PLUGINS))
"""What a profile begins with that says nothing: bayplan has all of kube-scheduler's default plugins."""


Extends = Callable[[str, str], bool]
"""Whether a plugin, by name, extends a point, a key of `EXTENSION_POINTS`; LookupError when there is no such plugin."""

_FIT: Final = "NodeResourcesFit"
_MAX_NODE_SCORE: Final = 100
_MAX_TOTAL_SCORE: Final = 2**63 - 1


def merge_plugins(defaults: Plugins, custom: Plugins) -> Plugins:
    """Each set of `custom` merged into the same set of `defaults`."""
    return Plugins(
        **{name: merge_plugin_set(getattr(defaults, name), getattr(custom, name)) for name in PLUGIN_SET_KEYS}
    )


def merge_plugin_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    """Drop the disabled defaults, replace those listed again in place, append the rest of `custom`.

    The result keeps who is disabled, and merging it again changes nothing.
    """
    disabled = tuple(PluginEntry(entry.name) for entry in (*custom.disabled, *defaults.disabled))
    names = {entry.name for entry in disabled}
    replacements = {entry.name: entry for entry in custom.enabled}
    kept = () if "*" in names else tuple(entry for entry in defaults.enabled if entry.name not in names)
    kept_names = {entry.name for entry in kept}
    return PluginSet(
        enabled=(
            *(replacements.get(entry.name, entry) for entry in kept),
            *(entry for entry in custom.enabled if entry.name not in kept_names),
        ),
        disabled=tuple(dict.fromkeys(disabled)),
    )


def expand_profiles(
    configuration: SchedulerConfiguration, extends: Extends
) -> dict[str, Mapping[str, tuple[PluginEntry, ...]]]:
    """The expanded plugins of every profile by schedulerName; all errors of all profiles at once."""
    expanded: dict[str, Mapping[str, tuple[PluginEntry, ...]]] = {}
    errors: list[FieldError] = []
    for index, profile in enumerate(configuration.profiles):
        try:
            points = _expand_profile(index, profile, extends)
        except ConfigurationError as error:
            errors += error.errors
        else:
            expanded[profile.scheduler_name] = points
    if errors:
        raise ConfigurationError(errors)
    return expanded


def _expand_profile(index: int, profile: Profile, extends: Extends) -> dict[str, tuple[PluginEntry, ...]]:
    return expand_plugins(
        profile.plugins,
        extends,
        scheduler_name=profile.scheduler_name,
        path=_plugins_path(index),
        fit_weight=_strategy_weight(profile),
    )


def _plugins_path(index: int) -> str:
    return child(item("profiles", index), "plugins")


def _strategy_weight(profile: Profile) -> int:
    """By how much NodeResourcesFit's largest score is larger than that of other plugins."""
    return sum(each.weight for each in profile.fit.scoring_strategies) or 1


def plugin_set_errors(
    configuration: SchedulerConfiguration, extends: Extends, errors: Sequence[FieldError]
) -> list[FieldError]:
    """What is wrong with the plugin sets of a configuration that has `errors` already, so that all are told at once.

    Profiles with an error in their `plugins`, and those that enable plugins `extends` does not know, are left out:
    their sets cannot be told yet.
    """
    found: list[FieldError] = []
    for index, profile in enumerate(configuration.profiles):
        if any(error.path.startswith(_plugins_path(index)) for error in errors):
            continue
        try:
            for attribute in PLUGIN_SET_KEYS:
                for entry in getattr(profile.plugins, attribute).enabled:
                    extends(entry.name, "filter")
            _expand_profile(index, profile, extends)
        except LookupError:
            continue
        except ConfigurationError as error:
            found += error.errors
    return found


def expand_plugins(
    plugins: Plugins, extends: Extends, *, scheduler_name: str, path: str = "plugins", fit_weight: int = 1
) -> dict[str, tuple[PluginEntry, ...]]:
    """Which plugins run at each extension point, in order; entries of `score` carry their weight, at least 1.

    First come plugins listed at the point that are in `multiPoint` too, in the point's order; then the rest of
    `multiPoint`; then the rest of the point's. A point's `disabled` holds back `multiPoint` plugins. `fit_weight`
    is the sum of the weights of NodeResourcesFit's strategies, where there are several.

    Raises:
        ConfigurationError: with kube-scheduler's start-up texts, all of them, at `path`.
    """
    errors: list[FieldError] = []
    expanded = {}
    for point, key in EXTENSION_POINTS.items():
        try:
            expanded[point] = _expand_point(getattr(plugins, point), plugins.multi_point, point, extends)
        except ConfigurationError as error:
            errors += [FieldError(child(path, key), complaint.message) for complaint in error.errors]
    wanted = f"for profile with scheduler name {quote(scheduler_name)}"
    # A point that failed has its own error already.
    queue_sorts = expanded.get("queue_sort")
    if queue_sorts is not None and len(queue_sorts) != 1:
        message = f"only one queue sort plugin required {wanted}, but got {len(queue_sorts)}"
        errors.append(FieldError(child(path, "queueSort"), message))
    if expanded.get("bind") == ():
        message = f"at least one bind plugin is needed {wanted}"
        errors.append(FieldError(child(path, "bind"), message))
    if not errors:
        weights = _score_weights(plugins, extends)
        expanded["score"] = tuple(PluginEntry(entry.name, weights[entry.name]) for entry in expanded["score"])
        if _overflows({name: weight * (fit_weight if name == _FIT else 1) for name, weight in weights.items()}):
            errors.append(
                FieldError(child(path, "score"), "score plugins: total score of Score plugins could overflow")
            )
    if errors:
        raise ConfigurationError(errors)
    return expanded


def _expand_point(own: PluginSet, multi_point: PluginSet, point: str, extends: Extends) -> tuple[PluginEntry, ...]:
    kind = f"{EXTENSION_POINTS[point][0].upper()}{EXTENSION_POINTS[point][1:]}Plugin"
    errors = []
    listed: dict[str, PluginEntry] = {}
    for entry in own.enabled:
        if not _extends(extends, entry.name, point, kind):
            errors.append(FieldError("", f'plugin "{entry.name}" does not extend {kind} plugin'))
        if entry.name in listed:
            errors.append(FieldError("", f'plugin "{entry.name}" already registered as "{kind}"'))
        listed.setdefault(entry.name, entry)
    disabled = {entry.name for entry in own.disabled}
    overrides: set[str] = set()
    expanded: dict[str, PluginEntry] = {}
    for entry in () if "*" in disabled else multi_point.enabled:
        if not _extends(extends, entry.name, point, kind) or entry.name in disabled:
            continue
        if entry.name in listed:
            overrides.add(entry.name)
        elif entry.name in expanded:
            errors.append(FieldError("", f'plugin "{entry.name}" already registered as "{kind}"'))
        else:
            expanded[entry.name] = entry
    if errors:
        raise ConfigurationError(errors)
    first = [entry for entry in listed.values() if entry.name in overrides]
    last = [entry for entry in listed.values() if entry.name not in overrides]
    return (*first, *expanded.values(), *last)


def _extends(extends: Extends, name: str, point: str, kind: str) -> bool:
    try:
        return extends(name, point)
    except LookupError:
        raise ConfigurationError([FieldError("", f'{kind} "{name}" does not exist')]) from None


def _score_weights(plugins: Plugins, extends: Extends) -> dict[str, int]:
    weights: dict[str, int] = {}
    for entry in (*plugins.score.enabled, *plugins.multi_point.enabled):
        if extends(entry.name, "score"):
            weights.setdefault(entry.name, entry.weight or 1)
    return weights


def _overflows(weights: Mapping[str, int]) -> bool:
    # kube-scheduler subtracts in 64 bits, so a negative sum so far wraps around and fails whatever comes next.
    total = 0
    for weight in weights.values():
        if total < 0 or weight * _MAX_NODE_SCORE > _MAX_TOTAL_SCORE - total:
            return True
        total += weight * _MAX_NODE_SCORE
    return False


def leave_to_extenders(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration with NodeResourcesFit ignoring what extenders want it to (upstream: buildExtenders).

    Their resources take the place of `ignoredResources` in every profile, as in kube-scheduler.
    """
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration
    profiles = (each.with_args(_FIT, replace(each.fit, ignored_resources=ignored)) for each in configuration.profiles)
    return replace(configuration, profiles=tuple(profiles))
