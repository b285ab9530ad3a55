"""Plugin arguments: decoding, defaults and validation (pkg/scheduler/apis/config/v1/defaults.go and validation/)."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Final

from bayplan.api.objects import TopologySpreadConstraint
from bayplan.api.quantity import QuantityError, nano
from bayplan.config.errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    invalid,
    invalid_whole,
    item,
    required,
    unsupported,
)
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from bayplan.config.fields import Fields, required_name
from bayplan.config.labels import decode_label_selector, decode_node_affinity, validate_label_name
from bayplan.config.types import (
    DEFAULT_RESOURCES,
    DEFAULT_STORAGE_SHAPE,
    BalanceMeasure,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeHeadroomArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PDBPolicy,
    PluginArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ResourceHeadroom,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    VolumeBindingArgs,
    WeightedStrategy,
)

_MAX_SCORE: Final = 10
OWN_FIELD: Final = "bayplan.io"
"""The field of a plugin's arguments under which bayplan's additions stand."""


@cache
def default_args(plugin: str) -> PluginArgs | None:
    """The arguments of a plugin that is given none; None for plugins that take none."""
    return decode_args(plugin, Fields(None, "", []), DEFAULT_FEATURE_GATES) if plugin in TAKE_ARGUMENTS else None


def decode_args(plugin: str, fields: Fields, gates: FeatureGates) -> PluginArgs:
    """The arguments of one of kube-scheduler's plugins; KeyError for plugins that take none.

    An argument of a feature that is off is an error, so that nothing changes when the feature comes on.
    """
    if plugin in _GATED_DECODERS:
        return _GATED_DECODERS[plugin](fields, gates)
    return _DECODERS[plugin](fields)


def decode_shape(fields: Fields, name: str) -> tuple[UtilizationShapePoint, ...]:
    """The points of a scoring function, as they stand."""
    return fields.objects(name, lambda each: each.build(UtilizationShapePoint))


def decode_resources(fields: Fields) -> tuple[ResourceSpec, ...]:
    """The `resources` that count in a score: cpu and memory when none are given, weight 1 when it is 0 or not given."""
    return fields.objects("resources", lambda each: each.build(ResourceSpec, zero_counts=False)) or DEFAULT_RESOURCES


def validate_resources(resources: tuple[ResourceSpec, ...], path: str) -> list[FieldError]:
    """Weights must be 1..100; names may repeat."""
    return [
        invalid(
            child(item(path, index), "weight"),
            each.weight,
            f"resource weight of {each.name} not in valid range (0, 100]",
        )
        for index, each in enumerate(resources)
        if not 0 < each.weight <= 100
    ]


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> list[FieldError]:
    """At least one point, utilization rising within 0..100, scores within 0..10."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = child(item(path, index), "utilization")
            errors.append(invalid(where, shape[index].utilization, "values must be sorted in increasing order"))
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            errors.append(
                invalid(child(item(path, index), "utilization"), point.utilization, "not in valid range [0, 100]")
            )
        if not 0 <= point.score <= _MAX_SCORE:
            errors.append(
                invalid(child(item(path, index), "score"), point.score, f"not in valid range [0, {_MAX_SCORE}]")
            )
    return errors


def _node_resources_fit(fields: Fields) -> NodeResourcesFitArgs:
    ignored = fields.strings("ignoredResources")
    for index, name in enumerate(ignored):
        fields.errors += validate_label_name(name, item(fields.at("ignoredResources"), index))
    groups = fields.strings("ignoredResourceGroups")
    for index, group in enumerate(groups):
        path = item(fields.at("ignoredResourceGroups"), index)
        if "/" in group:
            fields.errors.append(invalid(path, group, "resource group name can't contain '/'"))
        fields.errors += validate_label_name(group, path)
    strategy = fields.optional("scoringStrategy", _scoring_strategy)
    with fields.nested(OWN_FIELD) as own:
        several = own.objects("scoringStrategies", _weighted_strategy)
        if several and strategy is not None:
            own.errors.append(forbidden(own.at("scoringStrategies"), "may not be given together with scoringStrategy"))
    return NodeResourcesFitArgs(ignored, groups, strategy or ScoringStrategy(), several)


