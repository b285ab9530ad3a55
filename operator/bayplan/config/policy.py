"""The scheduling Policy of kube-scheduler before 1.23 (`kind: Policy`, `apiVersion: v1`), as today's plugins.

Sources: pkg/scheduler/factory.go CreateFromConfig, pkg/scheduler/algorithm and pkg/scheduler/api/v1/types.go of release
1.16. A table maps an old name to the plugins that do its work today; whether bayplan has them is decided on reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bayplan.config.errors import FieldError, duplicate, forbidden
from bayplan.config.fields import Fields, required_name
from bayplan.config.plugin_args import decode_resources, decode_shape, validate_resources, validate_shape
from bayplan.config.plugin_sets import UPSTREAM_DEFAULT_PLUGINS, default_plugins, merge_plugins
from bayplan.config.types import (
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)
from bayplan.config.v1 import complete_plugin_config

NO_SUCCESSOR: Final = ("",)
"""Known names that nothing does the work of."""

PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "GeneralPredicates": ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": NO_SUCCESSOR,
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    # Node conditions became taints in 1.12 and these predicates were dropped in favour of them.
    "CheckNodeCondition": ("NodeUnschedulable", "TaintToleration"),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "CheckNodeLabelPresence": NO_SUCCESSOR,
    "CheckServiceAffinity": NO_SUCCESSOR,
}
"""Predicates to the filter plugins that replace them."""

MANDATORY_FILTERS: Final = ("NodeUnschedulable", "TaintToleration")
"""Filters a policy cannot switch off: 1.16 runs CheckNodeUnschedulable and PodToleratesNodeTaints whatever it lists."""

PRIORITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "EqualPriority": (),
    "LeastRequestedPriority": ("NodeResourcesFit",),
    "MostRequestedPriority": ("NodeResourcesFit",),
    "RequestedToCapacityRatioPriority": ("NodeResourcesFit",),
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation",),
    "NodeAffinityPriority": ("NodeAffinity",),
    "TaintTolerationPriority": ("TaintToleration",),
    "ImageLocalityPriority": ("ImageLocality",),
    "InterPodAffinityPriority": ("InterPodAffinity",),
    "EvenPodsSpreadPriority": ("PodTopologySpread",),
    "SelectorSpreadPriority": NO_SUCCESSOR,
    "ServiceSpreadingPriority": NO_SUCCESSOR,
    "NodePreferAvoidPodsPriority": NO_SUCCESSOR,
    "ResourceLimitsPriority": NO_SUCCESSOR,
}
"""Priorities to the score plugins that replace them; EqualPriority scores all nodes alike and needs none."""

DEFAULT_PRIORITIES: Final = (
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
    "ImageLocalityPriority",
    "InterPodAffinityPriority",
)
"""What 1.16 scores by, each with weight 1, when a policy has no `priorities`; those without a plugin are left out."""

STRATEGIES: Final[Mapping[str, ScoringStrategyType]] = {
    "LeastRequestedPriority": ScoringStrategyType.LEAST_ALLOCATED,
    "MostRequestedPriority": ScoringStrategyType.MOST_ALLOCATED,
    "RequestedToCapacityRatioPriority": ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO,
}
"""Priorities that are scoring strategies of NodeResourcesFit."""

DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""The shape of a RequestedToCapacityRatioPriority without arguments: the emptier the better."""

RESOURCE_NAMES: Final[Mapping[str, str]] = {"CPU": "cpu", "Memory": "memory"}
"""Spellings of the 1.16 documentation."""

_NOT_IMPLEMENTED: Final = "is not implemented in this version of bayplan"
_ALWAYS: Final = frozenset(("SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder"))
_FILTERS: Final = frozenset(plugin for plugins in PREDICATES.values() for plugin in plugins)
_SCORES: Final = frozenset(plugin for plugins in PRIORITIES.values() for plugin in plugins)
_RATIO: Final = "requestedToCapacityRatioArguments"
_MAX_WEIGHT: Final = 2**31 - 1


@dataclass(slots=True)
class _Selection:
    """What a policy switches on."""

    filters: set[str] = field(default_factory=set)
    weights: dict[str, int] = field(default_factory=dict)
    """Score plugins and their weights."""
    strategy: ScoringStrategy | None = None
    strategy_name: str = ""
    """The priority that set it."""


def decode_policy(
    document: Mapping[str, Any], known: frozenset[str], errors: list[FieldError]
) -> SchedulerConfiguration:
    """The configuration that does what the policy lists; to be used only when `errors` stays empty."""
    selection = _Selection()
    with Fields(document, "", errors) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        # Filters run until one rejects the node, whatever this is: it only changed how much was reported.
        fields.boolean("alwaysCheckAllPredicates")
        hard_weight = fields.integer("hardPodAffinitySymmetricWeight")
        if hard_weight is not None and not 0 <= hard_weight <= 100:
            fields.invalid("hardPodAffinitySymmetricWeight", hard_weight, "not in valid range [0, 100]")
        _read_predicates(fields, selection, known)
        _read_priorities(fields, selection, known)
        if fields.raw("extenders"):
            errors.append(forbidden("extenders", "extenders are not implemented in this version of bayplan"))
    plugins = merge_plugins(default_plugins(known), _plugins(selection, known))
    given: dict[str, PluginArgs] = {}
    if selection.strategy is not None:
        given["NodeResourcesFit"] = NodeResourcesFitArgs(scoring_strategy=selection.strategy)
    if hard_weight is not None and "InterPodAffinity" in selection.filters | selection.weights.keys():
        given["InterPodAffinity"] = InterPodAffinityArgs(hard_weight)
    profile = Profile(plugins=plugins, plugin_config=complete_plugin_config(plugins, given))
    return SchedulerConfiguration(profiles=(profile,))


