"""What a simulation was given besides the nodes and the pods that it schedules, and what is told of all in sum."""

from dataclasses import dataclass, field

from msgspec import UNSET

from bayplan.cache.cache import Cache
from bayplan.plugins.dynamic_resources.stranded_devices import StrandedDevices
from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.drain import DrainedNode
from bayplan.simulate.report import Summary, cluster_use


@dataclass(slots=True)
class Given:
    """Counted for the summary, which relies on it."""

    running: int = 0
    finished: int = 0
    other_schedulers: int = 0
    skipped: list[SkippedPod] = field(default_factory=list)
    ignored_kinds: dict[str, int] = field(default_factory=dict)
    drained: list[DrainedNode] = field(default_factory=list)

    def take(self, objects: ClusterObjects) -> None:
        """Take in all but the pods, which are counted by what becomes of them."""
        self.skipped.extend(objects.skipped)
        self.drained.extend(objects.drained)
        for kind, count in objects.ignored_kinds.items():
            self.ignored_kinds[kind] = self.ignored_kinds.get(kind, 0) + count

    def summary(
        self,
        cache: Cache,
        *,
        pods: int,
        scheduled: int,
        gated: int,
        preempted: int,
        decisions_per_second: float,
        seconds: float,
    ) -> Summary:
        """Tell of the cluster as it stands, and of `pods` that named a profile."""
        use = cluster_use(cache.nodes)
        stranded = StrandedDevices(cache.listers).by_driver()
        skipped = sum(each.pods for each in self.skipped)
        return Summary(
            nodes=len(cache.nodes),
            nodes_in_use=use.nodes_in_use,
            overcommitted_nodes=use.overcommitted_nodes,
            lower_bound_nodes=use.lower_bound_nodes,
            pods=self.running + self.finished + self.other_schedulers + pods + skipped,
            running=self.running,
            finished=self.finished,
            other_schedulers=self.other_schedulers,
            on_unknown_nodes=sum(map(len, cache.without_node.values())),
            scheduled=scheduled,
            unschedulable=pods - scheduled - gated,
            gated=gated,
            preempted=preempted,
            skipped=self.skipped,
            drained=self.drained,
            ignored_kinds=dict(sorted(self.ignored_kinds.items())),
            allocation=use.allocation,
            decisions_per_second=decisions_per_second,
            seconds=seconds,
            stranded_devices=round(sum(stranded.values()), 6) if stranded else UNSET,
        )
