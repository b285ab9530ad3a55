"""What a simulation works on, whether it was read from files or made up."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.api.objects import Node
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.group_members import GroupSource
from bayplan.cache.listers import NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.groups.pod_groups import PodGroup
from bayplan.simulate.drain import DrainedNode


@dataclass(frozen=True, slots=True)
class SkippedPod:
    """A pod, or the pods of a workload, that a simulation goes on without."""

    namespace: str
    name: str
    source: str
    """Where it stands, such as `cluster.yaml: document 3`."""
    message: str
    """Why: the field and what is wrong with it."""
    kind: str = "Pod"
    """Of a workload that cannot be read, all pods that it would have are skipped."""
    pods: int = 1


@dataclass(slots=True)
class ClusterObjects:
    """What a simulation works on; every quantity in it has been read once, so none can fail later."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[PodInfo] = field(default_factory=list)
    skipped: list[SkippedPod] = field(default_factory=list)
    ignored_kinds: dict[str, int] = field(default_factory=dict)
    """How many objects of other kinds there were, by kind."""
    looked_up: list[NamedObject] = field(default_factory=list)
    """What plugins look up: objects of the kinds in `bayplan.api.kinds`."""
    others: int = 0
    """How many workloads there were."""
    priority_classes: list[PriorityClass] = field(default_factory=list)
    pod_groups: list[PodGroup] = field(default_factory=list)
    drained: list[DrainedNode] = field(default_factory=list)
    """What became of the pods of nodes that were drained or removed."""
    added: list[list[PodInfo]] = field(default_factory=list)
    """The pods of each object that was added to the cluster; they are among `pods` as well.

    Of a workload that makes no more pods this is one as it would be, which is not among `pods`.
    """
    making_way: list[PodInfo] = field(default_factory=list)
    """Pods that are not among `pods`, since those of a changed template take their place."""
    notes: list[str] = field(default_factory=list)
    """What people are told about how the objects were read, a line each."""
    group_sources: set[GroupSource] = field(default_factory=set)
    """Whose kinds of PodGroup are served, though there may be none: that of one that was removed still is."""

    before: Callable[[], "ClusterObjects"] | None = None
    """Gives the cluster as it was before it was changed, if it was."""

    @property
    def is_empty(self) -> bool:
        """Whether there was no object at all, of whatever kind."""
        found = (self.nodes, self.pods, self.skipped, self.ignored_kinds, self.looked_up)
        return not (any(found) or self.others or self.priority_classes or self.pod_groups)
