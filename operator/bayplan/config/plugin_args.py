"""Plugin arguments: decoding, defaults and validation (pkg/scheduler/apis/config/v1/defaults.go and validation/)."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Final

from bayplan.api.objects import TopologySpreadConstraint
from bayplan.config.bayplan_args import BAYPLAN_DECODERS
from bayplan.config.errors import FieldError, child, invalid, invalid_whole, item, repeated, required
from bayplan.config.fields import Fields
from bayplan.config.labels import API_RULES, decode_label_selector, decode_node_affinity
from bayplan.config.settings import OWN, broken_rules, camel_case
from bayplan.config.types import (
    DEFAULT_RESOURCES,
    DEFAULT_STORAGE_SHAPE,
    DeviceChoice,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    VolumeBindingArgs,
    WeightedStrategy,
)


@cache
def default_args(plugin: str) -> PluginArgs | None:
    """The arguments of a plugin that is given none; None for plugins that take none."""
    return decode_args(plugin, Fields(None)) if plugin in TAKE_ARGUMENTS else None


def decode_args(plugin: str, fields: Fields) -> PluginArgs:
    """The arguments of a plugin of kube-scheduler's or of ours; KeyError for plugins that take none.

    An argument of a feature that is off is an error: else it would take effect silently once the feature is on.
    """
    return _DECODERS[plugin](fields)


def decode_shape(fields: Fields) -> tuple[UtilizationShapePoint, ...]:
    """The points of a scoring function, its `shape`, as they stand."""
    return fields.objects("shape", lambda each: each.build(UtilizationShapePoint, checked=False))


def decode_resources(fields: Fields) -> tuple[ResourceSpec, ...]:
    """The `resources` that count in a score: cpu and memory when none are given, weight 1 when it is 0 or not given."""
    return (
        fields.objects("resources", lambda each: each.build(ResourceSpec, zero_counts=False, checked=False))
        or DEFAULT_RESOURCES
    )


def validate_each(values: Iterable[object], path: str) -> list[FieldError]:
    """Every element of the list at `path` must keep the rules of its fields."""
    return [error for index, each in enumerate(values) for error in broken_rules(each, item(path, index))]


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> list[FieldError]:
    """At least one point, whose utilization rises from point to point."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = child(item(path, index), "utilization")
            errors.append(invalid(where, shape[index].utilization, "values must be sorted in increasing order"))
            break
    return errors + validate_each(shape, path)


def _node_resources_fit(fields: Fields) -> NodeResourcesFitArgs:
    strategy = fields.optional("scoringStrategy", _scoring_strategy)
    with fields.nested(OWN) as own:
        several = own.objects("scoringStrategies", _weighted_strategy)
        if several and strategy is not None:
            own.forbid("scoringStrategies", "may not be given together with scoringStrategy")
    return fields.build(
        NodeResourcesFitArgs, scoring_strategy=strategy or ScoringStrategy(), scoring_strategies=several
    )


def _weighted_strategy(fields: Fields) -> WeightedStrategy:
    return fields.build(WeightedStrategy, strategy=_scoring_strategy(fields))


def _scoring_strategy(fields: Fields) -> ScoringStrategy:
    kind = fields.choice("type", ScoringStrategyType)
    resources = decode_resources(fields)
    fields.errors += validate_each(resources, fields.at("resources"))
    ratio = "requestedToCapacityRatio"
    given = fields.has(ratio)
    with fields.nested(ratio) as block:
        shape = decode_shape(block)
    if kind is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
        if given:
            fields.errors += validate_shape(shape, block.at("shape"))
        else:
            fields.require(ratio, "must be specified when type is RequestedToCapacityRatio")
    elif given:
        fields.forbid(ratio, "must be nil when type is not RequestedToCapacityRatio")
    return ScoringStrategy(kind or ScoringStrategyType.LEAST_ALLOCATED, resources, shape)


