"""Arguments that kube-scheduler does not have: what they are, and how they are decoded.

They are those of bayplan's own plugins, and of two to which it adds: DefaultPreemption and TopologyPlacementGenerator.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from bayplan.api.quantity import QuantityError, milli
from bayplan.api.selectors import NAME_PATTERN
from bayplan.config.errors import FieldError, required
from bayplan.config.fields import Fields, required_name
from bayplan.config.labels import LABEL_NAME
from bayplan.config.settings import NOT_NEGATIVE, OWN, PERCENTAGE, Rule, within


class PlacementChoice(StrEnum):
    """Which of several sets of nodes a pod group gets."""

    FEWEST_NODES = "FewestNodes"
    """The one that takes the fewest nodes, and of these the one with the least room left."""
    SCORED = "Scored"
    """The one that scores best with the pods on it, as in kube-scheduler."""


class WhenUnsatisfiable(StrEnum):
    """What becomes of a group that one value of `topologyKey` has no room for."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    """It waits, as a group does that names a key itself."""
    SCHEDULE_ANYWAY = "ScheduleAnyway"
    """It takes as few values as it can."""


def _check_key(value: str, path: str, owner: object) -> Iterable[FieldError]:
    return LABEL_NAME.check(value, path, owner) if value else ()


_KEY_OR_NONE: Final = Rule({"pattern": f"^(([^/]+/)?{NAME_PATTERN})?$"}, _check_key)


@dataclass(frozen=True, slots=True)
class TopologyPlacementGeneratorArgs:
    """Arguments of TopologyPlacementGenerator, which is on where a profile gives any."""

    topology_key: Annotated[str, OWN, _KEY_OR_NONE] = ""
    """The label in one value of which the pods of a group stand that names no key itself; none by default."""
    when_unsatisfiable: Annotated[WhenUnsatisfiable, OWN] = WhenUnsatisfiable.SCHEDULE_ANYWAY
    """What becomes of a group that one value has no room for."""
    choice: Annotated[PlacementChoice, OWN] = PlacementChoice.SCORED
    """Which of several sets of nodes a group gets."""


@dataclass(frozen=True, slots=True)
class ResourceHeadroom:
    """How much of a resource stays free on each node: a percentage or an amount."""

    name: Annotated[str, Rule({"minLength": 1}, required=True)] = ""
    """Its name on nodes and pods, such as `cpu`, or `pods` for their number."""
    percentage: Annotated[int, PERCENTAGE] = 0
    """Of the node's allocatable, 0..100."""
    amount: Annotated[str, Rule({"type": ["string", "number"]})] = ""
    """A quantity such as `500m` or `2Gi`, in place of `percentage`."""


@dataclass(frozen=True, slots=True)
class NodeHeadroomArgs:
    """Arguments of NodeHeadroom, which is bayplan's own."""

    resources: tuple[ResourceHeadroom, ...] = (ResourceHeadroom("cpu", 10), ResourceHeadroom("memory", 10))
    """What stays free; each resource once."""
    priority_threshold: int = 2_000_000_000
    """Pods of this priority or more may take what is kept free, as pods of DaemonSets may."""


@dataclass(frozen=True, slots=True)
class ExpectedDurationArgs:
    """Arguments of ExpectedDuration, which is bayplan's own."""

    owner_label: str = ""
    """The key of a label by whose value pods of a namespace are alike; without it, and without the label, their
    controller says it."""


class PDBPolicy(StrEnum):
    """What disruption budgets mean to preemption."""

    PREFER = "Prefer"
    """Nodes without violations come first, as in kube-scheduler."""
    STRICT = "Strict"
    """Nodes where a budget would be violated are left alone."""


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """Arguments of DefaultPreemption; the larger of both numbers of nodes is searched."""

    min_candidate_nodes_percentage: Annotated[int, PERCENTAGE] = 10
    """Per cent of the nodes that are searched for victims, 0..100."""
    min_candidate_nodes_absolute: Annotated[int, NOT_NEGATIVE] = 100
    """Number of nodes that are searched for victims, 0 or more; not both zero."""
    pdb_policy: Annotated[PDBPolicy, OWN] = PDBPolicy.PREFER
    """What disruption budgets mean to preemption; bayplan's own, as are the next two."""
    minimum_runtime_seconds: Annotated[int, OWN, NOT_NEGATIVE] = 0
    """Pods that started less than this ago are no victims, 0 or more."""
    preemption_delay_seconds: Annotated[int, OWN, NOT_NEGATIVE] = 0
    """Pods created less than this ago do not preempt, 0 or more."""


_WEIGHT: Final = within(1, 100, "not in valid range [1, 100]", or_zero=True)


@dataclass(frozen=True, slots=True)
class ScarceResourceAvoidanceArgs:
    """Arguments of ScarceResourceAvoidance, with koordinator's names."""

    resources: tuple[str, ...] = ()
    """What is kept for pods that ask for it, such as `nvidia.com/gpu`."""


