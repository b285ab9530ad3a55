"""What the page is made of: a running scheduler, a simulation, or several configurations side by side."""

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bayplan.client.scheduler_client import SchedulerClient
from bayplan.config.types import SchedulerConfiguration
from bayplan.live.inspector import LiveInspector
from bayplan.live.simulation import always
from bayplan.plugins.dynamic_resources.claim_cache import StrandedDevices
from bayplan.scheduler.decision import Placement
from bayplan.scheduler.recent_decisions import RecentDecisions
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import ComparedCluster, compared, own_pods, placements
from bayplan.simulate.report import Compared, Comparison, MovedPod, Summary
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import Step
from bayplan.web.updates import Updates

SECONDS_BETWEEN: Final = 2.0
"""How long after an answer the scheduler is asked again."""

MOVED_SHOWN: Final = 500
"""Of the pods that are not on the same node everywhere the page is told so many, and how many there are."""

_SLICE_SECONDS: Final = 0.02
POINTS: Final = 120
"""Of the packing over the decisions, about so many are looked at."""

_REFRESH_SECONDS: Final = 0.5


class RemoteSource:
    """Shows a scheduler that runs, which `client` asks."""

    def __init__(self, client: SchedulerClient, *, seconds_between: float = SECONDS_BETWEEN) -> None:
        self._client = client
        self._seconds_between = seconds_between

    @property
    def page(self) -> dict[str, Any]:
        """What the page says it shows."""
        return {"mode": "live", "title": self._client.url, "skipped": 0}

    async def run(self, updates: Updates) -> None:
        """Ask for what is new, again and again, until cancelled."""
        while True:
            await updates.refresh(round(time.time(), 1), running=True)
            await asyncio.sleep(self._seconds_between)


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
            other = SnapshotSource(configuration, own_pods(self._objects), name=config)
            more = True
            while more:
                more = other.decide()
                await asyncio.sleep(0)
            outcomes.append(await asyncio.to_thread(other.outcome, config))
            await self._show(updates, outcomes)

    async def _show(self, updates: Updates, outcomes: Sequence[ComparedCluster]) -> None:
        comparison = await asyncio.to_thread(compared, outcomes)
        await updates.show("comparison", msgspec.json.encode(side_by_side(comparison)))


def side_by_side(comparison: Comparison) -> SideBySide:
    """Return what the page is told of a comparison: every summary, and the first of the pods that are elsewhere."""
    told = [SummaryOf(each.config, each.report.summary) for each in comparison.configurations]
    return SideBySide(len(told), told, comparison.moved[:MOVED_SHOWN], len(comparison.moved))


class SnapshotSource:
    """Simulates a cluster, and is asked about it as a running scheduler is, at any time.

    The objects are taken in at once; `run` then decides about the pods that wait, in slices of the event loop, so that
    questions are answered in between.
    """

    def __init__(self, configuration: SchedulerConfiguration, objects: ClusterObjects, *, name: str) -> None:
        self._simulator = Simulator(configuration)
        self._simulator.add(objects)
        self._decisions = RecentDecisions()
        self._pending = sum(self._simulator.queue.pending().values())
        self.inspector = LiveInspector(
            cache=self._simulator.cache,
            queue=self._simulator.queue,
            frameworks=lambda: self._simulator.frameworks,
            recent=self._decisions,
            configuration=lambda: configuration,
            is_leading=lambda: True,
            is_synced=lambda: True,
            identity=name,
            read_classes=always(objects.priority_classes),
            stranded_devices=StrandedDevices(self._simulator.cache.listers).by_driver,
        )
        self.page: dict[str, Any] = {"mode": "snapshot", "title": name, "skipped": len(objects.skipped)}

    def outcome(self, config: str) -> ComparedCluster:
        """Return what the simulation made of the cluster so far, by the configuration called `config`."""
        return Compared(config, self._simulator.report()), placements(self._simulator.cache.nodes)

    async def run(self, updates: Updates) -> None:
        """Decide about the pods that wait until none is worth trying, and have the page follow."""
        step = max(1, self._pending // POINTS)
        decisions = self._decisions
        await updates.refresh(0, running=True)
        refreshed = time.monotonic()
        more = True
        while more:
            more = self.decide(step)
            await updates.sample(decisions.last)
            if more and time.monotonic() - refreshed > _REFRESH_SECONDS:
                await updates.refresh(decisions.last, running=True)
                refreshed = time.monotonic()
            await asyncio.sleep(0)
        await updates.refresh(decisions.last, running=False)

    def decide(self, most: int = sys.maxsize) -> bool:
        """Decide for some milliseconds, at most so often; return whether there may be more."""
        end = time.monotonic() + _SLICE_SECONDS
        for _ in range(most):
            spent = self._simulator.seconds
            made = self._simulator.step()
            if made is None:
                return False
            self._note(made, self._simulator.seconds - spent)
            if time.monotonic() > end:
                break
        return True

    def _note(self, step: Step, seconds: float) -> None:
        outcome, decisions = step.outcome, self._decisions
        if isinstance(outcome, Placement):
            decisions.placed(step.pod, outcome, seconds, len(self._simulator.cache.nodes))
            return
        evaluated = 0 if outcome is None else outcome.diagnosis.node_count
        victims = () if outcome is None else outcome.post_filter.victims
        decisions.failed(step.pod, step.message or "", seconds, evaluated=evaluated, preempted=victims)
