"""A live cluster as a trace: which pods came and how long they ran, and on which nodes, as two watches show it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from bayplan.api.credentials import Credentials
from bayplan.api.kinds import NODES, PODS
from bayplan.api.meta_objects import Quantity, controller_of
from bayplan.api.object_store import Handler
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.reflector import Reflector
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, node_allocatable
from bayplan.client.errors import ClientError
from bayplan.replay.trace import (
    HOSTNAME,
    NodePool,
    PodTemplate,
    StrictTaint,
    StrictToleration,
    Trace,
    TraceHeader,
    TracePod,
    trace_of,
)

MOST_PODS: Final = 1_000_000
"""A recording ends when it has so many, nodes included: each pod takes some 200 bytes."""
_TYPE: Final = "node.kubernetes.io/instance-type"
_CONDITIONS: Final = "node.kubernetes.io/"
"""What the keys of taints begin with that come and go with a node's health, and of tolerations that all pods have."""
_HIGHEST: Final = 10**9
_GIB: Final = 2**30
_NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_POLL_SECONDS: Final = 0.05
_SAVE_SECONDS: Final = 60.0
T = TypeVar("T", Node, Pod)


class RecordingError(ClientError):
    """The API server does not let nodes or pods be listed, or does not answer; the text says which."""


@dataclass(slots=True, eq=False)
class _Run:
    template: str
    owner: str
    arrived: float
    bound: float | None = None
    ended: float | None = None


@dataclass(slots=True, eq=False)
class _Stay:
    node: Node
    since: float
    until: float | None = None


@dataclass(eq=False)
class _Handler(Handler[T]):
    seen: Callable[[T], None]
    gone: Callable[[T], None]

    def on_add(self, obj: T) -> None:
        self.seen(obj)

    def on_delete(self, obj: T) -> None:
        self.gone(obj)


@dataclass(eq=False)
class Recording:
    """What was seen of nodes and pods, in seconds since `begin`, of which `trace` makes a trace at any time.

    No name of a pod, a namespace, a node or an owner is kept. `left_out` says how many pods have rules that traces have
    no field for, and how many never ran.
    """

    clock: Callable[[], float] = time.monotonic
    left_out: Counter[str] = field(default_factory=Counter, init=False)
    _began: float | None = field(default=None, init=False)
    _runs: list[_Run] = field(default_factory=list, init=False)
    _open: dict[str, _Run] = field(default_factory=dict, init=False)
    _stays: list[_Stay] = field(default_factory=list, init=False)
    _there: dict[str, _Stay] = field(default_factory=dict, init=False)
    _daemons: dict[str, dict[str, Mapping[str, int]]] = field(default_factory=dict, init=False)
    _templates: dict[bytes, PodTemplate] = field(default_factory=dict, init=False)
    _owners: dict[str, str] = field(default_factory=dict, init=False)

    def begin(self) -> None:
        """Let time pass: what was seen before was there at the start."""
        self._began = self.clock()

    @property
    def is_full(self) -> bool:
        """Whether it has as many pods and nodes as it may."""
        return len(self._runs) + len(self._stays) >= MOST_PODS

    def node_seen(self, node: Node) -> None:
        """A node is there; one whose amounts cannot be read, or that has no cpu, is left out."""
        try:
            if not node_allocatable(node).get(CPU):
                return
        except QuantityError:
            return
        stay = self._there.get(node.metadata.name)
        if stay is None:
            stay = self._there[node.metadata.name] = _Stay(node, self._now())
            self._stays.append(stay)
        stay.node = node

    def node_gone(self, node: Node) -> None:
        """A node is gone."""
        stay = self._there.pop(node.metadata.name, None)
        if stay is not None:
            stay.until = self._now()

    def pod_seen(self, pod: Pod) -> None:
        """A pod is there, with a node or without; one whose requests cannot be read is left out."""
        info, owner = PodInfo(pod), controller_of(pod.metadata)
        run = self._open.get(info.uid)
        try:
            amounts = info.requests.amounts
        except ValueError:
            return
        if info.stays:
            kept = self._daemons.setdefault(pod.spec.node_name, {})
            kept[info.uid if owner is None else owner.uid] = amounts
            return
        if run is None:
            name = "" if owner is None else self._owners.setdefault(owner.uid, f"owner-{len(self._owners) + 1}")
            run = self._open[info.uid] = _Run(self._template(info), name, self._now())
            self._runs.append(run)
        if pod.spec.node_name and run.bound is None:
            run.bound = self._now()

    def pod_gone(self, pod: Pod) -> None:
        """A pod ended."""
        run = self._open.pop(pod.metadata.uid, None)
        if run is not None:
            run.ended = self._now()
            self.left_out["never ran"] += run.bound is None

    def trace(self) -> Trace:
        """Return what was seen until now; pods that still run, or wait, run until now.

        Raises:
            RecordingError: there was no node.
        """
        end = max(self._now(), 1.0)
        keys = {_TYPE, *(key for each in self._templates.values() for key in each.node_selector)}
        groups: dict[bytes, list[_Stay]] = {}
        for stay in self._stays:
            groups.setdefault(_alike(stay.node, keys), []).append(stay)
        if not groups:
            raise RecordingError("no node was seen, so there is nothing to replay on")
        pools = [self._pool(number, stays, keys) for number, stays in enumerate(groups.values(), 1)]
        pods = [
            TracePod(
                round(run.arrived, 3),
                round((end if run.ended is None else run.ended) - (run.arrived if run.bound is None else run.bound), 3),
                run.template,
                owner=run.owner,
            )
            for run in self._runs
            if run.ended is None or run.bound is not None
        ]
        return trace_of(TraceHeader(pools, [*self._templates.values()], round(end, 3)), pods)

    def _now(self) -> float:
        return 0.0 if self._began is None else self.clock() - self._began

    def _template(self, info: PodInfo) -> str:
        spec = info.pod.spec
        selector = {key: value for key, value in (spec.node_selector or {}).items() if key != HOSTNAME}
        affinity = spec.affinity
        self.left_out.update(
            rule
            for rule, is_there in (
                ("node affinity", affinity and affinity.node_affinity),
                ("pod affinity", affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)),
                ("topology spread", spec.topology_spread_constraints),
                ("a node's name as selector", HOSTNAME in (spec.node_selector or {})),
                ("host ports", info.host_ports),
                ("volume claims", any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes or ())),
            )
            if is_there
        )
        tolerations = [
            StrictToleration(**structs.asdict(each))
            for each in spec.tolerations or ()
            if not each.key.startswith(_CONDITIONS)
        ]
        made = PodTemplate("", _quantities(info.requests.amounts), selector, tolerations, min(info.priority, _HIGHEST))
        key = msgspec.json.encode(made, order="deterministic")
        named = structs.replace(made, name=f"template-{len(self._templates) + 1}")
        return self._templates.setdefault(key, named).name

    def _pool(self, number: int, stays: Iterable[_Stay], keys: Collection[str]) -> NodePool:
        """Return the pool of nodes that are alike: with what the smallest offers, and what DaemonSets take at most."""
        smallest = min((each.node for each in stays), key=lambda node: node_allocatable(node).get(MEMORY, 0))
        steps = [(each.since, 1) for each in stays] + [(each.until, -1) for each in stays if each.until is not None]
        daemons: Counter[str] = Counter()
        for each in stays:
            taken: Counter[str] = Counter()
            for amounts in self._daemons.get(each.node.metadata.name, {}).values():
                taken.update(amounts)
            daemons |= taken
        offered = smallest.status.allocatable or {}
        return NodePool(
            name=f"{(smallest.metadata.labels or {}).get(_TYPE, 'pool')}-{number}",
            capacity={**offered, **(smallest.status.capacity or {})},
            allocatable=offered,
            labels=_labels(smallest, keys),
            taints=_taints(smallest),
            daemons=_quantities(daemons),
            count=max(0, *accumulate(step for _, step in sorted(steps))),
        )


