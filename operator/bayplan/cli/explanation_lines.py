"""The explanation of a pod of a running scheduler as lines of text, the verdict first."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from bayplan.cli.queue import waiting_pods
from bayplan.explain.explanation import Explanation, change_text, group_text, lines
from bayplan.framework.causes import Pinned, listed, shown
from bayplan.live.answers import (
    DecisionItem,
    ExplanationAnswer,
    GroupItem,
    PodAhead,
    PodName,
    QueueItem,
    SimulationAnswer,
)
from bayplan.shown_text import counted, shortened
from bayplan.simulate.report import AttemptReport

if TYPE_CHECKING:
    from bayplan.client.leader import Target

_MOST_EVENTS: Final = 6
_LONGEST_MESSAGE: Final = 400


def live_lines(answer: ExplanationAnswer) -> Iterator[str]:
    """Give the lines: what is and what would change it, the reasons, where the pod waits, and what was tried.

    Names in them are as they came: whoever prints a line makes it printable.
    """
    yield f"{answer.namespace}/{answer.name}: {_verdict(answer)}"
    is_gated, group = answer.queue is not None and answer.queue.queue == "gated", answer.group
    waits_with_others = group is not None and group.gated != PodName(answer.namespace, answer.name)
    when = "now" if answer.node is None else "would go now"
    if group is not None and waits_with_others and _waits_with(group):
        when = "by itself now"
    elif is_gated:
        when = "without its gate"
    yield from lines(f"  {when}", answer.explanation)
    if group is not None and group.first_without is not None and group.missing is not None:
        yield from lines(f"  first without room: {_named(group.first_without)}", group.missing)
    if group is not None and group.preemption:
        yield f"  {shortened(group.preemption, _LONGEST_MESSAGE)}"
    if answer.queue is not None:
        yield f"  waits: {_waits(answer.queue, 'with its pod group' if waits_with_others and is_gated else '')}"
    if answer.nomination is not None:
        nomination = answer.nomination
        yield f"  nominated: to {shown(nomination.node)} for {nomination.age_seconds:.0f} s"
    if answer.ahead:
        yield f"  ahead: {', '.join(f'{_ahead(each)} ({each.priority})' for each in answer.ahead)}"
    if answer.woken_by:
        yield f"  woken by: {_events(answer)}"
    for attempt in answer.attempts:
        yield f"  tried {attempt.time} ({attempt.milliseconds:.1f} ms): {shortened(attempt.message, _LONGEST_MESSAGE)}"


def asked_lines(answer: SimulationAnswer) -> Iterator[str]:
    """Give the lines about pods that are not there yet; those of one name but for its number, and of one fate, once."""
    for _, alike in groupby(
        answer.pods, lambda pod: (pod.namespace, pod.name.rstrip("0123456789"), pod.attempts[-1].message)
    ):
        first, *others = alike
        name = f"{first.namespace}/{first.name}"
        for told in dict.fromkeys(tuple(_attempt_lines(name, each)) for each in first.attempts):
            yield from told
        if others:
            nodes = listed({pod.attempts[-1].node or "no node" for pod in others})
            yield f"  {len(others):,} more like it, on {nodes}"


def _attempt_lines(name: str, attempt: AttemptReport) -> Iterator[str]:
    if attempt.explanation is not UNSET:
        yield from lines(name, attempt.explanation)
    else:
        yield f"{name}: {attempt.message}"
    if attempt.victims:
        yield f"  nominated to {shown(attempt.nominated_node_name or '')}, evicting {listed(attempt.victims)}"


def _verdict(answer: ExplanationAnswer) -> str:
    """Say in a line what is, and the one thing that would change it."""
    queue = answer.queue
    if answer.node is not None:
        how = "bound to" if answer.state == "bound" else "being bound to"
        return f"{how} {shown(answer.node)}, {_decided(answer)}"
    if answer.nomination is not None:
        return f"waits for room on {shown(answer.nomination.node)}, which is kept for it{_evicted(answer.decision)}"
    if queue is None:
        return "is being tried at the moment"
    return _why_it_waits(answer, queue)


def _why_it_waits(answer: ExplanationAnswer, queue: QueueItem) -> str:
    explanation = answer.explanation
    if answer.group is not None and (waits := _waits_with(answer.group)):
        return waits
    if queue.queue == "gated":
        then = "fits nowhere" if explanation.chosen is None else f"goes to {shown(explanation.chosen.node)}"
        then = f"says {shortened(explanation.failed, _LONGEST_MESSAGE)}" if explanation.failed else then
        return f"gated, {queue.message}; without that it {then}"
    if explanation.chosen is not None:
        return _tried_again(answer, shown(explanation.chosen.node))
    if explanation.failed:
        return f"waits, {shortened(explanation.failed, _LONGEST_MESSAGE)}"
    return f"waits, no node fits{_what_would_help(explanation)}"


def _waits_with(group: GroupItem) -> str:
    """Say what keeps the pod's group from being placed, and what would change that; "" if nothing does."""
    name, least = shown(f"{group.namespace}/{group.name}"), group.least
    there = group.on_nodes + group.waiting
    if least is None:
        return f"waits for pod group {name}: there is no such PodGroup of {group.kind}"
    if group.gated is not None:
        holds = f"which the scheduling gates of pod {_named(group.gated)} hold back"
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
        counts = f"of which {group.fit:,} pods fit and {least:,} must"
    told = f"waits with pod group {name}, {counts}"
    if group.evicts:
        told = f"{told}; it would evict {listed([f'{each.namespace}/{each.name}' for each in group.evicts])}"
    if group.first_without is None or group.missing is None:
        return f"{told}: {shortened(group.message, _LONGEST_MESSAGE)}"
    return f"{told}; {_named(group.first_without)} does not{_what_would_help(group.missing)}"


