"""The affinity terms of pods that are on nodes, counted by term and row: a pod is compared with each term once."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.api.selectors import Labels
from bayplan.cache.affinity_terms import NO_TERMS, AffinityTerm, Anchor, PodAffinityTerms
from bayplan.cache.change_log import EntryLog, PodChange
from bayplan.cache.incremental_view import PodView
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo

KEPT_TERM_BYTES: Final = 8 * 2**20
"""How much of the terms that came and went is kept at least for readers, as `AffinityTerm.size` counts it."""

_SLACK = 64

_WEIGHT_BITS: Final = 40
_COUNT_BITS: Final = 64 - _WEIGHT_BITS
_ONE: Final = 1 << _WEIGHT_BITS


class TermKind(IntEnum):
    """What a term of a placed pod requires or prefers."""

    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED = 2


@dataclass(slots=True, eq=False)
class PlacedTerm:
    """A term that placed pods have: by row how many times, and the amount: the same or, if preferred, its tallies."""

    kind: TermKind
    term: AffinityTerm
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    number: int = field(default_factory=itertools.count().__next__)
    """No other has it, ever: by it readers remember a term that they do not keep."""


TermChange = tuple[PlacedTerm, int, int]
"""A term, the row, and how much its amount there grew."""

_Key = tuple[TermKind, AffinityTerm]
_Place = tuple[str | None, Anchor]
"""A namespace and a label that pods have whom a term may match; None where those of any may."""


class PlacedTerms(PodView):
    """Every term of every pod in a node table; always equal to what a count from scratch would give.

    Call `catch_up` before anything else.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._terms: dict[_Key, PlacedTerm] = {}
        self._at_place: InvertedIndex[_Place, PlacedTerm] = InvertedIndex()
        self.changes: EntryLog[TermChange] = EntryLog(KEPT_TERM_BYTES, lambda change: change[0].term.size)
        """What came and went; a reader for whom it does not reach back far enough reads all terms."""
        self._forget_until = 0
        self._key_uses: Counter[str] = Counter()
        self.label_keys: set[str] = set()
        """All label keys that selectors of terms read, and some that none reads any more."""
        self.kinds: Counter[TermKind] = Counter()
        """How many different terms there are of each kind."""
        self.label_keys_version = 0
        """Grows when `label_keys` changes, and when the first term comes."""

    def __len__(self) -> int:
        return len(self._terms)

    def labels_read(self, pod: PodInfo) -> Labels:
        """Return the labels of `pod` that its own terms or those here read.

        Others, such as a StatefulSet's pod name, would make every pod another shape.
        """
        labels = pod.pod.metadata.labels or {}
        read = self.label_keys.intersection(labels).union(*(term.label_keys for term in pod.affinity_terms.every()))
        return {key: value for key, value in labels.items() if key in read}

    def that_may_match(self, namespace: str, labels: Labels | None) -> Iterator[PlacedTerm]:
        """Give the terms that a pod with these labels has to be compared with: no other can match it."""
        for label in (None, *(labels or {}).items()):
            yield from self._at_place.get((namespace, label))
            yield from self._at_place.get((None, label))

    def forget_changes(self) -> None:
        """Keep no change that came before the last call; who has not read it by now reads all terms."""
        self.changes.forget_until(self._forget_until)
        self._forget_until = self.changes.position

    def _read(self, changes: Sequence[PodChange]) -> None:
        for row, before, after in changes:
            # What stays must not be dropped in between.
            if after is not None and after.affinity_terms is not NO_TERMS:
                self._count(after, row, 1)
            if before is not None and before.affinity_terms is not NO_TERMS:
                self._count(before, row, -1)

    def _read_all(self) -> None:
        """Start over; readers get the difference like any other change."""
        counted: dict[tuple[int, _Key], tuple[int, int]] = {}
        for placed in self._terms.values():
            for row, (uses, amount) in placed.rows.items():
                counted[row, (placed.kind, placed.term)] = -uses, -amount
        for row, pods in enumerate(self._nodes.pods):
            for pod in pods.values():
                for key, weight in _keys(pod.affinity_terms):
                    uses, amount = counted.get((row, key), (0, 0))
                    counted[row, key] = uses + 1, amount + weight
        for (row, key), (uses, amount) in counted.items():
            if uses or amount:
                self._grow(key, row, uses, amount)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        for key, weight in _keys(pod.affinity_terms):
            self._grow(key, row, sign, sign * weight)

    def _grow(self, key: _Key, row: int, uses: int, amount: int) -> None:
        placed = self._terms.get(key)
        if placed is None:
            placed = self._add(key)
        had_uses, had_amount = placed.rows.get(row, (0, 0))
        if had_uses + uses:
            placed.rows[row] = had_uses + uses, had_amount + amount
        else:
            del placed.rows[row]
            if not placed.rows:
                self._remove(key)
        if amount:
            self.changes.append((placed, row, amount))

    def _add(self, key: _Key) -> PlacedTerm:
        if not self._terms:
            self.label_keys_version += 1
        placed = self._terms[key] = PlacedTerm(*key)
        self.kinds[key[0]] += 1
        for name in key[1].label_keys:
            self._key_uses[name] += 1
        if not key[1].label_keys <= self.label_keys:
            self.label_keys |= key[1].label_keys
            self.label_keys_version += 1
        self._at_place.set(placed, _places(key[1]))
        return placed

    def _remove(self, key: _Key) -> None:
        kind, term = key
        placed = self._terms.pop(key)
        self._at_place.set(placed, ())
        self.kinds[kind] -= 1
        for name in term.label_keys:
            self._key_uses[name] -= 1
            if not self._key_uses[name]:
                del self._key_uses[name]
        if len(self.label_keys) > 2 * len(self._key_uses) + _SLACK:
            self.label_keys = set(self._key_uses)
            self.label_keys_version += 1


def _places(term: AffinityTerm) -> list[_Place]:
    """Give where a term is looked for; as many as its text names, so never each of many namespaces by many labels."""
    by_namespace = term.namespace_selector.is_nothing and (len(term.namespaces) == 1 or len(term.anchors) == 1)
    namespaces = term.namespaces if by_namespace else (None,)
    return [(namespace, anchor) for namespace in namespaces for anchor in term.anchors]


def _keys(terms: PodAffinityTerms) -> Iterator[tuple[_Key, int]]:
    for term in terms.required_affinity:
        yield (TermKind.REQUIRED_AFFINITY, term), 1
    for term in terms.required_anti_affinity:
        yield (TermKind.REQUIRED_ANTI_AFFINITY, term), 1
    for term, weight in terms.preferred:
        yield (TermKind.PREFERRED, term), tally(weight)


def tally(weight: int) -> int:
    """Return one weight as a summand: a sum of tallies holds how many there were above the sum of their weights.

    So weights that cancel out are not the same as none.
    """
    return _ONE + weight


def weight_sums(tallies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the weights that sums of tallies hold, of the same shape; sums below 2^39 in size are exact."""
    return (tallies << _COUNT_BITS) >> _COUNT_BITS
