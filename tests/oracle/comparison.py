"""What differs between a decision of kube-scheduler and one of bayplan."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.oracle.case import Decision, Object

from bayplan.explain.trace import trace_of
from bayplan.framework.candidate import Candidate
from bayplan.scheduler.decision import Decision as MadeDecision
from bayplan.scheduler.decision import FitError, Placement

_PLACEMENT = re.compile(r"on node (\S+), preempting (\d+) victims$")
_VICTIM_EXPECTED = "expected at least one victim pod on node"
_ERRORS_OF_NODES = re.compile(rf"(?<=\[){_VICTIM_EXPECTED} [^\]]*(?=\])")


def decision_of(made: MadeDecision) -> Decision:
    outcome = made.outcome
    if isinstance(outcome, FitError):
        return Decision(message=outcome.message)
    trace = trace_of(made)
    feasible = sorted(name for name, verdict in trace.items() if verdict.rejected_by is None)
    decision = Decision(node=outcome.node_name, feasible=feasible)
    if len(feasible) > 1:
        plugins = trace[feasible[0]].scores
        decision.scores = {plugin: [trace[name].scores[plugin] for name in feasible] for plugin in plugins}
        decision.totals = [trace[name].score for name in feasible]
    return decision


def differences(expected: Decision, found: Decision) -> list[str]:
    """What differs, a line each; nothing when the decisions agree and the node is one of the best."""
    lines = _differ("message", _without_choice(expected.message), _without_choice(found.message))
    lines += _differ("cycle failed", expected.error, found.error)
    if expected.hinted:
        # The other nodes were not looked at again, as the ranking of the pod before this one still held.
        best = found.feasible if len(found.feasible) < 2 else _highest(found.feasible, found.totals)
        lines += [] if expected.node in best else [f"node: kube-scheduler {expected.node}, bayplan's best {best}"]
    elif expected.feasible != found.feasible:
        for title, nodes in (
            ("only kube-scheduler has", set(expected.feasible) - set(found.feasible)),
            ("only bayplan has", set(found.feasible) - set(expected.feasible)),
        ):
            lines += [f"feasible nodes: {title} {sorted(nodes)}"] if nodes else []
    elif len(expected.feasible) < 2:
        lines += _differ("node", expected.node, found.node)
    else:
        lines += _score_differences(expected, found)
    return lines


def _without_choice(message: str | None) -> str | None:
    """The message without what either may choose: one of equal candidates, and the node where a search starts."""
    if message is None:
        return None
    message = _PLACEMENT.sub("on a node, preempting victims", message)
    return _ERRORS_OF_NODES.sub(lambda found: ", ".join(sorted(found[0].split(", "))), message)


def extended_differences(expected: Decision, found: Placement) -> Iterator[str]:
    """What differs in a decision that extenders had their say in: they leave no trace of nodes, only the choice."""
    yield from _differ("message", expected.message, None)
    yield from _differ("feasible nodes", len(expected.feasible), found.feasible_nodes)
    best = _highest(expected.feasible, expected.totals) if expected.totals else expected.feasible
    yield from _differ("score", max(expected.totals, default=None), found.score)
    if found.node_name not in best or expected.node not in best:
        yield f"node: kube-scheduler {expected.node}, bayplan {found.node_name}, best {best}"


def _score_differences(expected: Decision, found: Decision) -> Iterator[str]:
    nodes = expected.feasible
    for plugin in sorted({*expected.scores, *found.scores}):
        yield from _columns(plugin, nodes, expected.scores.get(plugin), found.scores.get(plugin))
    yield from _columns("total", nodes, expected.totals, found.totals)
    best = _highest(nodes, expected.totals)
    if found.node not in best or expected.node not in best:
        yield f"node: kube-scheduler {expected.node}, bayplan {found.node}, best {best}"


def _highest(nodes: list[str], totals: list[int]) -> list[str]:
    return [name for name, total in zip(nodes, totals, strict=True) if total == max(totals)]


def _columns(title: str, nodes: list[str], expected: list[int] | None, found: list[int] | None) -> Iterator[str]:
    if not expected or not found:
        yield from _differ(title, expected or None, found or None)
    elif expected != found:
        rows = zip(nodes, expected, found, strict=True)
        shown = [f"{node} {theirs} {ours}" for node, theirs, ours in rows if theirs != ours]
        yield f"{title}: node, kube-scheduler's score, bayplan's: {', '.join(shown)}"


def preemption_differences(
    decided: Decision, ours: FitError, everywhere: Sequence[Candidate], alike: Callable[[str], str]
) -> Iterator[str]:
    """What differs in victims and nominated node; among candidates with equal criteria either may choose as it likes.

    `everywhere` are our candidates on all nodes, and those of `ours` on as many as are looked at when configured so.
    Victims count as the same when `alike` says the same of both.
    """
    made = ours.post_filter
    found = {each.node_name: each for each in everywhere}
    checked = [found[name] for name in decided.checked or found if name in found]
    told = {name: sorted(map(alike, victims)) for name, victims in decided.candidates.items()}
    for name in sorted({*told, *(each.node_name for each in checked)}):
        victims = sorted(alike(victim.key) for victim in found[name].victims) if name in found else None
        yield from _differ(f"victims on {name}", told.get(name), victims)
    if decided.nominated is None or not checked or not made.candidates:
        return
    # A limited search may have compared fewer than it logged: some found after enough were, at the same time.
    extra = max(len(checked) - decided.wanted, 0) if decided.wanted < decided.potential else 0
    best = _best(checked)
    for _ in range(extra):
        if decided.nominated in best:
            break
        checked = [each for each in checked if each.node_name not in best[:1]]
        best = _best(checked)
    if decided.nominated not in best:
        yield f"nominated node: kube-scheduler {decided.nominated}, best of those it looked at {best}"
    best = _best(made.candidates)
    if made.nominated_node_name not in best:
        yield f"nominated node: bayplan {made.nominated_node_name}, best of those it looked at {best}"
    # Of more candidates than wanted it kept those it found first, from a random node on (upstream: candidateList).
    if not decided.checked and len(found) <= decided.wanted and decided.nominated not in best:
        yield f"nominated node: kube-scheduler {decided.nominated}, bayplan's best {best}"
    enough = min(decided.wanted, len(found))
    if len(made.candidates) < enough or len(decided.candidates) < enough:
        yield f"candidates: kube-scheduler {len(decided.candidates)}, bayplan {len(made.candidates)}, enough {enough}"
    chosen = {each.node_name: each.victims for each in made.candidates}[made.nominated_node_name or ""]
    yield from _differ("our victims", sorted(each.key for each in chosen), sorted(each.key for each in made.victims))


def nomination_differences(decided: Decision, ours: FitError, *, had_one: bool) -> Iterator[str]:
    """What differs in whether the pod is nominated now, and in what becomes of the nomination it had."""
    made = ours.post_filter
    yield from _differ("a node is found", decided.nominated is not None, bool(made.nominated_node_name))
    told = _PLACEMENT.search(ours.message)
    if told is not None:
        yield from _differ(
            "placement and text", [made.nominated_node_name, str(len(made.victims))], list(told.groups())
        )
    if had_one:
        yield from _differ("its nomination ended", decided.nomination_ended, made.nominated_node_name == "")


def extended_preemption_differences(decided: Decision, ours: FitError) -> Iterator[str]:
    """What differs where extenders took candidates away: kube-scheduler does not log which."""
    candidates = ours.post_filter.candidates
    if decided.nominated is not None and candidates:
        best = _best(candidates)
        if decided.nominated not in best:
            yield f"nominated node: kube-scheduler {decided.nominated}, bayplan's best {best}"


def claim_differences(expected: Mapping[str, Object], found: Mapping[str, Object]) -> Iterator[str]:
    """What differs in what claims have, by their names."""
    for name in sorted({*expected, *found}):
        yield from _differ(f"claim {name}", expected.get(name), found.get(name))


def _best(candidates: Sequence[Candidate]) -> list[str]:
    """The nodes that tie for the first place."""
    rank = {each.node_name: (*each.price, -each.latest_start) for each in candidates}
    return sorted(name for name, price in rank.items() if price == min(rank.values()))


def _differ(title: str, theirs: object, ours: object) -> list[str]:
    return [] if theirs == ours else [f"{title}: kube-scheduler {theirs!r}", f"{title}: bayplan {ours!r}"]
