"""What is told of one decision about one pod: the shape that `-o json` writes, and the same as lines of text."""

from collections.abc import Iterator

import msgspec

from bayplan.framework.causes import Cause, Listed, quantity, shown
from bayplan.framework.status import ResourceScore
from bayplan.shown_text import printable


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    """camelCase on the wire."""


class NodeGroup(_Value, frozen=True):
    """Nodes that the same plugin rejects for the same causes; `nodes` are in natural order."""

    count: int
    plugin: str
    causes: tuple[Cause, ...]
    nodes: Listed


class PluginScore(_Value, frozen=True):
    """What one plugin gave a node: `score` is 0..100 after normalisation, `weighted` what is added to the total.

    `of_ten` is the score as the documents work it out, where a shape on 0..10 is configured. What the plugin gave
    `everywhere`, to each of several nodes that were compared, decided nothing. A `note` is what it says of the pod.
    """

    plugin: str
    score: int
    weight: int
    weighted: int
    of_ten: int | None = None
    resources: tuple[ResourceScore, ...] = ()
    everywhere: bool = False
    note: str | msgspec.UnsetType = msgspec.UNSET


class NodeScore(_Value, frozen=True):
    """A node's total and what it is the sum of."""

    node: str
    total: int
    plugins: tuple[PluginScore, ...]


class LessOfResource(_Value, frozen=True, tag="lessOfResource", tag_field="kind"):
    """The pod would fit on `node` if it asked for `by` less: milli-CPU, bytes or a count."""

    resource: str
    by: int
    node: str


class OneToleration(_Value, frozen=True, tag="toleration", tag_field="kind"):
    """The pod would fit on `node` if it tolerated this taint as well."""

    key: str
    value: str
    effect: str
    node: str


class OtherLabel(_Value, frozen=True, tag="nodeSelector", tag_field="kind"):
    """The pod would fit on `node` if its nodeSelector asked for `there_is` instead of `asked`; None is not to ask."""

    key: str
    asked: str
    there_is: str | None
    node: str


class NoNodeAffinity(_Value, frozen=True, tag="nodeAffinity", tag_field="kind"):
    """The pod would fit on `node` without its required node affinity."""

    node: str


class Uncordon(_Value, frozen=True, tag="uncordon", tag_field="kind"):
    """The pod would fit on `node` if that were not closed for new pods."""

    node: str


class Eviction(_Value, frozen=True, tag="eviction", tag_field="kind"):
    """The pod would fit on `node` without these pods, which preemption found."""

    pods: Listed
    node: str


Change = LessOfResource | OneToleration | OtherLabel | NoNodeAffinity | Uncordon | Eviction


class Explanation(_Value, frozen=True):
    """Why a pod is where it is, or nowhere.

    `nodes` is `feasible` plus the counts of all `groups` plus `nodes_in_other_groups`. The largest groups come first;
    `other_groups` were left out. `changes` are single changes of which each would make the pod fit, at most one of a
    kind and empty when it fits or nothing single helps. `chosen` and `runner_up` are there when the pod fits;
    `unscored` says why kube-scheduler compared no scores, which are worked out all the same.
    """

    nodes: int
    feasible: int
    groups: tuple[NodeGroup, ...] = ()
    other_groups: int = 0
    nodes_in_other_groups: int = 0
    changes: tuple[Change, ...] = ()
    chosen: NodeScore | None = None
    runner_up: NodeScore | None = None
    margin: int | None = None
    unscored: str | None = None
    failed: str | msgspec.UnsetType = msgspec.UNSET
    """Why nothing is known of the nodes: what a plugin says that could not answer; it is there only then."""


def lines(pod: str, explanation: Explanation) -> Iterator[str]:
    """Give the lines about the pod called `pod`: the outcome, scores, rejected nodes by cause, and what would help."""
    yield f"{shown(pod)}: {outcome_text(explanation)}"
    for scored in (explanation.chosen, explanation.runner_up):
        if scored is not None:
            yield from _score_lines(scored)
    for each in () if explanation.chosen is None else explanation.chosen.plugins:
        if each.note:
            yield f"  {shown(each.plugin)}: {printable(each.note)}"
    width = len(f"{explanation.nodes:,}")
    for group in explanation.groups:
        yield f"  {group.count:>{width},} {_nodes(group.count)}: {group_text(group)}"
    if explanation.other_groups:
        count = explanation.nodes_in_other_groups
        yield f"  {count:>{width},} {_nodes(count)}: for {explanation.other_groups:,} other reasons"
    if explanation.chosen is None and explanation.nodes and not explanation.failed:
        helpful = "; or ".join(change_text(change) for change in explanation.changes)
        yield f"  would help: {helpful or 'nothing single'}"


def group_text(group: NodeGroup) -> str:
    """Say which plugin rejects the nodes of a group, why, and which nodes they are."""
    causes = "; ".join(map(str, group.causes))
    return f"{shown(group.plugin)}: {causes} ({group.nodes})"


def outcome_text(explanation: Explanation) -> str:
    """Say in a line where the pod goes, by what margin, and on how many nodes it fits."""
    if explanation.failed:
        return printable(explanation.failed)
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
    # Where every node gets all of it there is no sum to show.
    told = f" = {' + '.join(parts)}" if same != scored.total else ", which every node gets" if same else ""
    yield f"  {shown(scored.node)}: {scored.total}{told}"
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
