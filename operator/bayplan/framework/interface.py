"""The extension points of a scheduling cycle, answered for many nodes at once.

A plugin is a class with a `name`, its `traits`, and the methods of the extension points it extends, spelled as
kube-scheduler spells them. A filter answers a code per row and a score an integer per row; both are asked about any set
of rows, so that the same code serves a first look at all nodes and an update of the few that changed. Plugins are pure:
no clock, no I/O, nothing kept between calls but what derives from the node table.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate
from bayplan.framework.causes import Detail
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.nominated_table import NominatedPods, NominatedTable

# Plugins from outside take them from here.
from bayplan.framework.status import (  # noqa: F401
    SKIP,
    Codes,
    Exchange,
    Normalize,
    Reads,
    Reason,
    ResourceScore,
    Status,
    Traits,
)

Scores = NDArray[np.int64]
"""One score per row asked about, `(rows,) int64`."""

MAX_NODE_SCORE = 100

CycleState = dict[str, Any]
"""What plugins remember within one pod's evaluation, by plugin name."""


@runtime_checkable
class HoldsArrays(Protocol):
    """A value in a CycleState that grows with the nodes, and says so: kept evaluations are bounded by bytes."""

    @property
    def nbytes(self) -> int:
        """What its arrays take; shared ones count in full."""


class Plugin(Protocol):
    """Anything a profile can enable."""

    name: ClassVar[str]
    traits: ClassVar[Traits]


@runtime_checkable
class SignPlugin(Plugin, Protocol):
    """Says what of a pod its answers depend on, so that pods of equal shape share them.

    A plugin whose PreFilter, filter and scores all read CLUSTER is asked about every pod itself: it may leave out what
    changes its answers, and names only what decides whether it skips the pod, as a change of that costs most.
    """

    def sign_pod(self, pod: PodInfo) -> Hashable:
        """Everything of the pod this plugin looks at, hashable; None makes the pod share nothing."""


@runtime_checkable
class SignInputsPlugin(SignPlugin, Protocol):
    """One whose signatures depend on more than the pod."""

    def sign_inputs(self, pod: PodInfo) -> object:
        """What the signature depends on beside the pod, and is equal with; asked in each cycle, so it must be cheap."""


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """Says which cluster events may make pods it rejected schedulable."""

    def events_to_register(self) -> Sequence[EventRegistration]:
        """The events, each with an optional queueing hint."""


@runtime_checkable
class ReleasesUnused(Plugin, Protocol):
    """Keeps copies of what the node table has, which would keep pods that are gone in memory."""

    def release_unused(self) -> None:
        """Let go of what no pod needed since the last call; it is made again when one does."""


class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps pods out of the active queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """SUCCESS to let the pod in, otherwise a reason to hold it."""


class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[Any, ...]:
        """Pods with smaller keys are popped first."""


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


class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod once before nodes are filtered; its SKIP switches its own filter off."""

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        """Reject the pod as a whole, narrow the search, skip, or prepare `state`."""


class FilterPlugin(Plugin, Protocol):
    """Rules out nodes that cannot run the pod."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        """A code per row: SUCCESS, UNSCHEDULABLE or UNSCHEDULABLE_AND_UNRESOLVABLE."""

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterable[Reason]:
        """Why it rejects these rows; asked only of rows it rejected, and only when somebody wants to know."""


@runtime_checkable
class DetailedFilterPlugin(FilterPlugin, Protocol):
    """A filter that can tell its reasons with numbers and names, for explanations."""

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterable[Detail]:
        """The causes for which it rejects these rows; asked only of rows it rejected, right after `filter`."""


@runtime_checkable
class FewRowsFilterPlugin(FilterPlugin, Protocol):
    """A filter that reads USAGE and answers for few rows in plain integers.

    After most cycles one row is all that changed, and for one numpy takes ten times as long as plain integers do.
    """

    def filter_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        """The code of each of these existing rows, as `filter` gives them."""


@runtime_checkable
class NominatedFilterPlugin(FilterPlugin, Protocol):
    """A filter that reads CLUSTER and can tell what nominated pods on a row would change for that row.

    If one such filter cannot, nodes with nominated pods are filtered one at a time.
    """

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, nominated: NominatedPods
    ) -> Codes:
        """A code per row of `nominated`, were its pods on it, `(rows,) int8`; run right after `filter`."""


class PostFilterPlugin(Plugin, Protocol):
    """May make room when no node fits."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: "Rejections"
    ) -> "PostFilterResult":
        """Nominate a node and name victims, or say why not."""


