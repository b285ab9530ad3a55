"""Pods that wait for an event: rejected by plugins, or held back by a gate (upstream: unschedulablePods)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue
from bayplan.queue.queueing_hints import QueueingHintMap


class UnschedulablePods:
    """Waiting pods by the plugins that may wake them: an event costs nothing for pods it cannot concern.

    A pod's `rejector_plugins` must not change while it is in here. Ungated pods stand in order of their
    timestamp, because each enters at the moment its timestamp is set.
    """

    __slots__ = ("_by_plugin", "_gated", "_rejected")

    def __init__(self) -> None:
        self._rejected: OrderedDict[str, QueuedPodInfo] = OrderedDict()
        self._gated: dict[str, QueuedPodInfo] = {}
        self._by_plugin: dict[tuple[str, str], dict[str, QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._rejected) + len(self._gated)

    @property
    def rejected_count(self) -> int:
        """How many pods wait that no gate holds."""
        return len(self._rejected)

    @property
    def gated_count(self) -> int:
        """How many pods a gate holds."""
        return len(self._gated)

    def add(self, queued: QueuedPodInfo) -> None:
        """Take in a pod whose `sub_queue` is GATED or UNSCHEDULABLE."""
        uid = queued.uid
        (self._gated if queued.sub_queue is SubQueue.GATED else self._rejected)[uid] = queued
        for plugin in queued.rejector_plugins:
            self._by_plugin.setdefault((queued.profile, plugin), {})[uid] = queued

    def remove(self, queued: QueuedPodInfo) -> None:
        """Let the pod go."""
        uid = queued.uid
        (self._gated if queued.sub_queue is SubQueue.GATED else self._rejected).pop(uid)
        for plugin in queued.rejector_plugins:
            bucket = self._by_plugin[queued.profile, plugin]
            del bucket[uid]
            if not bucket:
                del self._by_plugin[queued.profile, plugin]

    def oldest(self) -> QueuedPodInfo | None:
        """Return the ungated pod that waits longest."""
        return next(iter(self._rejected.values()), None)

    def has_any(self, hint_map: QueueingHintMap) -> bool:
        """Return whether a pod is here that one of these plugins may wake."""
        return any((profile, plugin) in self._by_plugin for profile, plugins in hint_map.items() for plugin in plugins)

    def held_by(self, hint_map: QueueingHintMap) -> Iterator[QueuedPodInfo]:
        """Give the pods that one of these plugins may wake, of a gated one its gate; those that leave are left out."""
        if not self:
            return
        for profile, plugins in hint_map.items():
            for queued in self._waiting_for(profile, plugins):
                if queued.sub_queue is SubQueue.UNSCHEDULABLE or (
                    queued.sub_queue is SubQueue.GATED and queued.gating_plugin in plugins
                ):
                    yield queued

    def _waiting_for(self, profile: str, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """Return the profile's pods, gated ones too, that any of these plugins may wake; each once."""
        buckets = [bucket for plugin in plugins if (bucket := self._by_plugin.get((profile, plugin)))]
        if len(buckets) == 1:
            return list(buckets[0].values())
        return list({uid: queued for bucket in buckets for uid, queued in bucket.items()}.values())
