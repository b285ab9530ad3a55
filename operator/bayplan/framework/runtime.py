"""One profile's plugins, in the order and with the weights its configuration gives them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from time import perf_counter
from typing import Any

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo, PodTemplates, Signature
from bayplan.config.connections import Extender
from bayplan.config.types import Profile
from bayplan.framework.cluster_event import WILDCARD, EventRegistration
from bayplan.framework.interface import (
    MAX_PERMIT_WAIT_SECONDS,
    Binding,
    BindPlugin,
    CycleState,
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    Rejections,
    ReleasesUnused,
    ReservePlugin,
    ScorePlugin,
    SignInputsPlugin,
    SignPlugin,
    Wait,
)
from bayplan.framework.missing_state import WithoutState
from bayplan.framework.plugin_calls import (
    SUCCESS_LABEL,
    WAIT_LABEL,
    PluginCalls,
    label_of,
    label_of_steps,
)
from bayplan.framework.status import SUCCESS, Code, Exchange, Status
from bayplan.framework.waiting_pods import WaitingPods

EXTENDER = "Extender"
"""The name that pods rejected by an extender wait under (upstream: framework/types.go ExtenderName)."""

_serials = count()


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A score plugin and what its normalised score is multiplied by."""

    plugin: ScorePlugin
    weight: int


