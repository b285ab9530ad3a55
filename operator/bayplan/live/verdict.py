"""What is with a pod, and the one thing that would change it, in a line of text.

Names in it are as they came: whoever prints the line makes it printable.
"""

import re
from typing import Final

from bayplan.explain.explanation import Explanation, change_text, group_text
from bayplan.framework.causes import Pinned, listed, shown
from bayplan.live.answers import DecisionItem, ExplanationAnswer, GroupItem, PodAhead, PodName, QueueItem
from bayplan.shown_text import counted, shortened

LONGEST_MESSAGE: Final = 400
"""So much of a message is told in a line."""


def verdict(answer: ExplanationAnswer) -> str:
    """Return what is with the pod and the one thing that would change it; people read it before all else."""
    queue = answer.queue
    if answer.node is not None:
        if answer.state != "bound" and (failed := _failed_bind(answer)):
            return f"being bound to {shown(answer.node)}; its last bind {failed}"
        how = "bound to" if answer.state == "bound" else "being bound to"
        return f"{how} {shown(answer.node)}, {_decided(answer)}"
    if answer.nomination is not None:
        return f"waits for room on {shown(answer.nomination.node)}, which is kept for it{_evicted(answer.decision)}"
    if queue is None:
        return "is being tried at the moment"
    return _why_it_waits(answer, queue)


def _why_it_waits(answer: ExplanationAnswer, queue: QueueItem) -> str:
    explanation = answer.explanation
    if answer.group is not None and (waits := waits_with(answer.group)):
        return waits
    if queue.queue == "gated":
        then = "fits nowhere" if explanation.chosen is None else f"goes to {shown(explanation.chosen.node)}"
        then = f"says {shortened(explanation.failed, LONGEST_MESSAGE)}" if explanation.failed else then
        return f"gated, {queue.message}; without that it {then}"
    if explanation.chosen is not None:
        return _tried_again(answer, shown(explanation.chosen.node))
    if explanation.failed:
        return f"waits, {shortened(explanation.failed, LONGEST_MESSAGE)}"
    return f"waits, no node fits{_what_would_help(explanation)}"


def waits_with(group: GroupItem) -> str:
    """Return what keeps a pod's group from being placed, and what would change that; "" if nothing does."""
    name, least = shown(f"{group.namespace}/{group.name}"), group.least
    there = group.on_nodes + group.waiting
    if least is None:
        return f"waits for pod group {name}: there is no such PodGroup of {group.kind}"
    if group.gated is not None:
        holds = f"which the scheduling gates of pod {named(group.gated)} hold back"
        return f"waits with pod group {name}, {holds}: {', '.join(map(shown, group.gates))}"
    if there < least:
        missing = f"{least - there:,} more must come, or name this scheduler"
        return f"waits with pod group {name}, which has {there:,} of {least:,} pods: {missing}"
    if group.fit is not None and group.fit >= least:
        return ""
    if group.fit is None:
        counts = "which is not tried"
    elif run := group.on_nodes:
        counts = f"of which {run:,} run, {group.fit - run:,} more fit and {least:,} must"
    else:
        counts = f"of which {counted(group.fit, 'pod fits', 'pods fit')} and {least:,} must"
    told = f"waits with pod group {name}, {counts}"
    if group.evicts:
        told = f"{told}; it would evict {listed([f'{each.namespace}/{each.name}' for each in group.evicts])}"
    if group.first_without is None or group.missing is None:
        return f"{told}: {shortened(group.message, LONGEST_MESSAGE)}"
    return f"{told}; {named(group.first_without)} does not{_what_would_help(group.missing)}"


def named(pod: PodName) -> str:
    """Return the pod as namespace/name."""
    return shown(f"{pod.namespace}/{pod.name}")


def ahead_text(pod: PodAhead) -> str:
    """Return who is tried before: a pod, or its pod group."""
    return named(pod) if pod.group is None else f"pod group {shown(f'{pod.namespace}/{pod.group}')}"


def _tried_again(answer: ExplanationAnswer, node: str) -> str:
    """Say of a pod that fits on `node` what keeps it from being there."""
    if failed := _failed_bind(answer):
        return f"waits to be tried again, its bind {failed}"
    behind = f"; {ahead_text(answer.ahead[0])} is ahead" if answer.ahead else ""
    return f"waits to be tried, fits on {node} now{behind}"


def _failed_bind(answer: ExplanationAnswer) -> str:
    """Say how the last attempt ended, if it was the bind that failed."""
    last = answer.attempts[-1].message if answer.attempts else ""
    failed = re.match(r'running (?:Pre)?Bind plugin "[^"]*": (.*)', last)
    ended = "was refused" if "status 4" in last else "failed"
    return f"{ended}: {shortened(failed[1], LONGEST_MESSAGE)}" if failed else ""


def _decided(answer: ExplanationAnswer) -> str:
    """Say what was decided when the pod got its node, or when that was if the decision is forgotten."""
    decision = answer.decision
    if decision is None or decision.node != answer.node:
        when = "" if answer.scheduled_at is None else f" at {answer.scheduled_at}"
        return f"scheduled{when}; how it was decided is not remembered"
    score = "" if decision.score is None else f" with {decision.score}"
    lead = "" if decision.runner_up is None else f", {shown(decision.runner_up.node)} had {decision.runner_up.score}"
    return f"decided at {decision.time}{score}{lead}; {decision.feasible:,} of {decision.evaluated:,} nodes fitted"


def _evicted(decision: DecisionItem | None) -> str:
    victims = [] if decision is None else decision.preempted
    return f": it evicts {', '.join(shown(f'{each.namespace}/{each.name}') for each in victims)}" if victims else ""


def _what_would_help(explanation: Explanation) -> str:
    groups = explanation.groups
    pin = next((cause for group in groups for cause in group.causes if isinstance(cause, Pinned)), None)
    if pin is not None:
        others = [group for group in groups if pin not in group.causes]
        why = f"does not take it: {group_text(others[0])}" if others else "is not there"
        return f"; {pin}, which {why}"
    if explanation.changes:
        return f"; would help: {change_text(explanation.changes[0])}"
    if not groups:
        return ": there are no nodes"
    most = groups[0]
    if len(groups) == 1:
        return f": {group_text(most)}"
    return f"; no single change would help; {most.count:,} of {explanation.nodes:,} nodes: {group_text(most)}"
