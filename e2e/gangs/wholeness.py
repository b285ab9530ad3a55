"""Whether gangs ever ran in part, and for how long, from the record of what happened to their pods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from e2e.controlplane.recorder import PodEvent


@dataclass(frozen=True, slots=True)
class Gang:
    """How many of these pods, by namespace and name, are to run at least."""

    least: int
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of monotonic time in which some pods of a gang had nodes, and fewer than its least."""

    gang: str
    begun: float
    ended: float
    most: int

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended - self.begun


def parts(events: Iterable[PodEvent], gangs: Mapping[str, Gang], until: float) -> list[Part]:
    """Returns every stretch in which a gang ran in part, in the order of their ends; one that lasts ends at `until`.

    Pods count from the first event with a node to the one of their deletion.
    """
    of = {member: name for name, gang in gangs.items() for member in gang.members}
    bound: dict[str, set[str]] = {name: set() for name in gangs}
    open_since: dict[str, tuple[float, int]] = {}
    found: list[Part] = []
    for event in events:
        name = of.get(event.key)
        if name is None:
            continue
        there = bound[name]
        if event.type == "DELETED":
            there.discard(event.key)
        elif event.node:
            there.add(event.key)
        begun = open_since.get(name)
        if 0 < len(there) < gangs[name].least:
            since, most = begun or (event.arrived, 0)
            open_since[name] = (since, max(most, len(there)))
        elif begun is not None:
            del open_since[name]
            found.append(Part(name, begun[0], event.arrived, begun[1]))
    return found + [Part(name, since, until, most) for name, (since, most) in open_since.items()]


def longest(found: Iterable[Part]) -> float:
    """Returns the seconds of the longest stretch, 0 without one."""
    return max((part.seconds for part in found), default=0.0)
