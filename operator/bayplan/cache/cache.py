"""The scheduler's view of the cluster: nodes, the pods on them, and the pods it assumes are there already."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.api.objects import Node, Pod
from bayplan.cache.group_members import GroupMembers, PodGroupKey
from bayplan.cache.listers import Lister, Listers, NamedObject
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo

_FINISHED = frozenset({"Succeeded", "Failed"})


def is_finished(pod: Pod) -> bool:
    """Whether the pod has ended and takes nothing on its node any more."""
    return pod.status.phase in _FINISHED


@dataclass(slots=True)
class _Placement:
    pod: PodInfo
    node_name: str
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

    A pod whose node does not exist, or not yet, or not any more, is kept beside the table until it goes or the node
    comes: anybody can create pods that name any node. Upstream's snapshot leaves such pods out too.
    """

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.listers = Listers()
        self.without_node: dict[str, dict[str, PodInfo]] = {}
        """The pods that count on no row, by the name of the node that there is not, and UID."""
        self.members = GroupMembers()
        """The pods that name a group."""
        self._placements: dict[str, _Placement] = {}
        self._assumed = 0

    @classmethod
    def of(cls, nodes: NodeTable, without_node: dict[str, dict[str, PodInfo]]) -> "Cache":
        """Return a cache of these nodes with the pods on them, all of them confirmed, and without listers."""
        made = cls()
        made.nodes, made.without_node = nodes, without_node
        on_nodes = ((nodes.names[row], nodes.pods[row]) for row in nodes.rows().tolist())
        for name, pods in (*on_nodes, *without_node.items()):
            for uid, pod in pods.items():
                made._placements[uid] = _Placement(pod, name, assumed=False)
                made.members.add(pod)
        return made

    def beside(self, key: PodGroupKey) -> "Cache":
        """Return a cache with a copy of the nodes, on which preemption tries out what is changed here by nobody.

        Of the pods on them it knows one by one the members of this group alone, and it has no listers.
        """
        made = Cache()
        made.nodes = self.nodes.copy()
        for uid, pod in self.members.of(key).items():
            made._placements[uid] = _Placement(pod, self._placements[uid].node_name, assumed=False)
            made.members.add(pod)
        return made

    def set_node(self, node: Node) -> None:
        """Take in a new or changed node.

        Raises:
            QuantityError: the node's allocatable cannot be read; the cache keeps what it had.
        """
        row = self.nodes.set_node(node)
        pods = self.without_node.pop(node.metadata.name, None)
        if pods is not None:
            self.nodes.add_pods(pods, row)

    def remove_node(self, name: str) -> None:
        """Forget a node; pods still on it are remembered in case it comes back."""
        if self.has_node(name):
            pods = self.nodes.drop_node(name)
            if pods:
                self.without_node[name] = pods

    def has_node(self, name: str) -> bool:
        """Whether a node of that name exists now; asked right before a bind, as the API server does not check."""
        return self.nodes.row(name) is not None

    def assume_pod(self, pod: PodInfo, node_name: str) -> None:
        """Count the pod on its node before the API confirms; the next cycle relies on this, `forget_pod` undoes it.

        Raises:
            ValueError: the pod is on a node already, or (QuantityError) its requests cannot be read.
        """
        if pod.uid in self._placements:
            raise ValueError(f"pod {pod.key} is already on a node")
        self._add(pod, node_name, assumed=True)

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
        if held is not None:
            pod.share_terms_of(held.pod)
        if is_finished(pod.pod):
            if held is not None:
                self._drop(pod.uid, held)
            return
        if held is not None:
            same = held.pod.placed == placed and held.pod.stays == pod.stays
            if held.node_name == pod.pod.spec.node_name and same:
                # What the node gives up is the same: swap the object, leave the columns and their readers alone.
                if shown:
                    self._confirm(held)
                self._replace(held, pod)
                return
            shown = shown or not held.assumed
            self._drop(pod.uid, held)
        self._add(pod, pod.pod.spec.node_name, assumed=not shown)

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
        return None if placement is None else placement.node_name

    def confirmed_node(self, uid: str) -> str | None:
        """The node the watch has shown the pod on; None while it is assumed or unknown."""
        placement = self._placements.get(uid)
        return None if placement is None or placement.assumed else placement.node_name

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

    def _add(self, pod: PodInfo, node_name: str, *, assumed: bool) -> None:
        _ = pod.placed
        row = self.nodes.row(node_name)
        if row is None:
            self.without_node.setdefault(node_name, {})[pod.uid] = pod
        else:
            self.nodes.add_pod(pod, row)
        self._placements[pod.uid] = _Placement(pod, node_name, assumed)
        self.members.add(pod)
        self._assumed += assumed

    def _replace(self, placement: _Placement, pod: PodInfo) -> None:
        before, placement.pod = placement.pod, pod
        self.members.replace(before, pod)
        row = self.nodes.row(placement.node_name)
        if row is None:
            self.without_node[placement.node_name][pod.uid] = pod
            return
        if _differ_for_plugins(before.pod, pod.pod):
            self.nodes.usage_changed.append(row)
        self.nodes.replace_pod(before, pod, row, counted_alike=not _differ_for_counters(before.pod, pod.pod))

    def _drop(self, uid: str, placement: _Placement) -> None:
        self._confirm(placement)
        self.members.remove(placement.pod)
        name = placement.node_name
        row = self.nodes.row(name)
        if row is not None:
            self.nodes.remove_pod(placement.pod, row)
        else:
            pods = self.without_node[name]
            del pods[uid]
            if not pods:
                del self.without_node[name]
        del self._placements[uid]


def _differ_for_plugins(old: Pod, new: Pod) -> bool:
    """Whether something changed that plugins read of pods on nodes: whom rules count, and how important pods are.

    Scratch tables learn of new versions by their row, so whatever tells counted pods apart is part of it.
    """
    return (
        _differ_for_counters(old, new)
        or old.status.start_time != new.status.start_time
        or old.spec.priority != new.spec.priority
    )


def _differ_for_counters(old: Pod, new: Pod) -> bool:
    """Whether something changed by which rules tell pods on nodes apart: those that end do not count for spreading."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.metadata.namespace != new.metadata.namespace
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.spec.affinity != new.spec.affinity
    )


class CacheSnapshot:
    """A copy of a cache, taken at once, of which `cache` makes another cache.

    Taking it is short, some milliseconds for 5,000 nodes, and is done where the cache is written; the rest may be done
    on another thread. Nodes, pods and other objects are shared, which nobody changes.
    """

    def __init__(self, cache: Cache) -> None:
        self._nodes = cache.nodes.copy()
        self._without_node = {name: pods.copy() for name, pods in cache.without_node.items()}
        self._objects: dict[type[Any], tuple[Sequence[NamedObject], bool]] = {}
        for kind in cache.listers.wanted():
            lister: Lister[Any] = cache.listers.of(kind)
            self._objects[kind] = [*lister.objects.values()], lister.synced

    def cache(self) -> Cache:
        """Make the cache; to be called once, as what is in it belongs to whoever called."""
        made = Cache.of(self._nodes, self._without_node)
        for kind, (objects, synced) in self._objects.items():
            lister: Lister[Any] = made.listers.of(kind)
            for obj in objects:
                lister.set(obj)
            lister.synced = synced
        return made
