"""Adds up what a live run costs, by replay's own meter, as pods and nodes are seen to come and go."""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean, median

import msgspec

from bayplan.replay.outcome import Outcome, quantile, waits_of
from bayplan.replay.pools import Meter, Pools
from bayplan.replay.trace import Trace, TracePod


class Live(msgspec.Struct, frozen=True):
    """What a live run came to; seconds, as in an Outcome."""

    outcome: Outcome
    wait_p95: float
    empty_seconds: float
    """How long a node was empty before it was gone, on average; 0 if none went."""
    new_node_seconds: float
    """How long the first pod of a node had waited, in the median."""
    cpu_idle: float
    """The share of the machine's CPU time that nobody used."""
    create_p99: float
    """How long the API server took for the creation of a pod."""


@dataclass(slots=True, eq=False)
class _Pod:
    traced: TracePod
    came: float
    node: str = ""


class Ledger:
    """Counts from second 0 to the end of a trace; each call has the moment, and moments never go back."""

    def __init__(self, trace: Trace) -> None:
        pools = Pools(trace)
        self._milli_cpu = pools.pools[0].milli_cpu
        self._end = trace.header.seconds
        self._meter = Meter(pools, self._end)
        self._pods: dict[str, _Pod] = {}
        self._on: dict[str, int] = {}
        """How many pods each node that is there has, and in `_empty_since` since when it has none."""
        self._empty_since: dict[str, float] = {}
        self._opened: dict[str, float] = {}
        self._waits: list[float] = []
        self._empty_seconds: list[float] = []
        self._came = self._evicted = self._nodes_made = 0

    def came(self, uid: str, traced: TracePod, now: float) -> None:
        """Note that a pod was created."""
        self._came += 1
        self._pods[uid] = _Pod(traced, now)

    def bound(self, uid: str, node: str, now: float) -> None:
        """Note that a pod has a node, which may not have been seen yet."""
        self._meter.advance(now)
        pod = self._pods[uid]
        pod.node = node
        self._waits.append(now - pod.came)
        self._opened.setdefault(node, now - pod.came)
        self._on[node] = self._on.get(node, 0) + 1
        self._empty_since.pop(node, None)
        self._meter.pod(pod.traced.template, 1)

    def ended(self, uid: str, now: float, *, evicted: bool = False) -> None:
        """Note that a pod is gone; `evicted` if nobody of the load told it to."""
        self._meter.advance(now)
        pod = self._pods.pop(uid)
        self._evicted += evicted
        if pod.node:
            self._meter.pod(pod.traced.template, -1)
            self._on[pod.node] -= 1
            if not self._on[pod.node]:
                self._empty_since[pod.node] = now

    def nodes(self, before: Collection[str], names: Collection[str], now: float) -> None:
        """Note which nodes there are, and were the last time."""
        self._meter.advance(now)
        for _ in set(names) - set(before):
            self._nodes_made += 1
            self._meter.node(self._milli_cpu, 1)
        for name in set(before) - set(names):
            self._meter.node(self._milli_cpu, -1)
            if name in self._empty_since:
                self._empty_seconds.append(now - self._empty_since.pop(name))

    def live(self, *, seconds: float, cpu_idle: float, create_p99: float) -> Live:
        """Return what it all came to at the end of the trace."""
        self._meter.advance(self._end)
        waits, meter = sorted(self._waits), self._meter
        outcome = Outcome(
            pods=self._came,
            bound=len(waits),
            waiting=sum(not each.node for each in self._pods.values()),
            evicted=self._evicted,
            decisions=len(waits),
            node_hours=meter.node_seconds / 3600,
            core_hours_paid=meter.paid / 3_600_000,
            core_hours_asked=meter.asked / 3_600_000,
            lower_bound_node_hours=meter.bound_node_seconds / 3600,
            lower_bound_core_hours=meter.bound_cpu / 3_600_000,
            most_nodes=meter.most_nodes,
            nodes_made=self._nodes_made,
            wait_p50=quantile(waits, 0.5),
            wait_p99=quantile(waits, 0.99),
            waits=waits_of({0: waits}),
            moments=meter.moments,
            seconds=seconds,
            decision_seconds=0.0,
        )
        return Live(
            outcome,
            wait_p95=quantile(waits, 0.95),
            empty_seconds=fmean(self._empty_seconds or [0.0]),
            new_node_seconds=median(self._opened.values()) if self._opened else 0.0,
            cpu_idle=cpu_idle,
            create_p99=create_p99,
        )
