"""Status patches that wait and those under way: one at a time for each pod, and none after its bind began."""

from collections.abc import Callable

import msgspec

from bayplan.scheduler.api_calls import ApiCall, merged_patch

Job = Callable[[], None]
"""Begins the bind of a pod."""

Ended = Callable[[bool], None]
"""Called once at the end of a patch: True if it was done, False if it was given up or is obsolete."""


class PodPatch(msgspec.Struct, eq=False):
    """What is to be patched on one pod in one request, and whom to tell of its end.

    An `urgent` one goes before all that are not. A `patient` one is tried for minutes; `rests` counts how often it was
    given up for a while. One that is `obsolete` is not tried again. While it is `pausing` between two tries, nothing of
    it is on its way.
    """

    uid: str
    call: ApiCall
    ended: list[Ended]
    urgent: bool = False
    patient: bool = False
    rests: int = 0
    obsolete: bool = False
    pausing: bool = False

    def end(self, *, done: bool) -> None:
        """Tell everybody who asked for it how it ended."""
        for ended in self.ended:
            ended(done)


class PodPatches:
    """Keeps the order of the status patches of each pod, and of its bind after them; the dispatcher relies on it.

    Patches of a pod that wait are one request, with the newer values. What waits when the pod is about to be bound
    says why it could not be: that is obsolete, and never sent.
    """

    __slots__ = ("_binds", "_resting", "_under_way", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, PodPatch] = {}
        self._under_way: dict[str, PodPatch] = {}
        self._resting: dict[str, PodPatch] = {}
        self._binds: dict[str, list[Job]] = {}

    def __len__(self) -> int:
        """Return how many requests wait to be made now."""
        return len(self._waiting)

    def add(self, uid: str, call: ApiCall, ended: Ended, *, urgent: bool = False, patient: bool = False) -> None:
        """Have a patch wait, in one request with one of the same pod that waits."""
        waiting = self._waiting.get(uid)
        if waiting is None and uid in self._resting:
            waiting = self._waiting[uid] = self._resting.pop(uid)
        if waiting is None:
            self._waiting[uid] = PodPatch(uid, call, [ended], urgent, patient)
        else:
            waiting.call = merged_patch(waiting.call, call)
            waiting.ended.append(ended)
            waiting.urgent = waiting.urgent or urgent
            waiting.patient = waiting.patient and patient

    def is_under_way(self, uid: str) -> bool:
        """Whether a patch of the pod was taken, and is not at its end."""
        return uid in self._under_way

    def take(self, uid: str) -> PodPatch | None:
        """Give the pod's patch, which is then under way; None if none waits, or one is under way."""
        if uid in self._under_way or uid not in self._waiting:
            return None
        patch = self._under_way[uid] = self._waiting.pop(uid)
        return patch

    def finish(self, patch: PodPatch, *, done: bool) -> PodPatch | None:
        """End a patch that was under way, and begin what waited for that; the next of the pod, which needs a turn."""
        del self._under_way[patch.uid]
        try:
            patch.end(done=done)
        finally:
            for bind in self._binds.pop(patch.uid, ()):
                bind()
        return self._waiting.get(patch.uid)

    def rest(self, patch: PodPatch) -> PodPatch:
        """Put by a patch that was under way, to `resume` it later; another one if it goes with that."""
        del self._under_way[patch.uid]
        patch.rests += 1
        waiting = self._waiting.get(patch.uid)
        if waiting is None:
            self._resting[patch.uid] = patch
            return patch
        waiting.call = merged_patch(patch.call, waiting.call)
        waiting.ended = patch.ended + waiting.ended
        return waiting

    def resume(self, patch: PodPatch, rests: int) -> bool:
        """Have a patch wait that rests for that time in a row; False if it does so no more."""
        if self._resting.get(patch.uid) is not patch or patch.rests != rests:
            return False
        self._waiting[patch.uid] = self._resting.pop(patch.uid)
        return True

    def make_way(self, uid: str, bind: Job) -> bool:
        """Drop the pod's patches that wait; False if one is on its way, at whose end the bind begins."""
        waiting, under_way = self._waiting.pop(uid, None) or self._resting.pop(uid, None), self._under_way.get(uid)
        if waiting is not None:
            waiting.end(done=False)
        if under_way is None:
            return True
        under_way.obsolete = True
        if under_way.pausing:
            return True
        self._binds.setdefault(uid, []).append(bind)
        return False
