"""What a scrape of the metrics takes from the event loop: `python -m e2e.bench.scrapes`.

Fills a cache with nodes and pods, runs attempts with all metrics on, and scrapes in this process. Prints, over all
scrapes, the CPU time of the loop for a whole one, and the longest that the loop was busy with one metric: between two
metrics it turns.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bayplan.cache.cache import Cache
from bayplan.cache.packing import Packing, allocation_summary
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import AttemptRunner
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.server.metrics import KEPT_SECONDS, AtScrape, SchedulerMetrics, Scrapes
from bayplan.server.state import PackingCollector, build_metrics, state_metrics
from e2e.bench.simulate_workloads import WORKLOADS, objects_of


def scheduler_with_pods(nodes: int, pods: int) -> tuple[SchedulerMetrics, AttemptRunner]:
    """Returns a scheduler that has the pods of a plain workload to place, and its metrics."""
    metrics = SchedulerMetrics(profiles=["bayplan"])
    cache, nominator = Cache(), Nominator()
    frameworks = build_frameworks(default_configuration(), cache.nodes, cache.listers, nominator, metrics=metrics)
    queue = SchedulingQueue(
        clock=time.monotonic,
        settings=queue_settings(frameworks),
        nominator=nominator,
        metrics=metrics,
    )
    cycle = SchedulingCycle(cache.nodes, nominator, frameworks.values())
    runner = AttemptRunner(cache, queue, cycle, frameworks, time.monotonic, metrics)
    workload = next(each for each in WORKLOADS if each.rule is None and each.nodes == nodes)
    objects = objects_of(workload, pods, 1)
    for node in objects.nodes:
        cache.set_node(node)
    for pod in objects.pods:
        queue.add(pod)
    idle: Any = SimpleNamespace(tasks=dict, dispatcher=SimpleNamespace(waiting_calls=dict))
    state = AtScrape(lambda: state_metrics(cache, queue, idle, {}))
    packing = PackingCollector(
        lambda: allocation_summary(cache.nodes), lambda resources: Packing(cache.nodes, resources)
    )
    build = AtScrape(lambda: build_metrics(DEFAULT_FEATURE_GATES))
    for collector in (state, packing, build):
        metrics.registry.register(collector)
    return metrics, runner


async def scrape(metrics: SchedulerMetrics, clock: Callable[[], float] = time.process_time) -> tuple[float, float, int]:
    """Returns the CPU seconds of a scrape, the longest step of the loop within it, and the bytes of its text."""
    steps: list[float] = []
    scraping = asyncio.create_task(Scrapes(metrics.registry).text(openmetrics=False))
    turned = clock()
    while not scraping.done():
        await asyncio.sleep(0)
        now = clock()
        steps.append(now - turned)
        turned = now
    text, _ = scraping.result()
    return sum(steps), max(steps), len(text)


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, choices=[500, 5000], default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--scrapes", type=int, default=50)
    options = parser.parse_args()
    metrics, runner = scheduler_with_pods(options.nodes, options.pods)
    while runner.run() is not None:
        pass

    async def measure() -> list[tuple[float, float, int]]:
        return [await scrape(metrics) for _ in range(options.scrapes)]

    found = asyncio.run(measure())
    whole, longest = ([1e3 * one[index] for one in found] for index in (0, 1))
    sys.stdout.write(
        f"{options.nodes} nodes, {options.pods} pods: a scrape takes {min(whole):.1f} ms (median "
        f"{statistics.median(whole):.1f}), its longest step {min(longest):.1f} ms (median "
        f"{statistics.median(longest):.1f}); {found[-1][2] // 1024} KiB, at most one in {KEPT_SECONDS:.0f} s\n"
    )


if __name__ == "__main__":
    main()
