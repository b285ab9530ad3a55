"""Every watch of the running scheduler: one reflector a kind, what it feeds, and what keeps it from being ready."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

from bayplan.api.backoff import CLIENT_GO, ROLES_SECONDS, WatchTiming
from bayplan.api.credentials import Credentials
from bayplan.api.kinds import CRD_POD_GROUPS, NODES, POD_GROUPS, PODS, Resource, resource_of
from bayplan.api.object_store import Handler
from bayplan.api.objects import Pod
from bayplan.api.reflector import Reflector
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource
from bayplan.metrics.table import Metrics
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.event_handlers import (
    AssignedPodEvents,
    ForeignNominationEvents,
    ListerEvents,
    NodeEvents,
    PodGroupEvents,
    foreign_nominations_selector,
)
from bayplan.scheduler.kubelet_rejections import REJECTED_PODS, FailedPod, KubeletRejections, NodeBackoff
from bayplan.scheduler.shadow import Shadow, ShadowNodes
from bayplan.server.health import HealthChecks
from bayplan.server.state import WatchState

logger = logging.getLogger(__name__)

_FAILED = Resource(FailedPod, "", "pods", namespaced=True)
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
_ASSIGNED = f"spec.nodeName!=,{_NOT_ENDED}"
# A reflector gives up on a silent watch after 75 s: one that is older could not be opened again.
STALE_SECONDS = 90.0


class Watch:
    """The live copy of one kind.

    Of a kind that few clusters have (`Resource.rare`) it is no trouble to have none, or no right to it, and it is asked
    for once a minute; the start waits for the first answer. A kind is `optional` where an API server that does not
    serve it counts as one without objects, as older ones do with kinds that came later. `absent` says that this was
    found; the kind is asked for again all the same, with the reflector's back-off. A kind that was served keeps its
    objects if it no longer is: among API servers of two versions only one may know it. Neither the start nor readiness
    waits for one that is not `needed`. `name` tells a second watch of a kind from the first; `options` are the
    reflector's.
    """

    def __init__(
        self,
        credentials: Credentials,
        resource: Resource,
        handler: Handler[Any],
        metrics: Metrics,
        *,
        name: str = "",
        label: str = "",
        optional: bool = False,
        needed: bool = True,
        make_reflector: Callable[..., Reflector[Any]] = Reflector,
        **options: Any,  # noqa: ANN401  as the reflector takes them
    ) -> None:
        self.resource = resource
        self.name = name or resource.plural
        self.absent = False
        self._optional = optional
        self._told_forbidden = False
        self._pause = options.get("timing", CLIENT_GO).unserved_delay
        if resource.rare:
            options |= {"on_allowed": self._allowed, "sleep": self._sleep}
        self.needed = needed
        self._metrics = metrics
        self._handler = handler
        self._events = {
            f"on_{action.lower()}": f"{label or resource.kind}{action}" for action in ("Add", "Update", "Delete")
        }
        """What kube-scheduler calls the events that a handler takes, by the handler's methods."""
        self.reflector: Reflector[Any] = make_reflector(
            credentials,
            resource.path,
            resource.type,
            handler=handler,
            name=self.name,
            on_undecodable=self._undecodable,
            on_refused=self._refused,
            on_applied=lambda seconds: metrics.watch_lag_seconds.observe(seconds, self.name),
            on_handled=self._handled,
            **options,
        )

    @property
    def _is_off(self) -> bool:
        """Whether this is a kind of few clusters, and not of this one."""
        return self.absent and self.resource.rare

    @property
    def is_gone(self) -> bool:
        """Whether the API server does not serve the kind any more, which a new watch would not change."""
        may_go = self._is_off or self._optional
        return may_go and self.reflector.synced and self.reflector.refused_with == HTTPStatus.NOT_FOUND

    @property
    def synced(self) -> bool:
        """Whether all objects are known that there were at the start, as far as they are needed."""
        return self.reflector.synced or self.absent or not self.needed

    def problem(self) -> str | None:
        """Why scheduling has to wait for this kind, in constant words; None if it need not."""
        if self.reflector.refused_with == HTTPStatus.FORBIDDEN and not self._is_off:
            return f"the role does not allow to list and watch {self.resource.plural}"
        return None if self.synced else f"{self.name} are not listed yet"

    def staleness(self, clock: Callable[[], float]) -> str | None:
        """Why what is known may be outdated by now, in constant words; None if it is not."""
        is_off = self._is_off or self.is_gone
        if not self.reflector.synced or is_off or self.reflector.silence(clock()) <= STALE_SECONDS:
            return None
        return f"the watch of {self.name} is stale"

    def _refused(self, status: int, reason: str, seconds: float) -> bool:
        is_first = seconds == 0.0
        if self.resource.rare and status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            # An API server that has just started may not know all roles and kinds yet.
            if seconds >= ROLES_SECONDS or (status == HTTPStatus.NOT_FOUND and not self.reflector.synced):
                self._switch_off(status, reason)
            return True
        if status == HTTPStatus.FORBIDDEN:
            # What was allowed before is given time to be so again.
            is_certain = seconds >= ROLES_SECONDS or not self.reflector.synced
            if is_certain and (is_first or not self._told_forbidden):
                logger.error(
                    "permission missing, grant list and watch resource=%s apiGroup=%r grantedBy=manifests/%s reason=%r",
                    self.resource.plural,
                    self.resource.group,
                    self.resource.granted_by,
                    reason,
                )
            self._told_forbidden = is_certain
            return True
        if status == HTTPStatus.NOT_FOUND and self._optional:
            if is_first:
                self._not_served()
            return True
        return False

    def _not_served(self) -> None:
        known = self.reflector.synced
        logger.warning(
            "the API server does not serve this kind, going on with %s kind=%s apiVersion=%s",
            "what is known of it" if known else "none",
            self.resource.kind,
            self.resource.api_version,
        )
        if not self.synced:
            self.absent = True
            self._handler.on_synced()

    def _switch_off(self, status: int, reason: str) -> None:
        if not self._is_off:
            self.absent = True
            level = logging.INFO
            text = "going on without this kind, which few clusters have kind=%s apiVersion=%s status=%d reason=%r"
            if status == HTTPStatus.FORBIDDEN:
                text = "going on without this kind, which may not be watched kind=%s apiVersion=%s status=%d reason=%r"
            if self.reflector.synced:
                level = logging.WARNING
                text = "this kind is gone, pods that need it wait kind=%s apiVersion=%s status=%d reason=%r"
            logger.log(level, text, self.resource.kind, self.resource.api_version, status, reason)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, self._pause) if self._is_off else seconds)

    def _allowed(self) -> None:
        self.absent = False

    def _handled(self, call: str, seconds: float) -> None:
        if call in self._events:
            self._metrics.event_seconds.observe(seconds, self._events[call])

    def _undecodable(self, key: str, error: str) -> None:
        kind = self.resource.kind
        logger.warning("object cannot be read kind=%s name=%r error=%s", kind, key, error)
        self._metrics.undecodable_objects.add(kind)


