"""Nodes that get no pods for a while, because their kubelet had no room for one that was bound there."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from bayplan.api.objects import Node, Taint
from bayplan.cache.cache import Cache
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.framework.cluster_event import NODE_TAINT
from bayplan.queue.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)

TAINT: Final = Taint(key="bayplan.io/kubelet-rejection", effect="NoSchedule")
"""What such a node has in the cache and nowhere else; a pod that tolerates it goes there all the same."""
REMEMBERED_PODS: Final = 16_384
"""Of how many pods, the last ones, it is known that they were bound here."""


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)


@dataclass(eq=False)
class NodeBackoff:
    """Has the cache show a node with TAINT for `seconds` after its kubelet rejected a pod that was bound by us.

    Others' pods do not count: anybody may create one on a node that has no room for it, and would so keep all pods
    from it. `later` runs something after so many seconds.
    """

    seconds: float
    cache: Cache
    queue: SchedulingQueue
    wake: Callable[[], None]
    later: Callable[[float, Callable[[], None]], None] = _call_later
    _bound: RecentlyUsed[str, bool] = field(default_factory=lambda: RecentlyUsed(REMEMBERED_PODS), init=False)
    _held: Counter[str] = field(default_factory=Counter, init=False)

    def bound(self, uid: str) -> None:
        """Remember that a pod is on its node by our own bind."""
        self._bound.put(uid, True)

    def rejected(self, uid: str, node_name: str) -> None:
        """Leave the node of a rejected pod alone from now on, if the pod was bound here."""
        # Its failure may be seen before its bind: they come by two watches.
        is_ours = self._bound.get(uid)
        if not is_ours and not self.cache.is_assumed(uid):
            return
        if is_ours:
            self._bound.drop(uid)
        self._held[node_name] += 1
        logger.info("node gets no pods for %g s, its kubelet had no room for one node=%r", self.seconds, node_name)
        self.later(self.seconds, lambda: self._let_go(node_name))
        node = self._cached(node_name)
        if node is not None:
            self.cache.set_node(self.shown(node))

    def shown(self, node: Node) -> Node:
        """Return a node as the cache is to have it."""
        taints = node.spec.taints or []
        if node.metadata.name not in self._held or TAINT in taints:
            return node
        return _with_taints(node, [*taints, TAINT])

    def _let_go(self, name: str) -> None:
        self._held[name] -= 1
        if self._held[name]:
            return
        del self._held[name]
        node = self._cached(name)
        if node is None:
            return
        free = _with_taints(node, [each for each in node.spec.taints or () if each != TAINT])
        self.cache.set_node(free)
        self.queue.move_all(NODE_TAINT, node, free)
        self.wake()

    def _cached(self, name: str) -> Node | None:
        row = self.cache.nodes.row(name)
        return None if row is None else self.cache.nodes.nodes[row]


def _with_taints(node: Node, taints: list[Taint]) -> Node:
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
