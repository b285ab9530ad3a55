"""Calls of plugins, measured."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

from bayplan.framework.interface import Wait
from bayplan.framework.status import Code, Status
from bayplan.metrics.instruments import Count
from bayplan.metrics.table import POD_PREEMPTOR, VOLUME_STAGES, Metrics

_Answer = TypeVar("_Answer")
_Plugin = TypeVar("_Plugin")

CYCLES_PER_SAMPLE: Final = 10
"""In one of so many cycles the plugins are measured (upstream: schedule_one.go pluginMetricsSamplePercent)."""

_PREEMPTION: Final = "DefaultPreemption"
_VOLUMES: Final = "VolumeBinding"
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


class PluginCalls:
    """Tells one profile's parts whether the cycle is sampled, and passes on what they measure.

    Evaluations and the framework rely on it. Without metrics nothing is sampled, and measuring costs nothing.
    """

    def __init__(self, profile: str = "", metrics: Metrics | None = None) -> None:
        self._profile = profile
        self._metrics = metrics
        self._until_sample = 0
        self._measured: dict[int, Any] = {}
        self.observed = metrics is not None
        """Whether anybody wants to know; nothing need be measured or begun otherwise."""
        self.sampled = False
        """Whether single plugins are measured now."""
        self.reported_within = 0.0
        """Seconds that were reported within a measure that goes on, and are to be left out of it."""

    def begin(self) -> None:
        """Begin an attempt; of ten one is sampled, after a number of others left to chance, as what repeats may be."""
        if not self.observed:
            return
        self.reported_within = 0.0
        self._until_sample -= 1
        self.sampled = self._until_sample < 0
        if self.sampled:
            self._until_sample = random.randrange(2 * CYCLES_PER_SAMPLE - 1)  # noqa: S311  no secret

    def of(self, plugin: _Plugin) -> _Plugin:
        """Return what to call in place of the plugin: in a sampled cycle one that passes on how long it took."""
        if not self.sampled:
            return plugin
        if id(plugin) not in self._measured:
            self._measured[id(plugin)] = MeasuredPlugin(plugin, self)
        measured: _Plugin = self._measured[id(plugin)]
        return measured

    def each(self, plugins: Sequence[_Plugin]) -> Sequence[_Plugin]:
        """Return what `of` does for each of these plugins."""
        return list(map(self.of, plugins)) if self.sampled else plugins

    def measured(self, method: str, plugin: str, call: Callable[..., _Answer]) -> Callable[..., _Answer]:
        """Return what calls a plugin's `method`, or something in its place, and passes on how long it took."""
        point, label = _MEASURED[method]
        return partial(self.run, point, plugin, label, call)

    def count(self, plugins: Iterable[str], point: str) -> Count:
        """Return what to add to when these plugins are run at an extension point."""
        if self._metrics is None:
            return Count()
        return self._metrics.plugin_evaluations.count(tuple(plugins), point, self._profile)

    def report(self, point: str, status: str, seconds: float) -> None:
        """Pass on how long all plugins of an extension point took."""
        if self._metrics is not None:
            self._metrics.extension_point_seconds.observe(seconds, point, status, self._profile)

    def executed(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Pass on how long one plugin took in a sampled cycle."""
        if self._metrics is not None:
            self._metrics.plugin_seconds.observe(seconds, plugin, point, status)

    def failed(self, plugin: str, point: str) -> None:
        """Count a plugin that could not answer; kube-scheduler counts that of volumes only."""
        if self._metrics is not None and plugin == _VOLUMES and point in VOLUME_STAGES:
            self._metrics.volume_stage_errors.add(VOLUME_STAGES[point])

    def claim_made(self, status: str) -> None:
        """Count a claim that was to be made for a pod's extended resources: `success` or `failure`."""
        if self._metrics is not None:
            self._metrics.claims_made.add(status, "false", "", "Pod")

    def devices_awaited(self, status: str, seconds: float, drivers: Sequence[str], conditional: Sequence[str]) -> None:
        """Pass on how a wait for devices ended: the driver of each device of the pod, and of each that was waited for.

        Upstream: plugins/dynamicresources/dynamicresources.go PreBind.
        """
        if self._metrics is not None:
            for driver in drivers:
                self._metrics.device_wait_seconds.observe(seconds, self._profile, driver, status)
            for driver in conditional:
                self._metrics.device_waits.add(self._profile, driver, status)

    def post_filtered(self, plugin: str, status: str, seconds: float) -> None:
        """Pass on how long a PostFilter plugin took, which is what preemption takes to find its victims."""
        if self._metrics is None:
            return
        if self.sampled:
            self.executed(plugin, "PostFilter", status, seconds)
        if plugin == _PREEMPTION:
            self._metrics.preemption_evaluation_seconds.observe(seconds, POD_PREEMPTOR, status)

    def report_within(self, point: str, status: str, started: float) -> None:
        """Pass on how long an extension point took that is part of another measure, which leaves it out."""
        seconds = perf_counter() - started
        self.reported_within += seconds
        self.report(point, status, seconds)

    def report_rest(self, point: str, status: str, seconds: float) -> None:
        """Pass on how long an extension point took, without what was reported within it."""
        self.report(point, status, seconds - self.reported_within)
        self.reported_within = 0.0

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
            self.executed(plugin, point, status, perf_counter() - started)


class MeasuredPlugin:
    """Stands for a plugin in sampled cycles; each of its calls is told by `PluginCalls.run`.

    It has what the engine looks at in plugins that it calls, and no more.
    """

    def __init__(self, plugin: Any, calls: PluginCalls) -> None:  # noqa: ANN401  a plugin of any point
        # It is known by its id, so that it must stay.
        self.plugin = plugin
        self.name, self.traits = plugin.name, plugin.traits
        for method in _MEASURED:
            call = getattr(plugin, method, None)
            if call is not None:
                setattr(self, method, calls.measured(method, plugin.name, call))


def label_of(status: Status) -> str:
    """Return a status code as kube-scheduler writes it."""
    return _LABELS[status.code]


def label_of_steps(steps: object) -> str:
    """Return the status of a PreBindPreFlight: who has nothing to do skips."""
    return SUCCESS_LABEL if steps else _SKIP_LABEL


_MEASURED: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "pre_enqueue": ("PreEnqueue", label_of),
    # Pods that are like no other cannot be signed.
    "sign_pod": ("Sign", lambda part: UNSCHEDULABLE_LABEL if part is None else SUCCESS_LABEL),
    "pre_filter": ("PreFilter", lambda result: label_of(result.status)),
    # It succeeds where it lets any row pass, as the point does.
    "filter": ("Filter", lambda codes: SUCCESS_LABEL if 0 in codes or not len(codes) else UNSCHEDULABLE_LABEL),
    "pre_score": ("PreScore", label_of),
    # Scores cannot fail but by raising.
    "score": ("Score", lambda _: SUCCESS_LABEL),
    "normalize_score": ("ScoreExtensionNormalize", lambda _: SUCCESS_LABEL),
    "reserve": ("Reserve", label_of),
    "permit": ("Permit", lambda answer: WAIT_LABEL if isinstance(answer, Wait) else label_of(answer)),
    "pre_bind": ("PreBindPreFlight", label_of_steps),
}
"""The methods whose calls are measured: what kube-scheduler calls the point, and the status of an answer."""
