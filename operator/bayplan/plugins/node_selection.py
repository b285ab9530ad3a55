"""Node selectors matched against many nodes at once, through the columns of a NodeIndex."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.quantity import parse_int64
from bayplan.api.selectors import compile_node_selector_terms
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import LabelColumn, NodeIndex
from bayplan.cache.node_table import NodeTable

_Mask = NDArray[np.bool_]
_Numbers = dict[str, tuple[NDArray[np.int64], _Mask]]
"""By label key the integers that rows have as values, and which rows have one."""


class NodeSelection:
    """Terms of which one must hold, compiled once per pod; invalid and empty terms never do.

    Says of rows what `compile_node_selector_terms` says of one node. A term costs a few operations on columns, however
    many values its label has, so thousands of terms take milliseconds.
    """

    __slots__ = ("_terms",)

    def __init__(self, terms: Sequence[NodeSelectorTerm]) -> None:
        self._terms = [_Term(term) for term in terms if _is_valid(term)]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        """Which of `rows` some term selects, `(rows,) bool`."""
        selected = np.zeros(len(rows), dtype=np.bool_)
        numbers: _Numbers = {}
        for term in self._terms:
            selected |= term.matches(index, nodes, rows, numbers)
        return selected


def matches_labels(wanted: Mapping[str, str], index: NodeIndex, rows: Rows) -> _Mask:
    """Which of `rows` have all the `wanted` labels, `(rows,) bool`."""
    selected = np.ones(len(rows), dtype=np.bool_)
    for key, value in wanted.items():
        column = index.labels.column(key)
        place = column.id_of(value)
        if place is None:
            return np.zeros(len(rows), dtype=np.bool_)
        selected &= column.ids[rows] == place
    return selected


class _Term:
    __slots__ = ("_on_labels", "_on_names")

    def __init__(self, term: NodeSelectorTerm) -> None:
        self._on_labels = [_LabelTest(each) for each in term.match_expressions or ()]
        # Only metadata.name can be selected on, with In or NotIn and one value.
        self._on_names = [(each.operator == "In", (each.values or [""])[0]) for each in term.match_fields or ()]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows, numbers: _Numbers) -> _Mask:
        selected = np.ones(len(rows), dtype=np.bool_)
        for is_in, name in self._on_names:
            row = nodes.row(name)
            selected &= (rows == (-1 if row is None else row)) == is_in
        for test in self._on_labels:
            selected &= test.matches(index.labels.column(test.key), rows, numbers)
        return selected


class _LabelTest:
    __slots__ = ("_bound", "_operator", "_values", "key")

    def __init__(self, requirement: NodeSelectorRequirement) -> None:
        self.key = requirement.key
        self._operator = requirement.operator
        self._values = tuple(requirement.values or ())
        # A valid term's Gt or Lt has exactly one integer.
        self._bound = (parse_int64(self._values[0]) or 0) if self._operator in ("Gt", "Lt") else 0

    def matches(self, column: LabelColumn, rows: Rows, numbers: _Numbers) -> _Mask:
        match self._operator:
            case "In":
                return _is_any(column, self._values, rows)
            case "NotIn":
                return ~_is_any(column, self._values, rows)
            case "Exists":
                return np.not_equal(column.ids[rows], 0)
            case "DoesNotExist":
                return np.equal(column.ids[rows], 0)
        known = numbers.get(self.key)
        if known is None:
            known = numbers[self.key] = _numbers(column, rows)
        values, legible = known
        return legible & (values > self._bound if self._operator == "Gt" else values < self._bound)


def _is_valid(term: NodeSelectorTerm) -> bool:
    return bool(term.match_expressions or term.match_fields) and not compile_node_selector_terms([term]).errors


def _is_any(column: LabelColumn, values: Sequence[str], rows: Rows) -> _Mask:
    places = [place for value in values if (place := column.id_of(value)) is not None]
    if not places:
        return np.zeros(len(rows), dtype=np.bool_)
    ids = column.ids[rows]
    if len(places) == 1:
        return np.equal(ids, places[0])
    return np.isin(ids, places)


def _numbers(column: LabelColumn, rows: Rows) -> tuple[NDArray[np.int64], _Mask]:
    values: NDArray[np.int64] = column.each(rows, lambda text: parse_int64(text or "") or 0, np.int64)
    legible: _Mask = column.each(rows, lambda text: parse_int64(text or "") is not None, np.bool_)
    return values, legible
