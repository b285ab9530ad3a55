"""How well the cluster is packed, as gauges that are worked out at the scrape, one after the other."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.cache.resources import CPU, PODS
from bayplan.server.state import StateSources, labelled

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
        yield GaugeMetricFamily("bayplan_nodes", "Number of nodes known.", value=summary.nodes)
        yield GaugeMetricFamily(
            "bayplan_nodes_in_use", "Number of nodes with a pod that could run elsewhere.", value=summary.nodes_in_use
        )
        resources = list(self._admitted(summary.allocatable))
        for name, documentation, taken, capacity in (
            (
                "bayplan_allocation_ratio",
                "Requested over allocatable on the nodes in use.",
                summary.requested_in_use,
                summary.allocatable_in_use,
            ),
            (
                "bayplan_cluster_allocation_ratio",
                "Requested over allocatable on all nodes.",
                summary.requested,
                summary.allocatable,
            ),
        ):
            yield labelled(
                name,
                documentation,
                ("resource",),
                [((r,), _ratio(taken.get(r, 0), capacity.get(r, 0))) for r in resources],
            )
        yield from self._by_requests(resources)

    def _by_requests(self, resources: list[str]) -> Iterator[Metric]:
        others = [name for name in resources if name != PODS]
        packing = self._sources.packing(others)
        yield labelled(
            "bayplan_stranded_capacity",
            "Free capacity of nodes that is of no use because another resource is full there; cpu in cores.",
            ("resource",),
            [((name,), _in_base_units(name, amount)) for name, amount in packing.stranded().items()],
        )
        yield labelled(
            "bayplan_largest_schedulable_pod",
            "Largest amount of a resource that is free on one node which takes another pod; cpu in cores.",
            ("resource",),
            [((name,), _in_base_units(name, amount)) for name, amount in packing.largest().items()],
        )
        yield GaugeMetricFamily(
            "bayplan_nodes_lower_bound",
            "Fewest nodes that have room for all pods that could run elsewhere, by the sum of requests.",
            value=packing.lower_bound(),
        )
        yield GaugeMetricFamily(
            "bayplan_emptiable_nodes",
            "Nodes in use that could be emptied into what is free on the others in use, by the sum of requests.",
            value=packing.emptiable(),
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