def _read_predicates(fields: Fields, selection: _Selection, known: frozenset[str]) -> None:
    selection.filters.update(name for name in MANDATORY_FILTERS if name in known)
    if not fields.has("predicates"):
        selection.filters |= _FILTERS & known
        return
    seen: set[str] = set()

    def read(each: Fields) -> None:
        name = required_name(each)
        each.raw("argument")
        if not name:
            return
        if name in seen:
            each.errors.append(duplicate(each.at("name"), name))
        seen.add(name)
        selection.filters |= set(_successors(each, name, PREDICATES, known))

    fields.objects("predicates", read)


def _read_priorities(fields: Fields, selection: _Selection, known: frozenset[str]) -> None:
    if not fields.has("priorities"):
        for name in DEFAULT_PRIORITIES:
            selection.weights |= {plugin: 1 for plugin in PRIORITIES[name] if plugin in known}
        return
    seen: set[str] = set()

    def read(each: Fields) -> None:
        name = required_name(each)
        weight = each.integer("weight", 64)
        if not each.has("weight") or (weight is not None and not 0 < weight <= _MAX_WEIGHT):
            each.invalid("weight", weight or 0, "should have a positive weight applied to it")
        if name in seen and name:
            each.errors.append(duplicate(each.at("name"), name))
        seen.add(name)
        with each.nested("argument") as argument:
            ratio = argument.has(_RATIO)
            for other in ("serviceAntiAffinity", "labelPreference"):
                if argument.has(other):
                    argument.errors.append(forbidden(argument.at(other), _NOT_IMPLEMENTED))
            if ratio or name in STRATEGIES:
                _read_strategy(each, argument, name, selection)
        plugins = ("NodeResourcesFit",) if ratio else _successors(each, name, PRIORITIES, known)
        selection.weights |= dict.fromkeys(plugins, weight or 1)

    fields.objects("priorities", read)


def _successors(
    each: Fields, name: str, table: Mapping[str, tuple[str, ...]], known: frozenset[str]
) -> tuple[str, ...]:
    if not name:
        return ()
    if name not in table:
        each.invalid("name", name, "does not exist")
        return ()
    plugins = table[name]
    if plugins == NO_SUCCESSOR or not known.issuperset(plugins):
        each.invalid("name", name, _NOT_IMPLEMENTED)
        return ()
    return plugins


def _read_strategy(each: Fields, argument: Fields, name: str, selection: _Selection) -> None:
    if selection.strategy is not None:
        detail = f'"{selection.strategy_name}" already says how NodeResourcesFit scores, and a profile has only one way'
        each.errors.append(forbidden(each.at("name"), detail))
    ratio = argument.has(_RATIO)
    selection.strategy_name = name
    if (ratio and name not in STRATEGIES) or name == "RequestedToCapacityRatioPriority":
        selection.strategy = ScoringStrategy(ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO, shape=DEFAULT_SHAPE)
    else:
        selection.strategy = ScoringStrategy(STRATEGIES[name])
        if ratio:
            argument.errors.append(forbidden(argument.at(_RATIO), f"is no argument of {name}"))
    if ratio:
        with argument.nested(_RATIO) as block:
            selection.strategy = replace(selection.strategy, **_ratio(block))


def _ratio(fields: Fields) -> dict[str, Any]:
    shape = _on_ten(decode_shape(fields, "shape"))
    fields.errors += validate_shape(shape, fields.at("shape"))
    resources = tuple(replace(each, name=RESOURCE_NAMES.get(each.name, each.name)) for each in decode_resources(fields))
    fields.errors += validate_resources(resources, fields.at("resources"))
    return {"shape": shape, "resources": resources}


def _on_ten(shape: tuple[UtilizationShapePoint, ...]) -> tuple[UtilizationShapePoint, ...]:
    """Scores on 0..10; documentation of the time also shows shapes on 0..100, which mean the same."""
    if not any(point.score > 10 for point in shape):
        return shape
    if all(0 <= point.score <= 100 and point.score % 10 == 0 for point in shape):
        return tuple(replace(point, score=point.score // 10) for point in shape)
    return shape


def _plugins(selection: _Selection, known: frozenset[str]) -> Plugins:
    """Everything listed at multiPoint, held back from the kind of point it is not listed for."""
    scores = selection.weights.keys()
    enabled = []
    for entry in UPSTREAM_DEFAULT_PLUGINS:
        if entry.name not in known:
            continue
        if entry.name in scores:
            enabled.append(PluginEntry(entry.name, selection.weights[entry.name]))
        elif entry.name in selection.filters or entry.name in _ALWAYS:
            enabled.append(PluginEntry(entry.name))
    names = [entry.name for entry in enabled]
    only_scores = tuple(PluginEntry(name) for name in names if name in _FILTERS - selection.filters)
    only_filters = tuple(PluginEntry(name) for name in names if name in _SCORES - scores)
    return Plugins(
        pre_filter=PluginSet(disabled=only_scores),
        filter=PluginSet(disabled=only_scores),
        pre_score=PluginSet(disabled=only_filters),
        score=PluginSet(disabled=only_filters),
        multi_point=PluginSet(enabled=tuple(enabled), disabled=(PluginEntry("*"),)),
    )
