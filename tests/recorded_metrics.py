"""Metrics that remember, call by call, what tests of the engine ask about."""

from typing import Any

from bayplan.metrics.instruments import Instrument
from bayplan.metrics.table import Metrics


def calls_of(instrument: Instrument[*tuple[Any, ...]], name: str) -> list[tuple[Any, ...]]:
    """The arguments of each later call of an instrument's method, in a list that grows."""
    works, calls = getattr(instrument, name), []

    def call(*arguments: Any, **options: Any) -> None:
        calls.append((*arguments, *options.values()))
        works(*arguments, **options)

    setattr(instrument, name, call)
    return calls


class RecordedMetrics(Metrics):
    """The real metrics, and what was reported to them in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[str, str, float]] = []
        self.bounds: list[tuple[int, float]] = []
        self.executed: list[str] = []
        self.moves = calls_of(self.incoming_pods, "add")
        self._permits = calls_of(self.permit_wait_seconds, "observe")
        self._hints = calls_of(self.hint_seconds, "observe")
        self._victims = calls_of(self.preemption_victims, "observe")
        self._budgets = calls_of(self.budget_violations, "add")
        self._undecodable = calls_of(self.undecodable_objects, "add")
        self._events = calls_of(self.event_seconds, "observe")
        self._rejections = calls_of(self.kubelet_rejections, "add")

    def attempt(self, profile: str, result: Any, seconds: float) -> None:
        self.ended.append((profile, result, seconds))
        super().attempt(profile, result, seconds)

    def bound(self, attempts: int, sli_seconds: float) -> None:
        self.bounds.append((attempts, sli_seconds))
        super().bound(attempts, sli_seconds)

    def preemption_executed(self, result: str, seconds: float, preemptor: str = "pod") -> None:
        assert seconds >= 0
        self.executed.append(result)
        super().preemption_executed(result, seconds, preemptor)

    def results(self) -> list[str]:
        return [result for _, result, _ in self.ended]

    @property
    def attempts_at_preemption(self) -> float:
        return self.preemption_attempts.values[()]

    @property
    def victims(self) -> list[int]:
        return [count for (count,) in self._victims]

    @property
    def budgets(self) -> list[int]:
        return [count for _, count in self._budgets]

    @property
    def permit_waits(self) -> list[tuple[str, float]]:
        return [(result, seconds) for seconds, result in self._permits]

    @property
    def left_out(self) -> list[str]:
        return [kind for (kind,) in self._undecodable]

    @property
    def handled(self) -> list[str]:
        assert all(seconds >= 0 for seconds, _ in self._events)
        return [event for _, event in self._events]

    @property
    def rejections(self) -> list[str]:
        return [reason for (reason,) in self._rejections]

    @property
    def hints(self) -> list[tuple[str, str, str]]:
        assert all(seconds >= 0 for seconds, *_ in self._hints)
        return [(plugin, event, hint) for _, plugin, event, hint in self._hints]

    def rejected(self) -> dict[tuple[str, str], float]:
        """Pods that wait, by the plugin that rejected them and their profile."""
        return {labels: number for labels, number in self.unschedulable_pods.values.items() if number}
