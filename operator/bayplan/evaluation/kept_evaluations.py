"""The evaluations that a scheduling cycle keeps between pods, bounded by what they take."""

from collections import OrderedDict
from collections.abc import Hashable

import msgspec

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation

Key = tuple[int, Hashable, int | None]
"""The framework, the pod's signature, and the nominations it sees."""

_KEPT_CELLS = 4_000_000
"""How many (shape, row) cells evaluations may hold together: about 100 MB at 25 bytes each."""
_CELLS_PER_BYTE = 0.4
"""What compiled rules take, per byte of the pod's spec as JSON: they matter for pods with thousands of rules."""


class KeptEvaluations:
    """The most recently used evaluations; the cycle relies on it to forget those that would take too much memory.

    At least two are kept. A pod with a megabyte of rules counts as much as a hundred plain ones, so that nobody can
    fill the memory with shapes.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._evaluations: OrderedDict[Key, Evaluation] = OrderedDict()
        self._rule_cells: dict[Key, int] = {}
        self._all_rule_cells = 0

    def __len__(self) -> int:
        return len(self._evaluations)

    def get(self, key: Key) -> Evaluation | None:
        """The evaluation under `key`, now the most recently used one."""
        evaluation = self._evaluations.get(key)
        if evaluation is not None:
            self._evaluations.move_to_end(key)
        return evaluation

    def put(self, key: Key, evaluation: Evaluation, pod: PodInfo) -> None:
        """Keep an evaluation made for `pod`, and forget the least recently used ones that are too many."""
        self._evaluations[key] = evaluation
        cells = self._rule_cells[key] = int(_CELLS_PER_BYTE * len(msgspec.json.encode(pod.pod.spec)))
        self._all_rule_cells += cells
        while len(self) > 2 and len(self) * self._nodes.capacity + self._all_rule_cells > _KEPT_CELLS:
            self._drop(next(iter(self._evaluations)))

    def forget(self, framework: int, signature: Hashable) -> None:
        """Drop what is kept for a shape, whatever nominations it saw."""
        for key in [key for key in self._evaluations if key[:2] == (framework, signature)]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        del self._evaluations[key]
        self._all_rule_cells -= self._rule_cells.pop(key)
