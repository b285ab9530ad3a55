"""Two plugins for bayplan: a filter that looks at the pods of a node, and a score that looks at its labels."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, EventRegistration
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code, Normalize, Reads, Reason, Traits
from bayplan.plugins.registry import Handle

Rows = NDArray[np.intp]

TOO_MANY = "node(s) had too many pods of the same owner"


def _owner(pod: PodInfo) -> str | None:
    """The UID of the controller that made the pod."""
    owners = pod.pod.metadata.owner_references or ()
    return next((owner.uid for owner in owners if owner.controller), None)


class MaxPodsPerOwner:
    """A filter: at most `limit` pods of one controller on a node."""

    name: ClassVar[str] = "MaxPodsPerOwner"
    # The answer for a node changes with the pods on it: bayplan asks again about nodes whose pods changed, only.
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, args: Mapping[str, Any] | None, handle: Handle) -> None:
        self._limit = int((args or {}).get("limit", 2))
        if self._limit < 1:
            raise ValueError("limit must be at least 1")

    def sign_pod(self, pod: PodInfo) -> Hashable:
        # All this plugin looks at: pods that agree on it share one evaluation. Never None, that means "like no other".
        return (_owner(pod),)

    def events_to_register(self) -> Sequence[EventRegistration]:
        # What may make room for a pod this plugin rejected.
        return [EventRegistration(NODE_ADD), EventRegistration(ASSIGNED_POD_DELETE)]

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> NDArray[np.int8]:
        owner = _owner(pod)
        codes = np.zeros(len(rows), dtype=np.int8)
        if owner is None:
            return codes
        for position, row in enumerate(rows.tolist()):
            held = sum(_owner(other) == owner for other in nodes.pods[row].values())
            if held >= self._limit:
                codes[position] = Code.UNSCHEDULABLE
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason(TOO_MANY, np.ones(len(rows), dtype=np.bool_))]


class RackOrder:
    """A score: racks are filled in the order of their number, a label of the node; nodes without one come first."""

    name: ClassVar[str] = "RackOrder"
    # The answer depends on the node object alone.
    # The raw score is the rack's number; REVERSE makes it 0..100 with the lowest number best.
    traits: ClassVar[Traits] = Traits(reads=Reads.NODE, normalize=Normalize.REVERSE)

    def __init__(self, label: str, handle: Handle) -> None:
        self._label = label
        self._handle = handle

    def sign_pod(self, pod: PodInfo) -> Hashable:
        # Nothing of the pod matters.
        return ()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> NDArray[np.int64]:
        scores = np.zeros(len(rows), dtype=np.int64)
        for position, row in enumerate(rows.tolist()):
            node = nodes.nodes[row]
            number = (node.metadata.labels or {}).get(self._label, "") if node is not None else ""
            # Whoever labels nodes can write anything: only small plain numbers count.
            scores[position] = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        return scores


def rack_order(args: Mapping[str, Any] | None, handle: Handle) -> RackOrder:
    """A factory instead of the class, for arguments that need work."""
    label = (args or {}).get("label", "example.com/rack")
    if not isinstance(label, str):
        raise TypeError("label must be a string")
    return RackOrder(label, handle)
