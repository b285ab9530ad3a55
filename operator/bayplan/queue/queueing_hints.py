"""Which waiting pods an event may help (upstream: QueueingHintFn)."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from time import perf_counter
from typing import Any, Final

import msgspec

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import encoded_size
from bayplan.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    QueueingHintFn,
    cluster_event,
)
from bayplan.metrics.instruments import Histogram
from bayplan.queue.queue_settings import QueueProfile
from bayplan.queue.queued_pod import QueuedEntity, QueuedPodInfo

logger = logging.getLogger(__name__)

_Hints = tuple[QueueingHintFn | None, ...]
QueueingHintMap = Mapping[str, Mapping[str, _Hints]]
"""For one event, by profile, the plugins that registered for it with their hints; other profiles are left out.

Under `ANY_PROFILE` stand the plugins of all of them: a group is of the profiles of its members.
"""
ANY_PROFILE: Final = ""

EVENTS_PER_SAMPLE: Final = 10
"""The hints of one of so many events are measured."""

_EVENT_BYTES: Final = 500
_BYTES_PER_ENCODED_BYTE: Final = 10
"""What an object takes in memory for a byte of it as encoded; pods and nodes take 5 to 8."""


class QueueingHintMaps(dict[ClusterEvent, QueueingHintMap]):
    """The hint map of each event, collected from the registrations when the event first comes."""

    def __init__(self, profiles: Mapping[str, QueueProfile], seconds: Histogram[str, str, str] | None = None) -> None:
        super().__init__()
        self._profiles = profiles
        self._seconds = seconds
        self._measured: dict[ClusterEvent, QueueingHintMap] = {}
        self._until_sample = 0

    def take_over(self, profiles: Mapping[str, QueueProfile]) -> None:
        """Collect from the registrations of these profiles from now on."""
        self._profiles = profiles
        self.clear()
        self._measured.clear()

    def sampled(self, event: ClusterEvent) -> QueueingHintMap:
        """Return the event's hint map, and for one event of ten one whose hints are measured."""
        self._until_sample -= 1
        if self._until_sample >= 0 or self._seconds is None or not self[event]:
            return self[event]
        self._until_sample = random.randrange(2 * EVENTS_PER_SAMPLE - 1)  # noqa: S311  no secret
        measured = self._measured.get(event)
        if measured is None:
            seconds = self._seconds
            measured = self._measured[event] = {
                profile: {
                    plugin: tuple(_measured(hint, plugin, event.label, seconds) for hint in hints)
                    for plugin, hints in plugins.items()
                }
                for profile, plugins in self[event].items()
            }
        return measured

    def __missing__(self, event: ClusterEvent) -> QueueingHintMap:
        hint_map: dict[str, dict[str, _Hints]] = {}
        for name, profile in self._profiles.items():
            plugins = {
                plugin: hints
                for plugin, registrations in profile.registrations.items()
                if (hints := tuple(each.hint for each in registrations if event.matches(each.event)))
            }
            if plugins:
                hint_map[name] = plugins
        if hint_map:
            hint_map[ANY_PROFILE] = {plugin: () for plugins in hint_map.values() for plugin in plugins}
        self[event] = hint_map
        return hint_map


class ObservedEvent(msgspec.Struct, frozen=True):
    """A cluster event with the object before and after it, the hints to call, and the pods it may concern.

    `only_uid` leaves all pods out but that one, `max_priority` those of a higher priority, and `except_uid` one pod.
    """

    event: ClusterEvent
    old: object | None
    new: object | None
    hint_map: QueueingHintMap
    only_uid: str | None = None
    max_priority: int | None = None
    except_uid: str | None = None

    def concerns(self, pod: PodInfo) -> bool:
        """Return whether the event can help this pod at all, whatever rejected it."""
        if self.only_uid is not None and self.only_uid != pod.uid:
            return False
        return (self.max_priority is None or pod.priority <= self.max_priority) and self.except_uid != pod.uid

    def kept_bytes(self) -> int:
        """Return about how many bytes it takes to keep the event."""
        return _EVENT_BYTES + _object_bytes(self.old) + _object_bytes(self.new)


def _object_bytes(changed: object | None) -> int:
    """About how many bytes an object takes that an event is about."""
    if changed is None:
        return 0
    return _BYTES_PER_ENCODED_BYTE * encoded_size(changed.pod if isinstance(changed, PodInfo) else changed)


def is_pod_worth_requeuing(queued: QueuedEntity, observed: ObservedEvent, failures: Counter[str]) -> bool:
    """Return whether the event brings the pod back: only hints of plugins that rejected it are called.

    A hint that raises counts as a yes: a pod tried in vain costs little, a pod forgotten is lost. The first failure
    of each plugin in `failures`, which the caller keeps for one event, is logged with its traceback.
    """
    return any(
        plugin in queued.rejector_plugins and _any_queues(plugin, hints, queued, observed, failures)
        for plugin, hints in observed.hint_map.get(queued.profile, {}).items()
    )


