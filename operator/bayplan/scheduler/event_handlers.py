"""Applies the reflectors' events to cache and queue."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bayplan.api.meta_objects import key_of
from bayplan.api.object_store import Handler, KubernetesObject
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.selectors import escape_field_value
from bayplan.api.workload_objects import PodGroup
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.group_members import GroupSource
from bayplan.cache.listers import Lister
from bayplan.cache.pod_info import PodInfo
from bayplan.framework import cluster_event as events
from bayplan.framework.cluster_event import ActionType, ClusterEvent, EventResource, cluster_event, node_changes
from bayplan.groups.pod_groups import read_pod_group
from bayplan.metrics.table import Metrics
from bayplan.queue.queueing_hints import is_scaled_down, pod_changes
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.kubelet_rejections import NodeBackoff

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=KubernetesObject)


@dataclass(eq=False)
class NodeEvents(Handler[Node]):
    """Keeps the cache's nodes, and wakes pods that a changed node may help."""

    cache: Cache
    queue: SchedulingQueue
    metrics: Metrics
    backoff: NodeBackoff | None = None

    def on_add(self, node: Node) -> None:
        """A node appeared."""
        if self._set(node):
            self.queue.move_all(events.NODE_ADD, None, node)
            self.queue.wake()

    def on_update(self, old: Node, new: Node) -> None:
        """A node changed; one move per kind of change, as kube-scheduler splits them."""
        known = self.cache.has_node(new.metadata.name)
        if not self._set(new):
            return
        if not known:
            # It could not be read before: to the scheduler it is new.
            self.queue.move_all(events.NODE_ADD, None, new)
        else:
            for event in node_changes(old, new):
                self.queue.move_all(event, old, new)
        self.queue.wake()

    def on_delete(self, node: Node) -> None:
        """A node went away."""
        self.cache.remove_node(node.metadata.name)
        self.queue.move_all(events.NODE_DELETE, node, None)
        self.queue.wake()

    def _set(self, node: Node) -> bool:
        try:
            self.cache.set_node(node if self.backoff is None else self.backoff.shown(node))
        except QuantityError as error:
            # A node whose capacity nobody can read must not be chosen on what it had before.
            logger.warning("node left out node=%r error=%s", node.metadata.name, error)
            self.metrics.undecodable_objects.add("Node")
            self.cache.remove_node(node.metadata.name)
            return False
        return True


