"""Which of many nodes a volume, a storage class or a capacity reaches."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import LabelSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.selectors import compile_label_selector, compile_node_selector, is_label_key, is_label_value
from bayplan.api.storage_objects import TopologySelectorTerm, VolumeNodeAffinity
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.plugins.node_selection import NodeSelection

Places = NDArray[np.intp]
"""Places within the rows asked about, `(n,) intp`."""

_NOWHERE: Places = np.empty(0, dtype=np.intp)


class NodeReach:
    """Answers for one set of rows, found by label value: a volume pinned to one node costs one look-up, not a scan."""

    def __init__(self, index: NodeIndex, nodes: NodeTable, rows: Rows) -> None:
        self._index = index
        self._nodes = nodes
        self._rows = rows
        self._everywhere: Places = np.arange(len(rows), dtype=np.intp)
        self._by_value: dict[str, dict[str | None, Places]] = {}

    def of_affinity(self, affinity: VolumeNodeAffinity | None) -> Places:
        """Where a volume can be used; the affinity sees labels only, never the node's name."""
        if affinity is None or affinity.required is None:
            return self._everywhere
        terms = affinity.required.node_selector_terms or []
        if any(term.match_fields for term in terms):
            matcher = compile_node_selector(affinity.required)
            return self._where(lambda labels: matcher.matches(labels, ""))
        return self._of_terms(terms)

    def of_topologies(self, terms: Sequence[TopologySelectorTerm] | None) -> Places:
        """Where a class allows volumes to be made (upstream: MatchTopologySelectorTerms)."""
        if not terms:
            return self._everywhere
        return self._of_terms(
            [
                NodeSelectorTerm(
                    match_expressions=[
                        NodeSelectorRequirement(key=each.key, operator="In", values=each.values)
                        for each in term.match_label_expressions or ()
                    ]
                )
                for term in terms
            ]
        )

    def of_labels(self, selector: LabelSelector | None) -> Places:
        """The nodes whose labels a selector selects; None selects nothing, an empty one everything."""
        if selector is None:
            return _NOWHERE
        labels = selector.match_labels or {}
        if len(labels) == 1 and not selector.match_expressions:
            ((key, value),) = labels.items()
            return self._of_values(key, [value])
        matcher = compile_label_selector(selector)
        return self._everywhere if matcher.is_everything else self._where(matcher.matches)

    def _of_terms(self, terms: Sequence[NodeSelectorTerm]) -> Places:
        found = [_NOWHERE]
        for term in terms:
            expressions = term.match_expressions or []
            if len(expressions) == 1 and expressions[0].operator == "In":
                found.append(self._of_values(expressions[0].key, expressions[0].values or []))
            else:
                found.append(np.flatnonzero(NodeSelection([term]).matches(self._index, self._nodes, self._rows)))
        return found[-1] if len(found) <= 2 else np.unique(np.concatenate(found))

    def _of_values(self, key: str, values: Sequence[str]) -> Places:
        if not is_label_key(key) or not all(map(is_label_value, values)):
            return _NOWHERE
        by_value = self._by_value.get(key)
        if by_value is None:
            by_value = self._by_value[key] = self._group(key)
        found = [by_value[value] for value in dict.fromkeys(values) if value in by_value]
        if not found:
            return _NOWHERE
        return found[0] if len(found) == 1 else np.sort(np.concatenate(found))

    def _group(self, key: str) -> dict[str | None, Places]:
        column = self._index.labels.column(key)
        ids = column.ids[self._rows]
        order = np.argsort(ids, kind="stable")
        starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
        groups = np.split(order, starts[1:])
        found = {column.values[ids[group[0]]]: group for group in groups if len(group)}
        found.pop(None, None)
        return found

    def _where(self, matches: Callable[[Mapping[str, str]], bool]) -> Places:
        nodes = self._nodes.nodes
        found = [
            place
            for place, row in enumerate(self._rows.tolist())
            if (node := nodes[row]) is not None and matches(node.metadata.labels or {})
        ]
        return np.array(found, dtype=np.intp)
