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
from bayplan.cache.pod_info import PodInfo

_Mask = NDArray[np.bool_]
_Numbers = dict[str, tuple[NDArray[np.int64], _Mask]]
"""By label key the integers that rows have as values, and which rows have one."""


class NodeSelection:
    """Terms of which one must hold, compiled once per pod; invalid and empty terms never do.

    Matches rows as `compile_node_selector_terms` matches one node. A term costs a few operations on columns, however
    many values its label has, so thousands of terms take milliseconds.
    """

    __slots__ = ("_terms",)

    def __init__(self, terms: Sequence[NodeSelectorTerm]) -> None:
        self._terms = [_Term(term) for term in terms if _is_valid(term)]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        """Return which of `rows` some term selects, `(rows,) bool`."""
        selected = np.zeros(len(rows), dtype=np.bool_)
        numbers: _Numbers = {}
        for term in self._terms:
            selected |= term.matches(index, nodes, rows, numbers)
        return selected


def matches_labels(wanted: Mapping[str, str], index: NodeIndex, rows: Rows) -> _Mask:
    """Return which of `rows` have all the `wanted` labels, `(rows,) bool`."""
    selected = np.ones(len(rows), dtype=np.bool_)
    for key, value in wanted.items():
        column = index.labels.column(key)
        id_ = column.id_of(value)
        if id_ is None:
            return np.zeros(len(rows), dtype=np.bool_)
        selected &= column.ids[rows] == id_
    return selected


class RequiredNodeAffinity:
    """What a pod's `nodeSelector` and required node affinity ask of its node, compiled.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity GetRequiredNodeAffinity.
    """

    __slots__ = ("_labels", "_selection")

    def __init__(self, pod: PodInfo) -> None:
        spec = pod.pod.spec
        affinity = spec.affinity and spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        self._labels = spec.node_selector or {}
        self._selection = None if not required else NodeSelection(required.node_selector_terms or ())

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        """Return which of `rows` the pod may run on by it, `(rows,) bool`."""
        matching = matches_labels(self._labels, index, rows)
        if self._selection is not None:
            matching &= self._selection.matches(index, nodes, rows)
        return matching


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
    wanted = [id_ for value in values if (id_ := column.id_of(value)) is not None]
    if not wanted:
        return np.zeros(len(rows), dtype=np.bool_)
    ids = column.ids[rows]
    if len(wanted) == 1:
        return np.equal(ids, wanted[0])
    return np.isin(ids, wanted)


def _numbers(column: LabelColumn, rows: Rows) -> tuple[NDArray[np.int64], _Mask]:
    values: NDArray[np.int64] = column.each(rows, lambda text: parse_int64(text or "") or 0, np.int64)
    legible: _Mask = column.each(rows, lambda text: parse_int64(text or "") is not None, np.bool_)
    return values, legible
