"""Why pods wait, those with the same reason together."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bayplan.cli.queue import waiting_pods
from bayplan.framework.causes import shown
from bayplan.logs.printable_text import shortened

if TYPE_CHECKING:
    from bayplan.client.target import Target

_LONGEST_REASON: Final = 400


class PendingReason(msgspec.Struct, frozen=True):
    """Pods that stand in the same queue for the same reason, however its numbers differ; the first is the example."""

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
        key = item.queue, re.sub(r"[0-9]+", "0", reason)
        known = groups.get(key) or PendingReason(0, item.queue, reason, f"{item.namespace}/{item.name}")
        groups[key] = msgspec.structs.replace(known, pods=known.pods + 1)
    return sorted(groups.values(), key=lambda each: -each.pods)


def pending_lines(reasons: Sequence[PendingReason]) -> Iterator[str]:
    """Give a line for all pods that wait, and one for each reason."""
    pods = sum(each.pods for each in reasons)
    yield "no pod waits" if not pods else "1 pod waits" if pods == 1 else f"{pods:,} pods wait"
    width = len(f"{pods:,}")
    for each in reasons:
        reason = shortened(each.reason, _LONGEST_REASON)
        yield f"  {each.pods:>{width},} {each.queue}: {reason} (such as {shown(each.example)})"
