"""DynamicResources: run a pod where there are devices for its claims, and allocate them before it is bound."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from time import thread_time
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.api.meta_objects import key_of
from bayplan.cache.change_log import Rows
from bayplan.cache.group_members import group_key
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import DeviceChoice, DynamicResourcesArgs
from bayplan.devices.allocator import ATTEMPT_SECONDS, Grant
from bayplan.devices.device_counts import DeviceCount
from bayplan.devices.results import Refusal
from bayplan.framework.causes import Detail, same_for_all, told
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.interface import (
    NOT_CONCERNED,
    CycleState,
    PostFilterResult,
    PreFilterResult,
    Rejections,
    Scores,
)
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import (
    SKIP,
    SUCCESS,
    Afterwards,
    Code,
    Codes,
    Exchange,
    Normalize,
    Reads,
    Reason,
    Status,
    Traits,
)
from bayplan.plugins.dynamic_resources.binding_conditions import is_unusable
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.claim_hints import claim_registrations
from bayplan.plugins.dynamic_resources.cycle_claims import (
    MOST_ALTERNATIVES,
    Answer,
    Found,
    PodClaims,
    has_alternatives,
    score,
    shortages,
)
from bayplan.plugins.dynamic_resources.extended_claim import ExtendedClaim
from bayplan.plugins.dynamic_resources.pod_claims import ClaimError, check_classes, claims_of
from bayplan.plugins.dynamic_resources.reservations import Reservations
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.plugins.node_affinity import NodeSelection
from bayplan.plugins.node_resources.resource_scoring import shape_table

Mask = NDArray[np.bool_]
_WITHOUT_PRE_FILTER: Final = "not found"
_NOTHING_TO_DEALLOCATE: Final = PostFilterResult(Status(Code.UNSCHEDULABLE))
_DELETED: Final = PostFilterResult(Status(Code.UNSCHEDULABLE, ("deletion of ResourceClaim completed",)))
_DEALLOCATED: Final = PostFilterResult(Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",)))
_STATE_NOT_FOUND: Final = PostFilterResult(Status(Code.ERROR, (_WITHOUT_PRE_FILTER,)))
_NOT_AVAILABLE: Final = "resourceclaim not available on the node"


class DynamicResources:
    """Rejects nodes that have no devices for the pod's claims, and allocates what it gets on the chosen one.

    Reserve has the devices count as taken. PreBind writes the claims before the pod is bound, and makes sure that no
    other scheduler gave one of the devices away at the same time. Nodes score by which of a request's alternatives they
    give, and with a `shape` also by how much of their devices is taken then. Pods without claims notice it in one
    place: its PostFilter fails with `not found` where its PreFilter was not run, so a pod that an earlier PreFilter
    rejects for good preempts nobody. `clock` gives seconds since the epoch. A search ends by `cpu_clock`,
    so that a machine that is busy with other things takes none of its time.

    Upstream: plugins/dynamicresources/dynamicresources.go.
    """

    name: ClassVar[str] = "DynamicResources"
    # What a pod's claims need is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(
        reads=Reads.CLUSTER,
        signs_less=True,
        normalize=Normalize.DEFAULT,
        without_pre_filter=_WITHOUT_PRE_FILTER,
        asked_late=True,
        reads_pre_filter_later=True,
        scores_what_it_found=True,
    )

    def __init__(
        self,
        args: DynamicResourcesArgs,
        nodes: NodeTable,
        index: NodeIndex,
        cache: ClaimCache,
        extended: ExtendedResources,
        *,
        afterwards: Afterwards,
        clock: Callable[[], float],
        cpu_clock: Callable[[], float] = thread_time,
        calls: PluginCalls,
    ) -> None:
        self._binding_seconds = seconds = args.binding_timeout.total_seconds()
        self._filter_seconds = min(args.filter_timeout.total_seconds() or ATTEMPT_SECONDS, ATTEMPT_SECONDS)
        self._nodes = nodes
        self._index = index
        self._cache = cache
        self._extended = extended
        self._clock, self._cpu_clock = clock, cpu_clock
        self._packs = args.device_choice is DeviceChoice.LEAST_LEFT_OVER
        self._points = shape_table(args.shape).tolist() if args.shape else None
        self._reservations = Reservations(cache, afterwards, clock, seconds, calls)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(pod.pod.spec.resource_claims or self._extended.asked_by(pod))

    def sign_inputs(self, pod: PodInfo) -> object:
        return self._extended.asked_by(pod)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return claim_registrations(self._cache.get, self._extended)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.pod.spec.resource_claims:
            return SUCCESS
        try:
            claims_of(pod, self._cache.get)
        except ClaimError as error:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(error),))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        asked = self._extended.asked_by(pod)
        if not (pod.pod.spec.resource_claims or asked):
            return NOT_CONCERNED
        state[self.name] = PodClaims([])
        try:
            found = PodClaims(claims_of(pod, self._cache.get))
            self._sort_out(found, pod)
        except ClaimError as error:
            return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (str(error),)))
        if asked:
            found.extended = ExtendedClaim(pod, asked, self._cache.special_claim(pod.uid))
        state[self.name] = found
        return PreFilterResult(SUCCESS if found.claims or asked else SKIP)

    def _sort_out(self, found: PodClaims, pod: PodInfo) -> None:
        """Find out which claims are to be allocated.

        Raises:
            ClaimError: one of them is being allocated, or asks for a class that is not there.
        """
        for claim in found.claims:
            if claim.status.allocation is not None:
                continue
            key, uid = key_of(claim.metadata), claim.metadata.uid
            pending = self._cache.pending.get(uid)
            if pending is None:
                check_classes(claim, self._cache.classes.get)
                found.to_allocate.append(claim)
            elif pending.group is None or pending.group != group_key(pod.pod):
                raise ClaimError(f"resource claim {key} is in the process of being allocated")
            else:
                found.pending[uid] = pending.allocation

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        claims: PodClaims = state[self.name]
        found = claims.found = self._find(claims, nodes, rows)
        codes = found.unavailable * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        for position, answer in enumerate(found.answers):
            if isinstance(answer, Refusal):
                codes[position] = Code.ERROR if answer.fails else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        claims: PodClaims = state[self.name]
        found = claims.found.at(rows)
        texts = np.array([_NOT_AVAILABLE if each else "" for each in found.unavailable.tolist()], dtype=object)
        for position, answer in enumerate(found.answers):
            if isinstance(answer, Refusal):
                node, text = nodes.names[int(rows[position])], answer.text
                if answer.timed_out:
                    text = f"node {node}: {text}"
                elif answer.fails:
                    # It is told by the devices of this node. That is asked for one node alone, whose error counts.
                    (again,) = self._ask(claims, nodes, rows[position : position + 1])
                    text = again.text if isinstance(again, Refusal) else text
                texts[position] = text
        return [Reason(text, texts == text) for text in dict.fromkeys(texts.tolist()) if text]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        claims: PodClaims = state[self.name]
        count = partial(self._cache.allocator().count, now=self._cpu_clock)
        counts: list[Sequence[DeviceCount]] = [
            () if each is None or isinstance(each, Refusal) else each for each in claims.ask(nodes, rows, count)
        ]
        yield from (short := list(shortages(counts, [nodes.names[row] for row in rows.tolist()])))
        told_already = np.logical_or.reduce([each.holds for each in short]) if short else np.zeros(len(rows), np.bool_)
        for reason in self.reasons(state, pod, nodes, rows):
            left = reason.holds & ~told_already
            if left.any():
                yield same_for_all(left, told(reason.text))

    def _find(self, claims: PodClaims, nodes: NodeTable, rows: Rows) -> Found:
        """Search the rows for devices, and for claims that have some and are not available there."""
        unavailable = np.zeros(len(rows), dtype=np.bool_)
        claims.unavailable = kept_off = []
        for claim in claims.claims:
            allocation = claims.allocation(claim)
            if allocation is None:
                continue
            there = np.ones(len(rows), dtype=np.bool_)
            if allocation.node_selector is not None:
                selection = NodeSelection(allocation.node_selector.node_selector_terms or ())
                there = selection.matches(self._index, nodes, rows)
            if is_unusable(claim, self._binding_seconds, self._clock()):
                there[:] = False
            if not there.all():
                unavailable |= ~there
                kept_off.append((claim, rows[~there]))
        return Found(rows, self._ask(claims, nodes, rows), unavailable)

    def _ask(self, claims: PodClaims, nodes: NodeTable, rows: Rows) -> Sequence[Answer | None]:
        allocator, seconds = self._cache.allocator(), self._filter_seconds
        return claims.ask(
            nodes, rows, partial(allocator.allocate, now=self._cpu_clock, seconds=seconds, packs=self._packs)
        )

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        """Have a claim that only this pod may use give its devices back if they keep it from a node.

        They do where all else is well: no filter before rejects the node, and it has devices for the other claims.
        """
        if self.name not in rejections.pre_filtered:
            return _STATE_NOT_FOUND
        claims: PodClaims | None = state.get(self.name)
        if claims is not None and claims.unavailable and rejections.first is not None:
            number = [each.name for each in rejections.filters].index(self.name)
            rejected = rejections.rows[rejections.first == number]
            answers = zip(rejected.tolist(), claims.found.at(rejected).answers, strict=True)
            kept_off = [row for row, answer in answers if not isinstance(answer, Refusal)]
            for claim, where in claims.unavailable:
                is_its_own = all(each.uid == pod.uid for each in claim.status.reserved_for or ())
                if claim.status.allocation is not None and is_its_own and np.isin(where, kept_off).any():
                    self._reservations.deallocate(claim)
                    return _DEALLOCATED
        if claims is not None and claims.extended is not None and claims.extended.left_over is not None:
            self._reservations.delete(claims.extended.left_over, pod)
            return _DELETED
        return _NOTHING_TO_DEALLOCATE

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        scores = np.zeros(len(rows), dtype=np.int64)
        claims: PodClaims = state[self.name]
        points = self._points
        if points is None and not any(map(has_alternatives, claims.claims)):
            return scores
        elsewhere = sum(score(each, allocation) for each in claims.claims if (allocation := claims.allocation(each)))
        for position, answer in enumerate(claims.found.at(rows).answers):
            node = nodes.nodes[int(rows[position])]
            if isinstance(answer, Grant) and node is not None:
                value = elsewhere + sum(MOST_ALTERNATIVES - choice for choice in answer.choices)
                if points is not None:
                    # An earlier alternative goes before a fuller node.
                    value = value * len(points) + points[answer.utilization(node, self._cache.state)]
                scores[position] = value
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Have what the node gives count as taken."""
        claims: PodClaims | None = state.get(self.name)
        row = self._nodes.row(node_name)
        node = None if row is None else self._nodes.nodes[row]
        if claims is None or node is None:
            return SUCCESS
        allocations, rows = dict(claims.pending), np.array([row], dtype=np.intp)
        ((_, special),) = claims.parts(self._nodes, rows)
        special = None if isinstance(special, Refusal) else special
        if wanted := claims.wanted(special):
            (answer,) = claims.found.at(rows).answers
            if not isinstance(answer, Grant):
                return Status(Code.ERROR, ("claim allocation not found for node",))
            uids = (each.metadata.uid for each in wanted)
            allocations |= zip(uids, answer.allocations(wanted, node), strict=True)
        if claims.claims or special is not None:
            self._reservations.reserve(claims.claims, allocations, pod, special)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give that back, and the right to use claims that was written; allocations that were written stay."""
        self._reservations.unreserve(pod)

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Exchange | None:
        """Return the writes of the pod's claims, and the waits until its devices are its own and ready."""
        return self._reservations.exchange(pod, node_name)