class PreScorePlugin(Plugin, Protocol):
    """Looks at the pod and the feasible nodes once before scoring; its SKIP leaves its score out of the sum."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        """SUCCESS, SKIP, or SCORES_ZERO, which skips too and is shown as 0 everywhere."""


class ScorePlugin(Plugin, Protocol):
    """Ranks feasible nodes."""

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """A raw score per row, larger is better unless reversed; also asked about rows that are not feasible."""


@runtime_checkable
class FewRowsScorePlugin(ScorePlugin, Protocol):
    """A score that answers for few rows in plain integers, as a filter may."""

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        """The raw score of each of these existing rows, as `score` gives them."""


@runtime_checkable
class ResourceScorePlugin(ScorePlugin, Protocol):
    """A score that is made up of scores of resources, and tells them for explanations."""

    def resource_scores(self, pod: PodInfo, nodes: NodeTable, row: int) -> list[ResourceScore]:
        """What each resource that counts adds to the score of an existing row."""


@runtime_checkable
class PointsOfTenPlugin(ScorePlugin, Protocol):
    """A score that users configure on 0..10, and that explanations tell on that scale as well."""

    def points_of_ten(self, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        """0..10 for each of these existing rows; empty where nothing is configured on that scale."""


@runtime_checkable
class NotedScorePlugin(ScorePlugin, Protocol):
    """A score that has something to say of the pod, for explanations."""

    def score_note(self, pod: PodInfo) -> str:
        """What the plugin takes the pod for, or which of its settings it ignores."""


class NormalizeScorePlugin(ScorePlugin, Protocol):
    """A score plugin with `Normalize.CUSTOM`."""

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        """The final 0..100 scores of all feasible `rows`."""


class ReservePlugin(Plugin, Protocol):
    """Keeps state in step with an assumed pod."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take what the pod needs on the node."""

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give it back."""


MAX_PERMIT_WAIT_SECONDS: Final = 15 * 60.0
"""For longer no Permit plugin has a pod wait (upstream: framework/runtime/framework.go maxTimeout)."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a Permit plugin answers to have a pod wait until it allows or rejects it by `Handle.waiting_pods`.

    After `timeout_seconds`, or 15 minutes if that is more, the pod is rejected.
    """

    timeout_seconds: float


class PermitPlugin(Plugin, Protocol):
    """May stop or delay an assumed pod before it is bound."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | Wait:
        """SUCCESS, a rejection, or how long the pod is to wait for this plugin at most."""


class PreBindPlugin(Plugin, Protocol):
    """Names what must be written before the bind."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Exchange | None:
        """The exchange to have first, if there is one; asked once, after every plugin reserved."""


class BindPlugin(Plugin, Protocol):
    """Names the write that binds the pod."""

    def bind(self, pod: PodInfo, node_name: str) -> "Binding":
        """The binding to post."""


class PostBindPlugin(Plugin, Protocol):
    """Hears of pods that were bound."""

    def post_bind(self, pod: PodInfo, node_name: str) -> None:
        """The bind was confirmed."""


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
    `pre_filtered` names the plugins whose PreFilter was run, which are not all when one rejected the pod for good.
    `first` is, row by row, the place in `filters` of the first that rejects it, -1 without one.
    """

    rows: Rows
    codes: Codes
    filters: Sequence[FilterPlugin] = ()
    pre_filters: Sequence[PreFilterPlugin] = ()
    nominated: NominatedTable | None = None
    pre_filtered: Collection[str] = ()
    first: Rows | None = None


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """A nomination with its victims, or a message why there is none.

    `nominated_node_name` is None when an earlier nomination stays as it is, and "" when it is to be cleared.
    `candidates` are the nodes that were compared, in the order they were found. With `evicts` the victims end through
    the Eviction API, which heeds disruption budgets. After `retry_after` seconds the answer may be another although
    nothing happened. The framework adds the names of the plugins that were run, `post_filtered`.
    """

    status: Status
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    evicts: bool = False
    retry_after: float | None = None
    post_filtered: tuple[str, ...] = ()
