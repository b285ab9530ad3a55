"""What a simulation says, in the shape that `-o json` writes."""

import msgspec
from msgspec import UNSET, UnsetType

from bayplan.scheduler.trace import Trace
from bayplan.simulate.cluster import SkippedPod


class _Reported(msgspec.Struct, rename="camel", gc=False):
    """camelCase on the wire."""


class NodeVerdict(_Reported):
    """What one attempt made of one node; scores are after normalisation and weight."""

    rejected_by: str | None
    reasons: list[str]
    scores: dict[str, int]
    score: int


class Attempt(_Reported):
    """One scheduling attempt: `node` when the pod was placed, `message` when it was not.

    `nodes` is there only when an explanation was asked for.
    """

    node: str | None
    nominated_node_name: str | None
    victims: list[str]
    """The pods that preemption would remove, as namespace/name."""
    message: str | None
    feasible_nodes: int
    nodes: dict[str, NodeVerdict] | UnsetType = UNSET


class PodReport(_Reported):
    """A pod that named a profile, and its attempts."""

    namespace: str
    name: str
    scheduler_name: str
    attempts: list[Attempt]


class Allocation(_Reported):
    """Sums over nodes of one resource: milli-CPU for cpu, else bytes or counts."""

    requested: int
    allocatable: int
    allocatable_in_use: int
    """Allocatable of the nodes that hold a pod."""


class Summary(_Reported):
    """The cluster after the last attempt; all but the last two fields are the same in every run."""

    nodes: int
    nodes_in_use: int
    """Nodes that hold at least one pod."""
    lower_bound_nodes: int
    """No placement of the pods on nodes could use fewer nodes than this."""
    pods: int
    """Pods of every kind below, and those that were skipped."""
    running: int
    """Pods that had a node to begin with."""
    finished: int
    """Pods that have ended or are being deleted without a node."""
    other_schedulers: int
    """Pods without a node that name no profile of the configuration."""
    on_unknown_nodes: int
    """Pods on nodes that were not given; they count nowhere else but in `running`."""
    scheduled: int
    unschedulable: int
    gated: int
    skipped: list[SkippedPod]
    ignored_kinds: dict[str, int]
    allocation: dict[str, Allocation]
    decisions_per_second: float
    seconds: float
    """How long the scheduling took, without reading files and reporting."""


class Report(_Reported):
    """Everything a simulation found; pods in the order in which they were first tried, gated pods last."""

    pods: list[PodReport]
    summary: Summary


def encode(report: Report) -> bytes:
    """The report as indented JSON text with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def verdicts(trace: Trace) -> dict[str, NodeVerdict]:
    """A trace as it is reported."""
    return {
        name: NodeVerdict(verdict.rejected_by, verdict.reasons, verdict.scores, verdict.score)
        for name, verdict in trace.items()
    }
