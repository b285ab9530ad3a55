"""The arguments of scores that kube-scheduler does not have: what they are, and how they are decoded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from bayplan.config.errors import duplicate, item
from bayplan.config.fields import Fields, required_name
from bayplan.config.settings import Rule, within

_WEIGHT: Final = within(1, 100, "not in valid range [1, 100]", or_zero=True)


class AllocationType(StrEnum):
    """Which nodes come first by one resource."""

    MOST_ALLOCATED = "MostAllocated"
    LEAST_ALLOCATED = "LeastAllocated"


@dataclass(frozen=True, slots=True)
class ResourceStrategy:
    """How one resource counts."""

    type: Annotated[AllocationType, Rule(required=True)] = AllocationType.MOST_ALLOCATED
    """Whether nodes with most or least of it allocated come first."""
    weight: Annotated[int, _WEIGHT] = 1
    """Its share of the score, 1..100."""


@dataclass(frozen=True, slots=True)
class NodeResourcesFitPlusArgs:
    """Arguments of NodeResourcesFitPlus, with koordinator's names."""

    resources: Mapping[str, ResourceStrategy] = field(default_factory=dict)
    """By the name of the resource, how it counts for pods that ask for it."""


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


StrategyArgs = (
    NodeResourcesFitPlusArgs
    | ScarceResourceAvoidanceArgs
    | NodeResourcesLeastRemainderArgs
    | TopologyMostAllocatedArgs
    | NodeResourcesFragmentationArgs
)


def _fit_plus(fields: Fields) -> NodeResourcesFitPlusArgs:
    return NodeResourcesFitPlusArgs(fields.optional("resources", _strategies) or {})


def _strategies(fields: Fields) -> dict[str, ResourceStrategy]:
    strategies: dict[str, ResourceStrategy] = {}
    for name in fields.keys():  # noqa: SIM118  no mapping
        with fields.nested(name) as each:
            kind = each.choice("type", AllocationType) or AllocationType.MOST_ALLOCATED
            strategies[name] = each.build(ResourceStrategy, zero_counts=False, type=kind)
    return strategies


def _weighted(fields: Fields) -> tuple[WeightedResource, ...]:
    decoded = fields.objects(
        "resources", lambda each: each.build(WeightedResource, zero_counts=False, name=required_name(each))
    )
    names = [each.name for each in decoded]
    for index, name in enumerate(names):
        if name in names[:index]:
            fields.errors.append(duplicate(f"{item(fields.at('resources'), index)}.name", name))
    return decoded or CPU_AND_MEMORY


STRATEGY_DECODERS: Final[Mapping[str, Callable[[Fields], StrategyArgs]]] = {
    "NodeResourcesFitPlus": _fit_plus,
    "NodeResourcesFragmentation": lambda fields: fields.build(
        NodeResourcesFragmentationArgs, resources=_weighted(fields)
    ),
    "NodeResourcesLeastRemainder": lambda fields: NodeResourcesLeastRemainderArgs(_weighted(fields)),
    "ScarceResourceAvoidance": lambda fields: fields.build(ScarceResourceAvoidanceArgs),
    "TopologyMostAllocated": lambda fields: fields.build(
        TopologyMostAllocatedArgs, zero_counts=False, resources=_weighted(fields)
    ),
}
"""By plugin, what makes its arguments of a configuration's."""
