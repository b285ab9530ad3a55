"""Compares what the scheduler holds with what lists from the API server say it should (upstream: cache/debugger)."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from bayplan.api.kinds import resource_of
from bayplan.api.meta_objects import key_of
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import TOO_MUCH
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.listers import Lister, NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.queue.scheduling_queue import SchedulingQueue

NODES: Final = "nodes"
PODS: Final = "pods"
ASSUMED: Final = "assumed"
PENDING: Final = "pending"
NOMINATIONS: Final = "nominations"
REQUESTED: Final = "requested"

Fact = tuple[object, ...]
"""What one side knows of an object: names, versions and amounts that compare."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An object of which cache and API server say different things; None where a side does not have it."""

    kind: str
    key: str
    held: Fact | None
    listed: Fact | None


@dataclass(slots=True)
class Dump:
    """What one side has, by kind and by key: names of nodes, UIDs of pods, "namespace/name" of the rest.

    `assumed` are pods counted on the scheduler's word only, `in_flight` those whose attempt or bind is under way.
    `uncertain` are keys of which nothing can be told: what cannot be read, and pods that end before they have a node.
    `sums` are what the pods held on a node add up to, which the columns (`facts[REQUESTED]`) must equal.
    """

    facts: dict[str, dict[str, Fact]] = field(default_factory=dict)
    assumed: dict[str, Fact] = field(default_factory=dict)
    in_flight: set[str] = field(default_factory=set)
    uncertain: set[tuple[str, str]] = field(default_factory=set)
    sums: dict[str, Fact] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, Fact]:
        """The facts of a kind, to be read or added to."""
        return self.facts.setdefault(kind, {})

    def sizes(self) -> dict[str, int]:
        """How many objects of each kind there are."""
        return {kind: len(facts) for kind, facts in sorted(self.facts.items())}


