"""One profile's plugins, in the order and with the weights its configuration gives them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.pod_templates import PodTemplates
from bayplan.config.types import Profile
from bayplan.framework.cluster_event import WILDCARD, EventRegistration
from bayplan.framework.effects import Effect
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
    ReservePlugin,
    ScorePlugin,
    SignPlugin,
    VersionedSignPlugin,
    Wait,
)
from bayplan.framework.status import SUCCESS, Code, Status
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
        waiting_pods: WaitingPods | None = None,
    ) -> None:
        def at(point: str) -> list[Any]:
            return [plugin for plugin, _ in points.get(point, ())]

        # Pods keep their signatures under this number; unlike an id it is never used again.
        self._serial = next(_serials)
        self.extended = False
        """Whether extenders take part: the pods they reject are woken by every event."""
        self.waiting_pods = WaitingPods() if waiting_pods is None else waiting_pods
        """The pods that wait for Permit plugins, of all profiles."""
        self.profile_name = profile.scheduler_name
        self.percentage_of_nodes_to_score = profile.percentage_of_nodes_to_score
        self.pre_enqueue: Sequence[PreEnqueuePlugin] = at("pre_enqueue")
        self.queue_sort: QueueSortPlugin = at("queue_sort")[0]
        self.pre_filters: Sequence[PreFilterPlugin] = at("pre_filter")
        self.filters: Sequence[FilterPlugin] = at("filter")
        self.post_filters: Sequence[PostFilterPlugin] = at("post_filter")
        self.pre_scores: Sequence[PreScorePlugin] = at("pre_score")
        self.scores: Sequence[WeightedScore] = [
            WeightedScore(plugin, weight or 1) for plugin, weight in points.get("score", ())
        ]
        self.reserves: Sequence[ReservePlugin] = at("reserve")
        self.permits: Sequence[PermitPlugin] = at("permit")
        self.pre_binds: Sequence[PreBindPlugin] = at("pre_bind")
        self.binds: Sequence[BindPlugin] = at("bind")
        self.post_binds: Sequence[PostBindPlugin] = at("post_bind")
        self.plugins: dict[str, Any] = {plugin.name: plugin for entries in points.values() for plugin, _ in entries}
        # Only what filters and scores look at makes pods alike.
        deciding = [*self.pre_filters, *self.filters, *self.pre_scores, *(entry.plugin for entry in self.scores)]
        unique = {plugin.name: plugin for plugin in deciding}
        signers = [plugin for plugin in unique.values() if isinstance(plugin, SignPlugin)]
        self._signers = tuple(signers) if len(signers) == len(unique) else None
        is_template_enough = not any(plugin.traits.signs_more for plugin in unique.values())
        self._templates = PodTemplates() if is_template_enough else None
        self._sign_versions = tuple(plugin for plugin in signers if isinstance(plugin, VersionedSignPlugin))

    def run_pre_enqueue(self, pod: PodInfo) -> Status:
        """The first rejection of the PreEnqueue plugins, or SUCCESS."""
        for plugin in self.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.ok:
                return _named(status, plugin)
        return SUCCESS

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        """The first result of a PostFilter plugin that makes room, or one that joins why none does.

        A final answer ends the search and its reasons stand alone. The nomination is the last plugin's, `retry_after`
        the soonest that any gave (upstream: framework/runtime/framework.go RunPostFilterPlugins).
        """
        reasons: list[str] = []
        retries: list[float] = []
        nominated_node_name: str | None = None
        for plugin in self.post_filters:
            result = plugin.post_filter(state, pod, nodes, rejections)
            if result.status.code is Code.SUCCESS:
                return result
            if result.retry_after is not None:
                retries.append(result.retry_after)
            nominated_node_name = result.nominated_node_name
            if result.status.code is not Code.UNSCHEDULABLE:
                reasons = [*result.status.reasons]
                break
            reasons.extend(result.status.reasons)
        status = Status(Code.UNSCHEDULABLE, tuple(reasons))
        return PostFilterResult(status, nominated_node_name, retry_after=min(retries, default=None))

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SUCCESS once every Reserve plugin took what the pod needs, else the first failure with its plugin's name.

        The caller runs `run_unreserve` after a failure.
        """
        for plugin in self.reserves:
            status = plugin.reserve(state, pod, node_name)
            if not status.ok:
                return _named(status, plugin, "Reserve")
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Have every Reserve plugin give back what it took, in reverse order, also those that took nothing yet."""
        for plugin in reversed(self.reserves):
            plugin.unreserve(state, pod, node_name)

    def run_permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, Mapping[str, float]]:
        """SUCCESS if no Permit plugin rejects the pod, else the first rejection with its plugin's name.

        Beside it stand the plugins that have the pod wait, and how many seconds each waits at most.
        """
        waits: dict[str, float] = {}
        for plugin in self.permits:
            answer = plugin.permit(state, pod, node_name)
            if isinstance(answer, Wait):
                waits[plugin.name] = min(answer.timeout_seconds, MAX_PERMIT_WAIT_SECONDS)
            elif not answer.ok:
                return _named(answer, plugin, "Permit"), {}
        return SUCCESS, waits

    def run_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> list[tuple[str, Sequence[Effect]]]:
        """The effects to perform before the bind, by the name of the PreBind plugin; those with none are left out."""
        return [
            (plugin.name, effects) for plugin in self.pre_binds if (effects := plugin.pre_bind(state, pod, node_name))
        ]

    def run_bind(self, pod: PodInfo, node_name: str) -> Binding:
        """The binding to post, which the first Bind plugin names."""
        return self.binds[0].bind(pod, node_name)

    def signature(self, pod: PodInfo) -> Hashable:
        """Equal for pods that every filter and score treats alike; None if the pod is like no other.

        Kept on the pod and shared by pods of one template, so it is not worked out again unless what plugins make of
        such pods has changed.
        """
        version = 0
        for plugin in self._sign_versions:
            version += plugin.sign_version
        known = pod.signatures.get(self._serial)
        if known is None or known[0] != version:
            model = pod if self._templates is None else self._templates.model_of(pod)
            known = model.signatures.get(self._serial)
            if known is None or known[0] != version:
                known = model.signatures[self._serial] = version, self._sign(model)
            pod.signatures[self._serial] = known
        return known[1]

    def _sign(self, pod: PodInfo) -> Hashable:
        if self._signers is None:
            return None
        parts: list[Hashable] = []
        for plugin in self._signers:
            part = plugin.sign_pod(pod)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)

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
