"""How well the cluster is packed, as gauges that are worked out at the scrape, one after the other."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bayplan.cache.resources import CPU, PODS
from bayplan.server.metrics import gauge
from bayplan.server.state import StateSources

NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
MAX_EXTENDED_RESOURCES = 32


class PackingCollector(Collector):
    """Exports how full the nodes are, and what is of no use on them, as it is at the moment of the scrape."""

    def __init__(self, sources: StateSources) -> None:
        self._sources = sources
        self._extended: set[str] = set()

    def collect(self) -> Iterable[Metric]:
        """All of it, metric by metric."""
        summary = self._sources.allocation()
        yield gauge("bayplan_nodes", "Number of nodes known.", (), {(): summary.nodes})
        yield gauge(
            "bayplan_nodes_in_use",
            "Number of nodes with a pod that could run elsewhere.",
            (),
            {(): summary.nodes_in_use},
        )
        resources = list(self._admitted(summary.allocatable))
        yield gauge(
            "bayplan_allocation_ratio",
            "Requested over allocatable on the nodes in use.",
            ("resource",),
            {r: _ratio(summary.requested_in_use.get(r, 0), summary.allocatable_in_use.get(r, 0)) for r in resources},
        )
        yield gauge(
            "bayplan_cluster_allocation_ratio",
            "Requested over allocatable on all nodes.",
            ("resource",),
            {r: _ratio(summary.requested.get(r, 0), summary.allocatable.get(r, 0)) for r in resources},
        )
        packing = self._sources.packing([name for name in resources if name != PODS])
        yield gauge(
            "bayplan_stranded_capacity",
            "Free capacity of nodes that is of no use because another resource is full there; cpu in cores.",
            ("resource",),
            {name: _in_base_units(name, amount) for name, amount in packing.stranded().items()},
        )
        yield gauge(
            "bayplan_largest_schedulable_pod",
            "Largest amount of a resource that is free on one node which takes another pod; cpu in cores.",
            ("resource",),
            {name: _in_base_units(name, amount) for name, amount in packing.largest().items()},
        )
        yield gauge(
            "bayplan_nodes_lower_bound",
            "Fewest nodes that have room for all pods that could run elsewhere, by the sum of requests.",
            (),
            {(): packing.lower_bound()},
        )
        yield gauge(
            "bayplan_emptiable_nodes",
            "Nodes in use that could be emptied into what is free on the others in use, by the sum of requests.",
            (),
            {(): packing.emptiable()},
        )

    def _admitted(self, allocatable: Mapping[str, int]) -> Iterator[str]:
        # Node owners choose the names of extended resources. The first ones seen keep their place, so that
        # series neither grow without bound nor come and go.
        for resource in sorted(allocatable):
            if allocatable[resource] <= 0:
                continue
            if resource not in NATIVE_RESOURCES and resource not in self._extended:
                if len(self._extended) >= MAX_EXTENDED_RESOURCES:
                    continue
                self._extended.add(resource)
            yield resource


def _ratio(requested: int, allocatable: int) -> float:
    return requested / allocatable if allocatable else 0.0


def _in_base_units(resource: str, amount: int) -> float:
    return amount / 1000 if resource == CPU else amount