async def record(
    recording: Recording,
    credentials: Credentials,
    stop: asyncio.Event,
    *,
    seconds: float | None = None,
    save: Callable[[], object] = lambda: None,
    list_seconds: float = 60.0,
) -> None:
    """Record from the moment nodes and pods are listed, until `stop`, for `seconds`, or until the recording is full.

    `save` is called as it begins, and every minute.

    Raises:
        RecordingError: a right is missing, or they were not listed in time.
    """
    refused: list[str] = []

    def on_refused(status: int, reason: str, _: float) -> bool:
        if status in {401, 403}:
            refused.append(reason)
        return bool(refused)

    nodes, pods = (
        Reflector(credentials, kind.path, kind.type, handler=handler, field_selector=selector, on_refused=on_refused)
        for kind, handler, selector in (
            (NODES, _Handler(recording.node_seen, recording.node_gone), ""),
            (PODS, _Handler(recording.pod_seen, recording.pod_gone), _NOT_ENDED),
        )
    )
    tasks = [asyncio.create_task(each.run()) for each in (nodes, pods)]
    try:
        until = time.monotonic() + list_seconds
        while not (nodes.synced and pods.synced):
            if refused or stop.is_set() or time.monotonic() >= until:
                raise RecordingError(refused[0] if refused else "it ended before nodes and pods were listed")
            await asyncio.sleep(_POLL_SECONDS)
        recording.begin()
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, stop.set)
        while not (stop.is_set() or recording.is_full):
            save()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAVE_SECONDS):
                    await stop.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _alike(node: Node, keys: Collection[str]) -> bytes:
    """Nodes of one pool have the same: of memory and storage, which differ by some pages, whole GiB."""
    rough = (MEMORY, EPHEMERAL_STORAGE)
    offered = {name: n // _GIB if name in rough else n for name, n in node_allocatable(node).items()}
    return msgspec.json.encode((offered, _labels(node, keys), _taints(node)), order="deterministic")


def _labels(node: Node, keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in (node.metadata.labels or {}).items() if key in keys}


def _taints(node: Node) -> list[StrictTaint]:
    kept = [each for each in node.spec.taints or () if not each.key.startswith(_CONDITIONS)]
    return [StrictTaint(**structs.asdict(each)) for each in kept]


def _quantities(amounts: Mapping[str, int]) -> dict[str, Quantity]:
    return {name: f"{amount}m" if name == CPU else amount for name, amount in amounts.items()}
