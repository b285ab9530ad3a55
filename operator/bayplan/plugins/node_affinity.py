"""NodeAffinity: the pod's node selector and node affinity, and what a profile adds to them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from bayplan.api import objects
from bayplan.api.objects import Node, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from bayplan.api.quantity import parse_int64
from bayplan.api.selectors import NodeSelectorMatcher, compile_node_selector, compile_node_selector_terms
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import LabelColumn, NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import NodeAffinityArgs
from bayplan.framework.causes import Detail, LabelMismatch, Listed, listed, same_for_all, told
from bayplan.framework.cluster_event import NODE_ADD, NODE_LABEL, EventRegistration, hint
from bayplan.framework.interface import CycleState, PreFilterResult, Scores
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Normalize, Reads, Reason, Status, Traits

_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
_OF_POD = "node(s) didn't match Pod's node affinity/selector"
_CONFLICT = "pod affinity terms conflict"

_SORTED_VALUES = 1000
"""How many values of a label are put in order for an explanation."""

_MAX_WEIGHT = 2**31 - 1

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
            matching = term.matches(index, nodes, rows, numbers)
            if matching is not None:
                selected |= matching
        return selected


class RequiredNodeAffinity:
    """What a pod's `nodeSelector` and required node affinity ask of its node, compiled.

    Upstream: component-helpers/scheduling/corev1/nodeaffinity GetRequiredNodeAffinity.
    """

    __slots__ = ("_labels", "_selection")

    def __init__(self, pod: PodInfo) -> None:
        terms = _required_terms(pod)
        self._labels = pod.pod.spec.node_selector or {}
        self._selection = None if terms is None else NodeSelection(terms)

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> _Mask:
        """Return which of `rows` the pod may run on by it, `(rows,) bool`."""
        matching = np.ones(len(rows), dtype=np.bool_)
        for key, value in self._labels.items():
            column = index.labels.column(key)
            id_ = column.id_of(value)
            if id_ is None:
                return np.zeros(len(rows), dtype=np.bool_)
            matching &= column.ids[rows] == id_
        if self._selection is not None:
            matching &= self._selection.matches(index, nodes, rows)
        return matching


class _Term:
    __slots__ = ("_on_labels", "_on_names")

    def __init__(self, term: NodeSelectorTerm) -> None:
        self._on_labels = [_LabelTest(each) for each in term.match_expressions or ()]
        # Only metadata.name can be selected on, with In or NotIn and one value.
        self._on_names = [(each.operator == "In", (each.values or [""])[0]) for each in term.match_fields or ()]

    def matches(self, index: NodeIndex, nodes: NodeTable, rows: Rows, numbers: _Numbers) -> _Mask | None:
        """Return which rows the term selects; None for none, which of thousands of terms most say at once."""
        selected: _Mask | None = None
        for is_in, name in self._on_names:
            row = nodes.row(name)
            matching = (rows == (-1 if row is None else row)) == is_in
            selected = matching if selected is None else selected & matching
        for test in self._on_labels:
            found = test.matches(index.labels.column(test.key), rows, numbers)
            if found is None:
                return None
            selected = found if selected is None else selected & found
        return selected


class _LabelTest:
    __slots__ = ("_bound", "_operator", "_values", "key")

    def __init__(self, requirement: NodeSelectorRequirement) -> None:
        self.key = requirement.key
        self._operator = requirement.operator
        self._values = tuple(requirement.values or ())
        # A valid term's Gt or Lt has exactly one integer.
        self._bound = (parse_int64(self._values[0]) or 0) if self._operator in ("Gt", "Lt") else 0

    def matches(self, column: LabelColumn, rows: Rows, numbers: _Numbers) -> _Mask | None:
        match self._operator:
            case "In":
                return _is_any(column, self._values, rows)
            case "NotIn":
                found = _is_any(column, self._values, rows)
                return np.ones(len(rows), dtype=np.bool_) if found is None else ~found
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


def _is_any(column: LabelColumn, values: Sequence[str], rows: Rows) -> _Mask | None:
    """Return which rows have one of the values; None if no node has one."""
    wanted = [id_ for value in values if (id_ := column.id_of(value)) is not None]
    if not wanted:
        return None
    ids = column.ids[rows]
    if len(wanted) == 1:
        return np.equal(ids, wanted[0])
    return np.isin(ids, wanted)


def _numbers(column: LabelColumn, rows: Rows) -> tuple[NDArray[np.int64], _Mask]:
    values: NDArray[np.int64] = column.each(rows, lambda text: parse_int64(text or "") or 0, np.int64)
    legible: _Mask = column.each(rows, lambda text: parse_int64(text or "") is not None, np.bool_)
    return values, legible


_Preferred = list[tuple[int, NodeSelection]]
"""Weights, and what a node has to match to get them."""


class NodeAffinity:
    """Filters by `nodeSelector` and required affinity, scores preferred affinity.

    Upstream: plugins/nodeaffinity/node_affinity.go.
    """

    name: ClassVar[str] = "NodeAffinity"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODE, normalize=Normalize.DEFAULT)

    def __init__(self, args: NodeAffinityArgs, index: NodeIndex) -> None:
        self._index = index
        added = args.added_affinity or objects.NodeAffinity()
        required = added.required_during_scheduling_ignored_during_execution
        self._enforced = None if required is None else NodeSelection(required.node_selector_terms or ())
        self._enforced_on_node = None if required is None else compile_node_selector(required)
        self._added_preferred = _preferred(added.preferred_during_scheduling_ignored_during_execution)
        # Hints run for every node that changes, and a pod may have thousands of terms.
        self._compiled: WeakKeyDictionary[PodInfo, NodeSelectorMatcher] = WeakKeyDictionary()

    def sign_pod(self, pod: PodInfo) -> Hashable:
        spec = pod.pod.spec
        if spec.affinity is None and not spec.node_selector:
            return ()
        affinity = _affinity(pod)
        labels = tuple(sorted((spec.node_selector or {}).items()))
        return (labels, repr(affinity)) if affinity is not None else labels

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        terms = _required_terms(pod)
        if terms is None and self._enforced is None and not pod.pod.spec.node_selector:
            return PreFilterResult(SKIP)
        state[self.name] = RequiredNodeAffinity(pod)
        names = _node_names(terms or ())
        if names is not None and not names:
            return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (_CONFLICT,)))
        return PreFilterResult(SUCCESS, names)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        matching = (state.get(self.name) or RequiredNodeAffinity(pod)).matches(self._index, nodes, rows)
        if self._enforced is not None:
            matching &= self._enforced.matches(self._index, nodes, rows)
        return ~matching * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        if self._enforced is None:
            return [Reason(_OF_POD, np.ones(len(rows), dtype=np.bool_))]
        # The pod's own affinity is not looked at on nodes the profile rules out.
        enforced = self._enforced.matches(self._index, nodes, rows)
        return [Reason(_ENFORCED, ~enforced), Reason(_OF_POD, enforced)]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        index, left = self._index, np.ones(len(rows), dtype=np.bool_)
        if self._enforced is not None:
            left = self._enforced.matches(index, nodes, rows)
            yield same_for_all(~left, told(_ENFORCED))
        wanted = [("In", key, [value]) for key, value in (pod.pod.spec.node_selector or {}).items()]
        terms = [term for term in _required_terms(pod) or () if _is_valid(term)]
        if len(terms) == 1:
            required = [(each.operator, each.key, each.values or []) for each in terms[0].match_expressions or ()]
            # Both may ask for the same, which is told once.
            wanted += [each for each in required if each not in wanted]
        for operator, key, values in wanted:
            requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
            test = NodeSelection([NodeSelectorTerm(match_expressions=[requirement])])
            column, out = index.labels.column(key), left & ~test.matches(index, nodes, rows)
            lacking = column.ids[rows] == 0
            cause = LabelMismatch(key, operator, listed(values), _values_there_are(column, nodes))
            yield same_for_all(out & ~lacking, cause)
            yield same_for_all(out & lacking, structs.replace(cause, lack=True))
        if len(terms) != 1 and _required_terms(pod) is not None:
            keys = listed({each.key for term in terms for each in term.match_expressions or ()})
            text = f"none of {len(terms)} node affinity terms matches, which ask about {keys}" if terms else _OF_POD
            yield same_for_all(left & ~NodeSelection(terms).matches(index, nodes, rows), told(text))
        elif terms and terms[0].match_fields:
            names = listed({value for each in terms[0].match_fields for value in each.values or ()})
            test = NodeSelection([NodeSelectorTerm(match_fields=terms[0].match_fields)])
            yield same_for_all(left & ~test.matches(index, nodes, rows), told(f"metadata.name asked, of {names}"))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS if _preferred_terms(pod) or self._added_preferred else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        key = "NodeAffinity/preferred"
        preferred: _Preferred | None = state.get(key)
        if preferred is None:
            preferred = state[key] = self._added_preferred + _preferred(_preferred_terms(pod))
        total = np.zeros(len(rows), dtype=np.int64)
        for weight, selection in preferred:
            total += selection.matches(self._index, nodes, rows) * np.int64(weight)
        return total

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(NODE_ADD, hint(self._matches_now, new=Node)),
            EventRegistration(NODE_LABEL, hint(self._matches_now, new=Node)),
        )

    def _matches_now(self, pod: PodInfo, old: Node | None, new: Node) -> bool:
        """Return whether the node matches, and its former version did not match the pod's own affinity."""
        enforced = self._enforced_on_node
        if enforced is not None and not enforced.matches(new.metadata.labels, new.metadata.name):
            return False
        return self._matches_node(pod, new) and not (old is not None and self._matches_node(pod, old))

    def _matches_node(self, pod: PodInfo, node: Node) -> bool:
        labels = node.metadata.labels or {}
        if any(labels.get(key) != value for key, value in (pod.pod.spec.node_selector or {}).items()):
            return False
        required = pod.pod.spec.required_nodes
        if required is None:
            return True
        matcher = self._compiled.get(pod)
        if matcher is None:
            matcher = self._compiled[pod] = compile_node_selector(required)
        return matcher.matches(labels, node.metadata.name)


