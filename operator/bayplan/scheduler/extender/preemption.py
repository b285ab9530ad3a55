"""Calls extenders in preemption: one after the other narrows the candidates, and may choose other victims."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import msgspec

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate, choose
from bayplan.scheduler.cycle import FitError
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.wire import ExtenderError, ProposedVictims

logger = logging.getLogger(__name__)

PodSource = Callable[[PodInfo], Awaitable[msgspec.Raw]]
"""Returns the whole pod as JSON, with what bayplan itself does not keep: extenders read annotations."""


async def extenders_choice(
    outcome: FitError, pod: PodInfo, extenders: Sequence[ExtenderClient], nodes: NodeTable, pod_source: PodSource
) -> FitError:
    """The outcome with the best of the candidates that all interested extenders leave.

    The extended cycle relies on it. Upstream: framework/preemption/preemption.go callExtenders.

    Raises:
        ExtenderError: the pod cannot be read.
    """
    interested = [each for each in extenders if each.spec.preempt_verb and each.interested(pod)]
    candidates = outcome.candidates
    if not interested or not candidates:
        return outcome
    whole = await pod_source(pod)
    for extender in interested:
        try:
            proposed = await extender.preempt(whole, candidates)
            candidates = _valid(extender, proposed, nodes)
        except ExtenderError as error:
            if not extender.spec.ignorable:
                return _without(outcome, str(error))
            logger.info(
                "extender failed and is ignored url=%r pod=%r error=%s", extender.spec.url_prefix, pod.key, error
            )
            continue
        if not candidates:
            return _without(outcome, "no candidate node for preemption")
    best = choose(candidates)
    return replace(outcome, nominated_node_name=best.node_name, victims=best.victims, candidates=candidates)


def _valid(
    extender: ExtenderClient, proposed: Mapping[str, ProposedVictims], nodes: NodeTable
) -> tuple[Candidate, ...]:
    """The proposals with their pods, which must be on the nodes that the extender names."""
    found = []
    for name, victims in proposed.items():
        row = nodes.row(name)
        if row is None or not nodes.exists[row]:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"')
        there = nodes.pods[row]
        for uid in victims.uids:
            if uid not in there:
                raise ExtenderError(
                    f"extender: {extender.spec.url_prefix} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        if victims.uids:
            found.append(Candidate(name, tuple(there[uid] for uid in victims.uids), victims.pdb_violations))
        elif not extender.spec.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return tuple(found)


def _without(outcome: FitError, reason: str) -> FitError:
    """The pod does not preempt; an earlier nomination stays."""
    diagnosis = replace(outcome.diagnosis, post_filter_message=f"preemption: {reason}")
    return FitError(diagnosis, trace=outcome.trace)