@dataclass(frozen=True, slots=True)
class WeightedResource:
    """A resource that counts in a score of bayplan's own."""

    name: Annotated[str, Rule({"minLength": 1}, required=True)] = ""
    """Its name on nodes and pods, such as `cpu` or `nvidia.com/gpu`."""
    weight: Annotated[int, _WEIGHT] = 1
    """Its share of the score, 1..100."""


CPU_AND_MEMORY: Final = (WeightedResource("cpu"), WeightedResource("memory"))


@dataclass(frozen=True, slots=True)
class NodeResourcesLeastRemainderArgs:
    """Arguments of NodeResourcesLeastRemainder, which is bayplan's own."""

    resources: tuple[WeightedResource, ...] = CPU_AND_MEMORY
    """Of what little should remain; each once."""


@dataclass(frozen=True, slots=True)
class TopologyMostAllocatedArgs:
    """Arguments of TopologyMostAllocated, which is bayplan's own."""

    topology_key: Annotated[str, Rule({"minLength": 1})] = "topology.kubernetes.io/zone"
    """The label whose value says in which domain a node is."""
    resources: tuple[WeightedResource, ...] = CPU_AND_MEMORY
    """By what domains are filled; each once."""


@dataclass(frozen=True, slots=True)
class NodeResourcesFragmentationArgs:
    """Arguments of NodeResourcesFragmentation, which is bayplan's own."""

    resources: tuple[WeightedResource, ...] = CPU_AND_MEMORY
    """Of what little should become useless; each once."""
    half_life_pods: Annotated[int, within(1, None, "must be greater than 0")] = 1000
    """After so many pods one counts half as much among the typical ones, 1 or more."""


BayplanArgs = (
    TopologyPlacementGeneratorArgs
    | NodeHeadroomArgs
    | ExpectedDurationArgs
    | DefaultPreemptionArgs
    | ScarceResourceAvoidanceArgs
    | NodeResourcesLeastRemainderArgs
    | TopologyMostAllocatedArgs
    | NodeResourcesFragmentationArgs
)


def _default_preemption(fields: Fields) -> DefaultPreemptionArgs:
    args = fields.build(DefaultPreemptionArgs)
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if args.min_candidate_nodes_percentage == args.min_candidate_nodes_absolute == 0:
        fields.invalid(percentage, 0, f"cannot be zero at the same time as {absolute}")
        fields.invalid(absolute, 0, f"cannot be zero at the same time as {percentage}")
    return args


def _node_headroom(fields: Fields) -> NodeHeadroomArgs:
    def decode(each: Fields) -> ResourceHeadroom:
        # A quantity may be a number, as on pods.
        is_number = type(each.raw("amount")) in (int, float)
        amount = each.raw("amount") if is_number else each.string("amount")
        kept = each.build(ResourceHeadroom, name=required_name(each), amount=str(amount or ""))
        if kept.percentage and kept.amount:
            each.forbid("amount", "may not be given together with percentage")
        try:
            if not milli(kept.amount.replace("-", "?") or 0) and each.raw("percentage") in (None, 0):
                each.errors.append(required(each.path, "nothing is kept free without a percentage or an amount"))
        except QuantityError:
            each.invalid("amount", kept.amount, "must be a quantity such as 500m or 2Gi, and not negative")
        return kept

    resources = fields.objects("resources", decode)
    fields.once("resources", [each.name for each in resources])
    default = NodeHeadroomArgs()
    return fields.build(NodeHeadroomArgs, resources=resources or default.resources)


def _weighted(fields: Fields) -> tuple[WeightedResource, ...]:
    decoded = fields.objects(
        "resources", lambda each: each.build(WeightedResource, zero_counts=False, name=required_name(each))
    )
    fields.once("resources", [each.name for each in decoded])
    return decoded or CPU_AND_MEMORY


BAYPLAN_DECODERS: Final[Mapping[str, Callable[[Fields], BayplanArgs]]] = {
    "DefaultPreemption": _default_preemption,
    "ExpectedDuration": lambda fields: fields.build(ExpectedDurationArgs),
    "NodeHeadroom": _node_headroom,
    "NodeResourcesFragmentation": lambda fields: fields.build(
        NodeResourcesFragmentationArgs, resources=_weighted(fields)
    ),
    "NodeResourcesLeastRemainder": lambda fields: NodeResourcesLeastRemainderArgs(_weighted(fields)),
    "ScarceResourceAvoidance": lambda fields: fields.build(ScarceResourceAvoidanceArgs),
    "TopologyMostAllocated": lambda fields: fields.build(
        TopologyMostAllocatedArgs, zero_counts=False, resources=_weighted(fields)
    ),
    "TopologyPlacementGenerator": lambda fields: fields.build(TopologyPlacementGeneratorArgs),
}
"""By plugin, what makes its arguments of a configuration's."""