@dataclass(eq=False)
class AssignedPodEvents(Handler[Pod]):
    """Keeps what pods take on nodes, whoever placed them, and wakes pods that freed room may help."""

    cache: Cache
    queue: SchedulingQueue
    metrics: Metrics
    on_gone: Callable[[str], None]
    backoff: NodeBackoff | None = None
    _gone_by_answer: set[str] = field(default_factory=set, init=False)
    """Those whose end the watch has still to show."""

    def on_add(self, pod: Pod) -> None:
        """A pod with a node appeared: one of ours confirmed, or another's."""
        info = PodInfo(pod)
        if is_finished(pod):
            self._gone(info)
            return
        assumed = self.cache.pod(info.uid) if self.cache.is_assumed(info.uid) else None
        if self._set(info):
            # Bound by somebody else while it waited here: it is nobody's to schedule any more.
            if assumed is None:
                self.queue.delete(info.uid)
            elif self.backoff is not None:
                self.backoff.bound(info.uid)
            self.queue.move_all(events.ASSIGNED_POD_ADD, None, info)
            # It may have been scaled down while it was bound, which no watch tells of by itself.
            if assumed is not None and is_scaled_down(assumed, info):
                self.queue.move_all(events.ASSIGNED_POD_SCALE_DOWN, assumed, info)
            self.queue.wake()

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod on a node changed; one move per kind of change, as kube-scheduler splits them."""
        if new.metadata.uid in self._gone_by_answer:
            return
        # What the cache holds has its amounts worked out already. A resize ends with the status, not with the spec.
        before, after = self.cache.pod(new.metadata.uid) or PodInfo(old), PodInfo(new)
        if is_finished(new):
            self._gone(before)
            return
        if not self._set(after):
            return
        for event in pod_changes(before, after, EventResource.ASSIGNED_POD):
            self.queue.move_all(event, before, after)
        if self.queue.has_ready():
            self.queue.wake()

    def on_delete(self, pod: Pod) -> None:
        """A pod left its node, by deletion or by ending (the watch leaves finished pods out)."""
        if pod.metadata.uid in self._gone_by_answer:
            self._gone_by_answer.discard(pod.metadata.uid)
        else:
            # What the cache holds has its terms worked out already.
            self._gone(self.cache.pod(pod.metadata.uid) or PodInfo(pod))

    def gone_by_answer(self, uid: str) -> None:
        """The API server answered that the pod is gone for good; what the watch still shows of it is old.

        Only for a pod that the watch has shown: so it will show the end, too.
        """
        pod = self.cache.pod(uid)
        if pod is not None and not self.cache.is_assumed(uid):
            self._gone_by_answer.add(uid)
            self._gone(pod)

    def _gone(self, pod: PodInfo) -> None:
        self.cache.remove_pod(pod.uid)
        self.on_gone(pod.uid)
        self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None)
        self.queue.wake()

    def _set(self, pod: PodInfo) -> bool:
        try:
            self.cache.set_pod(pod)
        except QuantityError as error:
            logger.warning("pod on a node not counted pod=%r error=%s", pod.key, error)
            self.metrics.undecodable_objects.add("Pod")
            return False
        return True


@dataclass(eq=False)
class ForeignNominationEvents(Handler[Pod]):
    """Keeps room for pods of other schedulers as for our own; they are never queued and nothing is written on them.

    The watch must hold exactly the pods of `foreign_nominations_selector`: a pod that is bound or loses its nomination
    leaves it.
    """

    queue: SchedulingQueue

    def on_add(self, pod: Pod) -> None:
        """A nomination appeared, or its pod changed, perhaps its node."""
        info = PodInfo(pod)
        try:
            _ = info.requests
        except ValueError as error:
            logger.warning("nomination not counted pod=%r error=%s", info.key, error)
            self.on_delete(pod)
            return
        if pod.status.nominated_node_name:
            self.queue.nominate(info, pod.status.nominated_node_name)
            self.queue.wake()

    def on_delete(self, pod: Pod) -> None:
        """The pod was bound, deleted, or is nominated no more."""
        self.queue.withdraw(pod.metadata.uid)
        self.queue.wake()


@dataclass(eq=False)
class PodGroupEvents(Handler[PodGroup]):
    """Keeps the groups of one source, and whether pods are grouped by it at all; `on_gone` receives a group's UID."""

    queue: SchedulingQueue
    source: GroupSource
    on_gone: Callable[[str], None]

    def on_add(self, obj: PodGroup) -> None:
        """A group appeared or changed: how many start together, or what is said of it."""
        self.queue.set_group(read_pod_group(obj, self.source))
        self.queue.wake()

    def on_delete(self, obj: PodGroup) -> None:
        """A group went away; its members wait for another of its name."""
        self.queue.remove_group(read_pod_group(obj, self.source).key)
        self.on_gone(obj.metadata.uid)
        self.queue.wake()

    def on_synced(self) -> None:
        """All groups there were at the start are known, so the API server serves them."""
        if self.queue.groups.serve(self.source):
            self.queue.regroup()
            self.queue.wake()


class ListerEvents(Generic[T]):
    """Keeps a lister equal to what a watch shows, and wakes pods that a change may help.

    `kind` is the API's name of what the lister holds. No plugin waits for kinds without an `EventResource`, such as
    ReplicaSet: these wake nobody.
    """

    def __init__(self, lister: Lister[T], kind: str, queue: SchedulingQueue) -> None:
        self._lister = lister
        self._queue = queue
        resource = EventResource(kind) if kind in set(EventResource) else None
        self._add, self._update, self._delete = (
            None if resource is None else cluster_event(resource, action)
            for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
        )

    def on_add(self, obj: T) -> None:
        """An object appeared."""
        self._lister.set(obj)
        self._notify(self._add, None, obj)

    def on_update(self, old: T, new: T) -> None:
        """An object changed; the hints of the plugins that wait for it find out what."""
        self._lister.set(new)
        self._notify(self._update, old, new)

    def on_delete(self, obj: T) -> None:
        """An object went away."""
        self._lister.delete(key_of(obj.metadata))
        self._notify(self._delete, obj, None)

    def on_synced(self) -> None:
        """All objects there were at the start are known, or the API server has no such kind."""
        self._lister.synced = True

    def _notify(self, event: ClusterEvent | None, old: T | None, new: T | None) -> None:
        if event is not None:
            self._queue.move_all(event, old, new)
            self._queue.wake()


def foreign_nominations_selector(scheduler_names: Iterable[str]) -> str:
    """The field selector of pending pods that are nominated and not placed by any of these schedulers."""
    others = [f"spec.schedulerName!={escape_field_value(name)}" for name in sorted(scheduler_names)]
    return ",".join(["spec.nodeName=", "status.nominatedNodeName!=", *others])
