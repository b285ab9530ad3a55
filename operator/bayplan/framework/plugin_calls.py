"""Measures what the plugins of a profile take: extension points always, single plugins in a tenth of the cycles."""

import random
from collections.abc import Callable, Hashable, Iterable, Sequence, Sized
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

from bayplan.framework.interface import PreFilterResult, Wait
from bayplan.framework.status import Code, Codes, Status

_Answer = TypeVar("_Answer")

CYCLES_PER_SAMPLE: Final = 10
"""In one of so many cycles the plugins are measured (upstream: schedule_one.go pluginMetricsSamplePercent)."""

_PREEMPTION: Final = "DefaultPreemption"
SUCCESS_LABEL: Final = "Success"
UNSCHEDULABLE_LABEL: Final = "Unschedulable"
ERROR_LABEL: Final = "Error"
WAIT_LABEL: Final = "Wait"
_SKIP_LABEL: Final = "Skip"
_LABELS: Final = {
    Code.SUCCESS: SUCCESS_LABEL,
    Code.UNSCHEDULABLE: UNSCHEDULABLE_LABEL,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.SKIP: _SKIP_LABEL,
    Code.ERROR: ERROR_LABEL,
}


class EvaluationCount:
    """How often the plugins of one set were run at one extension point; whoever runs them adds to `value`.

    One addition counts for all of them: a number a plugin would cost more than many plugins do.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class PluginObserver(Protocol):
    """Receives what is measured; every call is cheap and raises nothing. Seconds are those of perf_counter."""

    def extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Take the time of all plugins of one extension point; `status` is one of kube-scheduler's status codes."""

    def plugin_executed(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Take the time of one plugin at one extension point, in a cycle that is sampled."""

    def plugin_failed(self, plugin: str, point: str) -> None:
        """Count a plugin that could not answer at an extension point."""

    def preemption_evaluated(self, result: str, seconds: float) -> None:
        """Take the time in which DefaultPreemption looked for victims, and its status."""

    def evaluations(self, plugins: tuple[str, ...], point: str, profile: str) -> EvaluationCount:
        """Return the one count of these plugins at this extension point."""


class PluginCalls:
    """Tells one profile's parts whether the cycle is sampled, and passes on what they measure.

    Evaluations and the framework rely on it. Without an observer nothing is sampled, and measuring costs nothing.
    """

    __slots__ = ("_observer", "_profile", "_until_sample", "apart", "observed", "sampled")

    def __init__(self, profile: str = "", observer: PluginObserver | None = None) -> None:
        self._profile = profile
        self._observer = observer
        self._until_sample = 0
        self.observed = observer is not None
        """Whether anybody wants to know; nothing need be measured or begun otherwise."""
        self.sampled = False
        """Whether single plugins are measured now."""
        self.apart = 0.0
        """Seconds that were reported within a measure that goes on, and are to be left out of it."""

    def begin(self) -> None:
        """Begin an attempt; of ten one is sampled, after a number of others left to chance, as what repeats may be."""
        self.apart = 0.0
        self._until_sample -= 1
        self.sampled = self._until_sample < 0
        if self.sampled:
            self._until_sample = random.randrange(2 * CYCLES_PER_SAMPLE - 1)  # noqa: S311  no secret

    def count(self, plugins: Iterable[str], point: str) -> EvaluationCount:
        """Return what to add to when these plugins are run at an extension point."""
        if self._observer is None:
            return EvaluationCount()
        return self._observer.evaluations(tuple(plugins), point, self._profile)

    def report(self, point: str, status: str, seconds: float) -> None:
        """Pass on how long all plugins of an extension point took."""
        if self._observer is not None:
            self._observer.extension_point(point, status, self._profile, seconds)

    def failed(self, plugin: str, point: str) -> None:
        """Pass on that a plugin could not answer."""
        if self._observer is not None:
            self._observer.plugin_failed(plugin, point)

    def post_filtered(self, plugin: str, status: str, seconds: float) -> None:
        """Pass on how long a PostFilter plugin took, which is what preemption takes to find its victims."""
        if self._observer is None:
            return
        if self.sampled:
            self._observer.plugin_executed(plugin, "PostFilter", status, seconds)
        if plugin == _PREEMPTION:
            self._observer.preemption_evaluated(status, seconds)

    def report_within(self, point: str, status: str, started: float) -> None:
        """Pass on how long an extension point took that is part of another measure, which leaves it out."""
        seconds = perf_counter() - started
        self.apart += seconds
        self.report(point, status, seconds)

    def report_rest(self, point: str, status: str, seconds: float) -> None:
        """Pass on how long an extension point took, without what was reported within it."""
        self.report(point, status, seconds - self.apart)
        self.apart = 0.0

    def run(
        self,
        point: str,
        plugin: str,
        label: Callable[[_Answer], str],
        call: Callable[..., _Answer],
        *arguments: Any,  # noqa: ANN401  those of any extension point
    ) -> _Answer:
        """Call a plugin in a sampled cycle and pass on how long it took; what it raises counts as an error."""
        started, status = perf_counter(), ERROR_LABEL
        try:
            answer = call(*arguments)
            status = label(answer)
            return answer
        finally:
            if self._observer is not None:
                self._observer.plugin_executed(plugin, point, status, perf_counter() - started)


def label_of(status: Status) -> str:
    """Return a status code as kube-scheduler writes it."""
    return _LABELS[status.code]


def label_of_result(result: PreFilterResult) -> str:
    """Return the status of a result."""
    return label_of(result.status)


def label_of_permit(answer: Status | Wait) -> str:
    """Return the status of a Permit plugin, which may have the pod wait."""
    return WAIT_LABEL if isinstance(answer, Wait) else label_of(answer)


def label_of_effects(effects: Sized) -> str:
    """Return the status of a PreBindPreFlight: who has nothing to do skips."""
    return SUCCESS_LABEL if len(effects) else _SKIP_LABEL


def label_of_part(part: Hashable) -> str:
    """Return the status of a Sign: pods that are like no other cannot be signed."""
    return UNSCHEDULABLE_LABEL if part is None else SUCCESS_LABEL


def label_of_codes(codes: Sequence[int] | Codes) -> str:
    """Return the status of a filter over rows: it succeeds where it lets any of them pass, as the point does."""
    return SUCCESS_LABEL if 0 in codes or not len(codes) else UNSCHEDULABLE_LABEL


def label_of_scores(scores: object) -> str:
    """Return the status of scores, which cannot fail but by raising."""
    del scores
    return SUCCESS_LABEL