def _weighted_strategy(fields: Fields) -> WeightedStrategy:
    weight = fields.integer("weight")
    if weight is not None and weight <= 0:
        fields.invalid("weight", weight, "must be greater than 0")
    return WeightedStrategy(weight or 1, _scoring_strategy(fields))


def _scoring_strategy(fields: Fields) -> ScoringStrategy:
    kind = fields.choice("type", ScoringStrategyType)
    resources = decode_resources(fields)
    fields.errors += validate_resources(resources, fields.at("resources"))
    ratio = "requestedToCapacityRatio"
    given = fields.has(ratio)
    with fields.nested(ratio) as block:
        shape = decode_shape(block, "shape")
    if kind is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
        if given:
            fields.errors += validate_shape(shape, block.at("shape"))
        else:
            fields.errors.append(required(fields.at(ratio), "must be specified when type is RequestedToCapacityRatio"))
    elif given:
        fields.errors.append(forbidden(fields.at(ratio), "must be nil when type is not RequestedToCapacityRatio"))
    return ScoringStrategy(kind or ScoringStrategyType.LEAST_ALLOCATED, resources, shape)


def _balanced_allocation(fields: Fields) -> NodeResourcesBalancedAllocationArgs:
    resources = decode_resources(fields)
    seen = set()
    for index, resource in enumerate(resources):
        path = item(fields.at("resources"), index)
        if resource.name in seen:
            fields.errors.append(duplicate(child(path, "name"), resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            fields.errors.append(invalid(child(path, "weight"), resource.weight, "must be 1"))
    with fields.nested(OWN_FIELD) as own:
        measure = own.choice("measure", BalanceMeasure, BalanceMeasure.IMPROVEMENT)
    return NodeResourcesBalancedAllocationArgs(resources, measure or BalanceMeasure.IMPROVEMENT)


def _node_affinity(fields: Fields) -> NodeAffinityArgs:
    return NodeAffinityArgs(fields.optional("addedAffinity", decode_node_affinity))


def _inter_pod_affinity(fields: Fields) -> InterPodAffinityArgs:
    args = fields.build(InterPodAffinityArgs)
    if not 0 <= (weight := args.hard_pod_affinity_weight) <= 100:
        fields.invalid("hardPodAffinityWeight", weight, "not in valid range [0, 100]")
    return args


def _pod_topology_spread(fields: Fields) -> PodTopologySpreadArgs:
    constraints = fields.objects("defaultConstraints", _spread_constraint)
    seen = set()
    for index, constraint in enumerate(constraints):
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            path = item(fields.at("defaultConstraints"), index)
            fields.errors.append(duplicate(path, f"{{{key[0]}, {key[1]}}}"))
        seen.add(key)
    system = PodTopologySpreadDefaulting.SYSTEM
    kind = fields.choice("defaultingType", PodTopologySpreadDefaulting, system)
    if kind is system and constraints:
        fields.invalid("defaultingType", str(kind), "when .defaultConstraints are not empty")
    return PodTopologySpreadArgs(constraints, kind or system)


def _spread_constraint(fields: Fields) -> TopologySpreadConstraint:
    selector = fields.optional("labelSelector", decode_label_selector)
    constraint = fields.build(TopologySpreadConstraint, label_selector=selector)
    if constraint.max_skew <= 0:
        fields.invalid("maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if constraint.topology_key:
        fields.errors += validate_label_name(constraint.topology_key, fields.at("topologyKey"))
    else:
        fields.errors.append(required(fields.at("topologyKey"), "can not be empty"))
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        fields.errors.append(required(fields.at("whenUnsatisfiable"), "can not be empty"))
    elif constraint.when_unsatisfiable not in actions:
        fields.errors.append(unsupported(fields.at("whenUnsatisfiable"), constraint.when_unsatisfiable, actions))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        fields.errors.append(forbidden(fields.at("labelSelector"), detail))
    return constraint


def _volume_binding(fields: Fields, gates: FeatureGates) -> VolumeBindingArgs:
    scores = gates.enabled("StorageCapacityScoring")
    shape = decode_shape(fields, "shape")
    args = fields.build(VolumeBindingArgs, shape=shape if scores and shape else DEFAULT_STORAGE_SHAPE)
    if (seconds := args.bind_timeout_seconds) < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        fields.invalid("bindTimeoutSeconds", seconds, detail)
    if scores:
        fields.errors += validate_shape(args.shape, fields.at("shape"))
    elif fields.has("shape"):
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        fields.errors.append(invalid_whole(fields.at("shape"), shown, detail))
    return args


def _dynamic_resources(fields: Fields, gates: FeatureGates) -> DynamicResourcesArgs:
    args = fields.build(DynamicResourcesArgs)
    for name, seconds, lowest, detail, gate, off in (
        (
            "filterTimeout",
            args.filter_timeout,
            0,
            "must be zero or positive",
            "DRASchedulerFilterTimeout",
            "DRASchedulingFilterTimeout feature gate is disabled",
        ),
        (
            "bindingTimeout",
            args.binding_timeout,
            1,
            "must be at least 1 second",
            "DRADeviceBindingConditions",
            # The other one is locked on.
            "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        ),
    ):
        if not gates.enabled(gate):
            if fields.has(name):
                fields.errors.append(forbidden(fields.at(name), off))
        elif seconds < timedelta(seconds=lowest):
            fields.invalid(name, fields.raw(name), detail)
    return args


def _default_preemption(fields: Fields) -> DefaultPreemptionArgs:
    with fields.nested(OWN_FIELD) as own:
        args = fields.build(
            DefaultPreemptionArgs,
            pdb_policy=own.choice("pdbPolicy", PDBPolicy, PDBPolicy.PREFER) or PDBPolicy.PREFER,
            minimum_runtime_seconds=_seconds(own, "minimumRuntimeSeconds"),
            preemption_delay_seconds=_seconds(own, "preemptionDelaySeconds"),
        )
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    of_all, number = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    if not 0 <= of_all <= 100:
        fields.invalid(percentage, of_all, "not in valid range [0, 100]")
    if number < 0:
        fields.invalid(absolute, number, "not in valid range [0, inf)")
    if of_all == number == 0:
        fields.invalid(percentage, 0, f"cannot be zero at the same time as {absolute}")
        fields.invalid(absolute, 0, f"cannot be zero at the same time as {percentage}")
    return args


def _node_headroom(fields: Fields) -> NodeHeadroomArgs:
    seen: set[str] = set()

    def decode(each: Fields) -> ResourceHeadroom:
        # A quantity may be a number, as on pods.
        is_number = type(each.raw("amount")) in (int, float)
        amount = each.raw("amount") if is_number else each.string("amount")
        kept = each.build(ResourceHeadroom, name=required_name(each), amount=str(amount or ""))
        if kept.name in seen:
            each.errors.append(duplicate(each.at("name"), kept.name))
        seen.add(kept.name)
        if not 0 <= kept.percentage <= 100:
            each.invalid("percentage", kept.percentage, "not in valid range [0, 100]")
        if kept.percentage and kept.amount:
            each.errors.append(forbidden(each.at("amount"), "may not be given together with percentage"))
        try:
            if not nano(kept.amount.replace("-", "?") or 0) and each.raw("percentage") in (None, 0):
                each.errors.append(required(each.path, "nothing is kept free without a percentage or an amount"))
        except QuantityError:
            each.invalid("amount", kept.amount, "must be a quantity such as 500m or 2Gi, and not negative")
        return kept

    resources = fields.objects("resources", decode)
    default = NodeHeadroomArgs()
    return fields.build(NodeHeadroomArgs, resources=resources or default.resources)


def _seconds(fields: Fields, name: str) -> int:
    seconds = fields.integer(name) or 0
    if seconds < 0:
        fields.invalid(name, seconds, "not in valid range [0, inf)")
    return seconds


_DECODERS: Final[Mapping[str, Callable[[Fields], PluginArgs]]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeHeadroom": _node_headroom,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
}
_GATED_DECODERS: Final[Mapping[str, Callable[[Fields, FeatureGates], PluginArgs]]] = {
    "DynamicResources": _dynamic_resources,
    "VolumeBinding": _volume_binding,
}
TAKE_ARGUMENTS: Final = _DECODERS.keys() | _GATED_DECODERS.keys()
"""The plugins that take arguments."""
