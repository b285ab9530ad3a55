"""Which nodes a volume, a storage class or a capacity reaches."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.selectors import compile_label_selector, compile_node_selector, is_label_key, is_label_value
from bayplan.api.storage_objects import TopologySelectorTerm, VolumeNodeAffinity
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.row_follower import ObjectFollower
from bayplan.plugins.node_selection import NodeSelection

Mask = NDArray[np.bool_]

_Test = Callable[[Rows], Mask]

_KEPT_CELLS = 4_000_000
"""How many (selector, row) answers are kept; one takes a byte."""
_LEAST_KEPT = 16
"""So many selectors are kept however many nodes there are."""


class Pin(NamedTuple):
    """The one label that a node must have; most volumes that not all nodes reach need no more."""

    key: str
    value: str


class VolumeReach:
    """Answers for all rows of a node table at once, and keeps those that are not about a single label.

    Every answer is `(capacity,) bool`, holds for existing nodes, and is not to be written to.
    """

    def __init__(self, index: NodeIndex, nodes: NodeTable) -> None:
        self.index = index
        self._nodes = nodes
        self._everywhere: Mask = np.ones(nodes.capacity, dtype=np.bool_)
        self._kept: RecentlyUsed[Hashable, _KeptMask] = RecentlyUsed(_LEAST_KEPT)

    def of_affinity(self, affinity: VolumeNodeAffinity | None) -> Mask:
        """Where a volume can be used; the affinity sees labels only, never the node's name."""
        if affinity is None or affinity.required is None:
            return self._all()
        terms = affinity.required.node_selector_terms or []
        if any(term.match_fields for term in terms):
            selector = affinity.required
            return self._keep(("fields", terms_key(terms)), lambda: self._test_of_fields(selector))
        return self._of_terms(terms)

    def of_topologies(self, terms: Sequence[TopologySelectorTerm] | None) -> Mask:
        """Where a class allows volumes to be made (upstream: MatchTopologySelectorTerms)."""
        if not terms:
            return self._all()
        return self._of_terms(
            [
                NodeSelectorTerm(
                    match_expressions=[_is_one_of(each.key, each.values) for each in term.match_label_expressions or ()]
                )
                for term in terms
            ]
        )

    def of_labels(self, selector: LabelSelector | None) -> Mask:
        """The nodes whose labels a selector selects; None selects nothing, an empty one everything."""
        if selector is None or compile_label_selector(selector).error:
            return np.zeros(self._nodes.capacity, dtype=np.bool_)
        terms = label_terms(selector)
        return self._of_terms(terms) if terms else self._all()

    def _all(self) -> Mask:
        if len(self._everywhere) != self._nodes.capacity:
            self._everywhere = np.ones(self._nodes.capacity, dtype=np.bool_)
        return self._everywhere

    def _of_terms(self, terms: Sequence[NodeSelectorTerm]) -> Mask:
        pin = pin_of(terms)
        if pin is not None:
            column = self.index.labels.column(pin.key)
            place = column.id_of(pin.value)
            mask: Mask = column.ids == (-1 if place is None else place)
            return mask
        return self._keep(terms_key(terms), lambda: self._test_of_terms(terms))

    def _test_of_terms(self, terms: Sequence[NodeSelectorTerm]) -> _Test:
        selection = NodeSelection(terms)
        return lambda rows: selection.matches(self.index, self._nodes, rows)

    def _test_of_fields(self, selector: NodeSelector) -> _Test:
        matcher = compile_node_selector(selector)

        def matches(rows: Rows) -> Mask:
            nodes = [self._nodes.nodes[row] for row in rows.tolist()]
            return np.array([node is not None and matcher.matches(node.metadata.labels, "") for node in nodes])

        return matches

    def _keep(self, key: Hashable, compiled: Callable[[], _Test]) -> Mask:
        kept = self._kept.get(key)
        if kept is None:
            self._kept.keep = max(_LEAST_KEPT, _KEPT_CELLS // self._nodes.capacity)
            kept = self._kept.put(key, _KeptMask(self._nodes, compiled()))
        return kept.current()


def pin_of(terms: Sequence[NodeSelectorTerm]) -> Pin | None:
    """The label that terms ask for, if that is all they ask for."""
    if len(terms) != 1 or terms[0].match_fields:
        return None
    expressions = terms[0].match_expressions or []
    if len(expressions) != 1 or expressions[0].operator != "In":
        return None
    key, values = expressions[0].key, expressions[0].values or []
    return Pin(key, values[0]) if len(values) == 1 and is_label_key(key) and is_label_value(values[0]) else None


def terms_key(terms: Sequence[NodeSelectorTerm]) -> Hashable:
    """Equal for terms that say the same in the same words."""
    return tuple(
        (_requirements_key(term.match_expressions or ()), _requirements_key(term.match_fields or ())) for term in terms
    )


def label_terms(selector: LabelSelector) -> list[NodeSelectorTerm]:
    """A valid label selector as terms of a node selector; none if it selects everything."""
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


class _KeptMask:
    """An answer for all nodes, found again for those that changed."""

    __slots__ = ("_follower", "_mask", "_matches", "_nodes")

    def __init__(self, nodes: NodeTable, matches: _Test) -> None:
        self._nodes = nodes
        self._matches = matches
        self._follower = ObjectFollower(nodes)
        self._mask: Mask = np.zeros(0, dtype=np.bool_)

    def current(self) -> Mask:
        rows = self._follower.follow()
        if rows is None:
            self._mask = np.zeros(self._nodes.capacity, dtype=np.bool_)
            rows = self._nodes.rows()
        if len(rows):
            self._mask[rows] = self._matches(rows)
        return self._mask
