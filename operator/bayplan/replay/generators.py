"""Made-up traces by name; the same seed gives the same trace."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import cos, exp, log, pi
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import Quantity
from bayplan.replay.trace import NodePool, PodTemplate, Trace, TraceHeader, TracePod, trace_of
from bayplan.simulate.synthetic import GPU


def poisson_arrivals(
    rng: random.Random, rate: Callable[[float], float], most: float, seconds: float
) -> Iterator[float]:
    """Yield the seconds at which pods come, of a Poisson process with so many a second at each time.

    `most` is no less than any of the rates: the process of that rate is thinned (Lewis and Shedler, Naval Research
    Logistics Quarterly 26, 1979).
    """
    now = rng.expovariate(most)
    while now < seconds:
        if rng.random() * most < rate(now):
            yield round(now, 3)
        now += rng.expovariate(most)


def lognormal(rng: random.Random, median: float, sigma: float) -> float:
    """Return a duration from the lognormal distribution of that median, with `sigma` of its logarithm."""
    return round(rng.lognormvariate(log(median), sigma), 3)


def median_of(mean: float, sigma: float) -> float:
    """Return the median of the lognormal distribution of that mean."""
    return mean / exp(sigma * sigma / 2)


_FILE: Final = Path(__file__).with_name("ci_fleet.json")
_FLEET: Final = "fleet"
"""The label by which pods choose their nodes."""
_FLEET_SIGMA: Final = 0.8
"""Of the logarithm of durations."""
_PEAK_HOUR: Final = 10.5
_TROUGH_HOUR: Final = 2.5
_WEEKDAYS: Final = 5

_Data = dict[str, Any]


def ci_fleet(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return a week of PyTorch's CI fleet: jobs of a few sizes on nodes of their own fleets, fewer by night.

    It begins on Monday 0:00 in the fleet's time zone; no pool has a number of nodes. The figures are in ci_fleet.json,
    with their source. What it does not say is made up, as docs/replay.md tells: the spread of durations, how many pods
    a node may have, and that a fleet has nodes of its largest type alone.
    """
    data: _Data = msgspec.json.decode(_FILE.read_bytes())
    types = data["types"]
    header = TraceHeader(
        pools=[_fleet_pool(data, fleet) for fleet in sorted({each["fleet"] for each in types})],
        templates=[_fleet_template(data["perPodOverhead"], each) for each in types],
        seconds=hours * 3600,
    )
    names, jobs = [each["name"] for each in types], [each["jobs30d"] for each in types]
    peak = data["arrivals"]["weekdayPeakPerHour"]
    # Little's law: as many at once as come in the time that one takes.
    means = [3600 * each["peak"] / (peak * each["jobs30d"] / sum(jobs)) for each in types]
    medians = {name: median_of(mean, _FLEET_SIGMA) for name, mean in zip(names, means, strict=True)}

    def pod(now: float) -> TracePod:
        name = rng.choices(names, jobs)[0]
        return TracePod(now, lognormal(rng, medians[name], _FLEET_SIGMA), name)

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


def _fleet_template(overhead: _Data, kind: _Data) -> PodTemplate:
    requests: dict[str, Quantity] = {
        "cpu": f"{1000 * kind['cpu'] + overhead['cpuMilli']}m",
        "memory": f"{round(1024 * kind['memoryGi']) + overhead['memoryMi']}Mi",
    }
    if kind["gpus"]:
        requests[GPU] = kind["gpus"]
    return PodTemplate(kind["name"], requests, {_FLEET: kind["fleet"]})


def _fleet_pool(data: _Data, fleet: str) -> NodePool:
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


GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU, summed over the node: that a share is of one GPU is left out."""

_PODS_AT_ONCE: Final = 7300
"""Nine tenths of the trace's 8,152, which ask for all GPUs that there are."""
_MEDIAN_SECONDS: Final = 540.0
_OPENB_SIGMA: Final = 1.95
"""From the median and 6574 s, which nine pods in ten do not reach."""
_MOST_SECONDS: Final = 86400.0
_MEAN_SECONDS: Final = 3080.0
"""Of the lognormal distribution of that median, cut at a day."""

_POOLS: Final = (
    ("cpu-32-256", 129, 32, 256, 0),
    ("cpu-32-128", 23, 32, 128, 0),
    ("cpu-64-512", 22, 64, 512, 0),
    ("cpu-96-384", 30, 96, 384, 0),
    ("cpu-96-512", 59, 96, 512, 0),
    ("cpu-104-512", 20, 104, 512, 0),
    ("t4", 387, 104, 512, 2),
    ("g2", 549, 96, 384, 8),
    ("p100-16", 107, 16, 120, 2),
    ("p100-64", 22, 64, 256, 2),
    ("v100m16", 28, 32, 128, 4),
    ("t4-4", 17, 96, 384, 4),
    ("g1", 19, 8, 32, 1),
    ("g3", 39, 128, 768, 8),
    ("v100m32", 21, 96, 768, 8),
)
_ONE_POOL: Final = ("cpu-32-128", 2600, 32, 128, 0)
"""Name, nodes, cores, GiB and GPUs; those without GPUs are preferred, so that GPUs are there for who asks for them."""


