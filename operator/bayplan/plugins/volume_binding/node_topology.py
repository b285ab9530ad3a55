"""Which nodes a volume, a storage class or a capacity can be used on."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.selectors import compile_label_selector, is_label_key, is_label_value
from bayplan.api.storage_objects import TopologySelectorTerm, VolumeNodeAffinity
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_index import InternedColumn, LabelColumn, NodeIndex
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.plugins.node_affinity import NodeSelection

Mask = NDArray[np.bool_]

NO_AFFINITY: Final = -1
"""Stands for "no affinity" among the numbers of affinities."""

_KEPT_CELLS = 4_000_000
"""How many answers about one selector and one row are kept; each takes a byte."""
_LEAST_KEPT = 16
"""How many selectors are kept at least, however many nodes there are."""


class SingleLabelTerm(NamedTuple):
    """The one label that nodes must have; most volumes that are not for all nodes ask for no more than that."""

    key: str
    value: str


class NodeTopology:
    """Tells for all rows of a node table at once where storage can be used.

    Every answer is `(capacity,) bool`, holds for existing nodes, and is not to be written to. Answers about several
    labels are kept and brought up to date where a node changed; those about a single label are cheap to find.
    """

    def __init__(self, index: NodeIndex, nodes: NodeTable) -> None:
        self.index = index
        self._nodes = nodes
        self._everywhere: Mask = np.ones(nodes.capacity, dtype=np.bool_)
        self._kept: RecentlyUsed[Hashable, _SelectedNodes] = RecentlyUsed(_LEAST_KEPT)

    def matching_affinity(self, affinity: VolumeNodeAffinity | None) -> Mask:
        """Tell where a volume can be used (upstream: component-helpers storage/volume CheckNodeAffinity)."""
        if affinity is None or affinity.required is None:
            return self._all()
        terms = _without_fields(affinity.required.node_selector_terms or [])
        return self._all() if terms is None else self._matching(terms)

    def matching_topologies(self, terms: Sequence[TopologySelectorTerm] | None) -> Mask:
        """Tell where a storage class allows volumes to be made (upstream: MatchTopologySelectorTerms)."""
        if not terms:
            return self._all()
        return self._matching(
            [
                NodeSelectorTerm(
                    match_expressions=[_is_one_of(each.key, each.values) for each in term.match_label_expressions or ()]
                )
                for term in terms
            ]
        )

    def matching_labels(self, selector: LabelSelector | None) -> Mask:
        """Tell which nodes a label selector selects; None selects nothing, an empty one everything."""
        if selector is None or compile_label_selector(selector).error:
            return np.zeros(self._nodes.capacity, dtype=np.bool_)
        terms = label_terms(selector)
        return self._matching(terms) if terms else self._all()

    def _all(self) -> Mask:
        if len(self._everywhere) != self._nodes.capacity:
            self._everywhere = np.ones(self._nodes.capacity, dtype=np.bool_)
        return self._everywhere

    def _matching(self, terms: Sequence[NodeSelectorTerm]) -> Mask:
        term = single_label_term(terms)
        if term is not None:
            column = self.index.labels.column(term.key)
            number = column.id_of(term.value)
            mask: Mask = column.ids == (-1 if number is None else number)
            return mask
        key = terms_key(terms)
        kept = self._kept.get(key)
        if kept is None:
            self._kept.keep = max(_LEAST_KEPT, _KEPT_CELLS // self._nodes.capacity)
            kept = self._kept.put(key, _SelectedNodes(self.index, self._nodes, terms))
        return kept.current()


class NumberByLabelValue:
    """Keeps a number for each value of one node label, as an array that the ids of a label column look up."""

    def __init__(self, absent: int) -> None:
        self._absent = absent
        self._numbers: dict[str, int] = {}
        self._labels: LabelColumn | None = None
        self._by_id: Column = np.empty(0, dtype=np.int64)

    def set(self, value: str, number: int) -> None:
        """Give a label value its number; `absent` takes it away again."""
        self._numbers[value] = number
        if number == self._absent:
            del self._numbers[value]
        known = None if self._labels is None else self._labels.id_of(value)
        if known is not None and known < len(self._by_id):
            self._by_id[known] = number

    def by_id(self, labels: LabelColumn) -> Column:
        """Return the number for each value of the label's column, `absent` for other values, `(values,) int64`."""
        if labels is not self._labels or len(self._by_id) != len(labels.values):
            self._labels = labels
            # The first value of the column stands for nodes without the label.
            numbers = [self._absent, *(self._numbers.get(value or "", self._absent) for value in labels.values[1:])]
            self._by_id = np.array(numbers, dtype=np.int64)
        return self._by_id


