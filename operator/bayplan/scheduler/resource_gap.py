"""What a pod group's `minResources` ask for beyond what all nodes together have free."""

from collections.abc import Iterable

import numpy as np

from bayplan.cache.container_requests import millis
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, in_columns
from bayplan.framework.causes import quantity
from bayplan.groups.pod_groups import PodGroup


def resource_gap(group: PodGroup, nodes: NodeTable, members: Iterable[PodInfo]) -> str:
    """Return what is missing, "" if nothing is; a round relies on it to try no group in vain.

    What the `members` on nodes take counts as free.

    Raises:
        QuantityError: An amount cannot be read; the message names its field.
    """
    if not group.min_resources:
        return ""
    held = list(members)
    missing: list[str] = []
    for name, amount in sorted(millis(group.min_resources, "spec.minResources").items()):
        asked = in_columns(name, amount)
        free = float(np.maximum(nodes.offered(name) - nodes.taken(name), 0).sum(dtype=np.float64))
        free += sum(1 if name == PODS else each.placed.amounts.get(name, 0) for each in held)
        if asked > free:
            missing.append(f"{name} {quantity(name, asked)} where {quantity(name, int(free))} is free")
    return f"resource gap: {', '.join(missing)}" if missing else ""
