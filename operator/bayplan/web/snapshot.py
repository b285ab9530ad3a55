"""A cluster from files as a source of the page: what a simulation makes of it, while it does and after."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bayplan.config.types import SchedulerConfiguration
from bayplan.framework.runtime import Framework
from bayplan.live.inspector import LiveInspector
from bayplan.live.simulation import always
from bayplan.scheduler.cycle import Placement
from bayplan.scheduler.recent_decisions import RecentDecisions
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import ConfigurationResult, placements
from bayplan.simulate.decision import Decision
from bayplan.simulate.simulator import Simulator
from bayplan.web.updates import Updates

POINTS: Final = 120
"""Of the packing over the decisions, about so many are looked at."""
_SLICE_SECONDS: Final = 0.02
_REFRESH_SECONDS: Final = 0.5


@dataclass(eq=False)
class _Deciding:
    """What the inspector asks of whoever decides."""

    frameworks: Mapping[str, Framework]
    decisions: RecentDecisions = field(default_factory=RecentDecisions)


class SnapshotSource:
    """Simulates a cluster, and is asked about it as a running scheduler is, at any time.

    The objects are taken in at once; `run` then decides about the pods that wait, in slices of the event loop, so that
    questions are answered in between.
    """

    def __init__(self, configuration: SchedulerConfiguration, objects: ClusterObjects, *, name: str) -> None:
        self._simulator = Simulator(configuration)
        self._simulator.add(objects)
        self._deciding = _Deciding(self._simulator.frameworks)
        self._pending = sum(self._simulator.queue.pending().values())
        self.inspector = LiveInspector(
            cache=self._simulator.cache,
            queue=self._simulator.queue,
            scheduler=self._deciding,
            configuration=lambda: configuration,
            is_leading=lambda: True,
            is_synced=lambda: True,
            identity=name,
            read_classes=always(objects.priority_classes),
        )
        self._page = {"mode": "snapshot", "title": name, "skipped": len(objects.skipped)}

    @property
    def page(self) -> dict[str, Any]:
        """What the page says it shows."""
        return self._page

    def outcome(self, config: str) -> ConfigurationResult:
        """Return what the simulation made of the cluster so far, by the configuration called `config`."""
        return ConfigurationResult(config, self._simulator.report(), placements(self._simulator.cache.nodes))

    async def run(self, updates: Updates) -> None:
        """Decide about the pods that wait until none is worth trying, and have the page follow."""
        step = max(1, self._pending // POINTS)
        decisions = self._deciding.decisions
        await updates.refresh(0, running=True)
        refreshed = time.monotonic()
        more = True
        while more:
            more = self._slice(step)
            await updates.sample(decisions.last)
            if more and time.monotonic() - refreshed > _REFRESH_SECONDS:
                await updates.refresh(decisions.last, running=True)
                refreshed = time.monotonic()
            await asyncio.sleep(0)
        await updates.refresh(decisions.last, running=False)

    def _slice(self, most: int) -> bool:
        """Decide at most so often; returns whether there may be more."""
        end = time.monotonic() + _SLICE_SECONDS
        for _ in range(most):
            spent = self._simulator.seconds
            decision = self._simulator.step()
            if decision is None:
                return False
            self._note(decision, self._simulator.seconds - spent)
            if time.monotonic() > end:
                break
        return True

    def _note(self, decision: Decision, seconds: float) -> None:
        outcome, decisions = decision.outcome, self._deciding.decisions
        if isinstance(outcome, Placement):
            decisions.placed(decision.pod, outcome, seconds, len(self._simulator.cache.nodes))
            return
        evaluated = 0 if outcome is None else outcome.diagnosis.node_count
        victims = () if outcome is None else outcome.victims
        decisions.failed(decision.pod, decision.message or "", seconds, evaluated=evaluated, preempted=victims)