def single_label_term(terms: Sequence[NodeSelectorTerm]) -> SingleLabelTerm | None:
    """Return the label that terms ask for, if that is all they ask for."""
    if len(terms) != 1 or terms[0].match_fields:
        return None
    expressions = terms[0].match_expressions or []
    if len(expressions) != 1 or expressions[0].operator != "In":
        return None
    key, values = expressions[0].key, expressions[0].values or []
    is_single = len(values) == 1 and is_label_key(key) and is_label_value(values[0])
    return SingleLabelTerm(key, values[0]) if is_single else None


def terms_key(terms: Sequence[NodeSelectorTerm]) -> Hashable:
    """Return a key that is equal for terms with the same requirements in the same order."""
    return tuple(
        (_requirements_key(term.match_expressions or ()), _requirements_key(term.match_fields or ())) for term in terms
    )


def label_terms(selector: LabelSelector) -> list[NodeSelectorTerm]:
    """Turn a valid label selector into terms of a node selector; there are none if it selects everything."""
    wanted = [_is_one_of(key, [value]) for key, value in (selector.match_labels or {}).items()]
    wanted += [
        NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
        for each in selector.match_expressions or ()
    ]
    return [NodeSelectorTerm(match_expressions=wanted)] if wanted else []


def _is_one_of(key: str, values: list[str] | None) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=values)


def _requirements_key(requirements: Sequence[NodeSelectorRequirement]) -> Hashable:
    return tuple((each.key, each.operator, tuple(each.values or ())) for each in requirements)


def _without_fields(terms: list[NodeSelectorTerm]) -> list[NodeSelectorTerm] | None:
    """Leave out what terms require of fields; None means that all nodes match.

    A volume's affinity is matched against the labels of a node alone, and then fields hold whatever they require
    (upstream: component-helpers scheduling/corev1/nodeaffinity, nodeSelectorTerm.match).
    """
    found: list[NodeSelectorTerm] = []
    for term in terms:
        if term.match_fields and not term.match_expressions:
            return None
        found.append(NodeSelectorTerm(match_expressions=term.match_expressions))
    return found


class _SelectedNodes(NodeView):
    """Keeps which nodes some terms select; those that changed are matched again."""

    def __init__(self, index: NodeIndex, nodes: NodeTable, terms: Sequence[NodeSelectorTerm]) -> None:
        super().__init__(nodes)
        self._index = index
        self._selection = NodeSelection(terms)
        self._mask: Mask = np.zeros(0, dtype=np.bool_)

    def current(self) -> Mask:
        self.catch_up()
        return self._mask

    def _start_over(self) -> None:
        self._mask = np.zeros(self._nodes.capacity, dtype=np.bool_)

    def _read(self, changes: Rows) -> None:
        self._mask[changes] = self._selection.matches(self._index, self._nodes, changes)


class Affinities:
    """Numbers the distinct node affinities of some volumes; `column` holds the number of each volume's slot."""

    def __init__(self, first_slots: int) -> None:
        # Number 0 stands for volumes that can be used everywhere.
        self.column: InternedColumn[Hashable] = InternedColumn(first_slots, None)
        self._by_label: dict[str, NumberByLabelValue] = {}
        self._others: dict[int, VolumeNodeAffinity | None] = {0: None}

    def set(self, slot: int, affinity: VolumeNodeAffinity | None) -> None:
        """Note the affinity of the volume in a slot."""
        terms = None if affinity is None or affinity.required is None else affinity.required.node_selector_terms or ()
        term = None if terms is None else single_label_term(terms)
        key = term or (None if terms is None else terms_key(terms))
        is_new = self.column.id_of(key) is None
        self.column.set(slot, key)
        if not is_new:
            return
        number = int(self.column.ids[slot])
        if isinstance(term, SingleLabelTerm):
            self._by_label.setdefault(term.key, NumberByLabelValue(NO_AFFINITY)).set(term.value, number)
        else:
            self._others[number] = affinity

    def on_rows(self, wanted: NDArray[np.bool_], topology: NodeTopology, rows: Rows) -> Iterator[NDArray[np.int64]]:
        """Yield arrays of the numbers of `wanted` affinities that hold on each row, or NO_AFFINITY, `(rows,) int64`."""
        for key, numbers in self._by_label.items():
            labels = topology.index.labels.column(key)
            yield numbers.by_id(labels)[labels.ids[rows]]
        for number, affinity in self._others.items():
            if wanted[number]:
                yield np.where(topology.matching_affinity(affinity)[rows], number, NO_AFFINITY)
