"""`python -m e2e.bench.device_packing`: nodes and devices that claims take, with and without packing.

Nodes have eight GPUs, of 40 or of 80 GiB: four that may be cut into partitions, whose places share counters, two that
are shared by memory, and two that are neither. Pods that claim whole GPUs, partitions and shares come one after the
other, in random order, until they have asked for a part of all GPUs, and stay. A pod that finds no room is left out.
Decisions are those of the engine alone, without API server.
"""

import argparse
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass, ResourceSlice
from bayplan.api.objects import Node, Pod
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    DeviceChoice,
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)
from bayplan.simulate.admission import Admission
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import Decoder
from bayplan.simulate.simulator import Simulator
from e2e.bench.report import markdown
from e2e.controlplane.client import Object
from e2e.controlplane.devices import DRIVER
from e2e.controlplane.objects import node, pod

_NODE, _POD, _ADMISSION = Decoder(Node), Decoder(Pod), Admission(())
_GPUS: Final = ("cut", "plain", "cut", "shared", "cut", "plain", "cut", "shared")
_SLICES: Final = 8
"""Into so many parts a GPU's memory is cut."""
_PROFILES: Final = {"1g": (1, range(7)), "2g": (2, (0, 2, 4)), "3g": (4, (0, 4))}
"""By kind of partition, how many of them it takes, and where it can begin."""
_DEMAND: Final = {"whole": 0.35, "cut": 0.42, "shared": 0.23}
_FULL: Final = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
_BOTH: Final = DynamicResourcesArgs(device_choice=DeviceChoice.LEAST_LEFT_OVER, shape=_FULL)
_MOST: Final = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED))
WAYS: Final = {
    "none, as kube-scheduler": (NodeResourcesFitArgs(), DynamicResourcesArgs()),
    "`deviceChoice`": (NodeResourcesFitArgs(), DynamicResourcesArgs(device_choice=DeviceChoice.LEAST_LEFT_OVER)),
    "`shape`": (NodeResourcesFitArgs(), DynamicResourcesArgs(shape=_FULL)),
    "both": (NodeResourcesFitArgs(), _BOTH),
    "CPU and memory": (_MOST, DynamicResourcesArgs()),
    "CPU, memory, both": (_MOST, _BOTH),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of the pods; `stranded` is what is left of GPUs that are taken in part, in GPUs."""

    nodes: int
    refused: float
    broken: int
    stranded: float


def cluster(count: int) -> ClusterObjects:
    """Returns the nodes and their devices."""
    objects = ClusterObjects(looked_up=[_as(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}})])
    for index in range(count):
        name, memory = f"node-{index:03d}", (40, 80)[index % 2]
        objects.nodes.append(_ADMISSION.node(_NODE(node(name, cpu="64", memory="512Gi"))))
        devices = [each for number, kind in enumerate(_GPUS) for each in _devices(number, kind, memory)]
        counters = {f"slice-{number}": {"value": "1"} for number in range(_SLICES)}
        sets = [{"name": f"gpu-{number}", "counters": counters} for number, kind in enumerate(_GPUS) if kind == "cut"]
        for part, content in (("counters", {"sharedCounters": sets}), ("devices", {"devices": devices})):
            pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, **content}
            objects.looked_up.append(_as(ResourceSlice, {"metadata": {"name": f"{name}-{part}"}, "spec": spec}))
    return objects


def _devices(number: int, kind: str, memory: int) -> Iterator[Object]:
    def device(suffix: str, profile: str, places: range) -> Object:
        size = memory * len(places) // _SLICES
        made: Object = {"name": f"gpu-{number}{suffix}", "attributes": {"profile": {"string": profile}}}
        made["capacity"] = {"memory": {"value": f"{size}Gi"}}
        if kind == "cut":
            counters = {f"slice-{place}": {"value": "1"} for place in places}
            made["consumesCounters"] = [{"counterSet": f"gpu-{number}", "counters": counters}]
        return made | ({"allowMultipleAllocations": True} if kind == "shared" else {})

    yield device("", "shared" if kind == "shared" else "whole", range(_SLICES))
    if kind == "cut":
        for profile, (size, starts) in _PROFILES.items():
            for start in starts:
                yield device(f"-{profile}-{start}", profile, range(start, start + size))


def pods(gpus: float, dice: random.Random) -> list[tuple[PodInfo, ResourceClaim, float]]:
    """Returns pods in random order with their claims and how many GPUs they ask for, so many in all.

    Whole GPUs are asked for one, two or four at a time. Each pod asks for 1, 2 or 4 CPUs besides.
    """
    asked: list[tuple[str, int, str | None, float]] = []
    for kind, part in _DEMAND.items():
        left = gpus * part
        while left > 0:
            profile = dice.choice(tuple(_PROFILES)) if kind == "cut" else kind
            # A GPU has 60 GiB on average.
            memory = dice.choice((4, 8, 12, 20, 30)) if kind == "shared" else 0
            number = dice.choice((1, 2, 4)) if kind == "whole" else 1
            size = memory / 60 or (_PROFILES[profile][0] / _SLICES if kind == "cut" else number)
            asked.append((profile, number, f"{memory}Gi" if memory else None, size))
            left -= size
    dice.shuffle(asked)
    return [
        (*_claiming(f"pod-{number:05d}", *each[:3], dice.choice((1, 2, 4))), each[3])
        for number, each in enumerate(asked)
    ]


def _claiming(name: str, profile: str, count: int, memory: str | None, cpu: int) -> tuple[PodInfo, ResourceClaim]:
    expression = f'device.attributes["{DRIVER}"].profile == "{profile}"'
    wanted: Object = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    wanted |= {"selectors": [{"cel": {"expression": expression}}]}
    wanted |= {"capacity": {"requests": {"memory": memory}}} if memory else {}
    meta = {"name": name, "namespace": "default", "uid": name}
    claim = {"metadata": meta, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}}
    document: Object = pod(name, "default", scheduler="bayplan", requests={"cpu": str(cpu), "memory": f"{4 * cpu}Gi"})
    document["metadata"]["uid"] = name
    document["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    return PodInfo(_ADMISSION.pod(_POD(document))), _as(ResourceClaim, claim)


def run(count: int, demand: float, ways: tuple[NodeResourcesFitArgs, DynamicResourcesArgs], seed: int) -> Figures:
    """Returns what becomes of pods that ask for that part of all GPUs."""
    configuration = default_configuration()
    (profile,) = configuration.profiles
    config = {**profile.plugin_config, "NodeResourcesFit": ways[0], "DynamicResources": ways[1]}
    configuration = replace(configuration, profiles=(replace(profile, plugin_config=config),))
    simulator = Simulator(configuration, reports=False)
    simulator.add(cluster(count))
    refused = asked = 0.0
    used: set[str] = set()
    for info, claim, size in pods(demand * count * len(_GPUS), random.Random(f"{seed}/{demand}")):
        simulator.add(ClusterObjects(pods=[info], looked_up=[claim]))
        while simulator.step() is not None:
            pass
        where = simulator.cache.node_of(info.uid)
        asked += size
        if where is None:
            refused += size
        else:
            used.add(where)
    taken = _taken(simulator)
    parts = [share for share in taken.values() if share < 1]
    return Figures(len(used), 100 * refused / asked, len(parts), len(parts) - sum(parts))


def _taken(simulator: Simulator) -> Counter[tuple[str, str]]:
    """Returns how much is taken of each GPU of which anything is."""
    taken: Counter[tuple[str, str]] = Counter()
    for claim in simulator.cache.listers.of(ResourceClaim).objects.values():
        for result in (claim.status.allocation and claim.status.allocation.devices.results) or ():
            _, number, *partition = result.device.split("-")
            share: Any = _PROFILES[partition[0]][0] / _SLICES if partition else 1
            if result.consumed_capacity:
                memory = (40, 80)[int(result.pool.removeprefix("node-")) % 2]
                share = int(str(result.consumed_capacity["memory"]).removesuffix("Gi")) / memory
            taken[result.pool, number] += share
    return taken


def _as(kind: Any, document: Object) -> Any:  # noqa: ANN401  one of the kind
    return msgspec.convert(document, kind)


def main() -> int:
    """Parses the arguments, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.device_packing", description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--demand", type=float, nargs="+", default=[0.8, 0.95], help="part of the GPUs asked for")
    parser.add_argument("--seeds", type=int, default=3, help="means are over the seeds 1 to this (3)")
    flags = parser.parse_args()
    rows = []
    for demand in flags.demand:
        for way, args in WAYS.items():
            each = [run(flags.nodes, demand, args, seed) for seed in range(1, flags.seeds + 1)]
            means = [
                statistics.fmean(getattr(found, name) for found in each)
                for name in ("nodes", "refused", "broken", "stranded")
            ]
            rows.append([f"{demand:.0%}", way, *(f"{mean:.1f}" for mean in means)])
            print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(markdown(["demand", "packing", "nodes used", "% refused", "GPUs broken", "GPUs stranded"], rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
