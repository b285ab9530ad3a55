"""The explanation of a pod of a running scheduler as lines of text."""

from collections.abc import Iterator
from typing import Final

from bayplan.explain.text import lines
from bayplan.framework.causes import shown
from bayplan.live.answers import ExplanationAnswer, QueueItem
from bayplan.logs.printable_text import printable

_MOST_EVENTS: Final = 6
_LONGEST_MESSAGE: Final = 400


def live_lines(answer: ExplanationAnswer) -> Iterator[str]:
    """Give the lines: the outcome with its reasons, then where the pod is or waits, and what was tried.

    Each is printable, whatever the answer holds: it may be from somebody who means no good.
    """
    return map(printable, _lines(answer))


def _lines(answer: ExplanationAnswer) -> Iterator[str]:
    yield from lines(f"{answer.namespace}/{answer.name}", answer.explanation)
    if answer.node is not None:
        how = "is bound to" if answer.state == "bound" else "is being bound to"
        yield f"  {how} {shown(answer.node)}; the above is where it would go now"
    elif answer.queue is not None:
        yield f"  waits: {_waits(answer.queue)}"
    else:
        yield "  waits: not in the queue; it is being tried at the moment"
    if answer.queue is not None and answer.queue.queue == "gated":
        yield f"  gated: {printable(answer.queue.message)}"
    if answer.nomination is not None:
        nomination = answer.nomination
        yield f"  nominated: to {shown(nomination.node)} for {nomination.age_seconds:.0f} s"
    if answer.ahead:
        ahead = ", ".join(f"{shown(f'{each.namespace}/{each.name}')} ({each.priority})" for each in answer.ahead)
        yield f"  ahead: {ahead}"
    if answer.woken_by:
        yield f"  woken by: {_events(answer)}"
    for attempt in answer.attempts:
        message = printable(attempt.message)
        cut = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."
        yield f"  tried {attempt.time} ({attempt.milliseconds:.1f} ms): {cut}"


def _waits(item: QueueItem) -> str:
    place = f", number {item.position}" if item.position is not None else ""
    again = f", tried again at {item.next_retry} at the latest" if item.next_retry is not None else ""
    attempts = "1 attempt" if item.attempts == 1 else f"{item.attempts} attempts"
    return f"{item.queue}{place}, priority {item.priority}, {attempts}, since {item.waiting_since}{again}"


def _events(answer: ExplanationAnswer) -> str:
    names = list(dict.fromkeys(each.event for each in answer.woken_by))
    more = f" and {len(names) - _MOST_EVENTS} more" if len(names) > _MOST_EVENTS else ""
    plugins = ", ".join(dict.fromkeys(each.plugin for each in answer.woken_by))
    return f"{', '.join(map(shown, names[:_MOST_EVENTS]))}{more} (for {plugins})"
