"""Compares what the scheduler holds with what the API server has; pure, over two dumps."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

NODES: Final = "nodes"
PODS: Final = "pods"
ASSUMED: Final = "assumed"
PENDING: Final = "pending"
NOMINATIONS: Final = "nominations"
REQUESTED: Final = "requested"

Fact = tuple[object, ...]
"""What one side knows of an object: names, versions and amounts that compare."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An object of which cache and API server say different things; None where a side does not have it."""

    kind: str
    key: str
    held: Fact | None
    listed: Fact | None


@dataclass(slots=True)
class Dump:
    """What one side has, by kind and by key: names of nodes, UIDs of pods, "namespace/name" of the rest.

    `assumed` are pods counted on the scheduler's word only, `in_flight` those whose attempt or bind is under way.
    `uncertain` are keys of which nothing can be told: what cannot be read, and pods that end before they have a node.
    `sums` are what the pods held on a node add up to, which the columns (`facts[REQUESTED]`) must equal.
    """

    facts: dict[str, dict[str, Fact]] = field(default_factory=dict)
    assumed: dict[str, Fact] = field(default_factory=dict)
    in_flight: set[str] = field(default_factory=set)
    uncertain: set[tuple[str, str]] = field(default_factory=set)
    sums: dict[str, Fact] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, Fact]:
        """The facts of a kind, to be read or added to."""
        return self.facts.setdefault(kind, {})

    def sizes(self) -> dict[str, int]:
        """How many objects of each kind there are."""
        return {kind: len(facts) for kind, facts in sorted(self.facts.items())}


@dataclass(frozen=True, slots=True)
class CacheComparison:
    """What a comparison found: the differences that lasted, and how many objects of each kind the lists held."""

    differences: Sequence[Difference]
    compared: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many differences there are, by kind."""
        return dict(sorted(Counter(each.kind for each in self.differences).items()))


class ListError(Exception):
    """The API server did not answer with a list; the text says of which kind, and why."""


def compare_steps(held: Dump, listed: Dump) -> Iterator[Difference | None]:
    """Yield what the scheduler holds and the API server has not, or the other way round, or both in two ways.

    One object at a time, so that a caller can give way; None for what is the same. Upstream: backend/cache/debugger/
    comparer.go, which compares names only.
    """
    uncertain = held.uncertain | listed.uncertain
    # What the scheduler has decided runs ahead of the API server for as long as the bind is under way.
    under_way = {uid for uid in held.assumed if uid in held.in_flight and _agrees(uid, held, listed)}
    skipped = {PODS: held.assumed.keys(), PENDING: under_way}
    kinds = sorted((held.facts.keys() | listed.facts.keys()) - {REQUESTED})
    steps = [
        _assumed(held, listed, under_way),
        _differing(REQUESTED, held.of(REQUESTED), held.sums),
        *(_differing(kind, held.of(kind), listed.of(kind), skipped.get(kind, ())) for kind in kinds),
    ]
    for each in chain.from_iterable(steps):
        yield None if each is None or (each.kind, each.key) in uncertain else each


def lasting(first: Collection[Difference], second: Collection[Difference]) -> list[Difference]:
    """Return the differences of the second look that were there at the first, with the same fact held.

    What a watch was about to tell at the first look is told by the second, if the time between is longer than a watch
    takes. What is left is what no watch will tell.
    """
    before = {(each.kind, each.key): each.held for each in first}
    return [each for each in second if before.get((each.kind, each.key), each) == each.held]


def _agrees(uid: str, held: Dump, listed: Dump) -> bool:
    """Whether the API server shows an assumed pod waiting, or on the node where it is assumed."""
    placed = listed.of(PODS).get(uid)
    return uid in listed.of(PENDING) if placed is None else placed[:2] == held.assumed[uid]


def _assumed(held: Dump, listed: Dump, under_way: Collection[str]) -> Iterator[Difference | None]:
    """An assumed pod whose bind is over must be confirmed, or given back."""
    for uid, fact in held.assumed.items():
        if uid not in under_way:
            yield Difference(ASSUMED, uid, fact, listed.of(PODS).get(uid) or listed.of(PENDING).get(uid))


def _differing(
    kind: str, held: Mapping[str, Fact], listed: Mapping[str, Fact], skipped: Collection[str] = ()
) -> Iterator[Difference | None]:
    for key in held.keys() | listed.keys():
        ours, theirs = held.get(key), listed.get(key)
        yield Difference(kind, key, ours, theirs) if ours != theirs and key not in skipped else None
