"""What a simulation was given besides the nodes and the pods that it schedules."""

from dataclasses import dataclass, field

from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.drain import DrainedNode


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
