"""NodeHeadroom: whether some of each node stays free for pods of DaemonSets; kube-scheduler has no such plugin."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from bayplan.api.quantity import milli
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, in_columns
from bayplan.config.bayplan_args import NodeHeadroomArgs
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_SCALE_DOWN,
    NODE_ADD,
    NODE_ALLOCATABLE,
    TARGET_POD_SCALE_DOWN,
    EventRegistration,
)
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Code, Codes, Reads, Reason, Traits

_Amount = TypeVar("_Amount", int, Column)


class NodeHeadroom:
    """Filters nodes that would keep less free than is configured, and scores those highest that keep it.

    As a filter it is hard, as a score soft. Of each resource that a pod asks for so much stays free. Pods that stay on
    their node, as a DaemonSet's do, and pods from a priority on, may take it.
    """

    name: ClassVar[str] = "NodeHeadroom"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE, reads_pods=False)

    def __init__(self, args: NodeHeadroomArgs) -> None:
        self._threshold = args.priority_threshold
        self._kept: dict[str, tuple[int, int]] = {}
        """By resource, of a node's allocatable the per cents, and the amount beside them."""
        for each in args.resources:
            self._kept[each.name] = each.percentage, in_columns(each.name, milli(each.amount or 0))

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return tuple(self._asked(pod))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        codes: Codes = np.zeros(len(rows), dtype=np.int8)
        for name, amount in self._asked(pod):
            allocatable, taken = nodes.offered(name)[rows], nodes.taken(name)[rows]
            offered = self._offered(name, allocatable)
            short = (amount > offered - taken).astype(np.int8)
            # Where an empty node would keep too little, preemption is of no help.
            np.maximum(codes, short * (1 + (amount > offered)), out=codes, casting="unsafe")
        return codes

    def filter_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        codes = [0] * len(rows)
        for name, amount in self._asked(pod):
            allocatable, taken = nodes.offered(name), nodes.taken(name)
            for index, row in enumerate(rows):
                offered = self._offered(name, allocatable.item(row))
                if amount > offered - taken.item(row):
                    hopeless = amount > offered
                    codes[index] = max(codes[index], Code.UNSCHEDULABLE + hopeless)
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Reason]:
        for name, amount in self._asked(pod):
            allocatable, taken = nodes.offered(name)[rows], nodes.taken(name)[rows]
            yield Reason(f"Insufficient {name} beside the head room", amount > self._offered(name, allocatable) - taken)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.where(self.filter(state, pod, nodes, rows) == 0, MAX_NODE_SCORE, 0).astype(np.int64)

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        return [0 if code else MAX_NODE_SCORE for code in self.filter_few(state, pod, nodes, rows)]

    def events_to_register(self) -> Sequence[EventRegistration]:
        events = (ASSIGNED_POD_DELETE, ASSIGNED_POD_SCALE_DOWN, TARGET_POD_SCALE_DOWN, NODE_ADD, NODE_ALLOCATABLE)
        return tuple(map(EventRegistration, events))

    def _asked(self, pod: PodInfo) -> list[tuple[str, int]]:
        """What the pod takes of resources of which some is to stay free; nothing for a pod that may take it."""
        if pod.stays or pod.priority >= self._threshold:
            return []
        amounts = {**pod.requests.amounts, PODS: 1}
        return [(name, amounts[name]) for name in self._kept if amounts.get(name)]

    def _offered(self, name: str, allocatable: _Amount) -> _Amount:
        """What pods may take of nodes that have so much, below 0 where even an empty node has too little."""
        percentage, amount = self._kept[name]
        return allocatable - allocatable * percentage // 100 - amount
