"""What each performance switch of plugins gains: `python -m e2e.bench.traits`.

Decides the same pods on the same made-up cluster with a switch as it is and turned off, in turn, and prints CPU
microseconds a decision: the median over slices of 50 decisions, the smallest of the rounds. The switches are those of
docs/adr/0013.
"""

import argparse
import gc
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from unittest.mock import patch

from msgspec import convert, structs

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass, ResourceSlice
from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import PodResourceClaim, TopologySpreadConstraint
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Plugin, PreFilterResult
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Reads
from bayplan.plugins.dynamic_resources.dynamic_resources import DynamicResources
from bayplan.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread
from bayplan.plugins.registry import IN_TREE
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.scheduler.decision import Placement
from e2e.bench.memory import PreemptionEpisodes
from e2e.controlplane.devices import device_class, resource_claim, resource_slice

_SLICE = 50
_DEVICES = 8
_SPREAD = [
    TopologySpreadConstraint(
        topology_key="kubernetes.io/hostname",
        max_skew=5,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "web"}),
    )
]
Off = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch, the workload it is for, and how to turn it off."""

    name: str
    workload: Callable[[int], Iterator[None]]
    off: Off


def plain(nodes: int) -> Iterator[None]:
    """Pods of six shapes, each placed; a step is a decision."""
    scene = PreemptionEpisodes(nodes, 4 * nodes)
    serial = 0
    while True:
        serial += 1
        _place(scene, scene.pod(cpu=f"{serial % 6 + 1}m"))
        yield


def spread(nodes: int) -> Iterator[None]:
    """Pods with a hard constraint over hostnames, each placed."""
    scene = PreemptionEpisodes(nodes, 4 * nodes)
    while True:
        _place(scene, _spread_pod(scene))
        yield


def nominated(nodes: int) -> Iterator[None]:
    """As `spread`, while pods are nominated to a hundred nodes."""
    scene = PreemptionEpisodes(nodes, 4 * nodes)
    for number in range(100):
        scene.nominator.add(scene.pod(cpu="1", priority=9), f"n{number}")
    while True:
        _place(scene, _spread_pod(scene))
        yield


def preempting(nodes: int) -> Iterator[None]:
    """Preemption episodes; a step is four decisions."""
    scene = PreemptionEpisodes(nodes, 30 * nodes)
    while True:
        scene.run()
        yield


def devices(nodes: int) -> Iterator[None]:
    """Pods that claim a device each; of ten nodes nine are full for cpu, and half of the rest's devices are taken."""
    scene = PreemptionEpisodes(nodes, 0)
    listers = scene.cache.listers
    claims = listers.of(ResourceClaim)
    listers.of(DeviceClass).set(convert(device_class(), DeviceClass))
    for index in range(nodes):
        listers.of(ResourceSlice).set(convert(resource_slice(f"n{index}", _DEVICES), ResourceSlice))
        if index % 10:
            scene.cache.assume_pod(scene.pod(cpu="30"), f"n{index}")
    placed: deque[PodInfo] = deque()
    while True:
        pod = scene.pod(cpu="100m")
        claim = convert(resource_claim(pod.name, pod.namespace), ResourceClaim)
        claims.set(structs.replace(claim, metadata=structs.replace(claim.metadata, uid=pod.uid)))
        entry = PodResourceClaim(name="devices", resource_claim_name=pod.name)
        pod = PodInfo(structs.replace(pod.pod, spec=structs.replace(pod.pod.spec, resource_claims=[entry])))
        placement = _place(scene, pod)
        scene.framework.run_reserve(placement.state, pod, placement.node_name)
        for _, exchange in scene.framework.run_pre_bind(placement.state, pod, placement.node_name):
            exchange.assume()
        placed.append(pod)
        if len(placed) > nodes * _DEVICES // 20:
            gone = placed.popleft()
            scene.cache.forget_pod(gone.uid)
            claims.delete(gone.key)
        yield


def _place(scene: PreemptionEpisodes, pod: PodInfo) -> Placement:
    placement = scene.cycle.schedule(pod, scene.framework).outcome
    if not isinstance(placement, Placement):
        raise TypeError(f"expected a placement, not {placement}")
    scene.cache.assume_pod(pod, placement.node_name)
    return placement


def _spread_pod(scene: PreemptionEpisodes) -> PodInfo:
    return scene.pod(cpu="1m", labels={"app": "web"}, topology_spread_constraints=_SPREAD)


def _declaring(*plugins: type[Plugin], **traits: Any) -> Off:  # noqa: ANN401  whatever the field is
    """Other traits for some plugins."""

    @contextmanager
    def off() -> Iterator[None]:
        with ExitStack() as stack:
            for plugin in plugins:
                stack.enter_context(patch.object(plugin, "traits", replace(plugin.traits, **traits)))
            yield

    return off


def _without(module: str, protocol: str) -> Off:
    """As if no plugin had the methods of an optional protocol."""
    return lambda: patch(f"bayplan.evaluation.{module}.{protocol}", _Never)


def _ignore(result: PreFilterResult, value: object) -> None:
    """Set nothing."""


class _Never:
    """No plugin is one."""


_ALL = [*IN_TREE.values()]
SWITCHES: Sequence[Switch] = (
    Switch("filter_few", plain, _without("few_rows", "FewRowsFilterPlugin")),
    Switch("score_few", plain, _without("few_rows", "FewRowsScorePlugin")),
    Switch("filter_with_nominated", nominated, _without("nominated_round", "NominatedFilterPlugin")),
    Switch("sign_inputs", plain, lambda: patch.object(Framework, "signature", lambda self, pod: self._sign(pod))),
    Switch("reads", plain, _declaring(NodeAffinity, TaintToleration, reads=Reads.CLUSTER)),
    Switch("pre_reads", spread, _declaring(PodTopologySpread, pre_reads=None)),
    Switch("reads_pods", preempting, _declaring(NodeResourcesFit, reads_pods=True)),
    Switch("reads_feasible", plain, _declaring(InterPodAffinity, VolumeBinding, reads_feasible=True)),
    Switch("asked_late", devices, _declaring(DynamicResources, asked_late=False)),
    Switch("signs_more", plain, _declaring(*_ALL, signs_more=True)),
    Switch("lasting", plain, lambda: patch.object(PreFilterResult, "lasting", property(lambda _: False, _ignore))),
)


def cost(switch: Switch, nodes: int, decisions: int) -> float:
    """CPU microseconds a step: the median over slices."""
    steps = switch.workload(nodes)
    for _ in range(_SLICE):
        next(steps)
    gc.collect()
    slices = []
    for _ in range(decisions // _SLICE):
        started = time.process_time()
        for _ in range(_SLICE):
            next(steps)
        slices.append((time.process_time() - started) / _SLICE * 1e6)
    return statistics.median(slices)


def main() -> None:
    """Measure every switch and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("switches", nargs="*", default=[each.name for each in SWITCHES])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sys.stdout.write(f"{'switch':24}{'workload':>12}{'on':>10}{'off':>10}\n")
    for switch in SWITCHES:
        if switch.name not in options.switches:
            continue
        on, off = inf, inf
        for _ in range(options.rounds):
            on = min(on, cost(switch, options.nodes, options.decisions))
            with switch.off():
                off = min(off, cost(switch, options.nodes, options.decisions))
        sys.stdout.write(f"{switch.name:24}{switch.workload.__name__:>12}{on:>10.0f}{off:>10.0f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
