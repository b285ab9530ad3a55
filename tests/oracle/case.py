"""What the oracle stores: clusters, pods and what kube-scheduler decided, as compressed JSON lines."""

import functools
import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]

DATA = Path(__file__).with_name("data")
# A folder of fresh recordings takes the place of the stored ones, as `make oracle` asks.
RECORDINGS = Path(os.environ.get("BAYPLAN_ORACLE_DATA") or DATA)


@dataclass(slots=True)
class Scene:
    """A cluster and the pods to schedule on it, one after the other, before anybody has decided.

    All objects are as a user would write them. `objects` are those of other kinds, each with its `kind`. `foreign`
    are pods that other schedulers have still to place. `updates` are nodes and placed pods, each with its `kind`, that
    change when as many pods have been decided as the field `after` says; those with `created`, `deleted` or a `patch`
    are of any kind.
    """

    objects: list[Object] = field(default_factory=list)
    nodes: list[Object] = field(default_factory=list)
    placed: list[Object] = field(default_factory=list)
    incoming: list[Object] = field(default_factory=list)
    foreign: list[Object] = field(default_factory=list)
    updates: list[Object] = field(default_factory=list)

    def updates_after(self, count: int) -> list[Object]:
        """What changes once `count` pods have been decided, in order."""
        return [each for each in self.updates if each["after"] == count]


@dataclass(slots=True)
class Decision:
    """kube-scheduler's first decision about one pod, as its log has it; empty for a pod that only holds its room.

    `scores` has a list per plugin, in the order of `feasible`, after normalisation and weight; it is empty when one
    node was feasible, because nothing is scored then. `error` tells a cycle that failed from a pod that does not fit.
    `hinted` tells a pod that got its node from the ranking of the pod before it: then no other node was looked at.

    Where room was made by preemption, `nominated` is the node. `potential` is how many nodes evictions might have
    helped on, `wanted` how many candidates were enough, `checked` the nodes tried unless it was all of them, and
    `candidates` the victims, the most important last, on each node where evictions would have helped.
    `nomination_ended` tells that a pod without a node lost the nomination it came with. `claims` has what the pod's
    claims on devices had once it was bound, by their names.
    """

    node: str | None = None
    feasible: list[str] = field(default_factory=list)
    scores: dict[str, list[int]] = field(default_factory=dict)
    totals: list[int] = field(default_factory=list)
    message: str | None = None
    error: bool = False
    hinted: bool = False
    nominated: str | None = None
    potential: int = 0
    wanted: int = 0
    checked: list[str] = field(default_factory=list)
    candidates: dict[str, list[str]] = field(default_factory=dict)
    nomination_ended: bool = False
    claims: dict[str, Object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A scene that kube-scheduler has decided on; `decisions` go with `scene.incoming`."""

    name: str
    configuration: str
    scene: Scene
    decisions: list[Decision]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A case with the family it is of and the document of its configuration."""

    family: str
    document: Object
    case: Case


@dataclass(frozen=True, slots=True)
class Recording:
    """One family's file: which Kubernetes decided, the configurations by name, and the cases."""

    kubernetes: str
    configurations: dict[str, Object]
    cases: Iterable[Case]


def write_cases(path: Path, recording: Recording) -> None:
    """Write one family's cases; equal cases give equal bytes."""
    first = {"kubernetes": recording.kubernetes, "configurations": recording.configurations}
    lines = [first, *(_sparse(asdict(case)) for case in recording.cases)]
    text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read_cases(path: Path) -> Recording:
    """Read one family's file; cases are decoded when they are asked for, once."""
    first, *rest = gzip.decompress(path.read_bytes()).splitlines()
    head = msgspec.json.decode(first)
    cases = (_case(msgspec.json.decode(line)) for line in rest)
    return Recording(head.get("kubernetes", ""), head["configurations"], cases)


def recorded_cases(directory: Path, families: Iterable[str]) -> Iterator[Recorded]:
    """Every case of these families in a folder; a family without a file has none.

    A process decodes each file once, so nobody may change what a case holds.
    """
    for family in families:
        yield from _cases_of(directory, family)


@functools.cache
def _cases_of(directory: Path, family: str) -> tuple[Recorded, ...]:
    path = directory / f"{family}.jsonl.gz"
    if not path.exists():
        return ()
    recording = read_cases(path)
    return tuple(Recorded(family, recording.configurations[case.configuration], case) for case in recording.cases)


def _case(line: Object) -> Case:
    decisions = [Decision(**decision) for decision in line["decisions"]]
    return Case(line["name"], line["configuration"], Scene(**line["scene"]), decisions)


def _sparse(case: Object) -> Object:
    """The case without the empty fields of its scene and decisions."""
    case["scene"] = {key: value for key, value in case["scene"].items() if value}
    case["decisions"] = [{key: value for key, value in each.items() if value} for each in case["decisions"]]
    return case
