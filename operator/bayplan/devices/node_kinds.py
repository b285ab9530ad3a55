"""Which nodes are alike to a search, found again only where something was taken or given back."""

from typing import Final

from bayplan.api.objects import Node
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.offers import Kinds, Reads
from bayplan.devices.pool_index import PoolIndex
from bayplan.devices.pools import NodePools

_MAX_NODES: Final = 20_000


class NodeKinds:
    """Gives the pools of nodes and a number for what searches with these `reads` depend on; the allocator relies on it.

    Nodes with the same number are answered alike. An attempt begins with `follow`.
    """

    def __init__(self, index: PoolIndex, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> None:
        self._index = index
        self._reads = reads
        self._kinds = kinds
        self._allocated = allocated
        self._latest = allocated.latest
        self._known: dict[str, tuple[object, NodePools, int]] = {}

    def follow(self) -> None:
        """Forget the nodes of pools of which something was taken or given back since the last call."""
        changed = self._allocated.changed_since(self._latest)
        self._latest = self._allocated.latest
        nodes_of = self._index.nodes_of
        if changed is None or len(self._known) > _MAX_NODES or any(nodes_of.get(pool, ()) is None for pool in changed):
            self._known.clear()
            return
        for pool in changed:
            for name in nodes_of.get(pool) or ():
                self._known.pop(name, None)

    def known(self, node: Node) -> tuple[object, NodePools, int] | None:
        """Return the labels, the pools and the number of a node where these are known."""
        known = self._known.get(node.metadata.name)
        return known if known is not None and known[0] is node.metadata.labels else None

    def find(self, node: Node) -> tuple[object, NodePools, int]:
        """Find out the same."""
        pools = self._index.pools_of(node)
        number = self._kinds.number(pools.kind(self._reads, self._kinds, self._allocated))
        found = self._known[node.metadata.name] = node.metadata.labels, pools, number
        return found
