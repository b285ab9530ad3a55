"""The report of a simulation, in the shape that `-o json` writes, and how full its cluster is."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from bayplan.api.claim_objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult
from bayplan.api.meta_objects import Struct, format_time
from bayplan.api.objects import NodeSelector
from bayplan.api.quantity import MAX_AMOUNT
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import Packing, fewest_for_sizes
from bayplan.cache.resources import PODS, PodRequests
from bayplan.explain.explanation import Explanation
from bayplan.explain.trace import Trace
from bayplan.framework.candidate import CRITERIA, Candidate, choose, deciding_criterion
from bayplan.plugins.extended_resources import PREFIX
from bayplan.simulate.cluster_objects import SkippedPod
from bayplan.simulate.drain import DrainedNode


class _Reported(msgspec.Struct, rename="camel", gc=False):
    """camelCase on the wire."""


class PreemptionCandidate(_Reported):
    """A node where evictions would help, by the criteria that candidates are compared by, in their order."""

    node: str
    victims: list[str]
    """As namespace/name, the most important first."""
    victim_priorities: list[int]
    num_pdb_violations: int = msgspec.field(name="numPDBViolations")
    highest_victim_priority: int
    priority_sum: int
    """Over the victims, each priority plus 2^31."""
    num_victims: int
    earliest_start_time: str | None
    """When the longest running victim of the highest priority started; none if it has not."""
    worse_by: str | None
    """The first criterion by which the chosen node is better; none for that node itself."""


class Preemption(_Reported):
    """The nodes that preemption compared, the one it chose, and the criterion that settled it."""

    candidates: list[PreemptionCandidate]
    chosen: str
    why: str


class AttemptReport(_Reported):
    """One scheduling attempt: `node` when the pod was placed, `message` when it was not.

    `nodes`, `explanation` and, after a preemption, `preemption` are there only with `--explain`.
    """

    node: str | None
    nominated_node_name: str | None
    victims: list[str]
    """The pods that preemption would remove, as namespace/name."""
    message: str | None
    feasible_nodes: int
    nodes: Trace | UnsetType = UNSET
    preemption: Preemption | UnsetType = UNSET
    explanation: Explanation | UnsetType = UNSET


class AllocatedDevice(DeviceRequestAllocationResult, frozen=True):
    """A device, or a share of one, that a claim got; a share says so in place of its random name."""

    shared: bool = False


class ClaimReport(Struct, frozen=True):
    """What a claim got, as in its status."""

    results: list[AllocatedDevice]
    config: list[DeviceAllocationConfiguration]
    node_selector: NodeSelector | None = None
    """From which nodes the devices can be reached; there only where not from all."""


class PodReport(_Reported):
    """A pod that named a profile, and its attempts."""

    namespace: str
    name: str
    scheduler_name: str
    attempts: list[AttemptReport]
    claims: dict[str, ClaimReport] | UnsetType = UNSET
    """What its claims on devices got in the end, by their names; there only of a pod that has some."""


class Allocation(_Reported):
    """Sums over nodes of one resource: milli-CPU for cpu, else bytes or counts."""

    requested: int
    allocatable: int
    requested_in_use: int
    """Requested on the nodes in use."""
    allocatable_in_use: int
    """Allocatable of the nodes in use."""
    stranded: int
    """Free on nodes where another resource is full: less of it is free there than an average pod asks for."""
    largest_free: int
    """Most that is free on one node which takes another pod: what a pod that asks for more finds nowhere."""
    at_least: bool | UnsetType = UNSET
    """There and true where a node has, or its pods ask for, MAX_AMOUNT or more: what is beyond that is not counted."""


class Summary(_Reported):
    """The cluster after the last attempt; all but seconds and decisions per second is the same in every run."""

    nodes: int
    nodes_in_use: int
    """Nodes with a pod that could run elsewhere: neither one of a DaemonSet nor a static one."""
    overcommitted_nodes: int
    """Nodes whose pods ask for more than they offer, which no scheduler brought about."""
    lower_bound_nodes: int
    """No placement of the pods that could run elsewhere has fewer nodes in use without asking more than one offers."""
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
    """Pods that got a node, whether or not they were evicted from it later."""
    unschedulable: int
    gated: int
    preempted: int
    """Pods that were evicted to make room, whether they had a node to begin with or got one here."""
    skipped: list[SkippedPod]
    drained: list[DrainedNode]
    """Nodes that were drained or removed."""
    ignored_kinds: dict[str, int]
    allocation: dict[str, Allocation]
    decisions_per_second: float
    seconds: float
    """How long the scheduling took, without reading files and reporting."""
    stranded_devices: float | UnsetType = UNSET
    """What is left of devices that are taken in part, in devices; there only where there are ResourceSlices."""


class Capacity(_Reported):
    """How many copies of a pod found room, and why no more did."""

    pod: str
    """As namespace/name."""
    fits: int
    """How many copies; of a pod whose gang is not whole, how many such gangs."""
    asked: int | None
    """None where as many as fit were asked for."""
    per_node: dict[str, int]
    """How many pods on each node, for those that take any."""
    scheduling_gates: list[str]
    """What keeps the pod itself from being tried, without which it was counted."""
    stopped_by: str | None
    """Why the next copy finds no node; None where no more were asked for."""
    gang_of: int | UnsetType = UNSET
    """How many pods each gang has; there only where gangs are counted."""


class Repack(_Reported):
    """What came of placing pods that run anew."""

    nodes_in_use_before: int
    nodes_in_use: int
    emptied_nodes: int
    """How many fewer nodes are needed: those in use, and those of the pods that found no other."""
    placed: int
    """Pods that ran before and found a node."""
    joined: int
    """Pods that did not run before and are on a node now; the nodes in use before are counted without them."""
    unplaced: dict[str, int]
    """How many found none, by reason."""
    staying: dict[str, int]
    """How many were left where they are, by reason."""


class Report(_Reported):
    """Everything a simulation found; pods in the order in which they were first tried, gated pods last."""

    pods: list[PodReport]
    summary: Summary
    count: Capacity | UnsetType = UNSET
    """How many more of a pod fit; there only with `--count`."""
    repack: Repack | UnsetType = UNSET
    """There only with `--repack`."""


class Compared(_Reported):
    """What one of several configurations made of the same cluster."""

    config: str
    """The file."""
    report: Report


class MovedPod(_Reported):
    """A pod that is not on the same node with every configuration."""

    namespace: str
    name: str
    nodes: list[str | None]
    """Where it is in the end, in the order of the configurations; None where it is on no node."""


class Comparison(_Reported):
    """Several configurations on the same cluster, in the order in which they were given."""

    configurations: list[Compared]
    moved: list[MovedPod]
    """In the order of namespace and name."""


def encode(report: object) -> bytes:
    """A report, or what has several of them, as indented JSON text with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def preemption(candidates: Sequence[Candidate]) -> Preemption:
    """How preemption chose among `candidates`, as it is reported; there is at least one."""
    chosen = choose(candidates)
    worse_by = [None if each is chosen else deciding_criterion(chosen, each) for each in candidates]
    compared = [_compared(each, text) for each, text in zip(candidates, worse_by, strict=True)]
    settled = max((CRITERIA.index(text) for text in worse_by if text is not None), default=None)
    why = "no other node would fit after evictions" if settled is None else CRITERIA[settled]
    return Preemption(compared, chosen.node_name, why)


