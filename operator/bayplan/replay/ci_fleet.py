"""A week of PyTorch's CI fleet: jobs of a few sizes on nodes of their own fleets, many by day and few by night.

The figures are in ci_fleet.json, with their source. What it does not say is made up, as docs/replay.md tells: the
spread of durations, how many pods a node may have, and that a fleet has nodes of its largest type alone.
"""

import random
from math import cos, pi
from pathlib import Path
from typing import Any, Final

import msgspec

from bayplan.api.meta_objects import Quantity
from bayplan.replay.arrivals import lognormal, median_of, poisson_arrivals
from bayplan.replay.trace import NodePool, PodTemplate, Trace, TraceHeader, TracePod, trace_of
from bayplan.simulate.synthetic import GPU

_FILE: Final = Path(__file__).with_name("ci_fleet.json")
_FLEET: Final = "fleet"
"""The label by which pods choose their nodes."""
_SIGMA: Final = 0.8
"""Of the logarithm of durations."""
_PEAK_HOUR: Final = 10.5
_TROUGH_HOUR: Final = 2.5
_WEEKDAYS: Final = 5

_Data = dict[str, Any]


def ci_fleet(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return the trace from Monday 0:00 on, in the fleet's time zone; no pool has a number of nodes."""
    data: _Data = msgspec.json.decode(_FILE.read_bytes())
    types = data["types"]
    header = TraceHeader(
        pools=[_pool(data, fleet) for fleet in sorted({each["fleet"] for each in types})],
        templates=[_template(data["perPodOverhead"], each) for each in types],
        seconds=hours * 3600,
    )
    names, jobs = [each["name"] for each in types], [each["jobs30d"] for each in types]
    peak = data["arrivals"]["weekdayPeakPerHour"]
    # Little's law: as many at once as come in the time that one takes.
    means = [3600 * each["peak"] / (peak * each["jobs30d"] / sum(jobs)) for each in types]
    medians = {name: median_of(mean, _SIGMA) for name, mean in zip(names, means, strict=True)}

    def pod(now: float) -> TracePod:
        name = rng.choices(names, jobs)[0]
        return TracePod(now, lognormal(rng, medians[name], _SIGMA), name)

    def rate(now: float) -> float:
        return scale * _per_hour(data["arrivals"], now / 3600) / 3600

    return trace_of(header, map(pod, poisson_arrivals(rng, rate, scale * peak / 3600, header.seconds)))


def _per_hour(arrivals: _Data, hour: float) -> float:
    """How many jobs an hour come: on weekdays half a cosine up to the peak, and another down to the trough."""
    day, hour = divmod(hour, 24)
    if day % 7 >= _WEEKDAYS:
        return float(arrivals["weekendPerHour"])
    since_trough = (hour - _TROUGH_HOUR) % 24
    rise = _PEAK_HOUR - _TROUGH_HOUR
    phase = since_trough / rise if since_trough < rise else 1 + (since_trough - rise) / (24 - rise)
    low, high = arrivals["weekdayTroughPerHour"], arrivals["weekdayPeakPerHour"]
    return float(low + (high - low) * (1 - cos(pi * phase)) / 2)


def _template(overhead: _Data, kind: _Data) -> PodTemplate:
    requests: dict[str, Quantity] = {
        "cpu": f"{1000 * kind['cpu'] + overhead['cpuMilli']}m",
        "memory": f"{round(1024 * kind['memoryGi']) + overhead['memoryMi']}Mi",
    }
    if kind["gpus"]:
        requests[GPU] = kind["gpus"]
    return PodTemplate(kind["name"], requests, {_FLEET: kind["fleet"]})


def _pool(data: _Data, fleet: str) -> NodePool:
    """Nodes of the largest type of the fleet, less what kubelet and DaemonSets take."""
    instances = [data["instances"][name] for name in data["fleets"][fleet]]
    chosen = max(instances, key=lambda each: (each["vcpu"], each["memory_mi"]))
    cores, mebibytes, gpus = chosen["vcpu"], chosen["memory_mi"], chosen["gpu"]
    pods = 250 if cores >= 30 else 110
    held: dict[str, Quantity] = {"pods": pods, GPU: gpus} if gpus else {"pods": pods}
    # 60 m for the first core, 10 for the second, 5 for the next two, and 2.5 for each further one.
    kubelet_milli = round(60 + 10 + 10 + 2.5 * (cores - 4))
    kubelet_mi = 255 + 11 * pods + 100
    kind = "daemonSetsGpu" if gpus else "daemonSets"
    over = data["perNodeOverhead"]
    return NodePool(
        name=fleet,
        capacity={"cpu": cores, "memory": f"{mebibytes}Mi", **held},
        allocatable={"cpu": f"{1000 * cores - kubelet_milli}m", "memory": f"{mebibytes - kubelet_mi}Mi", **held},
        labels={_FLEET: fleet},
        daemons={"cpu": f"{over[f'{kind}CpuMilli']}m", "memory": f"{over[f'{kind}MemoryMi']}Mi"},
    )
