"""Arguments that kube-scheduler does not have: those of bayplan's own plugins, and its own of others."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from bayplan.api.selectors import NAME_PATTERN
from bayplan.config.errors import FieldError
from bayplan.config.labels import LABEL_NAME
from bayplan.config.settings import NOT_NEGATIVE, OWN, PERCENTAGE, Rule


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
