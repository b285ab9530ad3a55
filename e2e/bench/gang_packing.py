"""`python -m e2e.bench.gang_packing`: on how many racks and nodes gangs stand, with and without packing.

Three clusters of nodes of three sizes in racks, which single pods fill by half. Gangs of scheduler-plugins' kind come
one after the other, the same ones for each way, and go through the engine alone, without API server.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bayplan.api.objects import Node, Pod
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource, PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import PlacementChoice, TopologyPlacementGeneratorArgs
from bayplan.config.load import default_configuration
from bayplan.groups.pod_groups import PodGroup
from bayplan.simulate.admission import Admission
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import Decoder
from bayplan.simulate.simulator import Simulator
from e2e.bench.report import markdown
from e2e.controlplane.client import Object
from e2e.controlplane.objects import node, pod

RACK = "example.com/rack"
FEWEST = PlacementChoice.FEWEST_NODES
CLUSTERS = ((100, 10), (500, 20), (2000, 40))
"""How many nodes there are, and how many in a rack."""
WAYS = {
    "none": None,
    "`choice: FewestNodes`": TopologyPlacementGeneratorArgs(choice=FEWEST),
    "`topologyKey`": TopologyPlacementGeneratorArgs(RACK),
    "`topologyKey`, `choice: FewestNodes`": TopologyPlacementGeneratorArgs(RACK, choice=FEWEST),
}
_NODE, _POD, _ADMISSION = Decoder(Node), Decoder(Pod), Admission(())


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of the gangs: how many run, and on how many racks and nodes each stands."""

    gangs: int
    placed: int
    racks: list[int]
    nodes: list[int]
    seconds: float


def cluster(count: int, in_rack: int, dice: random.Random) -> ClusterObjects:
    """Returns nodes of 16, 32 and 64 CPUs, alike within a rack, and the single pods on them."""
    objects = ClusterObjects()
    for index in range(count):
        rack = index // in_rack
        cpus = (16, 32, 64)[rack % 3]
        name = f"node-{index:04d}"
        document = node(name, cpu=str(cpus), memory=f"{4 * cpus}Gi", labels={RACK: f"rack-{rack:02d}"})
        objects.nodes.append(_ADMISSION.node(_NODE(document)))
        taken, wanted = 0, dice.random() * cpus
        while taken < wanted:
            cpu = min(dice.randint(1, 4), cpus - taken)
            objects.pods.append(_pod(f"{name}-{taken}", cpu, node_name=name))
            taken += cpu
    return objects


def gangs(cpus: float, dice: random.Random) -> Iterator[list[PodInfo]]:
    """Yields gangs of 4 to 32 pods of 1 to 8 CPUs until they ask for so many CPUs."""
    number = 0
    while cpus > 0:
        size, cpu = dice.choice((4, 8, 16, 32)), dice.choice((1, 2, 4, 8))
        cpus -= size * cpu
        name = f"gang-{number:04d}"
        yield [_pod(f"{name}-{index}", cpu, labels={POD_GROUP_LABEL: name}) for index in range(size)]
        number += 1


def run(count: int, in_rack: int, args: TopologyPlacementGeneratorArgs | None, seed: int) -> Figures:
    """Returns what becomes of gangs that ask for six tenths of what is free."""
    dice = random.Random(f"{seed}/{count}")
    configuration = default_configuration()
    if args is not None:
        (profile,) = configuration.profiles
        config = {**profile.plugin_config, "TopologyPlacementGenerator": args}
        configuration = replace(configuration, profiles=(replace(profile, plugin_config=config),))
    simulator = Simulator(configuration, reports=False)
    simulator.groups.serve(GroupSource.CRD)
    simulator.add(cluster(count, in_rack, dice))
    nodes = simulator.cache.nodes
    free = int((nodes.offered("cpu") - nodes.taken("cpu")).sum()) / 1000
    found: list[list[str]] = []
    started = time.process_time()
    for members in gangs(0.6 * free, dice):
        key = PodGroupKey(GroupSource.CRD, "default", members[0].pod.metadata.labels[POD_GROUP_LABEL])  # type: ignore[index]
        simulator.queue.set_group(PodGroup(key, str(key), least=len(members)))
        simulator.add(ClusterObjects(pods=members))
        while simulator.step() is not None:
            pass
        found.append([simulator.cache.node_of(each.uid) or "" for each in members])
    placed = [set(names) for names in found if all(names)]
    rack_of = {name: int(name.split("-")[1]) // in_rack for names in placed for name in names}
    racks = [len({rack_of[name] for name in names}) for names in placed]
    return Figures(len(found), len(placed), racks, [len(names) for names in placed], time.process_time() - started)


def _pod(name: str, cpu: int, **fields: object) -> PodInfo:
    document: Object = pod(name, "default", scheduler="bayplan", requests={"cpu": str(cpu)}, **fields)  # type: ignore[arg-type]
    document["metadata"]["uid"] = name
    return PodInfo(_ADMISSION.pod(_POD(document)))


def main() -> int:
    """Parses the arguments, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.gang_packing", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    rows = []
    for count, in_rack in CLUSTERS:
        for way, args in WAYS.items():
            figures = run(count, in_rack, args, seed)
            means = [f"{statistics.mean(each):.2f}" for each in (figures.racks, figures.nodes)]
            gangs_run = f"{figures.placed} of {figures.gangs}"
            rows.append([str(count), way, gangs_run, str(sum(figures.racks)), *means, f"{figures.seconds:.1f}"])
            print(f"{count} nodes, {way}", file=sys.stderr, flush=True)
    heads = ["nodes", "arguments", "gangs that run", "racks touched", "racks a gang", "nodes a gang", "CPU seconds"]
    print("\n".join(markdown(heads, rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
