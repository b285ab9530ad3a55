"""What a simulation works on, whether it was read from files or made up, and what its pods share."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import force_setattr

from bayplan.api.objects import Node, Pod
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.group_members import GroupSource
from bayplan.cache.listers import NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import encoded
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


_LARGEST: Final = 4096
"""Parts that are longer, in encoded bytes, are not looked for: many of them alike are rare."""
_SHARED: Final = {
    "metadata": ("labels", "owner_references"),
    "spec": (
        *("containers", "init_containers", "tolerations", "node_selector"),
        *("affinity", "topology_spread_constraints", "volumes"),
    ),
    "status": ("conditions", "container_statuses", "init_container_statuses"),
}
_NAMES: Final = (("metadata", "namespace"), ("spec", "scheduler_name"), ("spec", "node_name"), ("status", "phase"))
"""Texts that thousands of pods have."""


class SharedParts:
    """Keeps one of each part that pods have; it grows by what is different in them, and goes with the reader."""

    def __init__(self) -> None:
        self._known: dict[str, dict[bytes, object]] = {part: {} for parts in _SHARED.values() for part in parts}

    def of(self, pod: Pod) -> Pod:
        """Return the pod, which nobody else knows yet, with its parts replaced by equal ones that other pods have."""
        for name, parts in _SHARED.items():
            struct = getattr(pod, name)
            for part in parts:
                held = getattr(struct, part)
                key = encoded(held, largest=_LARGEST) if held else None
                if key is not None and (known := self._known[part].setdefault(key, held)) is not held:
                    force_setattr(struct, part, known)
        for name, text in _NAMES:
            struct = getattr(pod, name)
            force_setattr(struct, text, sys.intern(getattr(struct, text)))
        return pod
