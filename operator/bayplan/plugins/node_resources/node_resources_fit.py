"""NodeResourcesFit: whether a pod fits what a node has left, and how well it packs."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.device_objects import DeviceClass
from bayplan.api.objects import Node
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended, node_allocatable
from bayplan.config.types import NodeResourcesFitArgs, ScoringStrategy
from bayplan.framework.causes import Detail, Shortage
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_SCALE_DOWN,
    DEVICE_CLASS_ADD_OR_UPDATE,
    NODE_ADD,
    NODE_ALLOCATABLE,
    TARGET_POD_SCALE_DOWN,
    EventRegistration,
    hint,
)
from bayplan.framework.interface import CycleState, PreFilterResult, Scores
from bayplan.framework.status import SUCCESS, Code, Codes, Reads, Reason, ResourceScore, Status, Traits
from bayplan.plugins.extended_resources import PREFIX
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts
from bayplan.plugins.node_resources.resource_scoring import (
    Scorer,
    domain_shares,
    points_of_ten,
    resource_columns,
    sums_of,
)


def shortage_detail(nodes: NodeTable, rows: Rows, name: str, asked: int) -> Detail:
    """Return the cause that less of a resource than `asked` is free on some of the rows."""
    offered = nodes.offered(name)[rows]
    free = offered - nodes.taken(name)[rows]

    def tell(places: NDArray[np.intp]) -> Shortage:
        most = int(places[int(free[places].argmax())])
        return Shortage(name, asked, int(free[most]), nodes.names[int(rows[most])], bool(offered[places].any()))

    return Detail(asked > free, tell)


def resource_scores(
    strategy: ScoringStrategy, pod: PodInfo, nodes: NodeTable, row: int, devices: DeviceAmounts
) -> list[ResourceScore]:
    """Return what each resource that counts for the pod adds to the score of a row.

    The formulas are those of the score itself, asked about one resource at a time.
    """
    scores: list[ResourceScore] = []
    scorer = Scorer(strategy)
    for column in resource_columns(strategy.resources, pod, nodes, devices=devices):
        after, allocatable = column.on_row(row)
        if allocatable > 0:
            (score,) = scorer.score_few([column], [row])
            of_ten = points_of_ten(strategy.shape, [column], [row])[0] if strategy.shape else None
            asked = pod.requests.amounts.get(column.name, 0) + int(nodes.taken(column.name)[row])
            scores.append(column.told(row, score, of_ten, assumed=max(after - asked, 0)))
    return scores


_FIRST = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}


class NodeResourcesFit:
    """Filters by requests against allocatable, scores by the strategy (upstream: plugins/noderesources/fit.go).

    With several strategies, which only bayplan has, its score is the sum of theirs, each times its weight: more than
    100 then.
    """

    name: ClassVar[str] = "NodeResourcesFit"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.USAGE,
        reads_pods=False,
        without_pre_filter='error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    )

    def __init__(self, args: NodeResourcesFitArgs, devices: DeviceAmounts) -> None:
        self._devices = devices
        self._extended = devices.extended
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        strategy = args.scoring_strategy
        several = args.scoring_strategies
        self._resources = tuple(strategy.resources)
        self._strategies = [each.strategy for each in several] or [strategy]
        self._scored = tuple(each.name for strategy in self._strategies for each in strategy.resources)
        self._shape = () if several else strategy.shape
        self._scorers = [Scorer(each.strategy, each.weight) for each in several] or [Scorer(strategy)]

    def sign_pod(self, pod: PodInfo) -> Hashable:
        if self._devices.concerns(pod, self._scored):
            return None
        requests = pod.requests
        amounts = (*sorted(requests.amounts.items()), *self._extended.asked_by(pod))
        if requests.scoring_amounts is requests.amounts:
            return (amounts, requests.scoring_cpu, requests.scoring_memory)
        scoring_amounts = tuple(sorted(requests.scoring_amounts.items()))
        return (amounts, requests.scoring_cpu, requests.scoring_memory, scoring_amounts)

    def sign_inputs(self, pod: PodInfo) -> object:
        return self._extended.asked_by(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        state[self.name] = self._needed(pod)
        return PreFilterResult(SUCCESS)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        codes: Codes = (nodes.pod_count[rows] >= nodes.allowed_pods[rows]).astype(np.int8)
        by_devices = self._extended.classes
        for name, amount in state.get(self.name) or self._needed(pod):
            column = nodes.allocatable.get(name)
            if column is None:
                if name not in by_devices:
                    codes[:] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
                continue
            allocatable = column[rows]
            taken = nodes.requested.get(name)
            short = amount > (allocatable if taken is None else allocatable - taken[rows])
            if name in by_devices:
                # Where no device plugin offers it, DynamicResources looks for devices.
                short &= allocatable > 0
            if np.count_nonzero(short):
                # One request larger than the whole node makes the node hopeless, and preemption with it.
                np.maximum(codes, short.astype(np.int8) + (short & (amount > allocatable)), out=codes)
        return codes

    def filter_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        count, allowed = nodes.pod_count, nodes.allowed_pods
        codes = [int(count.item(row) >= allowed.item(row)) for row in rows]
        by_devices = self._extended.classes
        for name, amount in state.get(self.name) or self._needed(pod):
            column, taken = nodes.allocatable.get(name), nodes.requested.get(name)
            is_by_devices = name in by_devices
            for index, row in enumerate(rows):
                allocatable = 0 if column is None else column.item(row)
                if not allocatable and is_by_devices:
                    continue
                if column is None or amount > allocatable:
                    codes[index] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
                elif taken is not None and amount > allocatable - taken.item(row):
                    codes[index] = max(codes[index], Code.UNSCHEDULABLE)
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Reason]:
        # One at a time: pods may ask for thousands of resources.
        yield Reason("Too many pods", nodes.pod_count[rows] >= nodes.allowed_pods[rows])
        for name, amount in state.get(self.name) or self._needed(pod):
            short = amount > nodes.offered(name)[rows] - nodes.taken(name)[rows]
            yield Reason(f"Insufficient {name}", short & self._is_ours(name, nodes, rows))

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        for name, amount in ((PODS, 1), *(state.get(self.name) or self._needed(pod))):
            short = shortage_detail(nodes, rows, name, amount)
            yield Detail(short.holds & self._is_ours(name, nodes, rows), short.tell)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        for each in self._scorers:
            total += each.score(resource_columns(each.resources, pod, nodes, devices=self._devices), rows)
        return total

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        scores = [
            each.score_few(resource_columns(each.resources, pod, nodes, devices=self._devices), rows)
            for each in self._scorers
        ]
        return scores[0] if len(scores) == 1 else [sum(each) for each in zip(*scores, strict=True)]

    def room(self, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """At most how many pods like this one each row takes beside those on it, `(capacity,) int64`."""
        room: NDArray[np.int64] = np.maximum(nodes.allowed_pods - nodes.pod_count, 0)
        for name, amount in self._needed(pod):
            if amount:
                free = np.maximum(nodes.offered(name) - nodes.taken(name), 0)
                np.minimum(room, free // amount, out=room, where=self._is_ours(name, nodes, slice(None)))
        return room

    def placement_score(
        self, nodes: NodeTable, ids: NDArray[np.int32], pods: Sequence[tuple[PodInfo, NDArray[np.int64]]]
    ) -> Scores:
        """How much of each domain is taken with so many more of these pods on it, 0..100, `(domains,) int64`.

        `ids` are the domains of rows. The strategy is MostAllocated whatever that for nodes is (upstream:
        resource_allocation.go scorePlacement).
        """
        domains = len(pods[0][1])
        total, weights = np.zeros(domains, dtype=np.int64), np.zeros(domains, dtype=np.int64)
        for resource in self._resources:
            asked = [(column, count) for pod, count in pods for column in resource_columns([resource], pod, nodes)]
            if not asked:
                continue
            column, _ = asked[0]
            taken = np.zeros(domains) if column.taken is None else sums_of(ids, column.taken, domains)
            used = taken + sum(column.wanted * count.astype(np.float64) for column, count in asked)
            share, counts = domain_shares(used, sums_of(ids, column.allocatable, domains))
            total += share * resource.weight
            weights += counts * resource.weight
        score: Scores = total // np.maximum(weights, 1)
        return score

    def points_of_ten(self, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        if not self._shape:
            return []
        return points_of_ten(self._shape, resource_columns(self._resources, pod, nodes, devices=self._devices), rows)

    def resource_scores(self, pod: PodInfo, nodes: NodeTable, row: int) -> list[ResourceScore]:
        return [score for each in self._strategies for score in resource_scores(each, pod, nodes, row, self._devices)]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ASSIGNED_POD_DELETE),
            EventRegistration(ASSIGNED_POD_SCALE_DOWN, hint(_frees_what_is_needed, old=PodInfo, new=PodInfo)),
            EventRegistration(TARGET_POD_SCALE_DOWN),
            EventRegistration(NODE_ADD, hint(self._node_may_fit, new=Node)),
            EventRegistration(NODE_ALLOCATABLE, hint(self._node_may_fit, new=Node)),
            EventRegistration(DEVICE_CLASS_ADD_OR_UPDATE, hint(_class_may_help, new=DeviceClass)),
        )

    def _is_ours(self, name: str, nodes: NodeTable, rows: Rows | slice) -> NDArray[np.bool_]:
        """Return where a resource is counted here: everywhere, or where devices do not provide it."""
        offers: NDArray[np.bool_] = nodes.offered(name)[rows] > 0
        return offers | (name not in self._extended.classes)

    def _needed(self, pod: PodInfo) -> list[tuple[str, int]]:
        """Return the requests to check, in the order their reasons are listed."""
        return [
            (name, amount)
            for name, amount in sorted(pod.requests.amounts.items(), key=lambda item: (_FIRST.get(item[0], 3), item[0]))
            if not (is_extended(name) and (name in self._ignored or name.split("/", 1)[0] in self._ignored_groups))
        ]

    def _node_may_fit(self, pod: PodInfo, old: Node | None, new: Node) -> bool:
        """Return whether the node, if it were empty, fits the pod and, on an update, has more of what it requests.

        Of what its devices are to provide there may always be more, such as where a device plugin has just left it.
        """
        has = node_allocatable(new)
        by_devices = self._extended.classes
        asked = self._needed(pod)
        needed = [each for each in asked if has.get(each[0]) or each[0] not in by_devices]
        if has.get(PODS, 0) < 1 or any(amount > has.get(name, 0) for name, amount in needed):
            return False
        if old is None or len(needed) < len(asked):
            return True
        had = node_allocatable(old)
        return any(has.get(name, 0) > had.get(name, 0) for name in (*(name for name, _ in needed), PODS))


def _frees_what_is_needed(pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
    """Return whether a pod on a node takes less now of something that `pod` requests.

    Upstream: noderesources/fit.go haveEnoughRelevantResourcesDecreased.
    """
    before, after = old.placed.amounts, new.placed.amounts
    return any(before.get(name, 0) > after.get(name, 0) for name in pod.requests.amounts)


def _class_may_help(pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> bool:
    """Return whether a class provides something now that `pod` requests.

    Upstream: noderesources/fit.go isSchedulableAfterDeviceClassEvent.
    """
    name, asked = new.spec.extended_resource_name, pod.requests.amounts
    if old is None:
        return name in asked or PREFIX + new.metadata.name in asked
    return name in asked and name != old.spec.extended_resource_name
