"""Several configurations on the same files: the page is of the first one, and beside it stands what the others make."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bayplan.config.types import SchedulerConfiguration
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import ConfigurationResult, compared, own_pods, placements
from bayplan.simulate.report import Comparison, MovedPod, Summary
from bayplan.simulate.simulator import Simulator
from bayplan.web.snapshot import SnapshotSource
from bayplan.web.updates import Updates

MOVED_SHOWN: Final = 500
"""Of the pods that are not on the same node everywhere the page is told so many, and how many there are."""
_SLICE_SECONDS: Final = 0.02


class SummaryOf(msgspec.Struct, rename="camel", frozen=True):
    """What one configuration, called after its file, made of the cluster."""

    config: str
    summary: Summary


class SideBySide(msgspec.Struct, rename="camel", frozen=True):
    """The comparison as the page shows it; `decided` of the configurations are done so far."""

    decided: int
    configurations: list[SummaryOf]
    moved: list[MovedPod]
    moved_total: int


class ComparedSource:
    """Shows the cluster as the first configuration leaves it, then has each other one decide about the same objects.

    They decide in slices of the event loop, one after the other, so that questions are answered in between; of each
    only the outcome is kept.
    """

    def __init__(
        self, configurations: Sequence[tuple[str, SchedulerConfiguration]], objects: ClusterObjects, *, name: str
    ) -> None:
        self._configurations = configurations
        self._objects = objects
        self._first = SnapshotSource(configurations[0][1], own_pods(objects), name=name)
        self.inspector = self._first.inspector

    @property
    def page(self) -> dict[str, Any]:
        """What the page says it shows."""
        return {**self._first.page, "configurations": [config for config, _ in self._configurations]}

    async def run(self, updates: Updates) -> None:
        """Decide by the first configuration, then by the others, and have the page follow."""
        await self._first.run(updates)
        outcomes = [await asyncio.to_thread(self._first.outcome, self._configurations[0][0])]
        await self._show(updates, outcomes)
        for config, configuration in self._configurations[1:]:
            outcomes.append(await self._decide(config, configuration))
            await self._show(updates, outcomes)

    async def _decide(self, config: str, configuration: SchedulerConfiguration) -> ConfigurationResult:
        simulator = Simulator(configuration)
        simulator.add(own_pods(self._objects))
        more = True
        while more:
            more = _slice(simulator)
            await asyncio.sleep(0)
        report = await asyncio.to_thread(simulator.report)
        return ConfigurationResult(config, report, placements(simulator.cache.nodes))

    async def _show(self, updates: Updates, outcomes: Sequence[ConfigurationResult]) -> None:
        comparison = await asyncio.to_thread(compared, outcomes)
        await updates.show("comparison", msgspec.json.encode(side_by_side(comparison)))


def side_by_side(comparison: Comparison) -> SideBySide:
    """Return what the page is told of a comparison: every summary, and the first of the pods that are elsewhere."""
    told = [SummaryOf(each.config, each.report.summary) for each in comparison.configurations]
    return SideBySide(len(told), told, comparison.moved[:MOVED_SHOWN], len(comparison.moved))


def _slice(simulator: Simulator) -> bool:
    """Decide for some milliseconds; returns whether there may be more."""
    end = time.monotonic() + _SLICE_SECONDS
    while time.monotonic() < end:
        if simulator.step() is None:
            return False
    return True
