"""What is heard of unscheduled pods, by watch, list and answers to our own writes, and the queue that is fed by it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from sys import getsizeof

from bayplan.api.meta_objects import is_later_version
from bayplan.api.objects import Pod
from bayplan.api.watch_event import PodEvent, read_pod
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.shared_parts import SharedParts
from bayplan.metrics.table import Metrics
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import pod_path

logger = logging.getLogger(__name__)

# Some 25,000 pods: more than leave in the half minute that a page of a list may be under way.
_KEPT_BYTES = 8 * 2**20


@dataclass(eq=False)
class PendingPodEvents:
    """Feeds the queue with unscheduled pods; a thin seam, whatever does the watching.

    Several sources tell of the same pod, one later than the other: an earlier version never replaces a later one, and a
    version that is held already is dropped before it is read. What was deleted, bound or ended enters the queue again
    only in a later version, whichever source is late. A pod that cannot be read is reported by name, once a version,
    and left out. `on_gone` receives the UID of a pod that is pending no more, and of one whose deletion begins; who is
    to be told may be made later.
    """

    cache: Cache
    queue: SchedulingQueue
    metrics: Metrics
    profiles: frozenset[str]
    on_gone: Callable[[str], None] = lambda uid: None
    shared: SharedParts = field(default_factory=SharedParts)
    """What its pods share with each other, and with pods on nodes where the watch of these has it, too."""
    _ended: RecentlyUsed[str, str] = field(default_factory=lambda: RecentlyUsed(_KEPT_BYTES, _size), init=False)
    """The version by which a pod was no longer pending, or in which it was left out, by UID."""
    _outdated: set[str] = field(default_factory=set, init=False)
    """The pods held in a version of a history that did not happen; whatever is heard of one next is news."""

    def watched(self, event: PodEvent) -> None:
        """Take an event of the watch.

        A pod that was bound leaves the unscheduled ones, which the API server tells as its deletion. The queue drops
        it in either case; what it takes on its node is not the queue's, and stays.
        """
        uid, version = event.identity.uid, event.identity.resource_version
        if event.type == "DELETED":
            self.gone(uid, version)
        elif self._is_news(uid, version):
            if event.pod is not None:
                self.changed(event.pod)
            else:
                self._leave_out(uid, version, f"{event.identity.namespace}/{event.identity.name}", event.error)

    def changed(self, pod: Pod) -> None:
        """A pending pod was added or changed."""
        if pod.spec.scheduler_name not in self.profiles:
            return
        uid, version = pod.metadata.uid, pod.metadata.resource_version
        if pod.spec.node_name or is_finished(pod):
            self.gone(uid, version)
            return
        if not self._is_news(uid, version):
            return
        info = PodInfo(self.shared.of(pod))
        try:
            _require_schedulable(info)
        except ValueError as error:
            self._leave_out(uid, version, info.key, error)
            return
        begins_to_end = info.is_terminating and self.queue.is_alive(uid)
        self._outdated.discard(uid)
        self.queue.update(info)
        if begins_to_end:
            self.on_gone(uid)
        self.queue.wake()

    def written(self, body: bytes) -> None:
        """The API server's answer to a write of ours on a pod: its newest version, taken while the pod waits."""
        pod = read_pod(body)
        if pod is not None and self.queue.newest(pod.metadata.uid) is not None and not pod.spec.node_name:
            self.changed(pod)

    def gone(self, uid: str, version: str = "") -> None:
        """The pod is no longer pending: deleted, ended, or bound, which the other watch tells.

        `version` is the one that says so; "" where the pod is only missing, so that it may come again as it was.
        """
        if uid and version and is_later_version(version, self._ended.get(uid) or ""):
            self._ended.put(uid, version)
        self._outdated.discard(uid)
        keeps_room = self.queue.nominator.nominated_node(uid) is not None
        self.queue.delete(uid)
        self.on_gone(uid)
        if keeps_room:
            self.queue.wake()

    def forget_versions(self) -> None:
        """Let whatever is heard from now on be news, in any version: etcd was restored from a backup."""
        self._ended.clear()
        self._outdated = self.queue.uids()

    def uids(self) -> set[str]:
        """The pods that wait or are being scheduled."""
        return self.queue.uids()

    def accounts_for(self, uid: str, version: str) -> bool:
        """Whether the pod waits, is being scheduled, has a node, or is not to be queued in this version."""
        return self.queue.get(uid) is not None or not self._is_news(uid, version)

    def _is_news(self, uid: str, version: str) -> bool:
        """Whether the queue has something to learn from this version of the pod."""
        held = self.queue.newest(uid)
        if held is None:
            ended = self._ended.get(uid)
            # If the pod has a node, this is from before.
            return self.cache.node_of(uid) is None and (ended is None or is_later_version(version, ended))
        return uid in self._outdated or is_later_version(version, held.pod.metadata.resource_version)

    def _leave_out(self, uid: str, version: str, key: str, error: object) -> None:
        logger.warning("pod left out pod=%r error=%s", key, error)
        self.metrics.undecodable_objects.add("Pod")
        self.gone(uid, version)


def _size(uid: str, version: str) -> int:
    """About how many bytes it takes to remember a version."""
    return 200 + getsizeof(uid) + getsizeof(version)


def _require_schedulable(pod: PodInfo) -> None:
    """Make sure that the pod can be told apart, asked about and computed with; ValueError (QuantityError) if not."""
    pod_path(pod.namespace, pod.name)
    if not pod.uid:
        raise ValueError("it has no UID")
    _ = pod.requests
