"""A small cluster to ask a single plugin about."""

from typing import Any

import numpy as np
from tests.builders import make_pod_info, make_selector
from tests.reference.filters import Host

from bayplan.api.objects import LabelSelector, Node, Pod, TopologySpreadConstraint
from bayplan.cache.cache import Cache
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, FewRowsFilterPlugin, FewRowsScorePlugin
from bayplan.framework.status import Code


class Scene:
    """Nodes and the pods on them, with questions to plugins answered by node name.

    A plugin that answers for rows by themselves is asked both ways, and has to say the same.
    """

    def __init__(self, *objects: Node | Pod) -> None:
        self.cache = Cache()
        self.index = NodeIndex(self.cache.nodes)
        self.add(*objects)

    def add(self, *objects: Node | Pod) -> None:
        for each in objects:
            if isinstance(each, Node):
                self.cache.set_node(each)
            else:
                self.cache.set_pod(PodInfo(each))

    def hosts(self) -> list[Host]:
        """The nodes in the table's order with their pods, for a reference."""
        table = self.cache.nodes
        return [Host(table.nodes[row], tuple(table.pods[row].values())) for row in table.rows().tolist()]

    def rejections(
        self, plugin: Any, pod: Pod, *, with_pre_filter: bool = True, state: CycleState | None = None
    ) -> dict[str, tuple[Code, list[str]]]:
        """Code and reasons of the nodes that `plugin` rejects, none if its PreFilter skips."""
        table, info = self.cache.nodes, PodInfo(pod)
        state = CycleState() if state is None else state
        if with_pre_filter and hasattr(plugin, "pre_filter"):
            status = plugin.pre_filter(state, info, table).status
            if status.code is Code.SKIP:
                return {}
        rows = table.rows()
        codes = plugin.filter(state, info, table, rows)
        assert codes.dtype == np.int8
        if isinstance(plugin, FewRowsFilterPlugin):
            assert plugin.filter_few(state, info, table, rows.tolist()) == codes.tolist()
        rejected = rows[codes != 0]
        found = {
            table.names[row]: (Code(code), []) for row, code in zip(rows.tolist(), codes.tolist(), strict=True) if code
        }
        if len(rejected):
            for reason in plugin.reasons(state, info, table, rejected):
                for row in rejected[reason.holds].tolist():
                    found[table.names[row]][1].append(reason.text)
        return found

    def scores(self, plugin: Any, pod: Pod, *, state: CycleState | None = None) -> dict[str, int]:
        """The raw score of every node."""
        table, rows, info = self.cache.nodes, self.cache.nodes.rows(), PodInfo(pod)
        state = CycleState() if state is None else state
        scores = plugin.score(state, info, table, rows)
        assert scores.dtype == np.int64
        if isinstance(plugin, FewRowsScorePlugin):
            assert plugin.score_few(state, info, table, rows.tolist()) == scores.tolist()
        return dict(zip([table.names[row] for row in rows.tolist()], scores.tolist(), strict=True))

    def score(self, plugin: Any, pod: Pod) -> int:
        """The raw score of the only node."""
        (score,) = self.scores(plugin, pod).values()
        return score


WEB = make_selector(app="web")


def spread(key: str = "zone", selector: LabelSelector | None = WEB, **rest: Any) -> TopologySpreadConstraint:
    """A DoNotSchedule constraint of skew 1 about pods with the label app=web, unless said otherwise."""
    values = {"max_skew": 1, "when_unsatisfiable": "DoNotSchedule"} | rest
    return TopologySpreadConstraint(topology_key=key, label_selector=selector, **values)


def sign(plugin: Any, **pod: Any) -> Any:
    """The plugin's part of the shape of such a pod."""
    return plugin.sign_pod(make_pod_info(**pod))


def hint(plugin: Any, event: Any, pod: Pod, old: Any = None, new: Any = None) -> str:
    """What the plugin says of an event to a pod it rejected; pods are given as API objects."""
    old, new = (PodInfo(each) if isinstance(each, Pod) else each for each in (old, new))
    (registration,) = [each for each in plugin.events_to_register() if event.matches(each.event)]
    return "Queue" if registration.hint is None else registration.hint(PodInfo(pod), old, new).value