class Watches:
    """Nodes, pods on nodes, and every kind that the cache's listers are wanted for.

    With `scheduler_names` nominations of pods that other schedulers place are watched as well, and pods of these that
    kubelets reject; then their nodes are left alone for `rejection_backoff_seconds`, unless 0. Build the frameworks
    first: what their plugins asked for is watched from the start, and nothing else ever. `on_recovered` is called when
    the API server was away and is back, and when the watch of pods had a gap: others may have missed something.
    `on_went_back` is called when a list is older than what was known before. A `shadow` takes nodes and all pods in
    place of cache and queue. Of a pod on a node what `shared` returns is kept. With `on_group_gone`, which receives
    the UID of a pod group that is gone, groups of both kinds are watched wherever they are served.
    """

    def __init__(
        self,
        credentials: Credentials,
        cache: Cache,
        queue: SchedulingQueue,
        metrics: Metrics,
        *,
        on_gone: Callable[[str], None],
        on_recovered: Callable[[], None] = lambda: None,
        on_went_back: Callable[[], None] = lambda: None,
        scheduler_names: Collection[str] = (),
        rejection_backoff_seconds: float = 0.0,
        shadow: Shadow | None = None,
        shared: Callable[[Pod], Pod] = lambda pod: pod,
        on_group_gone: Callable[[str], None] | None = None,
        timing: WatchTiming = CLIENT_GO,
        make_reflector: Callable[..., Reflector[Any]] = Reflector,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._listers = cache.listers
        backoff = NodeBackoff(rejection_backoff_seconds, cache, queue) if rejection_backoff_seconds else None
        self.assigned = AssignedPodEvents(cache, queue, metrics, on_gone, backoff)

        def watch(resource: Resource, handler: Handler[Any], **options: Any) -> Watch:  # noqa: ANN401  as Watch takes them
            options |= {"on_went_back": on_went_back, "timing": timing, "make_reflector": make_reflector}
            if shadow is not None:
                resource = replace(resource, granted_by="overlays/shadow")
            return Watch(credentials, resource, handler, metrics, **options)

        of_pods = {"label": "AssignedPod", "on_recovered": on_recovered, "shared": shared}
        if shadow is None:
            nodes = watch(NODES, NodeEvents(cache, queue, metrics, backoff), keep_undecodable=False)
            pods = watch(PODS, self.assigned, field_selector=_ASSIGNED, **of_pods)
        else:
            nodes = watch(NODES, ShadowNodes(shadow), keep_undecodable=False)
            pods = watch(PODS, shadow, field_selector=_NOT_ENDED, **of_pods)
        self._watches = [nodes, pods]
        for resource in map(resource_of, cache.listers.wanted()):
            looked_up = ListerEvents(cache.listers.of(resource.type), resource.kind, queue)
            self._watches.append(watch(resource, looked_up, optional=not resource.rare))
        if on_group_gone is not None:
            for resource in (POD_GROUPS, CRD_POD_GROUPS):
                groups = PodGroupEvents(queue, GroupSource(resource.api_version), on_group_gone)
                self._watches.append(watch(resource, groups, name=f"{resource.plural}.{resource.group}"))
        if scheduler_names:
            of_others = foreign_nominations_selector(scheduler_names)
            nominations = {"name": "nominations", "label": "NominatedPod", "field_selector": of_others}
            self._watches.append(watch(PODS, ForeignNominationEvents(queue), **nominations))
            rejected = KubeletRejections(scheduler_names, metrics, backoff)
            rejections = {"name": "rejections", "label": "FailedPod", "field_selector": REJECTED_PODS}
            self._watches.append(watch(_FAILED, rejected, needed=False, **rejections))

    @property
    def synced(self) -> bool:
        """Whether the first list of every kind is in: nothing may be decided before."""
        return all(watch.synced for watch in self._watches)

    def relist(self) -> None:
        """Have every kind listed anew: its history is another one."""
        for watch in self._watches:
            watch.reflector.relist()

    def forget_unwatched(self) -> list[type]:
        """Let go of the listers that were asked for since this was made, and return their kinds: nobody fills them."""
        watched = {watch.resource.type for watch in self._watches}
        unwatched = [kind for kind in self._listers.wanted() if kind not in watched]
        for kind in unwatched:
            self._listers.forget(kind)
        return unwatched

    def add_readiness(self, health: HealthChecks) -> None:
        """Have each kind's state told by `/readyz`: whether it was listed, and whether its watch is alive."""
        for watch in (each for each in self._watches if each.needed):
            health.add_readiness(f"{watch.name}-synced", watch.problem)
            health.add_readiness(f"{watch.name}-watched", partial(watch.staleness, self._clock))

    def work(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What has to run, for ever, by the name of the watch."""
        return {watch.name: watch.reflector.run() for watch in self._watches}

    def states(self) -> dict[str, WatchState]:
        """How fresh each watch is, by its name; kinds that are not served, or no longer, have none."""
        now = self._clock()
        return {
            watch.name: WatchState(watch.reflector.last_event_age(now), watch.reflector.relists_total)
            for watch in self._watches
            if (watch.reflector.synced or not watch.absent) and not watch.is_gone
        }
