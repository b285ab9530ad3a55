"""What is heard of unscheduled pods, by the watch and in answers to our own writes, and the queue that is fed by it."""

import logging
from collections.abc import Callable

from bayplan.api.objects import Pod
from bayplan.api.pod_answer import read_pod
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import pod_path
from bayplan.scheduler.observer import SchedulerObserver

logger = logging.getLogger(__name__)


class PendingPodEvents:
    """Feeds the queue with unscheduled pods; a thin seam, whatever does the watching."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        wake: Callable[[], None],
        observer: SchedulerObserver,
        *,
        profiles: frozenset[str],
        on_gone: Callable[[str], None],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._wake = wake
        self._observer = observer
        self._profiles = profiles
        self._on_gone = on_gone

    def changed(self, pod: Pod) -> None:
        """A pending pod was added or changed; one that cannot be read is reported by name and left out."""
        if pod.spec.scheduler_name not in self._profiles:
            return
        info = PodInfo(pod)
        if pod.spec.node_name or is_finished(pod):
            self.gone(info.uid)
            return
        held = self._queue.newest(info.uid)
        if held is None and self._cache.node_of(info.uid) is not None:
            # A late event of a pod that has a node.
            return
        if held is not None and _is_older(info, held):
            # kopf was still at it when the answer to a write of ours brought a later one.
            return
        try:
            _require_schedulable(info)
        except ValueError as error:
            logger.warning("pod left out pod=%r error=%s", info.key, error)
            self._observer.undecodable("Pod")
            self._queue.delete(info.uid)
            return
        self._queue.update(None, info)
        self._wake()

    def written(self, body: bytes) -> None:
        """The API server's answer to a write of ours on a pod: its newest version, taken while the pod waits."""
        pod = read_pod(body)
        if pod is not None and self._queue.newest(pod.metadata.uid) is not None and not pod.spec.node_name:
            self.changed(pod)

    def knows(self, uid: str, resource_version: str) -> bool:
        """Whether this very version of a waiting pod has been taken already."""
        held = self._queue.newest(uid)
        return held is not None and resource_version != "" and held.pod.metadata.resource_version == resource_version

    def departed(self, uid: str) -> bool:
        """A pod left the unscheduled ones; says whether it has a node, and so has nothing more to be told of it."""
        if self._cache.node_of(uid) is None:
            return False
        self.gone(uid)
        return True

    def gone(self, uid: str) -> None:
        """The pod is no longer pending: deleted, ended, or bound, which the other watch tells."""
        self._queue.delete(uid)
        self._on_gone(uid)


def _is_older(pod: PodInfo, held: PodInfo) -> bool:
    """Whether this is a version from before the one held (upstream: apimachinery CompareResourceVersion)."""
    version, known = pod.pod.metadata.resource_version, held.pod.metadata.resource_version
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)


def _require_schedulable(pod: PodInfo) -> None:
    """Make sure that the pod can be told apart, asked about and computed with; ValueError (QuantityError) if not."""
    pod_path(pod.namespace, pod.name)
    if not pod.uid:
        raise ValueError("it has no UID")
    _ = pod.requests
