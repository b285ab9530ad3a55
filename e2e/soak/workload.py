"""What the soak creates: nodes in two pools, and pods of every kind at their rates."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from e2e.bench.workload import (
    NODE_CPU_MILLIS,
    NODE_MEMORY_MIB,
    NODE_PODS,
    SCHEDULER_NAME,
    bench_node,
    node_name,
)
from e2e.controlplane.client import Object
from e2e.controlplane.objects import node, pod
from e2e.hostile.row import BOUND, Case
from e2e.hostile.surroundings import LABELS, document_of
from e2e.hostile.table import CASES
from e2e.hostile.very_much import LARGEST
from e2e.soak.ledger import Fate
from e2e.soak.plan import FILLERS_PER_NODE, Plan
from e2e.soak.room import Amounts

NAMESPACE = "soak"
PLAIN, SPREAD, HOSTILE, FILLER, PREEMPTOR = "plain", "spread", "hostile", "filler", "preemptor"
CLASSES: dict[str, int] = {FILLER: 100, PREEMPTOR: 1000}
"""Priorities by PriorityClass; all other pods have 0."""

_TIGHT = "tight"
_TAINT = {"key": "example.com/tight", "effect": "NoSchedule"}
_ZONES = 3
_SPREAD_EVERY = 10
_APPS = 8
# Cases about nodes, zones and claims that are not here, or whose verdict is that of smaller nodes; those that do not go
# when they are deleted; those that would be most of the load.
_ELSEWHERE = ("on-", "max-on-", "five-of-two-zones", "claim-", "sidecar-too-big", "500-containers", "n" * 253)
_LASTING = ("with-a-finalizer", "of-a-missing-owner", "grace-")


@dataclass(frozen=True, slots=True)
class Creation:
    """A pod to be created, what it is for and what must become of it."""

    document: Object
    kind: str
    fate: Fate

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])


def hostile_cases() -> dict[str, Case]:
    """Returns the odd pods whose verdict is the same on the soak's nodes, by name, the largest first.

    Going through all of them takes minutes. What the largest need is there when memory begins to be judged.
    """
    cases = {name: case for name, case in CASES.items() if not name.startswith((*_ELSEWHERE, *_LASTING, LARGEST))}
    sizes = {name: len(json.dumps(_hostile(0, name, case))) for name, case in cases.items()}
    return {name: cases[name] for name in sorted(cases, key=sizes.__getitem__, reverse=True)}


def soak_nodes(plan: Plan) -> list[Object]:
    """Returns all nodes: the benchmark's, and some small ones that only pods that preempt and their victims take."""
    plain = []
    for index in range(plan.nodes):
        document = bench_node(index)
        document["metadata"]["labels"] |= {**LABELS, "topology.kubernetes.io/zone": f"zone-{index % _ZONES}"}
        plain.append(document)
    tight = [
        node(tight_name(index), cpu=str(FILLERS_PER_NODE), labels={"pool": _TIGHT}, taints=[_TAINT])
        for index in range(plan.tight_nodes)
    ]
    return plain + tight


def tight_name(index: int) -> str:
    """Returns the name of a small node, counted from 0."""
    return f"tight-{index:02d}"


def allocatable(name: str) -> Amounts | None:
    """Returns what a node of the soak has, whether it is there at the moment or not."""
    if name.startswith(f"{_TIGHT}-"):
        return Amounts(FILLERS_PER_NODE * 1000, 16 << 30, 110)
    if name.startswith("node-"):
        return Amounts(NODE_CPU_MILLIS, NODE_MEMORY_MIB << 20, NODE_PODS)
    return None


class Workload:
    """Makes pods one after the other; every kind comes at its own rate among them."""

    def __init__(self, plan: Plan) -> None:
        self._serial = itertools.count()
        self._ordinary = itertools.count()
        self._hostile = itertools.cycle(hostile_cases().items())
        self._rates = {HOSTILE: plan.hostile_rate, FILLER: plan.filler_rate, PREEMPTOR: plan.preemptor_rate}
        self._rate = plan.rate
        self._owed = dict.fromkeys(self._rates, 0.0)

    def __iter__(self) -> Iterator[Creation]:
        return self

    def __next__(self) -> Creation:
        serial = next(self._serial)
        for kind, rate in self._rates.items():
            self._owed[kind] += rate / self._rate
        for kind, owed in self._owed.items():
            if owed >= 1.0:
                self._owed[kind] -= 1.0
                return {HOSTILE: self._odd, FILLER: _filler, PREEMPTOR: _preemptor}[kind](serial)
        ordinary = next(self._ordinary)
        return _spread(serial, ordinary // _SPREAD_EVERY % _APPS) if ordinary % _SPREAD_EVERY == 0 else _plain(serial)

    def _odd(self, serial: int) -> Creation:
        name, case = next(self._hostile)
        document = _hostile(serial, name, case)
        fate = Fate.BINDS if case.verdict == BOUND else Fate.NEVER_BINDS
        return Creation(document, HOSTILE, fate)


def _hostile(serial: int, name: str, case: Case) -> Object:
    document = document_of(f"hostile-{serial}", case, SCHEDULER_NAME, NAMESPACE)
    document["metadata"]["annotations"] = {**case.annotations, "case": name}
    return document


def _plain(serial: int) -> Creation:
    requests = {"cpu": "100m", "memory": "500Mi"}
    return Creation(pod(f"plain-{serial}", NAMESPACE, scheduler=SCHEDULER_NAME, requests=requests), PLAIN, Fate.BINDS)


def _spread(serial: int, app: int) -> Creation:
    """A pod of one of a few applications that like to be spread over zones, and apart from each other."""
    labels = {"app": f"app-{app}"}
    selector = {"matchLabels": labels}
    apart = {"weight": 10, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}}
    constraint = {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }
    document = pod(
        f"spread-{serial}",
        NAMESPACE,
        scheduler=SCHEDULER_NAME,
        requests={"cpu": "150m", "memory": "256Mi"},
        labels=labels,
        affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
        topologySpreadConstraints=[constraint],
    )
    return Creation(document, SPREAD, Fate.BINDS)


def _filler(serial: int) -> Creation:
    """A pod that fills a small node and ends for one of higher priority, a second after it was told to."""
    document = _on_tight(f"filler-{serial}", FILLER, cpu=1, grace_seconds=1)
    return Creation(document, FILLER, Fate.MAY_WAIT)


def _preemptor(serial: int) -> Creation:
    """A pod that has to make room for itself."""
    return Creation(
        _on_tight(f"preemptor-{serial}", PREEMPTOR, cpu=FILLERS_PER_NODE - 1, grace_seconds=0), PREEMPTOR, Fate.BINDS
    )


def _on_tight(name: str, priority: str, *, cpu: int, grace_seconds: int) -> Object:
    return pod(
        name,
        NAMESPACE,
        scheduler=SCHEDULER_NAME,
        requests={"cpu": str(cpu), "memory": "64Mi"},
        priorityClassName=priority,
        terminationGracePeriodSeconds=grace_seconds,
        nodeSelector={"pool": _TIGHT},
        tolerations=[{**_TAINT, "operator": "Exists"}],
    )


def plain_names(plan: Plan) -> list[str]:
    """Returns the names of the nodes that come, go and change."""
    return [node_name(index) for index in range(plan.nodes)]
