"""Room that is kept for pods on a node, and whom it helps when less is kept."""

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, ASSIGNED_POD_SCALE_DOWN
from bayplan.framework.nominator import Nominator
from bayplan.queue.queueing_hints import ObservedEvent, QueueingHintMaps, is_scaled_down


@dataclass(slots=True)
class KeptRoom:
    """Changes nominations and tells of the room that others may use then; the queue alone relies on it.

    To pods of its priority or lower a nominated pod is as if it were on the node, so they are woken as by its deletion
    (upstream: eventhandlers.go) or, which upstream does not do, its scale-down. `move` requeues whom an event may help.
    """

    nominator: Nominator
    hint_maps: QueueingHintMaps
    move: Callable[[ObservedEvent], None]

    def keep(self, pod: PodInfo, node: str) -> None:
        """Keep room on `node` for the pod, in place of any earlier nomination."""
        kept = self._of(pod.uid)
        self.nominator.add(pod, node)
        self._compare(kept, pod, except_uid=pod.uid)

    def refresh(self, new: PodInfo) -> None:
        """Keep the room that the newest version of the pod asks for, on the node it is nominated to if it is."""
        kept = self._of(new.uid)
        self.nominator.refresh(new)
        self._compare(kept, new, except_uid=new.uid)

    def follow(self, old: PodInfo, new: PodInfo) -> None:
        """Follow an update of the pod as `Nominator.update` does."""
        kept = self._of(new.uid)
        self.nominator.update(old, new)
        self._compare(kept, new, except_uid=None)

    def end(self, uid: str, *, wake: bool = False) -> None:
        """Keep no room for the pod any more; with `wake` the pod itself may move too."""
        pod = self.nominator.get(uid)
        if pod is not None:
            self.nominator.delete(uid)
            self._left(pod, except_uid=None if wake else uid)

    def take(self, uid: str, node: str) -> None:
        """End the nomination of a pod that takes `node`; if it was nominated elsewhere, that room is free again."""
        kept = self.nominator.nominated_node(uid)
        if kept == node:
            self.nominator.delete(uid)
        elif kept is not None:
            self.end(uid)

    def _of(self, uid: str) -> tuple[PodInfo, str] | None:
        pod, node = self.nominator.get(uid), self.nominator.nominated_node(uid)
        return None if pod is None or node is None else (pod, node)

    def _compare(self, kept: tuple[PodInfo, str] | None, new: PodInfo, *, except_uid: str | None) -> None:
        if kept is None:
            return
        old, node = kept
        if self.nominator.nominated_node(new.uid) != node:
            self._left(new, except_uid=except_uid)
        elif is_scaled_down(old, new):
            event, uid = ASSIGNED_POD_SCALE_DOWN, new.uid
            hint_map = self.hint_maps[event]
            self.move(ObservedEvent(event, old, new, hint_map, max_priority=new.priority, except_uid=uid))

    def _left(self, pod: PodInfo, *, except_uid: str | None) -> None:
        event, hint_map = ASSIGNED_POD_DELETE, self.hint_maps[ASSIGNED_POD_DELETE]
        self.move(ObservedEvent(event, pod, None, hint_map, max_priority=pod.priority, except_uid=except_uid))
