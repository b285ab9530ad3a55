"""Which events may help which rejected pod."""

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum

import msgspec

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ClusterEvent,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from bayplan.queue.queue_profile import QueueProfile
from bayplan.queue.queued_pod import QueuedPodInfo

logger = logging.getLogger(__name__)


class Requeue(Enum):
    """What an event does to a pod that waits for one."""

    SKIP = "skip"
    AFTER_BACKOFF = "after-backoff"
    IMMEDIATELY = "immediately"


_Hints = tuple[QueueingHintFn | None, ...]
Audience = Mapping[str, Mapping[str, _Hints]]
"""By profile, the plugins that registered for an event, with their hints; profiles without any are left out."""


class Happening(msgspec.Struct, frozen=True):
    """An event, the object before and after it, and who wants to hear of it.

    With a `target` it concerns the pod of that uid only, with a `ceiling` only pods of at most that priority, and
    never the pod `spared`. A wildcard concerns every pod, whatever rejected it.
    """

    event: ClusterEvent
    old: object | None
    new: object | None
    audience: Audience
    target: str | None = None
    ceiling: int | None = None
    spared: str | None = None

    def concerns(self, pod: PodInfo) -> bool:
        """Whether the event can help this pod at all, whatever rejected it."""
        if self.target is not None and self.target != pod.uid:
            return False
        return (self.ceiling is None or pod.priority <= self.ceiling) and self.spared != pod.uid

    @property
    def wildcard(self) -> bool:
        """Whether no plugin is asked."""
        return self.event.resource is EventResource.WILDCARD


class Audiences:
    """Knows who registered for what; each kind of event is looked up once."""

    __slots__ = ("_known", "_profiles")

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._known: dict[ClusterEvent, Audience] = {}

    def happening(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        target: str | None = None,
        ceiling: int | None = None,
        spared: str | None = None,
    ) -> Happening:
        """The event with its audience."""
        audience = self._known.get(event)
        if audience is None:
            audience = self._known[event] = self._collect(event)
        return Happening(event, old, new, audience, target, ceiling, spared)

    def _collect(self, event: ClusterEvent) -> Audience:
        audience: dict[str, dict[str, _Hints]] = {}
        for name, profile in self._profiles.items():
            plugins = {
                plugin: hints
                for plugin, registrations in profile.registrations.items()
                if (hints := tuple(wish.hint for wish in registrations if event.matches(wish.event)))
            }
            if plugins:
                audience[name] = plugins
        return audience


def judge(queued: QueuedPodInfo, happening: Happening, failures: Counter[str]) -> Requeue:
    """Whether, and how, the event brings the pod back: the plugins that rejected it, and only those, are asked.

    A hint that raises counts as a yes: a pod tried in vain costs little, a pod forgotten is lost. The first failure
    of each plugin in `failures`, which the caller keeps for one event, is logged with its traceback.
    """
    if happening.wildcard:
        return Requeue.AFTER_BACKOFF
    verdict = Requeue.SKIP
    for plugin, hints in happening.audience.get(queued.profile, {}).items():
        if plugin not in queued.rejector_plugins or not _says_queue(plugin, hints, queued, happening, failures):
            continue
        if plugin in queued.pending_plugins:
            return Requeue.IMMEDIATELY
        verdict = Requeue.AFTER_BACKOFF
        if not queued.pending_plugins:
            break
    return verdict


class Verdicts:
    """What one event does to many waiting pods, without asking the same twice.

    Hints about nodes look at nothing of a pod but what filters look at, so pods of one shape that the same plugins
    rejected share a verdict; hints about other objects may look at names and labels too.
    """

    __slots__ = ("_failures", "_happening", "_known", "_profiles")

    def __init__(self, happening: Happening, profiles: Mapping[str, QueueProfile]) -> None:
        self._happening = happening
        self._profiles = profiles
        self._failures: Counter[str] = Counter()
        self._known: dict[Hashable, Requeue] = {}

    def of(self, queued: QueuedPodInfo) -> Requeue:
        """As `judge`."""
        shape = self._shape(queued)
        if shape is None:
            return judge(queued, self._happening, self._failures)
        key = (queued.profile, queued.rejector_plugins, queued.pending_plugins, shape)
        verdict = self._known.get(key)
        if verdict is None:
            verdict = self._known[key] = judge(queued, self._happening, self._failures)
        return verdict

    def _shape(self, queued: QueuedPodInfo) -> Hashable:
        if self._happening.event.resource is not EventResource.NODE:
            return None
        try:
            return self._profiles[queued.profile].shape(queued.pod_info)
        except Exception:  # noqa: BLE001  a pod nobody can read is like no other; its next attempt reports why
            return None


def judge_missed(queued: QueuedPodInfo, missed: Iterable[Happening]) -> Requeue:
    """What events that came during the pod's attempt do to it: the best of their verdicts."""
    failures: Counter[str] = Counter()
    best = Requeue.SKIP
    for happening in missed:
        verdict = judge(queued, happening, failures)
        if verdict is Requeue.SKIP:
            continue
        best = verdict
        if verdict is Requeue.IMMEDIATELY or not queued.pending_plugins:
            break
    return best


def _says_queue(
    plugin: str, hints: _Hints, queued: QueuedPodInfo, happening: Happening, failures: Counter[str]
) -> bool:
    try:
        for hint in hints:
            if hint is None or hint(queued.pod_info, happening.old, happening.new) is not QueueingHint.SKIP:
                return True
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
    return False
