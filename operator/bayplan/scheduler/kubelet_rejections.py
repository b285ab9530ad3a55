"""Pods that a kubelet rejected though they seemed to fit, and their nodes, which get no pods for a while."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

import msgspec

from bayplan.api.meta_objects import ObjectMeta, Struct
from bayplan.api.objects import Node, Taint
from bayplan.cache.cache import Cache
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.framework.cluster_event import NODE_TAINT
from bayplan.metrics.table import KUBELET_REASONS, Metrics
from bayplan.queue.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)

TAINT: Final = Taint(key="bayplan.io/kubelet-rejection", effect="NoSchedule")
"""What such a node has in the cache and nowhere else; a pod that tolerates it goes there all the same."""
REMEMBERED_PODS: Final = 16_384
"""Of how many pods, the last ones, it is known that they were bound here."""

REJECTED_PODS: Final = "spec.nodeName!=,status.phase=Failed"
"""The field selector of the pods among which those are; the watch of pods on nodes leaves them out."""

_MESSAGE: Final = "Pod was rejected: "
_NO_ROOM: Final = ("OutOf", "UnexpectedAdmissionError")
_OTHER, _EXTENDED = "Other", "OutOfExtendedResources"


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)


@dataclass(eq=False)
class NodeBackoff:
    """Has the cache show a node with TAINT for `seconds` after its kubelet rejected a pod that was bound by us.

    Others' pods do not count: anybody may create one on a node that has no room for it, and would so keep all pods
    from it. `later` runs something after so many seconds.
    """

    seconds: float
    cache: Cache
    queue: SchedulingQueue
    later: Callable[[float, Callable[[], None]], None] = _call_later
    _bound: RecentlyUsed[str, bool] = field(default_factory=lambda: RecentlyUsed(REMEMBERED_PODS), init=False)
    _held: Counter[str] = field(default_factory=Counter, init=False)

    def bound(self, uid: str) -> None:
        """Remember that a pod is on its node by our own bind."""
        self._bound.put(uid, True)

    def rejected(self, uid: str, node_name: str) -> None:
        """Leave the node of a rejected pod alone from now on, if the pod was bound here."""
        # Its failure may be seen before its bind: they come by two watches.
        is_ours = self._bound.get(uid)
        if not is_ours and not self.cache.is_assumed(uid):
            return
        if is_ours:
            self._bound.drop(uid)
        self._held[node_name] += 1
        logger.info("node gets no pods for %g s, its kubelet had no room for one node=%r", self.seconds, node_name)
        self.later(self.seconds, lambda: self._let_go(node_name))
        node = self.cache.nodes.node(node_name)
        if node is not None:
            self.cache.set_node(self.shown(node))

    def shown(self, node: Node) -> Node:
        """Return a node as the cache is to have it."""
        taints = node.spec.taints or []
        if node.metadata.name not in self._held or TAINT in taints:
            return node
        return _with_taints(node, [*taints, TAINT])

    def _let_go(self, name: str) -> None:
        self._held[name] -= 1
        if self._held[name]:
            return
        del self._held[name]
        node = self.cache.nodes.node(name)
        if node is None:
            return
        free = _with_taints(node, [each for each in node.spec.taints or () if each != TAINT])
        self.cache.set_node(free)
        self.queue.move_all(NODE_TAINT, node, free)
        self.queue.wake()


def _with_taints(node: Node, taints: list[Taint]) -> Node:
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))


class FailedPodSpec(Struct, frozen=True):
    """Where a pod was, and who placed it."""

    node_name: str = ""
    scheduler_name: str = ""


class FailedPodStatus(Struct, frozen=True):
    """Why a pod failed."""

    reason: str = ""
    message: str = ""


class FailedPod(Struct, frozen=True):
    """What is kept of a pod that failed on a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: FailedPodSpec = FailedPodSpec()
    status: FailedPodStatus = FailedPodStatus()


class KubeletRejections:
    """Hears of failed pods and tells of those of `scheduler_names` that a kubelet did not admit.

    Each is told once, when it fails; those that had failed before the first list are not. With `backoff` the node of a
    pod that found no room there is left alone for a while.
    """

    def __init__(self, scheduler_names: Collection[str], metrics: Metrics, backoff: NodeBackoff | None = None) -> None:
        self._names = scheduler_names
        self._rejections = metrics.kubelet_rejections
        self._backoff = backoff
        self._listed = False

    def on_add(self, pod: FailedPod) -> None:
        """A pod failed."""
        status = pod.status
        if not self._listed or not status.message.startswith(_MESSAGE) or pod.spec.scheduler_name not in self._names:
            return
        self._rejections.add(reason_of(status.reason))
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        logger.warning(
            "kubelet rejected a pod node=%r pod=%r reason=%r message=%r",
            *(text[:200] for text in (pod.spec.node_name, key, status.reason, status.message.removeprefix(_MESSAGE))),
        )
        if self._backoff is not None and status.reason.startswith(_NO_ROOM):
            self._backoff.rejected(pod.metadata.uid, pod.spec.node_name)

    def on_update(self, old: FailedPod, new: FailedPod) -> None:
        """A failed pod changed, perhaps to say only now that it was rejected."""
        if not old.status.message.startswith(_MESSAGE):
            self.on_add(new)

    def on_delete(self, pod: FailedPod) -> None:
        """A failed pod was deleted."""

    def on_synced(self) -> None:
        """All pods that had failed before are known."""
        self._listed = True


def reason_of(reason: str) -> str:
    """Return the one of KUBELET_REASONS that a reason counts as: whoever writes a pod's status can make up others."""
    if reason in KUBELET_REASONS:
        return reason
    return _EXTENDED if reason.startswith("OutOf") else _OTHER
