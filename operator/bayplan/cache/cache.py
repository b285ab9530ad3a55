"""The scheduler's view of the cluster: nodes, the pods on them, and the pods it assumes are there already."""

from dataclasses import dataclass

from bayplan.api.objects import Node, Pod
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo

_FINISHED = frozenset({"Succeeded", "Failed"})


def is_finished(pod: Pod) -> bool:
    """Whether the pod has ended and takes nothing on its node any more."""
    return pod.status.phase in _FINISHED


@dataclass(slots=True)
class _Placement:
    pod: PodInfo
    row: int
    assumed: bool


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """How much the cache holds, for metrics."""

    nodes: int
    pods: int
    assumed_pods: int


class Cache:
    """Counts every pod on a node exactly once, from the moment it is assumed until it is gone.

        assume_pod          set_pod (the watch shows it bound)
    Initial ------> Assumed ------> Added --- remove_pod ---> gone
       ^               |
       +- forget_pod --+     (set_pod and remove_pod also take pods bound by others)

    The scheduling loop assumes and forgets; event handlers set and remove. Everything is keyed by UID: a pod that was
    deleted and created again under its name is another pod. Calls are idempotent: a repeated event changes nothing.
    """

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.listers = Listers()
        self._placements: dict[str, _Placement] = {}
        self._assumed = 0

    def set_node(self, node: Node) -> None:
        """Take in a new or changed node.

        Raises:
            QuantityError: the node's allocatable cannot be read; the cache keeps what it had.
        """
        self.nodes.set_node(node)

    def remove_node(self, name: str) -> None:
        """Forget a node; pods still on it are remembered in case it comes back."""
        if self.has_node(name):
            self.nodes.drop_node(name)

    def has_node(self, name: str) -> bool:
        """Whether a node of that name exists now; asked right before a bind, as the API server does not check."""
        row = self.nodes.row(name)
        return row is not None and bool(self.nodes.exists[row])

    def assume_pod(self, pod: PodInfo, node_name: str) -> None:
        """Count the pod on its node before the API confirms; the next cycle relies on this, `forget_pod` undoes it.

        Raises:
            ValueError: the pod is on a node already, or (QuantityError) its requests cannot be read.
        """
        if pod.uid in self._placements:
            raise ValueError(f"pod {pod.key} is already on a node")
        row = self.nodes.add_pod(pod, node_name)
        self._placements[pod.uid] = _Placement(pod, row, assumed=True)
        self._assumed += 1

    def forget_pod(self, uid: str) -> None:
        """Undo an assumption whose bind definitely failed; a confirmed pod stays."""
        placement = self._placements.get(uid)
        if placement is not None and placement.assumed:
            self._drop(uid, placement)

    def set_pod(self, pod: PodInfo, *, shown: bool = True) -> None:
        """Take in a pod that has a node: confirm an assumption, add or update it; the watch is right where they differ.

        `shown` is False for a version that came otherwise, as the answer to a write: an assumption stays one, because
        only a watch that has shown a pod tells of its end.

        Raises:
            QuantityError: its requests cannot be read; an earlier version of it stays counted.
        """
        placed = pod.placed
        held = self._placements.get(pod.uid)
        if is_finished(pod.pod):
            if held is not None:
                self._drop(pod.uid, held)
            return
        if held is not None:
            if self.nodes.names[held.row] == pod.pod.spec.node_name and held.pod.placed == placed:
                # What the node gives up is the same: swap the object, leave the columns and their readers alone.
                if shown:
                    self._confirm(held)
                if _looks_different(held.pod.pod, pod.pod):
                    self.nodes.usage_changed.append(held.row)
                alike = _are_counted_alike(held.pod.pod, pod.pod)
                self.nodes.replace_pod(held.pod, pod, held.row, counted_alike=alike)
                held.pod = pod
                return
            shown = shown or not held.assumed
            self._drop(pod.uid, held)
        row = self.nodes.add_pod(pod, pod.pod.spec.node_name)
        self._placements[pod.uid] = _Placement(pod, row, assumed=not shown)
        self._assumed += not shown

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is gone, assumed or not."""
        placement = self._placements.get(uid)
        if placement is not None:
            self._drop(uid, placement)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is counted on the scheduler's word only."""
        placement = self._placements.get(uid)
        return placement is not None and placement.assumed

    def node_of(self, uid: str) -> str | None:
        """The node the pod is counted on, assumed or confirmed."""
        placement = self._placements.get(uid)
        return None if placement is None else self.nodes.names[placement.row]

    def confirmed_node(self, uid: str) -> str | None:
        """The node the watch has shown the pod on; None while it is assumed or unknown."""
        placement = self._placements.get(uid)
        return None if placement is None or placement.assumed else self.nodes.names[placement.row]

    def pod(self, uid: str) -> PodInfo | None:
        """The pod as last seen, if it is counted on a node."""
        placement = self._placements.get(uid)
        return None if placement is None else placement.pod

    def assumed_pods(self) -> list[PodInfo]:
        """The pods counted on the scheduler's word only; the check for pods that ended unseen asks about them."""
        return [p.pod for p in self._placements.values() if p.assumed] if self._assumed else []

    def sizes(self) -> CacheSizes:
        """How many nodes and pods are held."""
        return CacheSizes(len(self.nodes), len(self._placements), self._assumed)

    def _confirm(self, placement: _Placement) -> None:
        if placement.assumed:
            placement.assumed = False
            self._assumed -= 1

    def _drop(self, uid: str, placement: _Placement) -> None:
        self._confirm(placement)
        self.nodes.remove_pod(placement.pod, placement.row)
        del self._placements[uid]


def _looks_different(old: Pod, new: Pod) -> bool:
    """Whether something changed that plugins read of pods on nodes: whom rules count, and how important pods are.

    Tables beside the real one learn of new versions by their row, so whatever tells counted pods apart is part of it.
    """
    return (
        not _are_counted_alike(old, new)
        or old.status.start_time != new.status.start_time
        or old.spec.priority != new.spec.priority
    )


def _are_counted_alike(old: Pod, new: Pod) -> bool:
    """Whether nothing changed by which rules tell pods on nodes apart: terminating ones do not count for spreading."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.namespace == new.metadata.namespace
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.spec.affinity == new.spec.affinity
    )
