"""A cluster with the plugin PodTopologySpread over it."""

import numpy as np
from tests.plugins.scenes import Scene

from bayplan.api.objects import Node, Pod
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import PodTopologySpreadArgs
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code
from bayplan.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread


class Spreading(Scene):
    """A scene with the plugin over it."""

    def __init__(self, *objects: Node | Pod, args: PodTopologySpreadArgs | None = None) -> None:
        super().__init__(*objects)
        self.listers = Listers()
        self.plugin = PodTopologySpread(args or PodTopologySpreadArgs(), self.index, self.listers)

    def rejected(self, pod: Pod, state: CycleState | None = None) -> dict[str, tuple[Code, list[str]]]:
        """Code and reasons of the nodes that are rejected."""
        return self.rejections(self.plugin, pod, state=state)

    def ranked(self, pod: Pod, state: CycleState | None = None, feasible: slice = slice(None)) -> dict[str, int] | None:
        """The final scores of the feasible nodes, all unless said otherwise; None if the plugin skips."""
        table, info, rows = self.cache.nodes, PodInfo(pod), self.cache.nodes.rows()[feasible]
        state = CycleState() if state is None else state
        if self.plugin.pre_score(state, info, table, rows).code is Code.SKIP:
            return None
        raw = self.plugin.score(state, info, table, rows)
        scores = self.plugin.normalize_score(state, info, table, rows, raw)
        assert scores.dtype == np.int64
        return dict(zip([table.names[row] for row in rows.tolist()], scores.tolist(), strict=True))

    def pre_filter(self, pod: Pod) -> Code:
        return self.plugin.pre_filter({}, PodInfo(pod), self.cache.nodes).status.code
