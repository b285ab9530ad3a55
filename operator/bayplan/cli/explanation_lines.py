"""The explanation of a pod of a running scheduler as lines of text, the verdict first."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from bayplan.cli.queue import waiting_pods
from bayplan.explain.explanation import lines
from bayplan.framework.causes import listed, shown
from bayplan.live.answers import ExplanationAnswer, PodName, QueueItem, SimulationAnswer
from bayplan.live.verdict import LONGEST_MESSAGE, ahead_text, named, verdict, waits_with
from bayplan.shown_text import counted, shortened
from bayplan.simulate.report import AttemptReport

if TYPE_CHECKING:
    from bayplan.client.leader import Target

_MOST_EVENTS: Final = 6


def live_lines(answer: ExplanationAnswer) -> Iterator[str]:
    """Give the lines: what is and what would change it, the reasons, where the pod waits, and what was tried.

    Names in them are as they came: whoever prints a line makes it printable.
    """
    yield f"{answer.namespace}/{answer.name}: {verdict(answer)}"
    is_gated, group = answer.queue is not None and answer.queue.queue == "gated", answer.group
    waits_with_others = group is not None and group.gated != PodName(answer.namespace, answer.name)
    when = "now" if answer.node is None else "would go now"
    if group is not None and waits_with_others and waits_with(group):
        when = "by itself now"
    elif is_gated:
        when = "without its gate"
    yield from lines(f"  {when}", answer.explanation)
    if group is not None and group.first_without is not None and group.missing is not None:
        yield from lines(f"  first without room: {named(group.first_without)}", group.missing)
    if group is not None and group.preemption:
        yield f"  {shortened(group.preemption, LONGEST_MESSAGE)}"
    if answer.queue is not None:
        yield f"  waits: {_waits(answer.queue, 'with its pod group' if waits_with_others and is_gated else '')}"
    if answer.nomination is not None:
        nomination = answer.nomination
        yield f"  nominated: to {shown(nomination.node)} for {nomination.age_seconds:.0f} s"
    if answer.ahead:
        yield f"  ahead: {', '.join(f'{ahead_text(each)} ({each.priority})' for each in answer.ahead)}"
    if answer.woken_by:
        yield f"  woken by: {_events(answer)}"
    for attempt in answer.attempts:
        yield f"  tried {attempt.time} ({attempt.milliseconds:.1f} ms): {shortened(attempt.message, LONGEST_MESSAGE)}"


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
        reason = shortened(each.reason, LONGEST_MESSAGE)
        yield f"  {each.pods:>{width},} {each.queue}: {reason} (such as {shown(each.example)})"
