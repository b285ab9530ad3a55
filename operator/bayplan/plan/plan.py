"""What a plan says: which nodes to close, which pods to evict in which order, and what is in the way."""

from collections.abc import Iterator, Sequence

import msgspec

from bayplan.shown_text import counted
from bayplan.simulate.tables import Column, Printer


class _Told(msgspec.Struct, rename="camel", gc=False):
    """camelCase on the wire."""


class Move(_Told):
    """An eviction, and where the pod lands that its controller makes in its place."""

    namespace: str
    name: str
    uid: str
    source: str = msgspec.field(name="from")
    to: str
    waits_for: str | None = None
    """The budget, as namespace/name, that allows this eviction once those before it run elsewhere."""


class Obstacle(_Told):
    """Why a pod keeps its node, or gets none."""

    node: str
    """Where it is, or would be; empty where that is nowhere."""
    namespace: str
    name: str
    uid: str
    reason: str


class Plan(_Told):
    """Moves that bring a goal about, in the order in which they are to be made; nothing of it is done.

    Whoever carries it out closes the nodes of `cordon`, evicts one pod after the other, each once the one before runs
    elsewhere, and opens those of `uncordon` again.
    """

    goal: str
    reached: bool
    nodes_in_use_before: int
    nodes_in_use: int
    """Once all moves are made."""
    cordon: list[str] = msgspec.field(default_factory=list)
    moves: list[Move] = msgspec.field(default_factory=list)
    uncordon: list[str] = msgspec.field(default_factory=list)
    fits_on: str | None = None
    """With `--fit`: the node that the pod gets."""
    obstacles: list[Obstacle] = msgspec.field(default_factory=list)


_SHOWN = 20
_COLUMNS = (Column("POD"), Column("FROM"), Column("TO"), Column("NOTE"))


def print_plan(printer: Printer, plan: Plan) -> None:
    """Print the steps in their order, what they bring about, and what is in the way."""
    if plan.cordon:
        printer.line(f"Cordon: {', '.join(plan.cordon)}")
    if plan.moves:
        printer.line("Evict in this order, each once the one before runs elsewhere:")
        printer.listing(_COLUMNS, map(_row, plan.moves))
    if plan.uncordon:
        printer.line(f"Uncordon: {', '.join(plan.uncordon)}")
    for line in _obstacle_lines(plan.obstacles):
        printer.line(line)
    outcome = "reached" if plan.reached else "not reached"
    if plan.fits_on is not None:
        outcome += f", on {plan.fits_on}"
    use = f"{counted(plan.nodes_in_use_before, 'node')} in use, {plan.nodes_in_use} afterwards"
    printer.line(f"Goal: {plan.goal}: {outcome} by {counted(len(plan.moves), 'move')}; {use}")


def _row(move: Move) -> tuple[str, str, str, str]:
    note = "" if move.waits_for is None else f"once PodDisruptionBudget {move.waits_for} allows it"
    return f"{move.namespace}/{move.name}", move.source, move.to, note


def _obstacle_lines(obstacles: Sequence[Obstacle]) -> Iterator[str]:
    for each in obstacles[:_SHOWN]:
        node = f"{each.node}: " if each.node else ""
        yield f"In the way: {node}{each.namespace}/{each.name}: {each.reason}"
    if len(obstacles) > _SHOWN:
        yield f"In the way: {counted(len(obstacles) - _SHOWN, 'more', 'more')}, which -o json has"
