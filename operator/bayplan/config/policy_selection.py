"""What a scheduling Policy switches on, and the plugin arguments that say it today."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from bayplan.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.config.errors import FieldError, FieldWarning, child, forbidden, invalid, item
from bayplan.config.fields import Fields
from bayplan.config.labels import validate_label_name
from bayplan.config.plugin_args import decode_resources, decode_shape, validate_each, validate_shape
from bayplan.config.policy_table import LABEL_PREFERENCE, LABELS_PRESENCE, RATIO, RESOURCE_NAMES, SERVICE_ANTI_AFFINITY
from bayplan.config.types import (
    BalanceMeasure,
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
    WeightedStrategy,
)

MAX_WEIGHT: Final = 2**31 - 1
"""The largest weight of a plugin."""

_FIT, _AFFINITY, _SPREAD = "NodeResourcesFit", "NodeAffinity", "PodTopologySpread"


@dataclass(slots=True)
class Selection:
    """What a policy switches on: `settle_weights` makes weights of what was taken, then `plugin_config` arguments."""

    filters: set[str] = field(default_factory=set)
    """Plugins that filter."""
    weights: dict[str, int] = field(default_factory=dict)
    """Plugins that score, and their weights."""
    strategies: list[tuple[str, WeightedStrategy]] = field(default_factory=list)
    """Path of each strategy of NodeResourcesFit, and the strategy with its weight."""
    _demands: list[NodeSelectorRequirement] = field(default_factory=list)
    _preferences: list[tuple[str, int, NodeSelectorRequirement]] = field(default_factory=list)
    """Path, weight and expression of each labelPreference."""
    spreads: list[tuple[str, int]] = field(default_factory=list)
    """Path and weight of each priority that the system defaults take the place of."""
    constraints: tuple[str, int] = ("", 0)
    """Path and weight of EvenPodsSpreadPriority."""
    _labels: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, weight and label of each serviceAntiAffinity."""

    def read_predicate_argument(self, argument: Fields) -> Callable[[int], None]:
        """Return what filters by `labelsPresence`."""
        with argument.nested(LABELS_PRESENCE) as block:
            operator = _operator(block)
            labels = block.strings("labels")
            for index, label in enumerate(labels):
                block.errors += validate_label_name(label, item(block.at("labels"), index))

        def take(_: int) -> None:
            self.filters.add(_AFFINITY)
            self._demands.extend(NodeSelectorRequirement(label, operator) for label in labels)

        return take

    def read_priority_argument(self, argument: Fields) -> Callable[[int], None]:
        """Return what scores, by a weight, by whichever argument is given."""
        if argument.has(RATIO):
            with argument.nested(RATIO) as block:
                strategy = _ratio(block)
            return lambda weight: self.strategies.append((argument.at(RATIO), WeightedStrategy(weight, strategy)))
        if argument.has(LABEL_PREFERENCE):
            with argument.nested(LABEL_PREFERENCE) as block:
                expression = NodeSelectorRequirement(_label(block), _operator(block))
            return lambda weight: self._preferences.append((argument.at(LABEL_PREFERENCE), weight, expression))
        with argument.nested(SERVICE_ANTI_AFFINITY) as block:
            label = _label(block)
        return lambda weight: self._labels.append((argument.at(SERVICE_ANTI_AFFINITY), weight, label))

    def settle_weights(self, errors: list[FieldError], notes: list[FieldWarning]) -> None:
        """Give every plugin its weight; what one plugin cannot do side by side goes to `errors`."""
        if self.strategies:
            (_, first), *others = self.strategies
            # Several carry their weights themselves.
            self.weights[_FIT] = 1 if others else first.weight
            beside = "stands in bayplan.io.scoringStrategies beside another, which kube-scheduler does not have"
            notes.extend(FieldWarning(path, beside) for path, _ in others)
        for path, weight, _ in self._preferences:
            if _AFFINITY in self.weights:
                errors.append(forbidden(path, "NodeAffinity scores for another priority already"))
            self.weights[_AFFINITY] = weight
        self._settle_spread(errors, notes)

    def _settle_spread(self, errors: list[FieldError], notes: list[FieldWarning]) -> None:
        weight = sum(own for _, own in self.spreads)
        if self._labels:
            if self.spreads:
                detail = "PodTopologySpread scores for a spread priority already"
                errors.extend(forbidden(path, detail) for path, _, _ in self._labels)
            else:
                weight = self._labels_weight(errors)
        if weight > MAX_WEIGHT:
            *_, path = (*(path for path, _ in self.spreads), *(path for path, _, _ in self._labels))
            errors.append(forbidden(path, f"PodTopologySpread's weight would be {weight}, more than {MAX_WEIGHT}"))
        path, own = self.constraints
        if own and weight not in {0, own}:
            shown = max(own, weight)
            notes.append(
                FieldWarning(path, f"EvenPodsSpreadPriority: PodTopologySpread has one weight for all, {shown}")
            )
        if weight := max(own, weight):
            self.weights[_SPREAD] = weight

    def _labels_weight(self, errors: list[FieldError]) -> int:
        """The weight of all labels together; of a label that is listed again the weights add up, as its scores did."""
        weights: dict[str, int] = {}
        paths = {}
        for path, own, label in self._labels:
            weights[label] = weights.get(label, 0) + own
            paths[label] = path
        first, *others = weights
        detail = "has another weight than the serviceAntiAffinity before"
        errors.extend(forbidden(paths[label], detail) for label in others if weights[label] != weights[first])
        return sum(weights.values())

    def plugin_config(self, hard_pod_affinity_weight: int | None) -> dict[str, PluginArgs]:
        """The arguments of plugins that are not given their default ones."""
        config: dict[str, PluginArgs] = {}
        strategies = tuple(each for _, each in self.strategies)
        if len(strategies) == 1:
            config[_FIT] = NodeResourcesFitArgs(scoring_strategy=strategies[0].strategy)
        elif strategies:
            config[_FIT] = NodeResourcesFitArgs(scoring_strategies=strategies)
        balanced = "NodeResourcesBalancedAllocation"
        if balanced in self.weights:
            config[balanced] = NodeResourcesBalancedAllocationArgs(measure=BalanceMeasure.RESULT)
        if self._demands or self._preferences:
            config[_AFFINITY] = NodeAffinityArgs(self._added_affinity())
        if self._labels or (self.constraints[1] and not self.spreads):
            labels = dict.fromkeys(label for _, _, label in self._labels)
            constraints = tuple(TopologySpreadConstraint(1, label, "ScheduleAnyway") for label in labels)
            config[_SPREAD] = PodTopologySpreadArgs(constraints, PodTopologySpreadDefaulting.LIST)
        inter_pod = "InterPodAffinity"
        if hard_pod_affinity_weight is not None and inter_pod in self.filters | self.weights.keys():
            config[inter_pod] = InterPodAffinityArgs(hard_pod_affinity_weight)
        return config

    def _added_affinity(self) -> NodeAffinity:
        demanded = [NodeSelectorTerm(self._demands)] if self._demands else None
        return NodeAffinity(
            None if demanded is None else NodeSelector(demanded),
            [PreferredSchedulingTerm(1, NodeSelectorTerm([each])) for _, _, each in self._preferences] or None,
        )


