"""How well the cluster is packed and what that costs, from the node table's columns; worked out only when asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.lower_bound import fewest
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.resources import CPU, MEMORY, PODS

TAKEN_BY_ALL: Final = (CPU, MEMORY, PODS)
"""The resources that nearly every pod takes: where one of them is full, the others are of no use."""


@dataclass(frozen=True, slots=True)
class Packing:
    """What can be said of the packing of a node table, each by a method, so that nobody waits for all of it.

    `resources` are those that are looked at, beside pods. Amounts are in milli-CPU for cpu and in the resource's own
    unit (bytes, counts) for the rest. Rules of pods are left out of account: all of it is by the sum of requests alone.
    Sums are exact up to 2**53.
    """

    nodes: NodeTable
    resources: Sequence[str]

    def stranded(self) -> dict[str, int]:
        """What is free of each resource on nodes where another one is full, cordoned nodes left out.

        Cpu, memory or pods are full on a node where less is free than the average of all pods on nodes requests; of
        pods that is one.
        """
        nodes, rows = self.nodes, self._open_rows()
        count = max(int(nodes.pod_count.sum()), 1)
        full: dict[str, NDArray[np.bool_]] = {}
        for name in TAKEN_BY_ALL:
            average = 1.0 if name == PODS else float(self.requested(name).sum(dtype=np.float64)) / count
            full[name] = self._free(name)[rows] < average
        found: dict[str, int] = {}
        for name in self.resources:
            others = [each for resource, each in full.items() if resource != name]
            stranded = self._free(name)[rows][np.logical_or.reduce(others)]
            found[name] = int(stranded.sum(dtype=np.float64))
        return found

    def largest(self) -> dict[str, int]:
        """The largest amount of each resource that is free on one node, which is not cordoned and takes another pod."""
        rows = self._open_rows()
        rows = rows[self._free(PODS)[rows] >= 1]
        return {name: int(self._free(name)[rows].max(initial=0)) for name in self.resources}

    def lower_bound(self) -> int:
        """The fewest nodes that have room for the pods that could run elsewhere, for the resource that needs most."""
        return max(map(self.fewest_for, (*self.resources, PODS)))

    def fewest_for(self, name: str) -> int:
        """The fewest nodes that have as much of a resource as pods take that could run elsewhere.

        Of each node what its other pods take is left out: it is taken there whatever runs beside it.
        """
        rows = self.nodes.rows()
        offered = np.maximum(self.allocatable(name) - self.staying(name), 0)[rows]
        return fewest(offered.tolist(), sum(self.movable(name)[rows].tolist()))

    def emptiable(self) -> int:
        """How many nodes in use could be emptied into what is free on the others in use."""
        return len(self.emptiable_rows())

    def emptiable_rows(self) -> Rows:
        """Which nodes in use could be emptied into what is free on the others in use, the emptiest first.

        The nodes are taken in the order of how full they are of what they are fullest of, the emptiest first, and as
        many of them count as all the others together have room for. Pods that could run nowhere else may stay.
        """
        nodes = self.nodes
        rows = np.flatnonzero(nodes.in_use())
        shares = [self.requested(name)[rows] / np.maximum(self.allocatable(name)[rows], 1) for name in TAKEN_BY_ALL]
        rows = rows[np.argsort(np.max(shares, axis=0), kind="stable")]
        is_open = ~self._cordoned(rows)
        fits = np.ones(len(rows), dtype=np.bool_)
        for name in (*self.resources, PODS):
            moved = np.cumsum(self.movable(name)[rows], dtype=np.float64)
            free = np.cumsum((self._free(name)[rows] * is_open)[::-1], dtype=np.float64)[::-1]
            # What is free on those behind it, of which the last has none.
            fits[:-1] &= moved[:-1] <= free[1:]
            fits[-1:] = False
        return rows[fits]

    def allocatable(self, name: str) -> Column:
        """What each row has of a resource: of pods the number that it takes, 0 of what no node has."""
        nodes = self.nodes
        return nodes.allowed_pods if name == PODS else nodes.allocatable.get(name, np.zeros_like(nodes.pod_count))

    def requested(self, name: str) -> Column:
        """What is taken on each row of a resource: of pods their number, 0 of what no pod asks for."""
        nodes = self.nodes
        return nodes.pod_count if name == PODS else nodes.requested.get(name, np.zeros_like(nodes.pod_count))

    def staying(self, name: str) -> Column:
        """What is taken on each row of a resource by pods that could run on no other node."""
        return self.nodes.staying.get(name, np.zeros_like(self.nodes.pod_count))

    def movable(self, name: str) -> Column:
        """What is taken on each row of a resource by pods that could run elsewhere."""
        return self.requested(name) - self.staying(name)

    def _open_rows(self) -> Rows:
        rows = self.nodes.rows()
        return rows[~self._cordoned(rows)]

    def _cordoned(self, rows: Rows) -> NDArray[np.bool_]:
        nodes = self.nodes.nodes
        return np.array(
            [node is not None and node.spec.unschedulable for row in rows.tolist() for node in (nodes[row],)],
            dtype=np.bool_,
        )

    def _free(self, name: str) -> Column:
        """What is free of a resource on each row; none where more is taken than there is."""
        free: Column = np.maximum(self.allocatable(name) - self.requested(name), 0)
        return free
