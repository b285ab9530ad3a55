"""Decisions that HTTP extenders take part in, and binds that one of them makes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.objects import Node
from bayplan.api.watch_event import read_pod
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate, choose
from bayplan.framework.interface import Binding, PostFilterResult, Rejections
from bayplan.framework.runtime import EXTENDER, Framework
from bayplan.framework.status import Code, Diagnosis, Status
from bayplan.scheduler.api_calls import pod_path
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.wire import ExtenderError, ProposedVictims
from bayplan.scheduler.turns import Turn

logger = logging.getLogger(__name__)

PodSource = Callable[[PodInfo], Awaitable[msgspec.Raw]]
"""Returns the whole pod as JSON, with what bayplan itself does not keep: extenders read annotations."""

# An extender that failed late may still be binding.
_SETTLE_SECONDS = 0.2


@dataclass(eq=False)
class ExtendedCycle:
    """Decides for one pod with the extenders' help; the loop awaits it, so decisions stay one at a time.

    Filter calls follow each other, each with the nodes the last one left; prioritize calls run side by side. While
    they run the cluster may change: the last step looks at the nodes anew and never chooses one that no longer fits.

    Raises (from `schedule`):
        ExtenderError: an extender that is not ignorable failed, or the pod cannot be read; the text is the user's.
    """

    cycle: SchedulingCycle
    nodes: NodeTable
    extenders: Sequence[ExtenderClient]
    pod_source: PodSource

    async def schedule(self, pod: PodInfo, framework: Framework) -> Decision:
        """As `SchedulingCycle.schedule`, with what the interested extenders answer."""
        decision = await self._decide(pod, framework)
        if isinstance(decision.outcome, FitError):
            decision.outcome = await self._preempt(pod, decision.outcome)
        return decision

    async def _decide(self, pod: PodInfo, framework: Framework) -> Decision:
        interested = [
            each
            for each in self.extenders
            if (each.spec.filter_verb or each.spec.prioritize_verb) and each.interested(pod)
        ]
        if not interested:
            return self.cycle.schedule(pod, framework)
        names: Sequence[str] = self.cycle.feasible_nodes(pod, framework)
        if not names:
            return self.cycle.reject(pod, framework)
        whole = await self.pod_source(pod)
        names, verdicts = await self._filter(interested, pod, whole, names)
        if not names:
            return self.cycle.reject(pod, framework, partial(_with_verdicts, verdicts, self.nodes))
        scores: Mapping[str, int] = {}
        if len(names) > 1:
            scores = await self._prioritize(interested, pod, whole, names)
        decision = self.cycle.choose(pod, framework, names, scores)
        if decision is None:
            raise ExtenderError("the nodes that extenders left no longer fit the pod")
        return decision

    async def _filter(
        self, interested: Sequence[ExtenderClient], pod: PodInfo, whole: msgspec.Raw, names: Sequence[str]
    ) -> tuple[Sequence[str], dict[str, Status]]:
        """The nodes all extenders leave, and their verdicts on others (upstream: findNodesThatPassExtenders)."""
        verdicts: dict[str, Status] = {}
        for extender in interested:
            if not extender.spec.filter_verb:
                continue
            nodes = self._objects(names)
            if not nodes:
                break
            try:
                answer = await extender.filter(whole, nodes)
            except ExtenderError as error:
                if not extender.spec.ignorable:
                    raise
                _log_ignored(extender, pod, error)
                continue
            verdicts.update(answer.verdicts)
            names = answer.names
        return names, verdicts

    async def _prioritize(
        self, interested: Sequence[ExtenderClient], pod: PodInfo, whole: msgspec.Raw, names: Sequence[str]
    ) -> dict[str, int]:
        """The sum of all extenders' scores by node; one that fails gives none (upstream: prioritizeNodes)."""
        nodes = self._objects(names)

        async def prioritize(extender: ExtenderClient) -> dict[str, int]:
            try:
                return await extender.prioritize(whole, nodes)
            except ExtenderError as error:
                logger.warning(
                    "extender gave no scores url=%r pod=%r error=%s", extender.spec.shown_url, pod.key, error
                )
                return {}

        given = await asyncio.gather(*(prioritize(each) for each in interested if each.spec.prioritize_verb))
        return {name: sum(scores.get(name, 0) for scores in given) for name in names}

    async def _preempt(self, pod: PodInfo, outcome: FitError) -> FitError:
        """The outcome with the best of the candidates that all interested extenders leave.

        Upstream: framework/preemption/preemption.go callExtenders.
        """
        interested = [each for each in self.extenders if each.spec.preempt_verb and each.interested(pod)]
        candidates = outcome.post_filter.candidates
        if not interested or not candidates:
            return outcome
        whole = await self.pod_source(pod)
        for extender in interested:
            try:
                proposed = await extender.preempt(whole, candidates)
                candidates = _valid(extender, proposed, self.nodes)
            except ExtenderError as error:
                if not extender.spec.ignorable:
                    return _without(outcome, str(error))
                _log_ignored(extender, pod, error)
                continue
            if not candidates:
                return _without(outcome, "no candidate node for preemption")
        best = choose(candidates)
        result = replace(
            outcome.post_filter,
            status=Status(Code.SUCCESS, (best.announcement,)),
            nominated_node_name=best.node_name,
            victims=best.victims,
            candidates=candidates,
        )
        return FitError(outcome.diagnosis, result)

    def _objects(self, names: Sequence[str]) -> list[Node]:
        rows = (self.nodes.row(name) for name in names)
        return [node for row in rows if row is not None and (node := self.nodes.nodes[row]) is not None]


