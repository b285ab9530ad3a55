"""Pod groups for which victims end, and what of it holds them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.cache.group_members import PodGroupKey


class _GoOn(Protocol):
    def __call__(self, key: PodGroupKey, *, at_once: bool) -> None: ...


@dataclass(slots=True, eq=False)
class PreemptingGroups:
    """Holds groups while their victims are being told to end, and has them tried at once when the last one is gone.

    Gates of groups rely on it, and so does whoever ends victims. `go_on` asks the gate of a group again.
    """

    go_on: _GoOn
    _held: set[PodGroupKey] = field(default_factory=set, init=False)
    _victims: dict[PodGroupKey, set[str]] = field(default_factory=dict, init=False)

    def __contains__(self, key: object) -> bool:
        """Whether the group is held (upstream: preemption/executor.go IsPodGroupRunningPreemption)."""
        return key in self._held

    def begin(self, key: PodGroupKey, victims: Iterable[str]) -> None:
        """Hold a group, whose round is not finished yet, until `end`; victims are given by UID."""
        self._held.add(key)
        self._victims[key] = set(victims)

    def end(self, key: PodGroupKey) -> None:
        """Let a group back off whose victims were told to end, or will not end after all."""
        self._held.discard(key)
        self.go_on(key, at_once=False)

    def victim_gone(self, uid: str) -> None:
        """Have a group tried at once whose last victim is gone."""
        for key in [each for each, victims in self._victims.items() if uid in victims]:
            self._victims[key].discard(uid)
            if not self._victims[key]:
                del self._victims[key]
                self.go_on(key, at_once=True)

    def forget(self, key: PodGroupKey) -> None:
        """Wait for no victim of a group any more of which nobody waits."""
        self._victims.pop(key, None)
