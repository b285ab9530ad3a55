"""Which label keys nodes have at all."""

from collections import Counter
from collections.abc import Container

from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_table import NodeTable


class NodeLabelKeys(NodeView):
    """Knows the label keys of existing nodes, so that made-up topology keys of pods cost next to nothing.

    Call `catch_up` before looking at `known`; `version` grows when `known` changes.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._uses: Counter[str] = Counter()
        self._of_row: dict[int, frozenset[str]] = {}
        self.version = 0

    @property
    def known(self) -> Container[str]:
        """The keys that some node has."""
        return self._uses

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            node = self._nodes.nodes[row]
            now = frozenset() if node is None else frozenset(node.metadata.labels or ())
            before = self._of_row.get(row, frozenset())
            if now == before:
                continue
            self._of_row[row] = now
            for key in now - before:
                self.version += key not in self._uses
                self._uses[key] += 1
            for key in before - now:
                self._uses[key] -= 1
                if not self._uses[key]:
                    del self._uses[key]
                    self.version += 1