def may_help(queued: QueuedEntity, observed: ObservedEvent) -> bool:
    """Return whether a hint of any plugin that registered for the event brings the pod back, whatever rejected it."""
    failures: Counter[str] = Counter()
    return any(
        _any_queues(plugin, hints, queued, observed, failures)
        for plugin, hints in observed.hint_map.get(queued.profile, {}).items()
    )


def is_in_flight_pod_worth_requeuing(queued: QueuedEntity, missed: Iterable[ObservedEvent]) -> bool:
    """Return whether one of the events that came during the pod's attempt brings it back.

    Upstream: determineSchedulingHintForInFlightPod.
    """
    failures: Counter[str] = Counter()
    return any(is_pod_worth_requeuing(queued, observed, failures) for observed in missed)


def worth_requeuing(observed: ObservedEvent, profiles: Mapping[str, QueueProfile]) -> Callable[[QueuedEntity], bool]:
    """Return what tells, as `is_pod_worth_requeuing`, which of many pods one event brings back; it asks nothing twice.

    Hints about nodes look at nothing of a pod but what filters look at, so pods of one shape that the same plugins
    rejected share an answer. Hints about other objects may look at names and labels too.
    """
    failures: Counter[str] = Counter()
    known: dict[Hashable, bool] = {}
    is_about_node = observed.event.resource is EventResource.NODE

    def is_worth(queued: QueuedEntity) -> bool:
        if not isinstance(queued, QueuedPodInfo):
            # A group that a gate holds, which one of many members may be behind: the gate itself is asked.
            return True
        shape = profiles[queued.profile].shape_or_none(queued.pod_info) if is_about_node else None
        if shape is None:
            return is_pod_worth_requeuing(queued, observed, failures)
        key = (queued.profile, queued.rejector_plugins, shape)
        if key not in known:
            known[key] = is_pod_worth_requeuing(queued, observed, failures)
        return known[key]

    return is_worth


def _measured(
    hint: QueueingHintFn | None, plugin: str, event: str, seconds: Histogram[str, str, str]
) -> QueueingHintFn:
    """The same hint, with how long it took passed on; no hint is one that always queues."""

    def measured(pod: PodInfo, old: Any, new: Any) -> QueueingHint:  # noqa: ANN401  as hints take them
        started, label = perf_counter(), "Error"
        try:
            answer = QueueingHint.QUEUE if hint is None else hint(pod, old, new)
            label = "QueueSkip" if answer is QueueingHint.SKIP else "Queue"
            return answer
        finally:
            seconds.observe(perf_counter() - started, plugin, event, label)

    return measured


def _any_queues(
    plugin: str, hints: _Hints, queued: QueuedEntity, observed: ObservedEvent, failures: Counter[str]
) -> bool:
    try:
        for hint in hints:
            if hint is None or hint(queued.pod_info, observed.old, observed.new) is not QueueingHint.SKIP:
                return True
    except Exception:
        failures[plugin] += 1
        if failures[plugin] == 1:
            logger.exception(
                "queueing hint failed, pod is tried again plugin=%s event=%s pod=%s",
                plugin,
                observed.event.label,
                queued.pod_info.key,
            )
        return True
    return False


def pod_changes(old: PodInfo, new: PodInfo, resource: EventResource) -> list[ClusterEvent]:
    """Return the specific changes of a pod, in upstream's order, or else the plain update.

    Upstream: framework/events.go PodSchedulingPropertiesChange.
    """
    before, after = old.pod, new.pod
    actions = []
    if (before.metadata.labels or {}) != (after.metadata.labels or {}):
        actions.append(ActionType.UPDATE_POD_LABEL)
    if is_scaled_down(old, new):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API lets tolerations be added, never changed or removed, so comparing their number is enough.
    if len(before.spec.tolerations or ()) != len(after.spec.tolerations or ()):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (before.status.resource_claim_statuses or []) != (after.status.resource_claim_statuses or []):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [cluster_event(resource, action) for action in actions or (ActionType.UPDATE,)]


def is_scaled_down(old: PodInfo, new: PodInfo) -> bool:
    """Return whether the pod takes less of some resource than before; also when its quantities cannot be read.

    What the kubelet reports of an in-place resize counts, as it does on the pod's node (upstream: framework/events.go
    extractPodScaleDown).
    """
    try:
        before, after = old.placed, new.placed
    except ValueError:
        # The next cycle reads the pod again and reports the field.
        return True
    # Pods that ask for the same mostly share one answer.
    return before is not after and any(amount > after.amounts.get(name, 0) for name, amount in before.amounts.items())
