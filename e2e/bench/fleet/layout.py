"""The fleet's nodes with its pods on them, and the jobs that come: the same for whoever schedules."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bayplan.replay.generators import generate
from bayplan.replay.pools import Amounts, Pools
from bayplan.replay.trace import Trace, trace_of
from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import Object
from e2e.controlplane.objects import container, node, pod

_T = TypeVar("_T")
NODES, PODS = 2100, 7300
PLACEHOLDER_CLASS = "placeholder"
_FIGURES = REPOSITORY / "operator" / "bayplan" / "replay" / "ci_fleet.json"
_VARIABLES, _VALUE_BYTES, _ANNOTATIONS_BYTES = 45, 64, 3500
"""Environment and annotations that make a pod 12 kB large as the API server sends it."""


class Layout:
    """Nodes of the fleet's types, its pods of the peak on them by first fit, and room for as many jobs as will come.

    `placeholders` fill what is left, so that no job fits before one of its size, or several, are gone.
    """

    def __init__(self, *, nodes: int = NODES, pods: int = PODS, jobs: int = 2600) -> None:
        trace = generate("ci-fleet", seed=1, hours=0.01, scale=0.1)
        header = trace.header
        self._trace: Trace = trace_of(header, [])
        self._pools = Pools(self._trace)
        types = json.loads(_FIGURES.read_bytes())["types"]
        self._jobs: Mapping[str, int] = {each["name"]: each["jobs30d"] for each in types}
        peak = {each["name"]: each["peak"] for each in types}
        running = _shares(peak, pods)
        needed = self._pools.nodes_for(running + _shares(self._jobs, round(1.2 * jobs)))
        counts = _shares(needed, nodes)
        self.nodes: dict[str, int] = {
            f"{header.pools[index].name}-{number}": index for index, count in counts.items() for number in range(count)
        }
        """The pool of each node."""
        self._free = {name: dict(self._pools.pools[index].room) for name, index in self.nodes.items()}
        self.running = [*self._put(running, cut=False)]
        """Templates and nodes of the pods that run."""
        self.placeholders = [*self._put(_shares(self._jobs, 100 * nodes), cut=True)]

    def node_objects(self) -> Iterator[Object]:
        """Yield the nodes, with what kubelet and DaemonSets leave of them."""
        for name, index in self.nodes.items():
            amounts = _quantities(self._pools.pools[index].room)
            labels = self._trace.header.pools[index].labels
            made = node(name, labels=labels)
            made["status"] |= {"capacity": amounts, "allocatable": amounts}
            yield made

    def pod_objects(self, placed: Iterable[tuple[str, str]], namespace: str, **spec: object) -> Iterator[Object]:
        """Yield pods of templates on nodes."""
        for number, (template, on) in enumerate(placed):
            yield self._pod(f"{namespace}-{number}", namespace, template, on, **spec)

    def jobs(self, namespace: str, first: int, count: int) -> Iterator[Object]:
        """Yield pods that wait, in the proportions of a month."""
        rng = random.Random(first)
        drawn = rng.choices([*self._jobs], [*self._jobs.values()], k=count)
        for number, template in enumerate(drawn, first):
            yield self._pod(f"job-{number}", namespace, template, None)

    def _pod(self, name: str, namespace: str, template: str, on: str | None, **spec: object) -> Object:
        selector = self._trace.templates[template].node_selector
        amounts = {key: amount for key, amount in _quantities(self._pools.asked[template]).items() if key != "pods"}
        variables = [{"name": f"VARIABLE_{index:02}", "value": "v" * _VALUE_BYTES} for index in range(_VARIABLES)]
        spec |= {"containers": [container(amounts, env=variables)], "nodeSelector": selector}
        made = pod(name, namespace, scheduler=SCHEDULER_NAME, node_name=on, **spec)  # type: ignore[arg-type]  # of the spec
        made["metadata"]["annotations"] = {"example.com/bulk": "a" * _ANNOTATIONS_BYTES}
        return made

    def _put(self, counts: Mapping[str, int], *, cut: bool) -> Iterator[tuple[str, str]]:
        """Put pods on the first nodes with room, the largest first; with `cut`, as many as there is room for.

        With it templates take turns, so that there are some of each: one of a size after the other.
        """
        on: dict[int, list[str]] = defaultdict(list)
        for name, index in self.nodes.items():
            on[index].append(name)
        largest = sorted(counts, key=lambda each: -self._pools.asked[each].get("cpu", 0))
        wanted = Counter(counts)
        while wanted:
            for template in largest:
                if not wanted[template]:
                    continue
                batch = max(1, counts[template] // 100) if cut else wanted[template]
                for name in self._rooms(on[self._pools.of_template[template][0]], template, batch):
                    yield template, name
                    wanted[template] -= 1
                    batch -= 1
                if batch and not cut:
                    raise ValueError(f"no room for {batch} pods of {template}")
                if batch or not wanted[template]:
                    del wanted[template]

    def _rooms(self, names: Sequence[str], template: str, count: int) -> Iterator[str]:
        asked = self._pools.asked[template]
        for name in names:
            free = self._free[name]
            while count and all(free.get(key, 0) >= amount for key, amount in asked.items()):
                for key, amount in asked.items():
                    free[key] -= amount
                count -= 1
                yield name


def _shares(weights: Mapping[_T, float], total: int) -> Counter[_T]:
    """Return whole numbers in these proportions, whose sum is the total; each is at least 1."""
    whole = sum(weights.values())
    found = Counter({key: max(1, int(total * weight / whole)) for key, weight in weights.items()})
    for key in sorted(weights, key=lambda each: -weights[each]):
        if (left := total - found.total()) == 0:
            break
        found[key] += max(left, 1 - found[key]) if left < 0 else left
    return found


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in amounts.items()}


def write_documents(path: Path, documents: Iterable[Object]) -> int:
    """Writes objects as JSON lines, and returns how many."""
    lines = [json.dumps(each) for each in documents]
    path.write_text("\n".join(lines))
    return len(lines)
