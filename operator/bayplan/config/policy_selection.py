"""What a scheduling Policy switches on, and the plugin arguments that say it today."""

from dataclasses import dataclass, field, replace

from bayplan.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.config.errors import FieldError, FieldNote, forbidden, item, required
from bayplan.config.fields import Fields
from bayplan.config.labels import validate_label_name
from bayplan.config.plugin_args import decode_resources, decode_shape, validate_resources, validate_shape
from bayplan.config.policy_table import (
    DEFAULT_SHAPE,
    LABEL_PREFERENCE,
    LABELS_PRESENCE,
    RATIO,
    RESOURCE_NAMES,
    SERVICE_ANTI_AFFINITY,
)
from bayplan.config.types import (
    BalanceMeasure,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    WeightedStrategy,
)

_FIT, _AFFINITY, _SPREAD = "NodeResourcesFit", "NodeAffinity", "PodTopologySpread"


@dataclass(slots=True)
class Selection:
    """What a policy switches on. `settle` makes weights of all that was taken, then `plugin_config` tells arguments."""

    filters: set[str] = field(default_factory=set)
    """Plugins that filter."""
    weights: dict[str, int] = field(default_factory=dict)
    """Plugins that score, and their weights."""
    _strategies: list[tuple[str, WeightedStrategy]] = field(default_factory=list)
    """Path and weight of each strategy of NodeResourcesFit."""
    _demands: list[NodeSelectorRequirement] = field(default_factory=list)
    _preferences: list[tuple[str, int, NodeSelectorRequirement]] = field(default_factory=list)
    """Path, weight and expression of each labelPreference."""
    _spread_weight: int = 0
    _constraints: tuple[str, int] = ("", 0)
    """Path and weight of EvenPodsSpreadPriority."""
    _labels: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, weight and label of each serviceAntiAffinity."""

    def take_strategy(self, path: str, kind: ScoringStrategyType, weight: int) -> None:
        """Score by a strategy of NodeResourcesFit without arguments."""
        ratio = kind is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO
        self._add_strategy(path, weight, ScoringStrategy(kind, shape=DEFAULT_SHAPE if ratio else ()))

    def _add_strategy(self, path: str, weight: int, strategy: ScoringStrategy) -> None:
        self._strategies.append((path, WeightedStrategy(weight, strategy)))

    def take_spread(self, weight: int) -> None:
        """Score by how evenly the pods of a Service or an owner are spread."""
        self._spread_weight += weight

    def take_constraints(self, path: str, weight: int) -> None:
        """Score by the constraints of the pods themselves."""
        self._constraints = (path, weight)

    def take_predicate_argument(self, argument: Fields) -> None:
        """Filter by `labelsPresence`."""
        with argument.nested(LABELS_PRESENCE) as block:
            operator = _operator(block)
            labels = block.strings("labels")
            for index, label in enumerate(labels):
                block.errors += validate_label_name(label, item(block.at("labels"), index))
        self.filters.add(_AFFINITY)
        self._demands += [NodeSelectorRequirement(label, operator) for label in labels]

    def take_priority_argument(self, argument: Fields, weight: int) -> None:
        """Score by whichever argument is given."""
        if argument.has(RATIO):
            with argument.nested(RATIO) as block:
                self._add_strategy(argument.at(RATIO), weight, _ratio(block))
        elif argument.has(LABEL_PREFERENCE):
            with argument.nested(LABEL_PREFERENCE) as block:
                expression = NodeSelectorRequirement(_label(block), _operator(block))
            self._preferences.append((argument.at(LABEL_PREFERENCE), weight, expression))
        else:
            with argument.nested(SERVICE_ANTI_AFFINITY) as block:
                self._labels.append((argument.at(SERVICE_ANTI_AFFINITY), weight, _label(block)))

    def settle(self, errors: list[FieldError], notes: list[FieldNote]) -> None:
        """Give every plugin its weight; what one plugin cannot do side by side goes to `errors`."""
        if self._strategies:
            (_, first), *others = self._strategies
            # Several carry their weights themselves.
            self.weights[_FIT] = 1 if others else first.weight
            beside = "stands in bayplan.io.scoringStrategies beside another, which kube-scheduler does not have"
            notes.extend(FieldNote(path, beside) for path, _ in others)
        for path, weight, _ in self._preferences:
            if _AFFINITY in self.weights:
                errors.append(forbidden(path, "NodeAffinity scores for another priority already"))
            self.weights[_AFFINITY] = weight
        self._settle_spread(errors, notes)

    def _settle_spread(self, errors: list[FieldError], notes: list[FieldNote]) -> None:
        weight = self._spread_weight
        for path, own, _ in self._labels:
            if self._spread_weight:
                errors.append(forbidden(path, "PodTopologySpread scores for a spread priority already"))
            elif weight not in {0, own}:
                errors.append(forbidden(path, "has another weight than the serviceAntiAffinity before"))
            weight = own
        if self._labels and not self._spread_weight:
            weight *= len(self._labels)
        path, own = self._constraints
        if own and weight not in {0, own}:
            shown = max(own, weight)
            notes.append(FieldNote(path, f"EvenPodsSpreadPriority: PodTopologySpread has one weight for all, {shown}"))
        if weight := max(own, weight):
            self.weights[_SPREAD] = weight

    def plugin_config(self, hard_pod_affinity_weight: int | None) -> dict[str, PluginArgs]:
        """The arguments of plugins that are not given their default ones."""
        config: dict[str, PluginArgs] = {}
        strategies = tuple(each for _, each in self._strategies)
        if len(strategies) == 1:
            config[_FIT] = NodeResourcesFitArgs(scoring_strategy=strategies[0].strategy)
        elif strategies:
            config[_FIT] = NodeResourcesFitArgs(scoring_strategies=strategies)
        balanced = "NodeResourcesBalancedAllocation"
        if balanced in self.weights:
            config[balanced] = NodeResourcesBalancedAllocationArgs(measure=BalanceMeasure.RESULT)
        if self._demands or self._preferences:
            config[_AFFINITY] = NodeAffinityArgs(self._added_affinity())
        if self._labels or (self._constraints[1] and not self._spread_weight):
            constraints = tuple(TopologySpreadConstraint(1, label, "ScheduleAnyway") for _, _, label in self._labels)
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
        fields.errors.append(required(fields.at("label")))
    return label


def _ratio(fields: Fields) -> ScoringStrategy:
    shape = _on_ten(decode_shape(fields, "shape"))
    fields.errors += validate_shape(shape, fields.at("shape"))
    resources = tuple(replace(each, name=RESOURCE_NAMES.get(each.name, each.name)) for each in decode_resources(fields))
    fields.errors += validate_resources(resources, fields.at("resources"))
    # In 1.16 they were the keys of a map: of two weights of a resource the last one counts.
    resources = tuple({each.name: each for each in resources}.values())
    return ScoringStrategy(ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO, resources, shape)


def _on_ten(shape: tuple[UtilizationShapePoint, ...]) -> tuple[UtilizationShapePoint, ...]:
    """Scores on 0..10; documentation of the time also shows shapes on 0..100, which mean the same."""
    if not any(point.score > 10 for point in shape):
        return shape
    if all(0 <= point.score <= 100 and point.score % 10 == 0 for point in shape):
        return tuple(replace(point, score=point.score // 10) for point in shape)
    return shape