def _named(pod: PodName) -> str:
    return shown(f"{pod.namespace}/{pod.name}")


def _ahead(pod: PodAhead) -> str:
    return _named(pod) if pod.group is None else f"pod group {shown(f'{pod.namespace}/{pod.group}')}"


def _tried_again(answer: ExplanationAnswer, node: str) -> str:
    """Say of a pod that fits on `node` what keeps it from being there."""
    last = answer.attempts[-1].message if answer.attempts else ""
    if failed := re.match(r'running (?:Pre)?Bind plugin "[^"]*": (.*)', last):
        ended = "was refused" if "status 4" in last else "failed"
        return f"waits to be tried again, its bind {ended}: {shortened(failed[1], _LONGEST_MESSAGE)}"
    behind = f"; {_ahead(answer.ahead[0])} is ahead" if answer.ahead else ""
    return f"waits to be tried, fits on {node} now{behind}"


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
    if len(groups) == 1:
        return f": {group_text(groups[0])}"
    return "; no single change would help" if explanation.nodes else ": there are no nodes"


def _waits(item: QueueItem, where: str) -> str:
    place = f", number {item.position}" if item.position is not None else ""
    again = f", tried again at {item.next_retry} at the latest" if item.next_retry is not None else ""
    attempts = "1 attempt" if item.attempts == 1 else f"{item.attempts} attempts"
    return f"{where or item.queue}{place}, priority {item.priority}, {attempts}, since {item.waiting_since}{again}"


def _events(answer: ExplanationAnswer) -> str:
    names = list(dict.fromkeys(each.event for each in answer.woken_by))
    more = f" and {len(names) - _MOST_EVENTS} more" if len(names) > _MOST_EVENTS else ""
    plugins = ", ".join(dict.fromkeys(each.plugin for each in answer.woken_by))
    return f"{', '.join(map(shown, names[:_MOST_EVENTS]))}{more} (for {plugins})"


class PendingReason(msgspec.Struct, frozen=True):
    """Pods that stand in a queue for the same reason, but for its numbers and their names; the first is the example."""

    pods: int
    queue: str
    reason: str
    example: str


async def pending_reasons(target: "Target", namespace: str | None) -> list[PendingReason]:
    """Return why pods wait, or those of a namespace, the most frequent reason first.

    Raises:
        ClientError: the scheduler does not answer.
    """
    groups: dict[tuple[str, str], PendingReason] = {}
    for item in (await waiting_pods(target, namespace)).items:
        reason = item.message or "not tried yet"
        # Of a claim, a message says the name, which may begin with the pod's.
        alike = re.sub(rf'(?<=["/]){re.escape(item.name)}(?![a-z0-9.])', "", reason)
        key = item.queue, re.sub(r"[0-9]+", "0", alike)
        known = groups.get(key) or PendingReason(0, item.queue, reason, f"{item.namespace}/{item.name}")
        groups[key] = msgspec.structs.replace(known, pods=known.pods + 1)
    return sorted(groups.values(), key=lambda each: -each.pods)


def pending_lines(reasons: Sequence[PendingReason], namespace: str | None = None) -> Iterator[str]:
    """Give a line for all pods that wait, or those of a namespace, and one for each reason."""
    pods = sum(each.pods for each in reasons)
    none = "no pod waits" if namespace is None else f"no pod waits in namespace {shown(namespace)}"
    yield counted(pods, "pod waits", "pods wait") if pods else none
    width = len(f"{pods:,}")
    for each in reasons:
        reason = shortened(each.reason, _LONGEST_MESSAGE)
        yield f"  {each.pods:>{width},} {each.queue}: {reason} (such as {shown(each.example)})"
