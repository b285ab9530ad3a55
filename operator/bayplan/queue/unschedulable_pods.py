"""Pods and groups that wait for an event, by the plugins it may concern (upstream: unschedulable_entities.go)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from bayplan.queue.queued_pod import QueuedEntity, QueuedPodInfo, SubQueue
from bayplan.queue.queueing_hints import ANY_PROFILE, QueueingHintMap


class UnschedulablePods:
    """Waiting pods by the plugins that may wake them: an event costs nothing for pods it cannot concern.

    A pod's `rejector_plugins` must not change while it is in here. Ungated pods stand in order of their
    timestamp, because each enters at the moment its timestamp is set, but for groups, which back off before.
    """

    __slots__ = ("_by_plugin", "gated", "rejected")

    def __init__(self) -> None:
        self.rejected: OrderedDict[str, QueuedEntity] = OrderedDict()
        """Those that no gate holds, by UID."""
        self.gated: dict[str, QueuedEntity] = {}
        self._by_plugin: dict[tuple[str, str], dict[str, QueuedEntity]] = {}

    def __len__(self) -> int:
        return len(self.rejected) + len(self.gated)

    def add(self, queued: QueuedEntity) -> None:
        """Take in a pod whose `sub_queue` is GATED or UNSCHEDULABLE."""
        uid = queued.uid
        (self.gated if queued.sub_queue is SubQueue.GATED else self.rejected)[uid] = queued
        for plugin in queued.rejector_plugins:
            self._by_plugin.setdefault((_held_in(queued), plugin), {})[uid] = queued

    def remove(self, queued: QueuedEntity) -> None:
        """Let the pod go."""
        uid = queued.uid
        (self.gated if queued.sub_queue is SubQueue.GATED else self.rejected).pop(uid)
        for plugin in queued.rejector_plugins:
            key = (_held_in(queued), plugin)
            bucket = self._by_plugin[key]
            del bucket[uid]
            if not bucket:
                del self._by_plugin[key]

    def oldest(self) -> QueuedEntity | None:
        """Return the ungated pod that waits longest."""
        return next(iter(self.rejected.values()), None)

    def has_any(self, hint_map: QueueingHintMap) -> bool:
        """Return whether a pod is here that one of these plugins may wake."""
        return any((name, plugin) in self._by_plugin for name, plugins in hint_map.items() for plugin in plugins)

    def held_by(self, hint_map: QueueingHintMap) -> Iterator[QueuedEntity]:
        """Give the pods that one of these plugins may wake, of a gated one its gate; those that leave are left out."""
        if not self:
            return
        for profile, plugins in hint_map.items():
            for queued in self._waiting_for(profile, plugins):
                if queued.sub_queue is SubQueue.UNSCHEDULABLE or (
                    queued.sub_queue is SubQueue.GATED and queued.gating_plugin in plugins
                ):
                    yield queued

    def _waiting_for(self, profile: str, plugins: Iterable[str]) -> list[QueuedEntity]:
        """Return the profile's pods, gated ones too, that any of these plugins may wake; each once."""
        buckets = [bucket for plugin in plugins if (bucket := self._by_plugin.get((profile, plugin)))]
        if len(buckets) == 1:
            return list(buckets[0].values())
        return list({uid: queued for bucket in buckets for uid, queued in bucket.items()}.values())


def _held_in(queued: QueuedEntity) -> str:
    """Return the profile whose plugins hold it: of a group, that of any member."""
    return queued.profile if isinstance(queued, QueuedPodInfo) else ANY_PROFILE
