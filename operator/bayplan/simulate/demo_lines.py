"""What the engine decided in `bayplan demo`, a line each: where a pod went and why, and whom it evicted."""

from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.explain.text import outcome_text
from bayplan.framework.causes import shown
from bayplan.scheduler.cycle import FitError, Placement
from bayplan.simulate.decision import Decision
from bayplan.simulate.report import preemption

_MOST_VICTIMS: Final = 4


def decision_line(decision: Decision) -> str:
    """Say what came of an attempt that was explained: node, score and runner-up, or victims, or why no node fits."""
    name = shown(decision.pod.name)
    outcome = decision.outcome
    if isinstance(outcome, Placement) and outcome.explanation is not None:
        return f"{name}: {outcome_text(outcome.explanation)}"
    if isinstance(outcome, FitError) and outcome.victims:
        return f"{name} {eviction_text(decision.pod, outcome)}"
    return f"{name} waits: {decision.message}"


def departure_line(pod: PodInfo, node: str | None) -> str:
    """Say which node the pod leaves, or that it leaves without having one."""
    return f"{shown(pod.name)} departs" + (f" from {shown(node)}" if node else ", no node was found")


def eviction_text(preemptor: PodInfo, outcome: FitError) -> str:
    """Say who is evicted from which node for the preemptor, and by which criterion that node was chosen."""
    compared = preemption(outcome.candidates)
    victims = [f"{shown(each.name)} (priority {each.priority})" for each in outcome.victims[:_MOST_VICTIMS]]
    if more := len(outcome.victims) - len(victims):
        victims.append(f"{more} more")
    count = len(compared.candidates)
    among = f"{compared.why}, of {count} nodes" if count > 1 else compared.why
    return f"(priority {preemptor.priority}) evicts {', '.join(victims)} from {shown(compared.chosen)}: {among}"
