"""Where a pod group may find room: nowhere, if all nodes have too little, or on the best of several sets of them."""

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.container_requests import millis
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, in_columns
from bayplan.framework.causes import quantity
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.topology_placement_generator import NodePlacement, Placements, Shape
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.attempt import MemberResult
from bayplan.scheduler.cycle import SchedulingCycle

UNSCHEDULABLE: Final = "pod group is unschedulable"
_MANY: Final = 2**31
"""The room where no filter counts what pods ask for."""


class Shortfall(NamedTuple):
    """Why a group has no place: its text, what the members that were `tried` met, and the `rest`, who were not."""

    text: str
    tried: Sequence[MemberResult]
    rest: Sequence[QueuedPodInfo]
    is_error: bool = False


Trial = Generator[None, None, Shortfall | None]
"""Steps between which the caller may pause; in the end why there is no place, or None, and all members are placed."""


def search(
    placements: Placements,
    attempt: Callable[[Rows | None], Trial],
    undo: Callable[[], Generator[None, None, None]],
    pods: Callable[[], int],
) -> Trial:
    """Place a group on the best of its sets of nodes, or tell what the first lacks; the round relies on it.

    `attempt` places the group on the given nodes, `undo` takes back what it did, and `pods` are how many members run
    and are placed. An error ends the search. As the score of a set says at most what it comes to, a set that comes to
    as much as all that are left need not be held against them (upstream: podGroupSchedulingPlacementAlgorithm).
    """
    first: Shortfall | None = None
    best: tuple[int, NodePlacement] | None = None
    has_most = False
    following = next(placements.each, None)
    while following is not None:
        placement, following = following, next(placements.each, None)
        shortfall = yield from attempt(placement.rows)
        if shortfall is None:
            points = placements.points(placement, pods())
            has_most |= pods() == placements.most
            is_best = best is None or points > best[0]
            if best is None or is_best:
                best = points, placement
            if not (following is not None and following.domain and (not has_most or following.points > best[0])):
                following = None
            if is_best and (following is None or not placement.domain):
                return None
        elif shortfall.is_error:
            return shortfall
        elif first is None and not placement.guess:
            first = shortfall
        yield from undo()
        yield
    if best is not None:
        first = yield from attempt(best[1].rows)
    # A group that runs already, and whose late members find no room, is not told of placements.
    if first is not None and placements.is_told and not first.is_error and first.text != UNSCHEDULABLE:
        status = f"first placement status: {first.text}"
        first = first._replace(text=f"{UNSCHEDULABLE}, 0/{placements.number} placements are available, {status}")
    return first


class NodeNames:
    """Which node each row was when sets of nodes were told apart; nodes may come and go in the middle of a round."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._names = nodes.names[:]
        self._version = nodes.tree.version

    def still(self, rows: Rows) -> Rows:
        """Those of `rows` that are the same nodes still."""
        names = self._nodes.names
        if self._version == self._nodes.tree.version:
            return rows
        return rows[[names[row] == self._names[row] for row in rows.tolist()]]


def shapes_of(members: Sequence[tuple[PodInfo, Framework]], cycle: SchedulingCycle, nodes: NodeTable) -> list[Shape]:
    """Return the members by what makes them alike to filters, each shape with the room that nodes have for it.

    Room is what no round can exceed: pods that are placed take some of it and never make more.
    """
    alike: dict[Hashable, list[tuple[PodInfo, Framework]]] = {}
    for pod, framework in members:
        signature = framework.signature(pod)
        key = pod.uid if signature is None else (framework.profile_name, signature)
        alike.setdefault(key, []).append((pod, framework))
    shapes: list[Shape] = []
    for each in alike.values():
        pod, framework = each[0]
        fits = [plugin.room(pod, nodes) for plugin in framework.filters if isinstance(plugin, NodeResourcesFit)]
        room = np.where(cycle.suitable(pod, framework), fits[0] if fits else _MANY, 0)
        shapes.append(Shape(pod, len(each), room))
    return shapes


def resource_gap(
    group: PodGroup, nodes: NodeTable, members: Iterable[PodInfo], by_devices: Collection[str] = ()
) -> str:
    """Return what `minResources` ask for beyond what all nodes together have free, "" for nothing.

    A round relies on it to try no group in vain. What the `members` on nodes take counts as free. Resources that are
    provided `by_devices` are left out: nodes do not offer them, and a round finds the devices.

    Raises:
        QuantityError: An amount cannot be read; the message names its field.
    """
    if not group.min_resources:
        return ""
    held = list(members)
    missing: list[str] = []
    for name, amount in sorted(millis(group.min_resources, "spec.minResources").items()):
        if name in by_devices:
            continue
        asked = in_columns(name, amount)
        free = float(np.maximum(nodes.offered(name) - nodes.taken(name), 0).sum(dtype=np.float64))
        free += sum(1 if name == PODS else each.placed.amounts.get(name, 0) for each in held)
        if asked > free:
            missing.append(f"{name} {quantity(name, asked)} where {quantity(name, int(free))} is free")
    return f"resource gap: {', '.join(missing)}" if missing else ""