@dataclass(frozen=True, slots=True)
class CacheComparison:
    """What a comparison found: the differences that lasted, and how many objects of each kind the lists held."""

    differences: Sequence[Difference]
    compared: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many differences there are, by kind."""
        return dict(sorted(Counter(each.kind for each in self.differences).items()))


class ListError(Exception):
    """The API server did not answer with a list; the text says of which kind, and why."""


def compare_steps(held: Dump, listed: Dump) -> Iterator[Difference | None]:
    """Yield what the scheduler holds and the API server has not, or the other way round, or both in two ways.

    One object at a time, so that a caller can give way; None for what is the same. Upstream: backend/cache/debugger/
    comparer.go, which compares names only.
    """
    uncertain = held.uncertain | listed.uncertain
    # What the scheduler has decided runs ahead of the API server for as long as the bind is under way.
    under_way = {uid for uid in held.assumed if uid in held.in_flight and _agrees(uid, held, listed)}
    skipped = {PODS: held.assumed.keys(), PENDING: under_way}
    kinds = sorted((held.facts.keys() | listed.facts.keys()) - {REQUESTED})
    steps = [
        _assumed(held, listed, under_way),
        _differing(REQUESTED, held.of(REQUESTED), held.sums),
        *(_differing(kind, held.of(kind), listed.of(kind), skipped.get(kind, ())) for kind in kinds),
    ]
    for each in chain.from_iterable(steps):
        yield None if each is None or (each.kind, each.key) in uncertain else each


def lasting(first: Collection[Difference], second: Collection[Difference]) -> list[Difference]:
    """Return the differences of the second look that were there at the first, with the same fact held.

    What a watch was about to tell at the first look is told by the second, if the time between is longer than a watch
    takes. What is left is what no watch will tell.
    """
    before = {(each.kind, each.key): each.held for each in first}
    return [each for each in second if before.get((each.kind, each.key), each) == each.held]


def _agrees(uid: str, held: Dump, listed: Dump) -> bool:
    """Whether the API server shows an assumed pod waiting, or on the node where it is assumed."""
    placed = listed.of(PODS).get(uid)
    return uid in listed.of(PENDING) if placed is None else placed[:2] == held.assumed[uid]


def _assumed(held: Dump, listed: Dump, under_way: Collection[str]) -> Iterator[Difference | None]:
    """An assumed pod whose bind is over must be confirmed, or given back."""
    for uid, fact in held.assumed.items():
        if uid not in under_way:
            yield Difference(ASSUMED, uid, fact, listed.of(PODS).get(uid) or listed.of(PENDING).get(uid))


def _differing(
    kind: str, held: Mapping[str, Fact], listed: Mapping[str, Fact], skipped: Collection[str] = ()
) -> Iterator[Difference | None]:
    for key in held.keys() | listed.keys():
        ours, theirs = held.get(key), listed.get(key)
        yield Difference(kind, key, ours, theirs) if ours != theirs and key not in skipped else None


def dump_held(dump: Dump, cache: Cache, queue: SchedulingQueue) -> Iterator[None]:
    """Add all that cache, queue and listers hold to `dump`, one object at a time, so that a caller can give way."""
    for kind in cache.listers.wanted():
        facts = dump.of(resource_of(kind).plural)
        lister: Lister[Any] = cache.listers.of(kind)
        for key, obj in list(lister.objects.items()):
            facts[key] = _version(obj)
            yield
    table = cache.nodes
    for row, name in enumerate(list(table.names)):
        if name:
            _dump_row(dump, cache, row)
            yield
    for name in list(cache.without_node):
        _dump_pods(dump, cache, name, cache.without_node.get(name, {}))
        yield
    waiting = dump.of(PENDING)
    nominated = dump.of(NOMINATIONS)
    uids = queue.uids()
    for uid in uids:
        _dump_waiting(dump, queue, uid, waiting)
        yield
    nominator = queue.nominator
    for name in nominator.nodes():
        nominated.update((pod.uid, (name,)) for pod in nominator.nominated_pods_for_node(name) if pod.uid not in uids)


class ListedDump(Dump):
    """Collects what lists from the API server say the scheduler should hold.

    `add_pod` takes pods of all phases and schedulers; `profiles` are the names of ours.
    """

    def __init__(self, profiles: Collection[str]) -> None:
        super().__init__()
        self._profiles = profiles
        for kind in (NODES, PODS, PENDING, NOMINATIONS):
            self.of(kind)

    def add_node(self, node: Node) -> None:
        """A node; one whose amounts cannot be read is not to be held."""
        with suppress(ValueError):
            self.of(NODES)[node.metadata.name] = (*_version(node), _amounts(node_allocatable(node)))

    def add_pod(self, pod: Pod) -> None:
        """A pod; what is finished, or waits for another scheduler without a nomination, is not to be held."""
        info = PodInfo(pod)
        if is_finished(pod):
            return
        if pod.spec.node_name:
            try:
                self.of(PODS)[info.uid] = _placed(info, pod.spec.node_name)
            except ValueError:
                self.uncertain.add((PODS, info.uid))
        elif pod.spec.scheduler_name in self._profiles:
            self.of(PENDING)[info.uid] = (info.key, pod.metadata.resource_version)
            if pod.metadata.deletion_timestamp is not None or not _is_readable(info):
                self.uncertain.add((PENDING, info.uid))
        elif pod.status.nominated_node_name and _is_readable(info):
            self.of(NOMINATIONS)[info.uid] = (pod.status.nominated_node_name,)

    def add(self, plural: str, obj: NamedObject) -> None:
        """An object of a kind that plugins look up."""
        self.of(plural)[key_of(obj.metadata)] = _version(obj)

    def unreadable(self, plural: str, key: str, uid: str) -> None:
        """An object that cannot be read: the last readable version may be held, or none."""
        kinds = (PODS, PENDING, NOMINATIONS) if plural == PODS else (plural,)
        self.uncertain.update((kind, uid if plural == PODS else key) for kind in kinds)


def _dump_row(dump: Dump, cache: Cache, row: int) -> None:
    table = cache.nodes
    name, node, pods = table.names[row], table.nodes[row], table.pods[row]
    if node is not None:
        offered = {resource: int(column[row]) for resource, column in table.allocatable.items()}
        dump.of(NODES)[name] = (*_version(node), _amounts(offered))
    _dump_pods(dump, cache, name, pods)
    requested = {resource: int(column[row]) for resource, column in table.requested.items()}
    non_zero = (int(table.non_zero_cpu[row]), int(table.non_zero_memory[row]))
    dump.of(REQUESTED)[name] = (int(table.pod_count[row]), *non_zero, _amounts(requested))
    dump.sums[name] = _sums(list(pods.values()), table.requested)


def _dump_pods(dump: Dump, cache: Cache, node_name: str, pods: Mapping[str, PodInfo]) -> None:
    for uid, pod in pods.items():
        if cache.is_assumed(uid):
            dump.assumed[uid] = (pod.key, node_name)
        else:
            dump.of(PODS)[uid] = _placed(pod, node_name)


def _sums(pods: Collection[PodInfo], resources: Collection[str]) -> Fact:
    """What the columns of a row should say, summed from its pods."""
    placed = [pod.placed for pod in pods]
    amounts = {name: sum(each.amounts.get(name, 0) for each in placed) for name in resources}
    cpu, memory = sum(each.non_zero_cpu for each in placed), sum(each.non_zero_memory for each in placed)
    return (len(pods), min(cpu, TOO_MUCH), min(memory, TOO_MUCH), _amounts(amounts))


def _dump_waiting(dump: Dump, queue: SchedulingQueue, uid: str, waiting: dict[str, Fact]) -> None:
    newest, queued = queue.newest(uid), queue.get(uid)
    if newest is not None and queued is not None:
        waiting[uid] = (newest.key, newest.pod.metadata.resource_version)
        if queued.sub_queue is None:
            dump.in_flight.add(uid)


def _version(obj: NamedObject) -> Fact:
    return (obj.metadata.uid, obj.metadata.resource_version)


def _placed(pod: PodInfo, node_name: str) -> Fact:
    placed = pod.placed
    return (pod.key, node_name, placed.non_zero_cpu, placed.non_zero_memory, _amounts(placed.amounts))


def _amounts(amounts: Mapping[str, int]) -> Fact:
    return tuple(sorted((name, min(amount, TOO_MUCH)) for name, amount in amounts.items() if amount))


def _is_readable(pod: PodInfo) -> bool:
    try:
        return bool(pod.uid) and pod.requests is not None
    except ValueError:
        return False
