"""The arguments of DefaultPreemption, and what bayplan adds to them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from bayplan.config.settings import NOT_NEGATIVE, OWN, PERCENTAGE


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
