"""The arguments of NodeHeadroom, the plugin that kube-scheduler does not have."""

from dataclasses import dataclass
from typing import Annotated

from bayplan.config.settings import PERCENTAGE, Rule


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