def _with_verdicts(
    verdicts: Mapping[str, Status], nodes: NodeTable, diagnosis: Diagnosis, rejections: Rejections
) -> tuple[Diagnosis, Rejections]:
    """The filters' findings with those of extenders; a node that an extender left out silently adds no reason.

    Nodes that only extenders rejected count as unresolvable unless their verdict says otherwise, as in kube-scheduler.
    """
    reasons = dict(diagnosis.reasons)
    for status in verdicts.values():
        for reason in status.reasons:
            reasons[reason] = reasons.get(reason, 0) + 1
    codes = rejections.codes.copy()
    for position in (codes == Code.SUCCESS).nonzero()[0].tolist():
        verdict = verdicts.get(nodes.names[rejections.rows[position]])
        codes[position] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if verdict is None else verdict.code
    rejectors = diagnosis.rejector_plugins | {EXTENDER}
    return replace(diagnosis, reasons=reasons, rejector_plugins=rejectors), replace(rejections, codes=codes)


def _log_ignored(extender: ExtenderClient, pod: PodInfo, error: ExtenderError) -> None:
    logger.info("extender failed and is ignored url=%r pod=%r error=%s", extender.spec.shown_url, pod.key, error)


def _valid(
    extender: ExtenderClient, proposed: Mapping[str, ProposedVictims], nodes: NodeTable
) -> tuple[Candidate, ...]:
    """The proposals with their pods, which must be on the nodes that the extender names."""
    found = []
    for name, victims in proposed.items():
        row = nodes.row(name)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        there = nodes.pods[row]
        for uid in victims.uids:
            if uid not in there:
                raise ExtenderError(
                    f"extender: {extender.spec.shown_url} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        if victims.uids:
            found.append(Candidate(name, tuple(there[uid] for uid in victims.uids), victims.pdb_violations))
        elif not extender.spec.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return tuple(found)


def _without(outcome: FitError, reason: str) -> FitError:
    """The pod does not preempt; an earlier nomination stays."""
    status = Status(Code.UNSCHEDULABLE, (f"preemption: {reason}",))
    return FitError(outcome.diagnosis, PostFilterResult(status, post_filtered=outcome.post_filter.post_filtered))


def pod_from_api(client: ApiClient) -> PodSource:
    """A source that reads the pod from the API server each time."""

    async def read(pod: PodInfo) -> msgspec.Raw:
        try:
            response = await client.request("GET", pod_path(pod.namespace, pod.name))
        except (AmbiguousError, UnreachableError) as error:
            raise ExtenderError(f"reading the pod for extenders: {error}") from error
        found = read_pod(response.body) if response.status == 200 else None
        if found is None or found.metadata.uid != pod.uid:
            raise ExtenderError(f"reading the pod for extenders: status {response.status}, or another pod of its name")
        return msgspec.Raw(response.body)

    return read


@dataclass(eq=False, kw_only=True)
class ExtenderBinder(Binder):
    """A Binder that hands pods to the extender with a bindVerb if that is interested in them.

    An extender that fails may have bound the pod all the same: the pod is read before anything is undone
    (upstream gives the room away at once: schedule_one.go extendersBinding). `assumed` gives the pod of a UID.
    """

    extender: ExtenderClient
    assumed: Callable[[str], PodInfo | None]

    async def bind(self, binding: Binding, turn: Turn) -> BindResult:
        """As `Binder.bind`."""
        pod = self.assumed(binding.uid)
        if pod is None or not self.extender.interested(pod):
            return await super().bind(binding, turn)
        try:
            async with turn:
                turn.sent()
                await self.extender.bind(binding)
        except UnreachableError as error:
            raise BindError(str(error)) from error
        except ExtenderError as error:
            self.on_ambiguous()
            result = await self._settle(binding, _SETTLE_SECONDS)
            if result is not BindResult.REFUSED:
                return result
            if not self.extender.spec.ignorable:
                raise BindError(str(error)) from error
            logger.info("extender failed to bind and is ignored pod=%s/%s", binding.namespace, binding.name)
            return await super().bind(binding, turn)
        return BindResult.BOUND
