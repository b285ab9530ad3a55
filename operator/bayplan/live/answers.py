"""What the API of the running scheduler answers, in the shape that is written; docs/live-api.schema.json has it."""

import msgspec

from bayplan.explain.explanation import Explanation
from bayplan.simulate.report import Capacity, PodReport


class _Answer(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """camelCase on the wire. Times are RFC 3339 in UTC; amounts are milli-CPU, bytes or counts."""


class WeightedResource(_Answer, frozen=True):
    """A resource that counts in a score."""

    name: str
    weight: int


class ShapePoint(_Answer, frozen=True):
    """A point of a scoring function: `utilization` in per cent, `score` of 10."""

    utilization: int
    score: int


class ProfileAnswer(_Answer, frozen=True):
    """What a profile packs by: the first of its strategies, none where NodeResourcesFit does not score."""

    scheduler_name: str
    strategy: str | None
    resources: list[WeightedResource]
    shape: list[ShapePoint] | None


class QueueCounts(_Answer, frozen=True):
    """How many pods wait, by where they stand."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class PackingAnswer(_Answer, frozen=True):
    """How full the cluster is of one resource."""

    resource: str
    requested: int
    allocatable: int
    stranded: int
    """Free, but of no use, as another resource is full there."""
    nodes_used: int
    """Nodes with a pod that could run elsewhere."""
    lower_bound: int
    """The fewest nodes that have as much as pods request that could run elsewhere."""
    largest_free: int
    """The most that is free on one node which takes another pod."""


class SummaryAnswer(_Answer, frozen=True):
    """Who schedules, by what, and how it stands."""

    time: str
    version: str
    identity: str
    leading: bool
    profiles: list[ProfileAnswer]
    nodes: int
    pods: int
    queue: QueueCounts
    packing: list[PackingAnswer]
    stranded_devices: float | None = None
    """What is left of devices that are taken in part, in devices; None where there are no ResourceSlices."""


class NodesAnswer(_Answer, frozen=True):
    """All nodes, sorted naturally by name: the n-th entry of each column is the n-th node's."""

    time: str
    resources: list[str]
    names: list[str]
    pods: list[int]
    unschedulable: list[bool]
    emptiable: list[bool]
    """Nodes in use whose pods the others in use have room for, by the sum of requests alone."""
    requested: dict[str, list[int]]
    allocatable: dict[str, list[int]]


class TaintAnswer(_Answer, frozen=True):
    """A taint of a node."""

    key: str
    value: str
    effect: str


class PodName(_Answer, frozen=True):
    """Which pod."""

    namespace: str
    name: str


class NodePod(PodName, frozen=True):
    """A pod on a node, or one that room on it is kept for."""

    uid: str
    priority: int
    requests: dict[str, int]
    state: str
    """bound, assumed (its bind is under way) or nominated."""


class NodeAnswer(_Answer, frozen=True):
    """One node and its pods."""

    name: str
    labels: dict[str, str]
    taints: list[TaintAnswer]
    unschedulable: bool
    allocatable: dict[str, int]
    requested: dict[str, int]
    pods: list[NodePod]


class QueueItem(PodName, frozen=True):
    """A pod that waits; `position` counts from 1, in the order in which active pods are tried."""

    scheduler_name: str
    priority: int
    queue: str
    """active, backoff, unschedulable or gated."""
    position: int | None
    attempts: int
    waiting_since: str
    next_retry: str | None
    """When it is tried without an event; none while it is active or gated."""
    message: str
    """Why it waits, in the words of its last attempt or of its gate."""
    rejected_by: list[str]
    nominated_node: str | None
    group: str | None = None
    """The pod group that it waits with."""


class QueueAnswer(_Answer, frozen=True):
    """A page of the pods that wait: active ones first, in the order in which they are tried."""

    time: str
    total: int
    items: list[QueueItem]
    continue_: str | None = msgspec.field(name="continue")
    """To be given for the next page; none after the last. Pods that move meanwhile may be left out or come twice."""


class NodeTotal(_Answer, frozen=True):
    """A node and its score."""

    node: str
    score: int


class DecisionItem(_Answer, frozen=True):
    """One decision; without a node `message` says why."""

    seq: int
    time: str
    namespace: str
    name: str
    node: str | None
    score: int | None
    runner_up: NodeTotal | None
    """What came second; known where the log has it, from -v 2 on."""
    feasible: int
    evaluated: int
    milliseconds: float
    message: str | None
    preempted: list[PodName]


class DecisionsAnswer(_Answer, frozen=True):
    """Decisions after the one that was named, the oldest first; with `dropped` some before them are not known."""

    last: int
    dropped: bool
    items: list[DecisionItem]


class PodAhead(PodName, frozen=True):
    """A pod that is tried earlier, the first of its pod group if it names one."""

    priority: int
    group: str | None = None


class WakingEvent(_Answer, frozen=True):
    """What may have the pod tried again, and the plugin that rejected it which wants to hear of that."""

    event: str
    plugin: str


class Nomination(_Answer, frozen=True):
    """The node whose room is kept for the pod, and since when."""

    node: str
    age_seconds: float


class AttemptItem(_Answer, frozen=True):
    """An attempt that failed."""

    time: str
    message: str
    milliseconds: float


class GroupItem(_Answer, frozen=True):
    """The pod group of a pod that waits; `kind` is its API version, and `least` is None if there is no such object.

    `fit` counts those on nodes and those that would find one now. Where these are too few, `first_without` is the first
    that finds none and `missing` says why, or `fit` is None and `message` says what keeps all of them from being tried.
    `evicts` are the pods that would end to make it whole, and `preemption` says why there are none, or how many.
    """

    kind: str
    namespace: str
    name: str
    on_nodes: int
    waiting: int
    least: int | None = None
    fit: int | None = None
    gated: PodName | None = None
    """The member with scheduling gates that holds back all: the pod itself, or the first."""
    gates: list[str] = []
    """Its gates."""
    first_without: PodName | None = None
    missing: Explanation | None = None
    message: str = ""
    preemption: str = ""
    evicts: list[PodName] = []


class ExplanationAnswer(_Answer, frozen=True):
    """Why a pod is where it is, or nowhere; `explanation` is worked out now, for a bound pod as if it were not.

    `decision` is the last one that was taken about the pod, as long as it is remembered, and `scheduled_at` when the
    API server says that the pod got its node.
    """

    namespace: str
    name: str
    scheduler_name: str
    state: str
    """pending, bound or assumed."""
    node: str | None
    """Where it is, if it is not pending."""
    queue: QueueItem | None
    """Where it waits; none while it is being tried."""
    ahead: list[PodAhead]
    woken_by: list[WakingEvent]
    nomination: Nomination | None
    attempts: list[AttemptItem]
    message: str | None
    """Why no node fits now, in the words of the Event; none if one does."""
    explanation: Explanation
    decision: DecisionItem | None = None
    scheduled_at: str | None = None
    group: GroupItem | None = None
    """The pod group of a pod that waits."""


class SimulationAnswer(_Answer, frozen=True):
    """What would come of pods, in the words of `simulate -o json`; nothing was bound and nothing is kept."""

    pods: list[PodReport]
    count: Capacity | None
    """How many more of the pod fit, where that was asked."""
