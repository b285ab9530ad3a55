"""What a plan can be asked for: a node that is free, a pod that fits, fewer nodes in use; and how it is told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from bayplan.cache.packing import Packing
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.plan.rehearsal import Move, Obstacle, Rehearsal, Told
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.shown_text import counted, natural_key
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.tables import Column, Printer

MOST_TRIED: Final = 50
"""So many nodes are tried for a pod, and so many choices of nodes to empty; each takes as long as its moves."""
MOST_EXAMINED: Final = 1_000
"""So many nodes are asked whether a pod would fit without others."""


class Plan(Told):
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


def free(rehearsal: Rehearsal, nodes: Sequence[str]) -> Plan:
    """Return the moves that have the nodes free of all pods but those that stay on them; what cannot move is named."""
    before = rehearsal.nodes_in_use
    moves: list[Move] = []
    obstacles: list[Obstacle] = []
    for node in nodes:
        rehearsal.cordon(node)
    for node in nodes:
        for pod in rehearsal.pods_on(node):
            told = rehearsal.obstacle(pod, node) or rehearsal.move(pod, node)
            (moves if isinstance(told, Move) else obstacles).append(told)  # type: ignore[arg-type]
    goal = f"free {', '.join(nodes)}"
    return Plan(goal, not obstacles, before, rehearsal.nodes_in_use, [*nodes], moves, obstacles=obstacles)


def fewer(rehearsal: Rehearsal, wanted: int) -> Plan:
    """Return the moves that bring the nodes in use down to `wanted`, or as near to it as is found.

    The nodes with least to move are emptied, each whole or not at all, and no pod moves twice. Where a pod of one finds
    no other node, or would begin an empty one, the next takes its place.
    """
    before = rehearsal.nodes_in_use
    names, in_use = rehearsal.nodes.names, rehearsal.nodes.in_use()
    pods = {names[row]: rehearsal.pods_on(names[row]) for row in np.flatnonzero(in_use).tolist()}
    unused = {names[row] for row in rehearsal.nodes.rows().tolist() if not in_use[row]}
    found = {name: [rehearsal.obstacle(each, name) for each in some] for name, some in pods.items()}
    obstacles = [each for some in found.values() for each in some if each is not None]
    spare = [name for name, some in found.items() if some and not any(some)]
    spare.sort(key=lambda name: (rehearsal.size(pods[name]), natural_key(name)))
    surplus = max(before - wanted, 0)
    closed, spare = spare[:surplus], spare[surplus:]
    tries = 0
    while isinstance(told := _emptied(rehearsal, {name: pods[name] for name in closed}, unused), Obstacle):
        rehearsal.take_back()
        obstacles.append(told)
        closed.remove(told.node)
        closed, spare = [*closed, *spare[:1]], spare[1:]
        tries += 1
        if tries >= MOST_TRIED:
            closed = closed[: len(closed) // 2]
    after = rehearsal.nodes_in_use
    reached = after <= wanted
    goal = f"{counted(wanted, 'node')} in use"
    return Plan(goal, reached, before, after, closed, told, obstacles=[] if reached else obstacles)


def _emptied(rehearsal: Rehearsal, pods: Mapping[str, Sequence[PodInfo]], unused: set[str]) -> list[Move] | Obstacle:
    """Close the nodes and move the pods of each, or say which of them cannot go, and why.

    None may begin a node that is `unused`.
    """
    moves: list[Move] = []
    for node in pods:
        rehearsal.cordon(node)
    for node, going in pods.items():
        for pod in going:
            told = rehearsal.move(pod, node)
            if isinstance(told, Move) and told.to in unused:
                told = Obstacle(node, pod.namespace, pod.name, pod.uid, f"would begin {told.to}, which is not in use")
            if isinstance(told, Obstacle):
                return told
            moves.append(told)
    return moves


def fit(rehearsal: Rehearsal, pod: PodInfo) -> Plan:
    """Return the moves after which a pod that waits fits: none where it does already.

    Of the nodes that lack least for it, that one is chosen from which the fewest pods have to go, then where the most
    important of them matters least. The most important pods of a node stay if they can. The node is closed until all
    have found another, so that none comes back.
    """
    in_use, goal = rehearsal.nodes_in_use, f"fit {pod.key}"
    if (node := rehearsal.simulator.cache.node_of(pod.uid)) is not None:
        return Plan(goal, True, in_use, in_use, fits_on=node)
    if why := _held(rehearsal.simulator, pod):
        return Plan(goal, False, in_use, in_use, obstacles=[Obstacle("", pod.namespace, pod.name, pod.uid, why)])
    best: tuple[tuple[int, int, int], Plan] | None = None
    obstacles: list[Obstacle] = []
    tried = 0
    for node in _nearest(rehearsal, pod):
        going = rehearsal.must_leave(pod, node)
        if going is None:
            continue
        priorities = [each.priority for each in going]
        importance = len(going), max(priorities, default=0), sum(priorities)
        if best is None or importance < best[0]:
            told = _room_made(rehearsal, pod, node, going)
            rehearsal.take_back()
            if isinstance(told, Plan):
                best = importance, told
            else:
                obstacles.append(told)
            tried += 1
            if tried == MOST_TRIED:
                break
    if best is not None:
        return best[1]
    reason = "no node would take it without the pods that can move: too little room, or a rule of the pod"
    nowhere = Obstacle("", pod.namespace, pod.name, pod.uid, reason)
    return Plan(goal, False, in_use, in_use, obstacles=obstacles or [nowhere])


def _room_made(rehearsal: Rehearsal, pod: PodInfo, node: str, going: Sequence[PodInfo]) -> Plan | Obstacle:
    """Have the pods leave the node, and then the one that waits be tried."""
    before = rehearsal.nodes_in_use
    moves = _emptied(rehearsal, {node: sorted(going, key=lambda each: -rehearsal.size([each]))}, set())
    if isinstance(moves, Obstacle):
        return moves
    rehearsal.uncordon(node)
    found = rehearsal.simulator.cache.node_of(pod.uid)
    if found is None:
        reason = rehearsal.why_group_waits(pod) or "other pods that wait take the room"
        return Obstacle(node, pod.namespace, pod.name, pod.uid, reason)
    return Plan(f"fit {pod.key}", True, before, rehearsal.nodes_in_use, [node], moves, [node], found)


def _held(simulator: Simulator, pod: PodInfo) -> str:
    """What keeps the pod from being tried, wherever there is room; "" for nothing."""
    if pod.pod.spec.scheduling_gates:
        return "has gates"
    queued = simulator.queue.get(pod.uid)
    return (queued.gating_message or "") if queued is not None else ""


def _nearest(rehearsal: Rehearsal, pod: PodInfo) -> list[str]:
    """The nodes that have enough without their pods that could run elsewhere, those first that lack least."""
    nodes = rehearsal.nodes
    rows = nodes.rows()
    lacking, enough = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=np.bool_)
    by_devices = ExtendedResources(rehearsal.simulator.cache.listers).classes
    for name, amount in {PODS: 1, **pod.requests.amounts}.items():
        offered = nodes.offered(name)[rows]
        # Where no device plugin offers what a class provides, the node may have devices in its place.
        counts = (offered > 0) | (name not in by_devices)
        free = offered - nodes.taken(name)[rows]
        enough &= ~counts | (free + Packing(nodes, []).movable(name)[rows] >= amount)
        # In thousandths of what it asks for.
        lacking = np.maximum(lacking, np.where(counts, (amount - free) // max(amount // 1000, 1), 0))
    order = np.lexsort((nodes.pod_count[rows], lacking))
    return [nodes.names[row] for row in rows[order[enough[order]]].tolist()][:MOST_EXAMINED]


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