def _balanced_allocation(fields: Fields) -> NodeResourcesBalancedAllocationArgs:
    resources = decode_resources(fields)
    fields.once("resources", [each.name for each in resources])
    for index, each in enumerate(resources):
        if each.weight != 1:
            path = child(item(fields.at("resources"), index), "weight")
            fields.errors.append(invalid(path, each.weight, "must be 1"))
    return fields.build(NodeResourcesBalancedAllocationArgs, resources=resources)


def _pod_topology_spread(fields: Fields) -> PodTopologySpreadArgs:
    constraints = fields.objects("defaultConstraints", _spread_constraint)
    fields.errors += repeated(
        (item(fields.at("defaultConstraints"), index), f"{{{each.topology_key}, {each.when_unsatisfiable}}}")
        for index, each in enumerate(constraints)
    )
    system = PodTopologySpreadDefaulting.SYSTEM
    kind = fields.choice("defaultingType", PodTopologySpreadDefaulting, system)
    if kind is system and constraints:
        fields.invalid("defaultingType", str(kind), "when .defaultConstraints are not empty")
    return PodTopologySpreadArgs(constraints, kind or system)


def _spread_constraint(fields: Fields) -> TopologySpreadConstraint:
    selector = fields.optional("labelSelector", decode_label_selector)
    constraint = fields.build(TopologySpreadConstraint, label_selector=selector)
    for name, rule in API_RULES[TopologySpreadConstraint].items():
        fields.errors += rule.check(getattr(constraint, name), fields.at(camel_case(name)), constraint)
    if constraint.label_selector is not None:
        fields.forbid("labelSelector", "constraint must not define a selector, as they deduced for each pod")
    return constraint


def _volume_binding(fields: Fields) -> VolumeBindingArgs:
    scores = fields.reading.gates.enabled("StorageCapacityScoring")
    shape = decode_shape(fields)
    args = fields.build(VolumeBindingArgs, shape=shape if scores and shape else DEFAULT_STORAGE_SHAPE)
    if scores:
        fields.errors += validate_shape(args.shape, fields.at("shape"))
    elif fields.has("shape"):
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        fields.errors.append(invalid_whole(fields.at("shape"), shown, detail))
    return args


def _dynamic_resources(fields: Fields) -> DynamicResourcesArgs:
    with fields.nested(OWN) as own:
        choice = own.choice("deviceChoice", DeviceChoice, DeviceChoice.FIRST_FIT) or DeviceChoice.FIRST_FIT
        shape = decode_shape(own)
        own.errors += validate_shape(shape, own.at("shape")) if shape else ()
    args = fields.build(DynamicResourcesArgs, device_choice=choice, shape=shape)

    def check(name: str, gate: str, gates: str, detail: str, *, is_right: bool) -> None:
        if not fields.reading.gates.enabled(gate):
            if fields.has(name):
                fields.forbid(name, f"{gates} feature gate is disabled")
        elif not is_right:
            fields.invalid(name, fields.raw(name), detail)

    is_right = args.filter_timeout >= timedelta()
    gates = "DRASchedulingFilterTimeout"
    check("filterTimeout", "DRASchedulerFilterTimeout", gates, "must be zero or positive", is_right=is_right)
    is_right = args.binding_timeout >= timedelta(seconds=1)
    # The second one is locked on.
    gates = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
    check("bindingTimeout", "DRADeviceBindingConditions", gates, "must be at least 1 second", is_right=is_right)
    return args


_DECODERS: Final[Mapping[str, Callable[[Fields], PluginArgs]]] = {
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": lambda fields: fields.build(InterPodAffinityArgs),
    "NodeAffinity": lambda fields: NodeAffinityArgs(fields.optional("addedAffinity", decode_node_affinity)),
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
    **BAYPLAN_DECODERS,
}
TAKE_ARGUMENTS: Final = _DECODERS.keys()
"""The plugins that take arguments."""