class Framework:
    """Runs the extension points of one profile; built once from the configuration, shared by all its pods."""

    def __init__(
        self,
        profile: Profile,
        points: Mapping[str, Sequence[tuple[Any, int]]],
        extenders: Sequence[Extender] = (),
        waiting_pods: WaitingPods | None = None,
        calls: PluginCalls | None = None,
    ) -> None:
        def at(point: str) -> list[Any]:
            return [plugin for plugin, _ in points.get(point, ())]

        # Pods keep one signature a profile, so that they hold none of a framework that was replaced. Unlike an id, the
        # number that says whose it is is never used again.
        self._serial = next(_serials)
        self.calls = PluginCalls() if calls is None else calls
        """What measures the plugins."""
        self.extended = bool(extenders)
        """Whether extenders take part: the pods they reject are woken by every event."""
        self.waiting_pods = WaitingPods() if waiting_pods is None else waiting_pods
        """The pods that wait for Permit plugins, of all profiles."""
        self.profile_name = profile.scheduler_name
        self.percentage_of_nodes_to_score = profile.percentage_of_nodes_to_score
        """How many of all nodes are enough to find; 0 is adaptive, None and 100 are all nodes."""
        self.pre_enqueue: Sequence[PreEnqueuePlugin] = at("pre_enqueue")
        self.queue_sort: QueueSortPlugin = at("queue_sort")[0]
        self.pre_filters: Sequence[PreFilterPlugin] = at("pre_filter")
        self.filters: Sequence[FilterPlugin] = at("filter")
        self.post_filters: Sequence[PostFilterPlugin] = at("post_filter")
        self.pre_scores: Sequence[PreScorePlugin] = at("pre_score")
        self.scores: Sequence[WeightedScore] = [
            WeightedScore(plugin, weight or 1) for plugin, weight in points.get("score", ())
        ]
        self.takes_first_fit = not self.scores and not any(
            each.filter_verb or each.prioritize_verb for each in extenders
        )
        """Whether a search ends at the first node that fits, as nobody would tell it from others (upstream:
        schedule_one.go findNodesThatPassFilters)."""
        self.limits_search = self.takes_first_fit or self.percentage_of_nodes_to_score not in (None, 100)
        """Whether a search may end before all nodes were looked at."""
        self.reserves: Sequence[ReservePlugin] = at("reserve")
        self.permits: Sequence[PermitPlugin] = at("permit")
        self.pre_binds: Sequence[PreBindPlugin] = at("pre_bind")
        self.binds: Sequence[BindPlugin] = at("bind")
        self.post_binds: Sequence[PostBindPlugin] = at("post_bind")
        self.plugins: dict[str, Any] = {plugin.name: plugin for entries in points.values() for plugin, _ in entries}
        self._releasing = [plugin for plugin in self.plugins.values() if isinstance(plugin, ReleasesUnused)]
        self.signs_less = frozenset(name for name, plugin in self.plugins.items() if plugin.traits.signs_less)
        """The plugins that may reject one of two pods with the same signature."""
        # Only what filters and scores look at makes pods alike.
        deciding = [*self.pre_filters, *self.filters, *self.pre_scores, *(entry.plugin for entry in self.scores)]
        unique = {plugin.name: plugin for plugin in deciding}
        signers = [plugin for plugin in unique.values() if isinstance(plugin, SignPlugin)]
        self._signers = tuple(signers) if len(signers) == len(unique) else None
        is_template_enough = not any(plugin.traits.signs_more for plugin in unique.values())
        self._templates = PodTemplates() if is_template_enough else None
        self._sign_inputs = [plugin.sign_inputs for plugin in signers if isinstance(plugin, SignInputsPlugin)]
        self._fail_without_state()

    def _fail_without_state(self) -> None:
        """Put what fails in the place of plugins whose PreFilter or PreScore the profile leaves out."""
        pre_filtered = {plugin.name for plugin in self.pre_filters}
        pre_scored = {plugin.name for plugin in self.pre_scores}

        def without_pre_filter(plugin: Any, *, later: bool = True) -> Any:  # noqa: ANN401  a plugin of any point
            text = plugin.traits.without_pre_filter
            if not text or plugin.name in pre_filtered or (later and not plugin.traits.reads_pre_filter_later):
                return plugin
            return WithoutState(plugin, text)

        def without_pre_score(plugin: Any) -> Any:  # noqa: ANN401  as above
            text = plugin.traits.without_pre_score
            return WithoutState(plugin, text) if text and plugin.name not in pre_scored else plugin

        self.filters = [without_pre_filter(plugin, later=False) for plugin in self.filters]
        self.pre_scores = [without_pre_filter(plugin) for plugin in self.pre_scores]
        self.scores = [
            WeightedScore(without_pre_filter(without_pre_score(entry.plugin)), entry.weight) for entry in self.scores
        ]
        self.reserves = [without_pre_filter(plugin) for plugin in self.reserves]
        self.pre_binds = [without_pre_filter(plugin) for plugin in self.pre_binds]

    def run_pre_enqueue(self, pod: PodInfo) -> Status:
        """The first rejection of the PreEnqueue plugins, or SUCCESS."""
        calls, status = self.calls, SUCCESS
        started = perf_counter()
        for plugin in calls.each(self.pre_enqueue):
            status = plugin.pre_enqueue(pod)
            if not status.ok:
                status = _named(status, plugin)
                break
        if calls.observed:
            calls.report("PreEnqueue", label_of(status), perf_counter() - started)
        return status

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        """The first result of a PostFilter plugin that makes room, or one that joins why none does.

        A final answer ends the search and stands alone; after an error an earlier nomination stays. Otherwise the
        nomination is the last that any plugin had something to say about, `retry_after` the soonest that any gave
        (upstream: framework/runtime/framework.go RunPostFilterPlugins).
        """
        started = perf_counter()
        result = self._first_that_makes_room(state, pod, nodes, rejections)
        self.calls.report("PostFilter", label_of(result.status), perf_counter() - started)
        return result

    def _first_that_makes_room(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        reasons: list[str] = []
        retries: list[float] = []
        nominated_node_name: str | None = None
        post_filtered: list[str] = []
        for plugin in self.post_filters:
            post_filtered.append(plugin.name)
            started = perf_counter()
            result = plugin.post_filter(state, pod, nodes, rejections)
            self.calls.post_filtered(plugin.name, label_of(result.status), perf_counter() - started)
            code = result.status.code
            if code is Code.SUCCESS:
                return replace(result, post_filtered=tuple(post_filtered))
            if result.retry_after is not None:
                retries.append(result.retry_after)
            if code is not Code.UNSCHEDULABLE:
                reasons = [*result.status.reasons]
                nominated_node_name = None if code is Code.ERROR else result.nominated_node_name
                break
            reasons.extend(result.status.reasons)
            if result.nominated_node_name is not None:
                nominated_node_name = result.nominated_node_name
        status, ran = Status(Code.UNSCHEDULABLE, tuple(reasons)), tuple(post_filtered)
        return PostFilterResult(status, nominated_node_name, retry_after=min(retries, default=None), post_filtered=ran)

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SUCCESS once every Reserve plugin took what the pod needs, else the first failure with its plugin's name.

        The caller runs `run_unreserve` after a failure.
        """
        calls, status = self.calls, SUCCESS
        started = perf_counter() if calls.observed else 0.0
        for plugin in calls.each(self.reserves):
            status = plugin.reserve(state, pod, node_name)
            if not status.ok:
                if status.code is Code.ERROR:
                    calls.failed(plugin.name, "Reserve")
                status = _named(status, plugin, "Reserve")
                break
        if calls.observed:
            calls.report("Reserve", label_of(status), perf_counter() - started)
        return status

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Have every Reserve plugin give back what it took, in reverse order, also those that took nothing yet.

        Raises the first error of a plugin, once all have been asked.
        """
        failed: Exception | None = None
        started = perf_counter()
        for plugin in reversed(self.reserves):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as error:  # noqa: BLE001  one that fails must not keep the others' volumes
                failed = failed or error
        # As in kube-scheduler, where it cannot fail.
        self.calls.report("Unreserve", SUCCESS_LABEL, perf_counter() - started)
        if failed is not None:
            raise failed

    def run_permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, Mapping[str, float]]:
        """SUCCESS if no Permit plugin rejects the pod, else the first rejection with its plugin's name.

        Beside it stand the plugins that have the pod wait, and how many seconds each waits at most.
        """
        waits: dict[str, float] = {}
        if not self.permits:
            return SUCCESS, waits
        calls, status = self.calls, SUCCESS
        started = perf_counter()
        for plugin in calls.each(self.permits):
            answer = plugin.permit(state, pod, node_name)
            if isinstance(answer, Wait):
                waits[plugin.name] = min(answer.timeout_seconds, MAX_PERMIT_WAIT_SECONDS)
            elif not answer.ok:
                status, waits = _named(answer, plugin, "Permit"), {}
                break
        calls.report("Permit", WAIT_LABEL if waits else label_of(status), perf_counter() - started)
        return status, waits

    def run_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> list[tuple[str, Exchange]]:
        """The exchanges to have before the bind, by the name of the PreBind plugin; those with none are left out."""
        calls = self.calls
        started = perf_counter() if calls.observed else 0.0
        steps: list[tuple[str, Exchange]] = []
        for plugin in calls.each(self.pre_binds):
            exchange = plugin.pre_bind(state, pod, node_name)
            if exchange is not None:
                steps.append((plugin.name, exchange))
        if calls.observed:
            calls.report("PreBindPreFlight", label_of_steps(steps), perf_counter() - started)
        return steps

    def run_bind(self, pod: PodInfo, node_name: str) -> Binding:
        """The binding to post, which the first Bind plugin names."""
        return self.binds[0].bind(pod, node_name)

    def signature(self, pod: PodInfo) -> Hashable:
        """Equal for pods that every filter and score treats alike; None if the pod is like no other.

        Kept on the pod and shared by pods of one template, so it is not worked out again unless what plugins make of
        such a pod has changed.
        """
        inputs = (self._serial, *[sign_inputs(pod) for sign_inputs in self._sign_inputs])
        known = pod.signature
        if known is None or known.inputs != inputs:
            model = pod if self._templates is None else self._templates.model_of(pod)
            known = model.signature
            if known is None or known.inputs != inputs:
                known = model.signature = Signature(inputs, self._sign(model))
            pod.signature = known
        return known.value

    def _sign(self, pod: PodInfo) -> Hashable:
        if self._signers is None:
            return None
        parts: list[Hashable] = []
        for plugin in self.calls.each(self._signers):
            part = plugin.sign_pod(pod)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)

    def release_unused(self) -> None:
        """Have every plugin let go of what no pod needed since the last call."""
        for plugin in self._releasing:
            plugin.release_unused()

    def registrations(self) -> dict[str, Sequence[EventRegistration]]:
        """Which cluster events each plugin wants its rejected pods to be woken by."""
        registrations = {
            name: plugin.events_to_register()
            for name, plugin in self.plugins.items()
            if isinstance(plugin, EnqueueExtensions)
        }
        if self.extended:
            registrations[EXTENDER] = [EventRegistration(WILDCARD)]
        return registrations


def _named(failure: Status, plugin: Plugin, point: str = "") -> Status:
    """What stops the pod, with the name of the plugin that says so; errors at a `point` have both in their text."""
    reasons = failure.reasons
    if point and failure.code is Code.ERROR:
        reasons = (f'running {point} plugin "{plugin.name}": {failure.message}',)
    return Status(failure.code, reasons, plugin.name)
