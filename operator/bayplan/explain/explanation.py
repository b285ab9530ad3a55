"""What is told of one decision about one pod, in the shape that `-o json` writes.

Everything is bounded: nodes are told in groups, and lists are cut, with the number of those left out.
"""

from enum import StrEnum

import msgspec

from bayplan.framework.causes import Cause, Listed
from bayplan.framework.interface import ResourceScore


class Unscored(StrEnum):
    """Why a node was chosen without scores: the texts under which a placement is explained."""

    ONLY_NODE = "the only node that fits"
    NOMINATED = "fits on the node it was nominated to"
    NO_SCORE_PLUGINS = "the first node that fits: no plugin scores nodes"


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
    `everywhere`, to each of several nodes that were compared, decided nothing.
    """

    plugin: str
    score: int
    weight: int
    weighted: int
    of_ten: int | None = None
    resources: tuple[ResourceScore, ...] = ()
    everywhere: bool = False


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
