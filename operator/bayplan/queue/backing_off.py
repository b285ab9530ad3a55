"""Pods that back off after a rejection, of which an idle scheduler tries one of a kind before its time."""

import sys
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from bayplan.queue.queue_settings import SortKey
from bayplan.queue.queued_pod import KeyedHeap, QueuedEntity


@dataclass(slots=True, eq=False)
class _Kind:
    """A kind of which a pod was rejected, and how many such pods are still there.

    `news` is the number of the last news before that rejection.
    """

    key: Hashable
    news: int = 0
    pods: int = 0


@dataclass(slots=True)
class BackingOffPods:
    """Keeps pods in the order in which their back-off ends, and tells which may be tried sooner.

    Where one pod was rejected, another that is alike in all that filters and preemption look at is rejected, too, until
    something happens. So once a pod of a kind was rejected, the others of the kind wait for the end of their back-off,
    or for news; upstream, which tries all of them, is held back by the patch after each. `kind_of` gives a pod's kind,
    and None for a pod that is like no other. A kind is known as long as one of the pods is there that were
    rejected as of it, so that pods that come and go without any news leave nothing behind.

    `step` is how many pods are looked at in one go. While `is_searching`, there are more to look at.
    """

    kind_of: Callable[[QueuedEntity], Hashable]
    step: int = sys.maxsize
    is_searching: bool = field(init=False, default=False)
    last_news: int = field(init=False, default=0)
    """The number of the last news."""
    _all: KeyedHeap = field(init=False, default_factory=KeyedHeap)
    _candidates: KeyedHeap = field(init=False, default_factory=KeyedHeap)
    _parked: dict[Hashable, KeyedHeap] = field(init=False, default_factory=dict)
    _parked_as: dict[str, Hashable] = field(init=False, default_factory=dict)
    _keys: dict[str, SortKey] = field(init=False, default_factory=dict)
    _kinds: dict[Hashable, _Kind] = field(init=False, default_factory=dict)
    _rejected_as: dict[str, _Kind] = field(init=False, default_factory=dict)
    _is_stale: bool = field(init=False, default=False)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[QueuedEntity]:
        """Give the pods, in no particular order."""
        return iter(self._all)

    def push(self, queued: QueuedEntity, key: SortKey) -> None:
        """Put the pod in, or move it when its key or its kind changed."""
        self._unpark(queued.uid)
        self._keys[queued.uid] = key
        self._all.push(queued, key)
        self._candidates.push(queued, key)

    def discard(self, uid: str) -> None:
        """Take the pod out, wherever it stands."""
        self._unpark(uid)
        self._keys.pop(uid, None)
        self._all.discard(uid)
        self._candidates.discard(uid)
        # If it is tried and not rejected, the next one of its kind is worth a try.
        self._is_stale = bool(self._parked)

    def peek(self) -> QueuedEntity | None:
        """Return the pod whose back-off ends first, which stays."""
        return self._all.peek()

    def peek_early(self) -> QueuedEntity | None:
        """Return the first pod that is worth a try before its back-off is over; None if none is, or none in a step."""
        if self._is_stale:
            self._release()
        self.is_searching = False
        for _ in range(self.step):
            queued = self._candidates.peek()
            if queued is None:
                return None
            kind = self.kind_of(queued)
            if kind is None or not self._was_rejected(kind):
                return queued
            self._park(queued, kind)
        self.is_searching = True
        return None

    def reject(self, queued: QueuedEntity) -> None:
        """Have the pods of this one's kind wait: it was rejected, whichever of them it would have been."""
        key = self.kind_of(queued)
        if key is None:
            return
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(key)
        kind.news = self.last_news
        before = self._rejected_as.get(queued.uid)
        if before is not kind:
            kind.pods += 1
            self._rejected_as[queued.uid] = kind
            if before is not None:
                self._release_kind(before)

    def forget(self, uid: str) -> None:
        """Let go what was learnt from rejections of the pod alone, which is in no queue and never comes back."""
        kind = self._rejected_as.pop(uid, None)
        if kind is not None:
            self._release_kind(kind)

    def news(self) -> None:
        """Have one pod of each kind tried again: something happened."""
        self.last_news += 1
        self._is_stale = bool(self._parked)

    def _was_rejected(self, key: Hashable) -> bool:
        kind = self._kinds.get(key)
        return kind is not None and kind.news == self.last_news

    def _release_kind(self, kind: _Kind) -> None:
        kind.pods -= 1
        if not kind.pods:
            del self._kinds[kind.key]
            self._is_stale = bool(self._parked)

    def _park(self, queued: QueuedEntity, kind: Hashable) -> None:
        self._candidates.discard(queued.uid)
        self._parked.setdefault(kind, KeyedHeap()).push(queued, self._keys[queued.uid])
        self._parked_as[queued.uid] = kind

    def _unpark(self, uid: str) -> None:
        kind = self._parked_as.pop(uid, None)
        if kind is not None:
            pods = self._parked[kind]
            pods.discard(uid)
            if not pods:
                del self._parked[kind]

    def _release(self) -> None:
        """Make the first pod of each kind that is not known to be rejected since the news a candidate."""
        self._is_stale = False
        for kind in [each for each in self._parked if not self._was_rejected(each)]:
            queued = self._parked[kind].peek()
            if queued is not None:
                self._unpark(queued.uid)
                self._candidates.push(queued, self._keys[queued.uid])
