"""`bayplan simulate` with several configurations: each decides about the same cluster, one after the other."""

import sys
from collections.abc import Sequence

from msgspec import UNSET

from bayplan.cache.pod_info import PodInfo
from bayplan.cli.progress import with_progress
from bayplan.cli.simulation_input import Configured
from bayplan.config.errors import quote_unprintable
from bayplan.simulate.capacity import how_many_fit
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import ConfigurationResult, compared, own_pods, placements, print_comparison
from bayplan.simulate.repack import Repacking
from bayplan.simulate.report import Report, encode
from bayplan.simulate.tables import Printer


def compare(
    each_configured: Sequence[Configured],
    objects: ClusterObjects,
    counted: PodInfo | None,
    asked: int | None,
    repackings: Sequence[Repacking | None],
    *,
    output: str,
) -> list[Report]:
    """Have each configuration decide, write them side by side, and return the reports in the same order.

    `counted` is the pod of which is told how many more fit, at most `asked` of them. Each has its one of `repackings`
    in place of `objects`, where there is one.
    """
    outcomes = [
        _outcome(each, objects, counted, asked, repacking)
        for each, repacking in zip(each_configured, repackings, strict=True)
    ]
    comparison = compared(outcomes)
    if output == "json":
        sys.stdout.write(encode(comparison).decode())
    else:
        print_comparison(Printer(sys.stdout), comparison, is_summary=output == "summary")
    return [each.report for each in outcomes]


def _outcome(
    configured: Configured,
    objects: ClusterObjects,
    counted: PodInfo | None,
    asked: int | None,
    repacking: Repacking | None,
) -> ConfigurationResult:
    simulator = configured.simulator
    simulator.add(own_pods(repacking.objects if repacking else objects))
    for _ in with_progress(simulator.step, simulator.queue.pending()["active"]):
        pass
    report, placed = simulator.report(), placements(simulator.cache.nodes)
    report.repack = repacking.outcome(simulator) if repacking else UNSET
    if counted is not None:
        report.count = how_many_fit(simulator, configured.configuration, counted, asked)
    return ConfigurationResult(quote_unprintable(str(configured.file)), report, placed)
