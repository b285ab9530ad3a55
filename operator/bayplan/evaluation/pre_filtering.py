"""What the PreFilter plugins say of a pod shape: whether to look at nodes at all, at which, and with which filters."""

from collections.abc import Sequence

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import (
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status


class PreFiltering:
    """Keeps what the PreFilter plugins said, which Filtering starts from.

    `rejection` is set when they rejected the pod as a whole. `filters` are those that none of them switched off.
    `narrowed_to` are the names of the nodes they narrowed the search to, or None, and `narrowed_by` the plugins that
    did.
    """

    def __init__(self, framework: Framework, nodes: NodeTable, state: CycleState) -> None:
        self._framework = framework
        self._nodes = nodes
        self._state = state
        self._said: dict[str, PreFilterResult] = {}
        self._asked_again: list[PreFilterPlugin] = []
        self.rejection: Status | None = None
        self.filters: list[FilterPlugin] = []
        self.narrowed_to: frozenset[str] | None = None
        self.narrowed_by: list[str] = []

    def says_the_same(self, pod: PodInfo) -> bool:
        """Whether the plugins that read the cluster still say what they said."""
        for plugin in self._asked_again:
            said, says = self._said[plugin.name], plugin.pre_filter(self._state, pod, self._nodes)
            if says is not said and says != said:
                return False
        return True

    def ask(self, pod: PodInfo, *, anew: bool) -> bool:
        """Ask the plugins: they may reject the pod, narrow the search, or switch their filter off.

        Unless `anew`, those that do not read the cluster are not asked again, and said what they said. True if the
        outcome differs from last time, so that every row must be asked again.
        """
        before = (self.rejection, self.narrowed_to, self.filters)
        self.rejection = None
        self.narrowed_to = None
        self.narrowed_by = []
        self._asked_again = []
        skipped: set[str] = set()
        for plugin in self._framework.pre_filters:
            kept = None if anew else self._said.get(plugin.name)
            if kept is None or (not kept.lasting and pre_reads(plugin) is Reads.CLUSTER):
                kept = plugin.pre_filter(self._state, pod, self._nodes)
            result = self._said[plugin.name] = kept
            if not result.lasting and pre_reads(plugin) is Reads.CLUSTER:
                self._asked_again.append(plugin)
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
        return before != (self.rejection, self.narrowed_to, self.filters)

    def of(self, filters: Sequence[FilterPlugin]) -> tuple[PreFilterPlugin, ...]:
        """The PreFilter plugins that belong to `filters`."""
        names = {plugin.name for plugin in filters}
        return tuple(plugin for plugin in self._framework.pre_filters if plugin.name in names)

    @property
    def narrowed_plugins(self) -> str:
        """The plugins that narrowed the search, as one name or several."""
        return " ".join(sorted(self.narrowed_by))

    def _nothing_left(self) -> Status:
        names = sorted(self.narrowed_by)
        text = (
            f"node(s) didn't satisfy plugin {names[0]}"
            if len(names) == 1
            else f"node(s) didn't satisfy plugin(s) [{self.narrowed_plugins}] simultaneously"
        )
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), self.narrowed_plugins)


def pre_reads(plugin: PreFilterPlugin | PreScorePlugin) -> Reads:
    """What the answers of a plugin's PreFilter and PreScore depend on; as its `reads` unless it says otherwise."""
    return getattr(plugin, "pre_reads", getattr(plugin, "reads", Reads.NODE))
