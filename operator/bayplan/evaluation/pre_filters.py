"""What the PreFilter plugins say of a pod shape: whether to look at nodes at all, at which, and with which filters."""

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult
from bayplan.framework.plugin_calls import label_of
from bayplan.framework.runtime import Framework
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.metrics.instruments import Count


class PreFilters:
    """Keeps the results of the PreFilter plugins, which both rounds of filters start from.

    `rejection` is set when they rejected the pod as a whole, and `ran` are the names of those asked until then.
    `filters` are those that none of them switched off. `narrowed_to` are the names of the nodes they narrowed the
    search to, or None, and `narrowed_by` the plugins that did.
    """

    def __init__(self, framework: Framework, nodes: NodeTable, state: CycleState) -> None:
        self._framework = framework
        self._calls = framework.calls
        self._nodes = nodes
        self._state = state
        self._results: dict[str, PreFilterResult] = {}
        self._every_cycle: list[PreFilterPlugin] = []
        self.attempts = Count()
        """How many attempts ran these plugins; those that skipped are not counted."""
        self.rejection: Status | None = None
        self.ran: list[str] = []
        self.filters: list[FilterPlugin] = []
        self.narrowed_to: frozenset[str] | None = None
        self.narrowed_by: list[str] = []

    def rerun_and_compare(self, pod: PodInfo) -> bool:
        """Run again the plugins whose result may differ in every cycle; return whether all are as before.

        It stops at the first that differs; `run` asks that one again.
        """
        calls, results, started = self._calls, self._results, 0.0
        if calls.observed:
            started = perf_counter()
        for plugin in calls.each(self._every_cycle):
            before = results[plugin.name]
            result = plugin.pre_filter(self._state, pod, self._nodes)
            if result is not before and result != before:
                return False
        if calls.observed and self._every_cycle:
            calls.report_within("PreFilter", label_of(self.rejection or SUCCESS), started)
        return True

    def run(self, pod: PodInfo, *, anew: bool) -> bool:
        """Run the plugins: they may reject the pod, narrow the search, or switch their filter off.

        Unless `anew`, the results of those that do not read the cluster are taken from last time. True if the outcome
        differs from last time, so that every row must be filtered again.
        """
        started = perf_counter()
        differs = self._run(pod, anew=anew)
        if self._calls.observed:
            self._calls.report_within("PreFilter", label_of(self.rejection or SUCCESS), started)
        return differs

    def _run(self, pod: PodInfo, *, anew: bool) -> bool:
        before = (self.rejection, self.narrowed_to, self.filters)
        self.rejection = None
        self.narrowed_to = None
        self.narrowed_by = []
        self._every_cycle = []
        self.ran = []
        skipped: set[str] = set()
        for plugin in self._framework.pre_filters:
            every_cycle = plugin.traits.runs_pre_every_cycle
            result = None if anew else self._results.get(plugin.name)
            if result is None or (every_cycle and not result.lasting):
                result = self._calls.of(plugin).pre_filter(self._state, pod, self._nodes)
                self._results[plugin.name] = result
            if every_cycle and not result.lasting:
                self._every_cycle.append(plugin)
            self.ran.append(plugin.name)
            status = result.status
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                self.rejection = Status(status.code, status.reasons, status.plugin or plugin.name)
                break
            elif not status.ok:
                self.rejection = self.rejection or Status(status.code, status.reasons, status.plugin or plugin.name)
            if result.node_names is not None:
                self.narrowed_by.append(plugin.name)
                known: frozenset[str] | None = self.narrowed_to
                self.narrowed_to = result.node_names if known is None else known & result.node_names
                if not self.narrowed_to:
                    self.rejection = self._nothing_left()
                    break
        self.filters = [plugin for plugin in self._framework.filters if plugin.name not in skipped]
        self.attempts = self._calls.count((name for name in self.ran if name not in skipped), "PreFilter")
        return before != (self.rejection, self.narrowed_to, self.filters)

    def belonging_to(self, filters: Sequence[FilterPlugin]) -> tuple[PreFilterPlugin, ...]:
        """The PreFilter plugins of the same names as `filters`."""
        names = {plugin.name for plugin in filters}
        return tuple(plugin for plugin in self._framework.pre_filters if plugin.name in names)

    @property
    def narrowed_plugins(self) -> str:
        """The plugins that narrowed the search, as one name or several."""
        return " ".join(sorted(self.narrowed_by))

    @property
    def narrowed_reason(self) -> str:
        """What nodes left out of the search are told."""
        return not_satisfied(self.narrowed_by)

    def explained_rejection(self, pod: PodInfo) -> str:
        """What explanations tell of the rejection: as its plugin explains it, otherwise its message."""
        rejection = self.rejection or SUCCESS
        plugin = next((each for each in self._framework.pre_filters if each.name == rejection.plugin), None)
        explain: Callable[[PodInfo], str] = getattr(plugin, "explain_rejection", lambda _: "")
        return explain(pod) or rejection.message

    def _nothing_left(self) -> Status:
        names = sorted(self.narrowed_by)
        text = (
            f"node(s) didn't satisfy plugin {names[0]}" if len(names) == 1 else f"{self.narrowed_reason} simultaneously"
        )
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), self.narrowed_plugins)


def not_satisfied(plugins: Iterable[str]) -> str:
    """What nodes left out of a search are told of the plugins that left them out."""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"
