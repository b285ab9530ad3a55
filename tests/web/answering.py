"""A source whose answers are what a test says, with the same text in every place that a text can stand in."""

from dataclasses import dataclass

import msgspec

from bayplan.explain.explanation import Explanation, NodeGroup, NodeScore, OneToleration, OtherLabel, PluginScore
from bayplan.framework.causes import LabelMismatch, Listed, Told, UntoleratedTaint
from bayplan.framework.status import ResourceScore
from bayplan.live.answers import (
    AttemptItem,
    DecisionItem,
    DecisionsAnswer,
    ExplanationAnswer,
    NodeAnswer,
    NodePod,
    NodesAnswer,
    Nomination,
    PackingAnswer,
    PodAhead,
    PodName,
    ProfileAnswer,
    QueueAnswer,
    QueueCounts,
    QueueItem,
    ShapePoint,
    SimulationAnswer,
    SummaryAnswer,
    TaintAnswer,
    WakingEvent,
    WeightedResource,
)
from bayplan.simulate.report import Allocation, AttemptReport, Capacity, MovedPod, PodReport, Summary
from bayplan.web.sources import SideBySide, SummaryOf

_TIME = "2026-01-01T00:00:00Z"


@dataclass
class SaysEverywhere:
    """Answers every question with `text` wherever the answer has a text that may come from a cluster."""

    text: str
    nodes_used: int = 1
    requested: int = 500

    async def summary(self):
        text = self.text
        profile = ProfileAnswer(text, text, [WeightedResource(text, 1)], [ShapePoint(0, 0), ShapePoint(100, 10)])
        packing = [PackingAnswer(each, self.requested, 1000, 1, self.nodes_used, 1, 1) for each in ("cpu", text)]
        counts = QueueCounts(0, 0, 3, 1)
        return _encoded(SummaryAnswer(_TIME, text, text, True, [profile], 2, 3, counts, packing))

    async def nodes(self):
        amounts = {"cpu": [self.requested, 10], self.text: [1, 1]}
        whole = {"cpu": [1000, 1000], self.text: [2, 2]}
        names = [self.text, f"2{self.text}"]
        return _encoded(
            NodesAnswer(_TIME, ["cpu", self.text], names, [1, 2], [False, True], [True, False], amounts, whole)
        )

    async def node(self, name):
        text = self.text
        pod = NodePod(text, text, text, 0, {"cpu": 1, text: 2}, text)
        taint = TaintAnswer(text, text, text)
        return _encoded(NodeAnswer(name, {text: text}, [taint], True, {text: 2}, {text: 1}, [pod]))

    async def queue_page(self, start, limit):
        text = self.text
        nowhere = f"0/2 nodes are available: 1 node(s) had untolerated taint {{{text}}}, 1 {text}."
        items = [self._item("unschedulable", nowhere), self._item("gated", text), self._item("backoff", text)]
        return _encoded(QueueAnswer("2026-01-01T00:00:00Z", 4, items, text))

    def _item(self, queue, message):
        text = self.text
        return QueueItem(text, text, text, 0, queue, None, 1, _TIME, _TIME, message, [text], text, text)

    async def decisions(self, after, limit):
        text = self.text
        pods = [PodName(text, text)]
        items = [
            DecisionItem(1, _TIME, text, text, text, 5, None, 1, 2, 0.5, None, []),
            DecisionItem(2, _TIME, text, text, None, None, None, 0, 2, 0.5, text, pods),
        ]
        return _encoded(DecisionsAnswer(2, False, [each for each in items if each.seq > after][:limit]))

    async def explanation(self, namespace, name):
        text = self.text
        return _encoded(
            ExplanationAnswer(
                namespace,
                name,
                text,
                "pending",
                None,
                self._item("unschedulable", text),
                [PodAhead(text, text, 1)],
                [WakingEvent(text, text)],
                Nomination(text, 1.0),
                [AttemptItem(text, text, 1.0)],
                text,
                self._explanation(),
            )
        )

    def _explanation(self):
        text = self.text
        causes = (
            Told(text),
            UntoleratedTaint(text, text, text),
            LabelMismatch(text, text, _listed(text), _listed(text)),
        )
        plugin = PluginScore(text, 5, 1, 5, None, (ResourceScore(text, 1, 2, 3, 4, 5),))
        return Explanation(
            2,
            1,
            (NodeGroup(1, text, causes, _listed(text)),),
            changes=(OneToleration(text, text, text, text), OtherLabel(text, text, text, text)),
            chosen=NodeScore(text, 5, (plugin,)),
            runner_up=NodeScore(text, 4, (plugin,)),
            margin=1,
        )

    async def simulation(self, body, count):
        text = self.text
        if count:
            return _encoded(SimulationAnswer([], Capacity(text, 2, 5, {text: 2}, [text], text)))
        attempts = [
            AttemptReport(text, None, [text], None, 1, explanation=self._explanation()),
            AttemptReport(None, text, [text], text, 0, explanation=self._explanation()),
        ]
        return _encoded(SimulationAnswer([PodReport(text, text, text, [each]) for each in attempts], None))

    def side_by_side(self):
        """What two configurations make of the cluster, for the page's own topic."""
        text = self.text
        use = Allocation(1, 4, requested_in_use=1, allocatable_in_use=4, stranded=1, largest_free=2)
        summary = Summary(2, 1, 1, 1, 3, 1, 0, 0, 0, 2, 1, 0, 0, [], [], {}, {"cpu": use, text: use}, 0.0, 0.0)
        told = [SummaryOf(text, summary), SummaryOf(f"2{text}", summary)]
        return _encoded(SideBySide(2, told, [MovedPod(text, text, [text, None])], 1))


def _listed(text):
    return Listed((text,), 0)


_encoded = msgspec.json.encode
