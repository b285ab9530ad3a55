"""Pods that are alike, which are told of once."""

from collections import Counter
from collections.abc import Hashable, Iterator

from bayplan.api.meta_objects import controller_of
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.causes import listed
from bayplan.simulate.tables import Row

_PARTS = ("containers", "tolerations", "node_selector", "affinity", "topology_spread_constraints")


class AlikePods:
    """Keeps the rows of pods of one controller, or that share all parts of their template, and their fate.

    The reader of files gives equal parts to pods as one object. Those that got a node had the same fate, whichever it
    is, as had those that got none for the same reason.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, list[Row]] = {}

    def is_first(self, pod: PodInfo, row: Row) -> bool:
        """Add the row of a decision, POD, NODE, SCORE and WHY, and say whether there was none like it."""
        owner = controller_of(pod.pod.metadata)
        kind: Hashable = (owner and owner.uid) or tuple(id(getattr(pod.pod.spec, part)) for part in _PARTS)
        alike = self._rows.setdefault((pod.namespace, pod.priority, kind, row[3] if row[1] == "-" else ""), [])
        alike.append(row)
        return len(alike) == 1

    def rows(self) -> Iterator[Row]:
        """Give a row for each kind of pods, in the order of their first ones."""
        for alike in self._rows.values():
            pods = len({row[0] for row in alike})
            name, node, _, why = alike[0]
            # Where one node is left, nothing is scored.
            scores = [row[2] for row in alike if row[2]]
            if pods > 1:
                nodes = Counter(row[1] for row in alike)
                name += f" and {pods - 1:,} more"
                node = node if node == "-" else str(listed(f"{each} ({count})" for each, count in nodes.items()))
            yield name, node, " to ".join(dict.fromkeys(scores[:1] + scores[-1:])), why