def _operator(fields: Fields) -> str:
    return "Exists" if fields.boolean("presence") else "DoesNotExist"


def _label(fields: Fields) -> str:
    label = fields.string("label") or ""
    if label:
        fields.errors += validate_label_name(label, fields.at("label"))
    else:
        fields.require("label")
    return label


def _ratio(fields: Fields) -> ScoringStrategy:
    shape = _on_ten(decode_shape(fields))
    fields.errors += validate_shape(shape, fields.at("shape"))
    return ScoringStrategy(ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO, _resources(fields), shape)


def _resources(fields: Fields) -> tuple[ResourceSpec, ...]:
    listed = decode_resources(fields)
    names = {each.name for each in listed}
    for index, each in enumerate(listed):
        if (todays := RESOURCE_NAMES.get(each.name)) in names:
            path = child(item(fields.at("resources"), index), "name")
            fields.errors.append(invalid(path, each.name, f"is another spelling of {todays}, which is listed too"))
    listed = tuple(replace(each, name=RESOURCE_NAMES.get(each.name, each.name)) for each in listed)
    # In 1.16 they were the keys of a map: of two weights of a resource the last one counts.
    counted = tuple({each.name: each for each in listed}.values())
    if errors := validate_each(listed, fields.at("resources")):
        if (reduced := _reduced(counted)) is not None:
            return reduced
        fields.errors += errors
    return counted


def _reduced(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...] | None:
    """The same ratio of weights within 1..100, as 1.16 had no limit; None where there is none."""
    divisor = math.gcd(*(each.weight for each in resources))
    if not all(0 < each.weight <= 100 * divisor for each in resources):
        return None
    return tuple(replace(each, weight=each.weight // divisor) for each in resources)


def _on_ten(shape: tuple[UtilizationShapePoint, ...]) -> tuple[UtilizationShapePoint, ...]:
    """Scores on 0..10; documentation of the time also shows shapes on 0..100, which mean the same."""
    if not any(point.score > 10 for point in shape):
        return shape
    if all(0 <= point.score <= 100 and point.score % 10 == 0 for point in shape):
        return tuple(replace(point, score=point.score // 10) for point in shape)
    return shape
