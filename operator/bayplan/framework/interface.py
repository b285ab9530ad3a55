"""The extension points of a scheduling cycle, answered for many nodes at once.

A plugin is a class with a `name` and the methods of the extension points it extends, spelled as kube-scheduler spells
them. A filter answers a code per row and a score an integer per row; both are asked about any set of rows, so that the
same code serves a first look at all nodes and an update of the few that changed. Plugins are pure: no clock, no I/O,
nothing kept between calls but what derives from the node table.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.effects import Effect
from bayplan.framework.nominated_table import NominatedTable
from bayplan.framework.status import SKIP, Codes, Reason, Status

Scores = NDArray[np.int64]
"""One score per row asked about, `(rows,) int64`."""

MAX_NODE_SCORE = 100

CycleState = dict[str, Any]
"""What plugins remember within one pod's evaluation, by plugin name."""


class Reads(IntEnum):
    """What the answer for a row depends on besides the pod: says when it must be asked for again."""

    NODE = 0
    """The row's node object."""
    USAGE = 1
    """The row's node object and the pods on it."""
    NODES = 2
    """All node objects."""
    CLUSTER = 3
    """Anything: nodes and pods anywhere; asked again in every cycle."""


class Normalize(IntEnum):
    """How raw scores become 0..100 (upstream: plugins/helper/normalize_score.go)."""

    NONE = 0
    """They are 0..100 already."""
    DEFAULT = 1
    """`100 * score / max` over the feasible nodes."""
    REVERSE = 2
    """`100 - 100 * score / max`; all 100 when the maximum is 0."""
    CUSTOM = 3
    """The plugin's own `normalize_score`."""


class Plugin(Protocol):
    """Anything a profile can enable."""

    name: ClassVar[str]


@runtime_checkable
class SignPlugin(Plugin, Protocol):
    """Says what of a pod its answers depend on, so that pods of equal shape share them.

    A plugin whose PreFilter, filter and scores all read CLUSTER is asked about every pod itself: it may leave out what
    changes its answers, and names only what decides whether it skips the pod, as a change of that costs most.
    It looks at nothing of the pod but its namespace, labels, owners and spec, or says so by a class attribute
    `signs_more = True`: then every pod's signature is worked out by itself. A plugin whose signatures depend on more
    than the pod has a `sign_version` that grows when that changes.
    """

    def sign_pod(self, pod: PodInfo) -> Hashable:
        """Everything of the pod this plugin looks at, hashable; None makes the pod share nothing."""
        ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """Says which cluster events may make pods it rejected schedulable."""

    def events_to_register(self) -> Sequence[EventRegistration]:
        """The events, each with an optional queueing hint."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps pods out of the active queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS to let the pod in, otherwise a reason to hold it."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[Any, ...]:
        """Pods with smaller keys are popped first."""
        ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The outcome of a PreFilter; `node_names` narrows the search to those nodes when not None.

    `lasting` says that it holds for all pods of this signature whatever happens, so that nobody need ask again.
    """

    status: Status
    node_names: frozenset[str] | None = None
    lasting: bool = False


NOT_CONCERNED: Final = PreFilterResult(SKIP, lasting=True)
"""What a PreFilter says of pods that its filter never has anything to say about."""


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod once before nodes are filtered; its SKIP switches its own filter off.

    It is asked again in every cycle if the plugin's `reads` is CLUSTER, unless its `pre_reads`, which then speaks for
    PreFilter and PreScore, says less.
    """

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        """Reject the pod as a whole, narrow the search, skip, or prepare `state`."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Rules out nodes that cannot run the pod.

    A filter that reads USAGE must reject no row less for having more pods. If of a row's usage it reads nothing but
    `requested` and `pod_count`, it may say so by a class attribute `reads_pods = False`: preemption is then tried out
    on columns, for many nodes at once.

    It may have a `filter_row(state, pod, nodes, row) -> int` that says of one row what `filter` says of many: after
    most cycles one row is all that changed, and for one numpy takes ten times as long as plain integers do.

    One that reads the cluster may have a `filter_beside(state, pod, nodes, beside)` that answers a code per row of a
    `nominated_table.Beside`, right after `filter` with the same state; without it nominated pods are tried one node at
    a time.
    """

    reads: ClassVar[Reads]

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        """A code per row: SUCCESS, UNSCHEDULABLE or UNSCHEDULABLE_AND_UNRESOLVABLE."""
        ...

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        """Why it rejects these rows; asked only of rows it rejected, and only when somebody wants to know."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """May make room when no node fits."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: "Rejections"
    ) -> "PostFilterResult":
        """Nominate a node and name victims, or say why not."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Looks at the pod and the feasible nodes once before scoring; its SKIP leaves its score out of the sum.

    One that does not look at `feasible` may say so by a class attribute `reads_feasible = False`: it is then not
    always told.
    """

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        """SUCCESS or SKIP."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Ranks feasible nodes.

    It may have a `score_row(state, pod, nodes, row) -> int`, as a filter may have a `filter_row`.
    """

    reads: ClassVar[Reads]
    normalize: ClassVar[Normalize]

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """A raw score per row, larger is better unless reversed; also asked about rows that are not feasible."""
        ...


@runtime_checkable
class NormalizeScorePlugin(Plugin, Protocol):
    """A score plugin with `Normalize.CUSTOM`."""

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        """The final 0..100 scores of all feasible `rows`."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps state in step with an assumed pod."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take what the pod needs on the node."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give it back."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """May stop an assumed pod before it is bound."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SUCCESS, or a rejection."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Names what must be written before the bind."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Sequence[Effect]:
        """Effects to perform first, in order; asked once, after every plugin reserved."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Names the write that binds the pod."""

    def bind(self, pod: PodInfo, node_name: str) -> "Binding":
        """The binding to post."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Hears of pods that were bound."""

    def post_bind(self, pod: PodInfo, node_name: str) -> None:
        """The bind was confirmed."""
        ...


class Binding(msgspec.Struct, frozen=True, gc=False):
    """A pod, by name and UID, and the node it is to run on."""

    namespace: str
    name: str
    uid: str
    node_name: str


@dataclass(frozen=True, slots=True)
class Rejections:
    """What the filters said when no node fitted: the existing `rows` and their `codes`.

    `filters` are those that have a say in this pod, in order, and `pre_filters` their PreFilters. `nominated` is the
    node table with the pods added that are nominated at this pod's priority or above, when there are any.
    """

    rows: Rows
    codes: Codes
    filters: Sequence[FilterPlugin] = ()
    pre_filters: Sequence[PreFilterPlugin] = ()
    nominated: NominatedTable | None = None


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """A nomination with its victims, or a message why there is none.

    `nominated_node_name` is None when an earlier nomination stays as it is, and "" when it is to be cleared.
    `candidates` are the nodes that were compared, in the order they were found. With `evicts` the victims end through
    the Eviction API, which heeds disruption budgets. `retry_after` seconds the answer may
    be another although nothing happened.
    """

    status: Status
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    evicts: bool = False
    retry_after: float | None = None


EXTENSION_POINTS: dict[str, type] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
}
"""Extension points by their configuration key in snake case, in the order a cycle runs them."""

_METHODS: dict[str, str] = {"queue_sort": "sort_key"}


def extends(plugin: type | Plugin, point: str) -> bool:
    """Whether a plugin (class or instance) has the method of an extension point."""
    return callable(getattr(plugin, _METHODS.get(point, point), None))
