"""Which events may help which rejected pod."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bayplan.cache.pod_info import PodInfo
from bayplan.queue.cluster_event import (
    ClusterEvent,
    EventRegistration,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from bayplan.queue.queued_pod import QueuedPodInfo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateRejection:
    """A plugin's refusal to let a pod into the queue yet."""

    plugin: str
    message: str


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """What the queue needs of a scheduling profile.

    `pre_enqueue` says what holds a pod back, None if nothing does. `registrations` are the events each plugin
    wants to hear of for the pods it rejected; a gating plugin must register the event that ends its gate.
    """

    pre_enqueue: Callable[[PodInfo], GateRejection | None]
    registrations: Mapping[str, Sequence[EventRegistration]]


@dataclass(frozen=True, slots=True)
class Happening:
    """An event with the object before and after it; with a `target` it concerns the pod of that uid only."""

    event: ClusterEvent
    old: object | None
    new: object | None
    target: str | None = None


class Requeue(Enum):
    """What an event does to a pod that waits for one."""

    SKIP = "skip"
    AFTER_BACKOFF = "after-backoff"
    IMMEDIATELY = "immediately"


_Hints = tuple[QueueingHintFn | None, ...]


class QueueingHints:
    """Asks the plugins that rejected a pod, and only those, whether an event is worth another attempt."""

    __slots__ = ("_interest", "_profiles")

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._interest: dict[ClusterEvent, dict[str, dict[str, _Hints]]] = {}

    def interest(self, event: ClusterEvent) -> Mapping[str, Mapping[str, _Hints]]:
        """By profile, the plugins that registered for the event, with their hints; only those that did."""
        known = self._interest.get(event)
        if known is None:
            known = self._interest[event] = self._collect(event)
        return known

    def _collect(self, event: ClusterEvent) -> dict[str, dict[str, _Hints]]:
        interest: dict[str, dict[str, _Hints]] = {}
        for name, profile in self._profiles.items():
            plugins = {
                plugin: hints
                for plugin, registrations in profile.registrations.items()
                if (hints := tuple(wish.hint for wish in registrations if event.matches(wish.event)))
            }
            if plugins:
                interest[name] = plugins
        return interest

    def judge(self, queued: QueuedPodInfo, happening: Happening, failures: Counter[str]) -> Requeue:
        """Whether, and how, the event brings the pod back.

        A hint that raises counts as a yes: a pod tried in vain costs little, a pod forgotten is lost. The
        first failure of each plugin in `failures`, which the caller keeps for one event, is logged with its
        traceback.
        """
        if happening.event.resource is EventResource.WILDCARD:
            return Requeue.AFTER_BACKOFF
        verdict = Requeue.SKIP
        for plugin, hints in self.interest(happening.event).get(queued.profile, {}).items():
            if plugin not in queued.rejector_plugins:
                continue
            if not any(self._says_queue(plugin, hint, queued, happening, failures) for hint in hints):
                continue
            if plugin in queued.pending_plugins:
                return Requeue.IMMEDIATELY
            verdict = Requeue.AFTER_BACKOFF
            if not queued.pending_plugins:
                return verdict
        return verdict

    @staticmethod
    def _says_queue(
        plugin: str,
        hint: QueueingHintFn | None,
        queued: QueuedPodInfo,
        happening: Happening,
        failures: Counter[str],
    ) -> bool:
        if hint is None:
            return True
        try:
            return hint(queued.pod_info, happening.old, happening.new) is not QueueingHint.SKIP
        except Exception:
            failures[plugin] += 1
            if failures[plugin] == 1:
                logger.exception(
                    "queueing hint failed, pod is tried again plugin=%s event=%s pod=%s",
                    plugin,
                    happening.event.label,
                    queued.pod_info.key,
                )
            return True
