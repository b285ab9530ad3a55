"""Node selectors matched against many nodes at once, through the columns of a NodeIndex."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.selectors import compile_node_selector_terms
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import LabelColumn, NodeIndex
from bayplan.cache.node_table import NodeTable

_Mask = NDArray[np.bool_]


class NodeSelection:
    """Terms of which one must hold, compiled once per pod; invalid and empty terms never do.

    Says of rows what `compile_node_selector_terms` says of one node, at the cost of the distinct label values instead
    of the nodes.
    """

    __slots__ = ("_terms",)

    def __init__(self, terms: Sequence[NodeSelectorTerm]) -> None:
        self._terms = [_Term(term) for term in terms if _is_valid(term)]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        """Which of `rows` some term selects, `(rows,) bool`."""
        selected = np.zeros(len(rows), dtype=np.bool_)
        for term in self._terms:
            selected |= term.matches(index, nodes, rows)
        return selected


def matches_labels(wanted: Mapping[str, str], index: NodeIndex, rows: Rows) -> _Mask:
    """Which of `rows` have all the `wanted` labels, `(rows,) bool`."""
    selected = np.ones(len(rows), dtype=np.bool_)
    for key, value in wanted.items():
        column = index.labels.column(key)
        selected &= _is_any(column, (value,), rows)
    return selected


class _Term:
    __slots__ = ("_on_labels", "_on_names")

    def __init__(self, term: NodeSelectorTerm) -> None:
        self._on_labels = [_LabelTest(each) for each in term.match_expressions or ()]
        # Only metadata.name can be selected on, with In or NotIn and one value.
        self._on_names = [(each.operator == "In", (each.values or [""])[0]) for each in term.match_fields or ()]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        selected = np.ones(len(rows), dtype=np.bool_)
        for is_in, name in self._on_names:
            row = nodes.row(name)
            selected &= (rows == (-1 if row is None else row)) == is_in
        for test in self._on_labels:
            selected &= test.matches(index.labels.column(test.key), rows)
        return selected


class _LabelTest:
    __slots__ = ("_alone", "_operator", "_values", "key")

    def __init__(self, requirement: NodeSelectorRequirement) -> None:
        self.key = requirement.key
        self._operator = requirement.operator
        self._values = tuple(requirement.values or ())
        self._alone = compile_node_selector_terms([NodeSelectorTerm(match_expressions=[requirement])])

    def matches(self, column: LabelColumn, rows: Rows) -> _Mask:
        if self._operator == "In":
            return _is_any(column, self._values, rows)
        if self._operator == "NotIn":
            return ~_is_any(column, self._values, rows)
        return column.each(rows, self._holds, np.bool_)

    def _holds(self, value: str | None) -> bool:
        return self._alone.matches({} if value is None else {self.key: value}, "")


def _is_valid(term: NodeSelectorTerm) -> bool:
    return bool(term.match_expressions or term.match_fields) and not compile_node_selector_terms([term]).errors


def _is_any(column: LabelColumn, values: Sequence[str], rows: Rows) -> _Mask:
    places = [place for value in values if (place := column.id_of(value)) is not None]
    ids = column.ids[rows]
    if len(places) == 1:
        return np.equal(ids, places[0])
    return np.isin(ids, places)
