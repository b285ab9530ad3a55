"""What the oracle of preemption stores, as compressed JSON lines."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.oracle.case import Object, Scene

FILE = "preemption.gz"


@dataclass(slots=True)
class PreemptionDecision:
    """kube-scheduler's first decision about one pod, empty for a pod that is only there to hold its room.

    `node` is where it was bound, `nominated` where room was made for it. `potential` is how many nodes evictions
    might have helped on, `wanted` how many candidates were enough, `checked` the nodes tried unless it was all of
    them, and `candidates` the victims, the most important last, on each node where evictions would have helped.
    """

    node: str | None = None
    feasible: list[str] = field(default_factory=list)
    message: str | None = None
    error: bool = False
    nominated: str | None = None
    potential: int = 0
    wanted: int = 0
    checked: list[str] = field(default_factory=list)
    candidates: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreemptionCase:
    """A full cluster and what kube-scheduler decided; `decisions` go with `scene.incoming`."""

    name: str
    configuration: str
    scene: Scene
    decisions: list[PreemptionDecision]


def write_preemptions(path: Path, configurations: dict[str, Object], cases: Iterable[PreemptionCase]) -> None:
    """Write all cases; equal cases give equal bytes."""
    lines = [{"configurations": configurations}, *(_sparse(asdict(case)) for case in cases)]
    text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read_preemptions(path: Path) -> tuple[dict[str, Object], Iterator[PreemptionCase]]:
    """The configurations by name, and the cases."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return json.loads(lines[0])["configurations"], (_case(json.loads(line)) for line in lines[1:])


def _case(line: Object) -> PreemptionCase:
    decisions = [PreemptionDecision(**decision) for decision in line["decisions"]]
    return PreemptionCase(line["name"], line["configuration"], Scene(**line["scene"]), decisions)


def _sparse(case: Object) -> Object:
    case["decisions"] = [{key: value for key, value in each.items() if value} for each in case["decisions"]]
    return case
