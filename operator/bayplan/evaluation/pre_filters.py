"""What the PreFilter plugins say of a pod shape: whether to look at nodes at all, at which, and with which filters."""

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Final

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult
from bayplan.framework.plugin_calls import label_of
from bayplan.framework.runtime import Framework
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.metrics.instruments import Count

UNCHANGED: Final = 0
"""What a refresh returns that changed no row's verdict."""
ROWS: Final = 1
"""What it returns when only rows that the table's logs name may have another verdict; any row's reason may differ."""
ANYWHERE: Final = 2
"""What it returns when any row may have become feasible or not."""


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

    def refresh(self, pod: PodInfo, *, anew: bool) -> int:
        """Run the plugins that may say something else now, all if `anew`.

        They may reject the pod, narrow the search, or switch their filter off. Returns UNCHANGED where all say what
        they said before, ROWS where one does not, and ANYWHERE where every row must be filtered again for it.
        """
        calls, differs = self._calls, anew
        started = perf_counter() if calls.observed else 0.0
        for plugin in () if anew else calls.each(self._every_cycle):
            before = self._results[plugin.name]
            result = plugin.pre_filter(self._state, pod, self._nodes)
            if result is not before and result != before:
                # It is asked again with those behind it.
                differs = True
                break
        changed: int = UNCHANGED
        if differs:
            changed = ANYWHERE if self._run(pod, anew=anew) or anew else ROWS
        if calls.observed and (differs or self._every_cycle):
            calls.report_within("PreFilter", label_of(self.rejection or SUCCESS), started)
        return changed

    def _run(self, pod: PodInfo, *, anew: bool) -> bool:
        """Ask the plugins, unless `anew` only those that read the cluster; True if what follows is another than before.

        What the others said last time stands.
        """
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