def _compared(candidate: Candidate, worse_by: str | None) -> PreemptionCandidate:
    start = candidate.latest_start
    return PreemptionCandidate(
        node=candidate.node_name,
        victims=[victim.key for victim in candidate.victims],
        victim_priorities=[victim.priority for victim in candidate.victims],
        num_pdb_violations=candidate.pdb_violations,
        highest_victim_priority=candidate.highest_priority,
        priority_sum=candidate.priority_sum,
        num_victims=len(candidate.victims),
        earliest_start_time=None if start == inf else format_time(start),
        worse_by=worse_by,
    )


@dataclass(frozen=True, slots=True)
class ClusterUse:
    """What the nodes of a table hold."""

    nodes_in_use: int
    overcommitted_nodes: int
    lower_bound_nodes: int
    allocation: dict[str, Allocation]
    """By resource name, in alphabetical order; `pods` counts pods."""


def cluster_use(nodes: NodeTable, by_devices: Collection[str] = ()) -> ClusterUse:
    """Sum up the existing nodes, in Python's integers so that absurd amounts cannot wrap.

    Resources `by_devices` count where a device plugin offers them: elsewhere pods have devices in their place. So do
    those that are named after a class; the class itself may have been left out, as of a redacted snapshot.
    """
    rows = nodes.rows()
    asked = {name for row in rows.tolist() for pod in nodes.pods[row].values() for name in pod.placed.amounts}
    by_devices = {*by_devices, *(name for name in asked if name.startswith(PREFIX))}
    in_use = nodes.in_use()[rows].tolist()
    overcommitted = np.zeros(len(rows), dtype=np.bool_)
    packing = Packing(nodes, [*nodes.requested, PODS])
    stranded, largest_free = packing.stranded(), packing.largest()
    allocation: dict[str, Allocation] = {}
    capacities: dict[str, list[int]] = {}
    for name in (*nodes.requested, PODS):
        allocatable, taken = nodes.offered(name)[rows], nodes.taken(name)[rows]
        if name in by_devices:
            taken = np.where(allocatable > 0, taken, 0)
        capacities[name] = np.maximum(allocatable - packing.staying(name)[rows], 0).tolist()
        overcommitted |= taken > allocatable
        offered, requested = allocatable.tolist(), taken.tolist()
        allocation[name] = Allocation(
            requested=sum(requested),
            allocatable=sum(offered),
            requested_in_use=sum(compress(requested, in_use)),
            allocatable_in_use=sum(compress(offered, in_use)),
            stranded=stranded[name],
            largest_free=largest_free[name],
            at_least=max((*offered, *requested), default=0) >= MAX_AMOUNT or UNSET,
        )
    shapes: Counter[tuple[int, frozenset[str]]] = Counter()
    by_id: dict[int, PodRequests] = {}
    known = {*nodes.requested, *by_devices}
    by_plugins = {name: nodes.offered(name) for name in by_devices}
    for index, row in enumerate(rows.tolist()):
        uncounted = frozenset(name for name, offers in by_plugins.items() if offers[row] <= 0)
        for pod in nodes.pods[row].values():
            placed = pod.placed
            if not pod.stays:
                shapes[id(placed), uncounted] += 1
                by_id[id(placed)] = placed
            overcommitted[index] |= not known >= placed.amounts.keys()
    sizes = {PODS: Counter({1: shapes.total()})}
    for (key, uncounted), count in shapes.items():
        for name, amount in by_id[key].amounts.items():
            if name not in uncounted:
                sizes.setdefault(name, Counter())[amount] += count
    return ClusterUse(
        nodes_in_use=sum(in_use),
        overcommitted_nodes=int(overcommitted.sum()),
        # No number of nodes covers a resource that none has.
        lower_bound_nodes=lower_bound_nodes({name: capacities.get(name, [0] * len(rows)) for name in sizes}, sizes),
        allocation=dict(sorted(allocation.items())),
    )


def lower_bound_nodes(capacities: Mapping[str, Sequence[int]], sizes: Mapping[str, Mapping[int, int]]) -> int:
    """Return a number of nodes that no placement does with fewer of, the largest of the bounds of single resources.

    Rules of pods, and several resources together, can only make it more. Where all nodes
    together do not cover what is asked for, all of them count.

    Args:
        capacities: by resource name, what each node offers; `pods` is how many pods it may hold.
        sizes: by resource name, how many pods ask for each amount; each pod asks for one of `pods`.
    """
    return max((fewest_for_sizes(capacities[name], counts) for name, counts in sizes.items()), default=0)
