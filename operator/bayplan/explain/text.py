"""An explanation as lines of text; their number does not grow with the nodes."""

from collections.abc import Iterator

from bayplan.explain.explanation import (
    Change,
    Eviction,
    Explanation,
    LessOfResource,
    NodeGroup,
    NodeScore,
    NoNodeAffinity,
    OneToleration,
    OtherLabel,
    PluginScore,
    Uncordon,
)
from bayplan.framework.causes import quantity, shown
from bayplan.framework.interface import ResourceScore


def lines(pod: str, explanation: Explanation) -> Iterator[str]:
    """Give the lines about the pod called `pod`: the outcome, scores, rejected nodes by cause, and what would help."""
    yield f"{shown(pod)}: {outcome_text(explanation)}"
    for scored in (explanation.chosen, explanation.runner_up):
        if scored is not None:
            yield from _score_lines(scored)
    width = len(f"{explanation.nodes:,}")
    for group in explanation.groups:
        yield f"  {group.count:>{width},} {_nodes(group.count)}: {group_text(group)}"
    if explanation.other_groups:
        count = explanation.nodes_in_other_groups
        yield f"  {count:>{width},} {_nodes(count)}: for {explanation.other_groups:,} other reasons"
    if explanation.chosen is None and explanation.nodes:
        helpful = "; or ".join(change_text(change) for change in explanation.changes)
        yield f"  would help: {helpful or 'nothing single'}"


def group_text(group: NodeGroup) -> str:
    """Say which plugin rejects the nodes of a group, why, and which nodes they are."""
    causes = "; ".join(map(str, group.causes))
    return f"{shown(group.plugin)}: {causes} ({group.nodes})"


def outcome_text(explanation: Explanation) -> str:
    """Say in a line where the pod goes, by what margin, and on how many nodes it fits."""
    chosen, runner_up = explanation.chosen, explanation.runner_up
    of_all = f"{explanation.feasible:,} of {explanation.nodes:,} {_nodes(explanation.nodes)} fit"
    if 1 in {explanation.feasible, explanation.nodes}:
        of_all += "s"
    if chosen is None:
        return of_all
    if explanation.unscored is not None:
        return f"{shown(chosen.node)}, {explanation.unscored}, not compared by score; {of_all}"
    second = ""
    if runner_up is not None:
        lead = f"{explanation.margin} more than" if explanation.margin else "the first of equals, as"
        second = f", {lead} {shown(runner_up.node)}"
    return f"{shown(chosen.node)} with {chosen.total}{second}; {of_all}"


def _score_lines(scored: NodeScore) -> Iterator[str]:
    parts = list(map(_plugin, _counting(scored)))
    if same := sum(each.weighted for each in scored.plugins if each.everywhere):
        parts.append(f"{same} that every node gets")
    yield f"  {shown(scored.node)}: {scored.total} = {' + '.join(parts) or '0'}"
    for each in scored.plugins:
        for resource in each.resources:
            yield f"    {_resource(resource)}"


def _counting(scored: NodeScore) -> list[PluginScore]:
    return [
        each
        for each in sorted(scored.plugins, key=lambda each: -each.weighted)
        if each.weighted and not each.everywhere
    ]


def _plugin(each: PluginScore) -> str:
    notes = [f"{each.weight} x {each.score}"] if each.weight != 1 else []
    notes += [f"{each.of_ten} of 10"] if each.of_ten is not None else []
    return f"{shown(each.plugin)} {each.weighted}" + (f" ({'; '.join(notes)})" if notes else "")


def _resource(each: ResourceScore) -> str:
    before, after, whole = (quantity(each.resource, amount) for amount in (each.before, each.after, each.allocatable))
    share = f"{100 * each.after // each.allocatable} %"
    if each.assumed:
        share += f" ({quantity(each.resource, each.assumed)} of it assumed for containers that ask for none)"
    of_ten = "" if each.of_ten is None else f" ({each.of_ten} of 10)"
    points = f"{each.score} points{of_ten}, weight {each.weight}"
    return f"{shown(each.resource)}: {before} -> {after} of {whole}, {share}: {points}"


def change_text(change: Change) -> str:
    """Say the change that would make the pod fit."""
    node = f"on {shown(change.node)}"
    match change:
        case LessOfResource(resource, by, _):
            return f"{quantity(resource, by)} less of {shown(resource)}, {node}"
        case OneToleration(key, value, effect, _):
            return f"a toleration of {shown(key)}{f'={shown(value)}' if value else ''}:{shown(effect)}, {node}"
        case OtherLabel(key, asked, there_is, _):
            instead = "no" if there_is is None else f"{shown(there_is)} instead of"
            return f"to ask for {instead} {shown(key)}={shown(asked)}, {node}"
        case NoNodeAffinity():
            return f"no required node affinity, {node}"
        case Uncordon():
            return f"to uncordon {shown(change.node)}"
        case Eviction(pods, _):
            return f"without {pods}, {node}"


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"
