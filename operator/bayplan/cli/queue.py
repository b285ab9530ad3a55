"""`bayplan queue`: the pods that wait for a running scheduler."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click
import msgspec

from bayplan.cli.flags import command
from bayplan.cli.process import answer_or_end
from bayplan.client.leader import Target
from bayplan.config.flags import flag

if TYPE_CHECKING:
    from bayplan.live.answers import QueueAnswer, QueueItem

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"))
_COLUMNS: Final = ("NAMESPACE", "NAME", "QUEUE", "PRIORITY", "ATTEMPTS", "AGE", "NEXT TRY")
_WIDE: Final = (*_COLUMNS, "POD GROUP", "NOMINATED NODE", "REJECTED BY", "MESSAGE")


@dataclass(frozen=True, kw_only=True)
class _Flags:
    namespace: str | None = flag("--namespace -n NAME", "Only the pods of this namespace.")
    output: str = flag("--output -o table|wide|json", "For people, with all columns, or for programs.", default="table")


@command(examples=("bayplan queue", "bayplan queue -n shop -o wide", "bayplan queue -o json"))
def queue(flags: _Flags, target: Target) -> None:
    """List the pods that wait, those that are tried next first.

    A pod is active, which is to be tried in its turn; it backs off after an attempt; it is unschedulable, until
    something happens that may help it; or it is gated. Its age is how long it has waited for a node.
    """
    from bayplan.simulate.tables import Column, Printer  # noqa: PLC0415

    waiting = answer_or_end(waiting_pods(target, flags.namespace))
    if flags.output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(waiting), indent=2))
        return
    titles = _WIDE if flags.output == "wide" else _COLUMNS
    rows = [_row(each, waiting.time)[: len(titles)] for each in waiting.items]
    Printer(sys.stdout).listing([Column(title, number=title in {"PRIORITY", "ATTEMPTS"}) for title in titles], rows)


async def waiting_pods(target: Target, namespace: str | None) -> "QueueAnswer":
    """Return all pods that wait, or those of a namespace, of as many pages as there are.

    Raises:
        ClientError: the scheduler does not answer.
    """
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.live.answers import QueueAnswer  # noqa: PLC0415

    # A pod that moves meanwhile may come twice.
    found: dict[tuple[str, str], QueueItem] = {}
    start: int | None = 0
    async with connect(target) as client:
        while start is not None:
            page = msgspec.json.decode(await client.queue_page(start, 1000), type=QueueAnswer)
            start = msgspec.convert(page.continue_, int | None, strict=False)
            found |= {(each.namespace, each.name): each for each in page.items if namespace in {None, each.namespace}}
    return QueueAnswer(page.time, len(found), list(found.values()), None)


def _row(item: "QueueItem", now: str) -> list[str]:
    place = "" if item.position is None else f" {item.position}"
    again = "-" if item.next_retry is None else f"in {_duration(now, item.next_retry)}"
    age = _duration(item.waiting_since, now)
    cells = [item.namespace, item.name, item.queue + place, str(item.priority), str(item.attempts), age, again]
    return [*cells, item.group or "-", item.nominated_node or "-", ",".join(item.rejected_by) or "-", item.message]


def _duration(start: str, end: str) -> str:
    """Write the time between two RFC 3339 times in the largest whole unit, as kubectl does; what is not one is `?`."""
    from bayplan.api.meta_objects import parse_time  # noqa: PLC0415

    try:
        seconds = max(int(parse_time(end) - parse_time(start)), 0)
    except ValueError:
        return "?"
    return next((f"{seconds // size}{unit}" for size, unit in _UNITS if seconds >= size), f"{seconds}s")
