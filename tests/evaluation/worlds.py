"""A cluster changing step by step: the cache under test, and a plain record of what it should hold."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from tests.cache_checks import assert_adds_up
from tests.evaluation.clusters import build_framework, node_of, pod_of
from tests.reference.filters import Host
from tests.reference.schedule import Decision, reference_schedule

from bayplan.api.objects import Node
from bayplan.cache.cache import Cache
from bayplan.cache.change_log import ChangeLog, PodLog
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import Profile
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.raw_score import NOT_FEASIBLE
from bayplan.explain.trace import trace_of
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError

A_POD = 8192
"""About the size of a pod as logs count it."""


class World:
    """Applies each change to the cache and to dictionaries; `check` compares a cycle over one with the other."""

    def __init__(
        self, profile: Profile, forms: list[dict[str, Any]], shapes: list[dict[str, Any]], *, log_keep: int = 4096
    ) -> None:
        self.profile = profile
        self.forms = forms
        self.shapes = shapes
        self.cache = Cache()
        self.cache.nodes.objects_changed = ChangeLog(keep=log_keep)
        self.cache.nodes.usage_changed = ChangeLog(keep=log_keep)
        self.cache.nodes.pods_changed = PodLog(keep=log_keep * A_POD)
        self.framework = build_framework(profile, self.cache.nodes)
        self.cycle = SchedulingCycle(self.cache.nodes)
        self.evaluations: dict[Hashable, Evaluation] = {}
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[PodInfo, str]] = {}
        self.assumed: dict[str, int] = {}
        self._incoming = 0

    def set_node(self, name: str, form: int) -> None:
        node = self.nodes[name] = node_of(self.forms[form], name)
        self.cache.set_node(node)

    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)
        self.nodes.pop(name, None)

    def set_nodes(self, count: int, form: int) -> None:
        for i in range(count):
            self.set_node(f"more{i}", form)

    def remove_nodes(self, count: int) -> None:
        for i in range(count):
            self.remove_node(f"more{i}")

    def set_pod(self, placed: tuple[int, int, str, str | None]) -> None:
        shape, number, node, actual_cpu = placed
        uid = f"{shape}-{number}"
        pod = PodInfo(pod_of(self.shapes[shape], uid, node=node, actual_cpu=actual_cpu))
        self.cache.set_pod(pod)
        self.pods[uid] = (pod, node)
        self.assumed.pop(uid, None)

    def finish_pod(self, shape: int, number: int, node: str) -> None:
        uid = f"{shape}-{number}"
        self.cache.set_pod(PodInfo(pod_of(self.shapes[shape] | {"phase": "Succeeded"}, uid, node=node)))
        self.pods.pop(uid, None)
        self.assumed.pop(uid, None)

    def remove_pod(self, uid: str) -> None:
        self.cache.remove_pod(uid)
        self.pods.pop(uid, None)
        self.assumed.pop(uid, None)

    def forget_pod(self, uid: str) -> None:
        self.cache.forget_pod(uid)
        if uid in self.assumed:
            del self.pods[uid], self.assumed[uid]

    def confirm_pod(self, uid: str, node: str | None) -> None:
        """The watch shows an assumed pod bound, where it was assumed or, with `node`, elsewhere."""
        if uid not in self.assumed:
            return
        node = node or self.pods[uid][1]
        pod = PodInfo(pod_of(self.shapes[self.assumed.pop(uid)], uid, node=node))
        self.cache.set_pod(pod)
        self.pods[uid] = (pod, node)

    def place(self, shape: int) -> None:
        """Schedule a pod and assume it where it goes."""
        pod = self._new_pod(shape)
        placement = self.check(pod, explain=False)
        if placement is not None:
            self.cache.assume_pod(pod, placement)
            self.pods[pod.uid] = (pod, placement)
            self.assumed[pod.uid] = shape

    def look(self, shape: int, *, explain: bool) -> None:
        """Schedule a pod and forget about it."""
        self.check(self._new_pod(shape), explain=explain)

    def hosts(self) -> list[Host]:
        """The nodes in the table's order, as the record has them."""
        table = self.cache.nodes
        names = [table.names[row] for row in table.rows().tolist()]
        assert sorted(names) == sorted(self.nodes)
        on: dict[str, list[PodInfo]] = {}
        for pod, node in self.pods.values():
            on.setdefault(node, []).append(pod)
        return [Host(self.nodes[name], tuple(on.get(name, ()))) for name in names]

    def check(self, pod: PodInfo, *, explain: bool) -> str | None:
        """Compare the long-lived cycle, and a new one, with the plain decision; the node chosen."""
        assert_adds_up(self.cache)
        expected = reference_schedule(self.hosts(), pod, self.profile)
        for cycle in (self.cycle, SchedulingCycle(self.cache.nodes)):
            self._check_result(cycle, pod, expected, explain=explain)
        fresh = Evaluation(self.framework, self.cache.nodes)
        kept = self.evaluations.setdefault(self.framework.signature(pod), fresh)
        for evaluation in (kept, fresh):
            self._check_evaluation(evaluation, pod, expected)
        return expected.winner

    def _new_pod(self, shape: int) -> PodInfo:
        self._incoming += 1
        return PodInfo(pod_of(self.shapes[shape], f"incoming-{self._incoming}"))

    def _check_result(self, cycle: SchedulingCycle, pod: PodInfo, expected: Decision, *, explain: bool) -> None:
        made = cycle.schedule(pod, self.framework)
        result = made.outcome
        if isinstance(result, FitError):
            assert expected.feasible == []
            assert result.message == expected.message
            assert result.diagnosis.rejector_plugins == expected.plugins
        else:
            assert result.node_name == expected.winner
            assert result.feasible_nodes == len(expected.feasible)
            assert result.score == expected.totals.get(result.node_name)
        if not explain:
            return
        trace = trace_of(made)
        assert trace.keys() == self.nodes.keys()
        for name, verdict in trace.items():
            assert verdict.rejected_by == expected.rejected_by.get(name)
            assert sorted(verdict.reasons) == sorted(expected.reasons.get(name, []))
            assert verdict.scores == {
                plugin: scores[name] for plugin, scores in expected.scores.items() if name in scores
            }
            assert verdict.score == expected.totals.get(name, 0)

    def _check_evaluation(self, evaluation: Evaluation, pod: PodInfo, expected: Decision) -> None:
        evaluation.refresh(pod)
        names = self.cache.nodes.names
        assert [names[row] for row in np.flatnonzero(evaluation.feasible).tolist()] == expected.feasible
        rejections = evaluation.verdicts.rejections()
        codes = zip(rejections.rows.tolist(), rejections.codes.tolist(), strict=True)
        assert {names[row]: code for row, code in codes if code} == expected.codes
        if len(expected.feasible) > 1:
            totals = evaluation.totals(pod)
            scored = np.flatnonzero(totals != NOT_FEASIBLE).tolist()
            assert {names[row]: int(totals[row]) for row in scored} == expected.totals
            for rows in (np.array(scored), np.array(scored[1:])):
                scores = evaluation.scores(pod, rows)
                for place in (0, len(rows) - 1):
                    given = {plugin: int(column[place]) for plugin, column in scores.items()}
                    assert evaluation.scores_at(pod, int(rows[place]), rows) == given