_SHAPES: Final = (
    *((194, 11300, 49152, 1000), (121, 11400, 48128, 1000), (107, 3152, 5600, 1000), (58, 18708, 64512, 1000)),
    *((195, 3152, 5600, 810), (72, 11908, 47104, 470), (67, 8000, 30517, 470), (44, 11908, 47104, 650)),
    *((75, 12500, 57344, 0), (58, 32000, 49152, 0)),
    *((5, 64000, 245760, 8000), (2, 16000, 61440, 2000), (2, 32000, 122880, 4000)),
)
"""How many pods of a thousand, milli-CPU, MiB and thousandths of GPUs: the commonest of those with a whole GPU (480),
with a share of one (378) and with none (133), and those with several, which are made up: 8 cores and 30 GiB a GPU."""


def openb(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return a GPU cluster in the proportions of openb, the trace that Alibaba published, with pods that come and go.

    Nodes, the commonest pod shapes, and quantiles of lifetimes are those of the trace gpu-v2023 (Weng et al., Beware of
    Fragmentation, USENIX ATC 2023). There are as many nodes of each kind as in the original, times `scale`.
    """
    return _openb_trace(rng, hours, scale, [_openb_pool(each, scale) for each in _POOLS], _SHAPES)


def openb_cpu(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return openb by cpu and memory alone, on nodes of one size, for which the lower bound is a narrow one.

    Pods that are larger than a node are left out.
    """
    shapes = [(share, cpu, memory, 0) for share, cpu, memory, _ in _SHAPES if cpu <= 1000 * _ONE_POOL[2]]
    return _openb_trace(rng, hours, scale, [_openb_pool(_ONE_POOL, scale)], shapes)


def _openb_trace(
    rng: random.Random, hours: float, scale: float, pools: list[NodePool], shapes: Sequence[tuple[int, int, int, int]]
) -> Trace:
    templates = {shape: _openb_template(*shape[1:]) for shape in shapes}
    header = TraceHeader(pools, [*{each.name: each for each in templates.values()}.values()], hours * 3600)
    rate = scale * _PODS_AT_ONCE / _MEAN_SECONDS
    weights = [share for share, *_ in shapes]

    def pod(now: float) -> TracePod:
        template = templates[rng.choices(shapes, weights)[0]]
        return TracePod(now, min(lognormal(rng, _MEDIAN_SECONDS, _OPENB_SIGMA), _MOST_SECONDS), template.name)

    return trace_of(header, map(pod, poisson_arrivals(rng, lambda _: rate, rate, header.seconds)))


def _openb_template(milli_cpu: int, mebibytes: int, gpu_milli: int) -> PodTemplate:
    requests: dict[str, Quantity] = {"cpu": f"{milli_cpu}m", "memory": f"{mebibytes}Mi"}
    if gpu_milli:
        requests[GPU_MILLI] = gpu_milli
    return PodTemplate(f"{milli_cpu}m-{mebibytes}Mi-{gpu_milli}", requests)


def _openb_pool(pool: tuple[str, int, int, int, int], scale: float) -> NodePool:
    name, nodes, cores, gibibytes, gpus = pool
    capacity: dict[str, Quantity] = {"cpu": cores, "memory": f"{gibibytes}Gi", "pods": 110}
    if gpus:
        capacity[GPU_MILLI] = 1000 * gpus
    return NodePool(name, capacity, labels={"pool": name}, count=max(1, round(nodes * scale)))


Generator = Callable[[random.Random, float, float], Trace]
"""Makes a trace of a source of random numbers, hours and scale."""

GENERATORS: Final[Mapping[str, Generator]] = {"ci-fleet": ci_fleet, "openb": openb, "openb-cpu": openb_cpu}


def generate(name: str, *, seed: int, hours: float, scale: float, hints: float | None = None) -> Trace:
    """Return the made-up trace of that name: so many hours, with so many times the load of the original.

    With `hints` each pod says how long it will run, wrong by a lognormal factor of which they are the sigma.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible stream, not a secret
    made = GENERATORS[name](rng, hours, scale)
    if hints is None:
        return made
    # Of a stream of their own: the pods are the same without hints.
    told = random.Random(f"hints of {seed}")  # noqa: S311 - as above

    def hinted(pod: TracePod) -> TracePod:
        expected = pod.duration_seconds * told.lognormvariate(0.0, hints)
        return structs.replace(pod, expected_seconds=min(max(round(expected, 3), 0.001), 1e9))

    return trace_of(made.header, map(hinted, made.pods))