def _values_there_are(column: LabelColumn, nodes: NodeTable) -> Listed:
    """Return the values of a label on all nodes; of very many the first that are known."""
    places = np.unique(column.ids[nodes.rows()])
    places = places[places != 0]
    return listed((column.values[place] or "" for place in places[:_SORTED_VALUES].tolist()), len(places))


def _affinity(pod: PodInfo) -> objects.NodeAffinity | None:
    affinity = pod.pod.spec.affinity
    return None if affinity is None else affinity.node_affinity


def _required_terms(pod: PodInfo) -> Sequence[NodeSelectorTerm] | None:
    """Return the required terms; None when nothing is required, while an empty list selects no node."""
    required = pod.pod.spec.required_nodes
    return None if required is None else required.node_selector_terms or ()


def _preferred_terms(pod: PodInfo) -> Sequence[PreferredSchedulingTerm]:
    affinity = _affinity(pod)
    return (affinity and affinity.preferred_during_scheduling_ignored_during_execution) or ()


def _preferred(terms: Sequence[PreferredSchedulingTerm] | None) -> _Preferred:
    return [
        (min(term.weight, _MAX_WEIGHT), NodeSelection([term.preference])) for term in terms or () if term.weight > 0
    ]


def _node_names(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the nodes that terms name by `metadata.name`; None if some term names none, or there are no terms."""
    names: set[str] = set()
    for term in terms:
        named: set[str] | None = None
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.operator == "In":
                values = set(field.values or ())
                named = values if named is None else named & values
        if named is None:
            return None
        names |= named
    return frozenset(names) if terms else None
