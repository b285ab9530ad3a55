"""What `bayplan run` has the API server do, done at once: binds, ends of victims, what is written on pods."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from msgspec import structs

from bayplan.api.objects import Condition, Pod
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ActionType,
    EventResource,
    cluster_event,
)
from bayplan.plugins.preemption.victims import Budgets
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import condition_message
from bayplan.scheduler.attempt import UNSCHEDULABLE, Failed, Nominated, Reserved, Result, return_to_queue
from bayplan.scheduler.group_attempts import GroupNominated
from bayplan.simulate.released_claims import ClaimFollower, release
from bayplan.simulate.report import AttemptReport, PodReport
from bayplan.simulate.step import Step

_POD_SCHEDULED: Final = "PodScheduled"
_CLAIM_UPDATE: Final = cluster_event(EventResource.RESOURCE_CLAIM, ActionType.UPDATE)
_CLAIM_DELETE: Final = cluster_event(EventResource.RESOURCE_CLAIM, ActionType.DELETE)
_T = TypeVar("_T")


def with_status(pod: Pod, nomination: str | None, condition: tuple[str, str] | None = None) -> Pod:
    """Return the pod with what is written on it; the same object if it says all of that already.

    `nomination` is a node's name, "" for none, or None to leave it; `condition` is the reason and the message of
    PodScheduled=False. The new version has no resourceVersion, so that it is known to be another one.
    """
    status = pod.status
    if nomination is not None and nomination != status.nominated_node_name:
        status = structs.replace(status, nominated_node_name=nomination)
    if condition is not None:
        new = Condition(_POD_SCHEDULED, "False", condition[0], condition_message(condition[1]))
        held = status.conditions
        if not held:
            status = structs.replace(status, conditions=[new])
        elif not any(_says(each) == _says(new) for each in held):
            others = [each for each in held if each.type != _POD_SCHEDULED]
            status = structs.replace(status, conditions=[*others, new])
    if status is pod.status:
        return pod
    metadata = pod.metadata
    if metadata.resource_version:
        metadata = structs.replace(metadata, resource_version="")
    return Pod(metadata, pod.spec, status)


def _says(condition: Condition) -> tuple[str, str, str, str]:
    return condition.type, condition.status, condition.reason, condition.message


logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Effects:
    """Performs what follows from attempts; the simulator relies on it.

    `changed` is called when something happened that may help who waits. Pods get a condition only where it
    `keeps_conditions`.
    """

    cache: Cache
    queue: SchedulingQueue
    reports: Mapping[str, PodReport]
    """By UID: an eviction is told of in the victim's."""
    changed: Callable[[], None]
    keeps_conditions: bool
    evicted: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._budget_lister = self.cache.listers.of(PodDisruptionBudget)
        self._budgets = Budgets(self._budget_lister, as_evicted=True)
        self._claims = ClaimFollower(self.cache.listers)

    def perform(self, attempt: Result) -> Step:
        """Have everything happen that follows from an attempt; the step that it was."""
        pod = attempt.pod
        if isinstance(attempt, Reserved):
            self.changed()
            for _, exchange in attempt.steps:
                exchange.assume()
            self.queue.done(pod.uid)
            self.queue.move_all(ASSIGNED_POD_ADD, None, pod)
            return Step(pod, attempt.placement)
        if isinstance(attempt, Nominated):
            fit_error = attempt.fit_error
            for other in attempt.displaced:
                self._write_status(other, "")
            self._write_status(pod, attempt.node_name, (UNSCHEDULABLE, fit_error.message))
            return_to_queue(self.queue, attempt, fit_error, ends_nomination=False)
            for victim in fit_error.post_filter.victims:
                self._evict(victim, pod)
            return Step(pod, fit_error, fit_error.message)
        if isinstance(attempt, Failed):
            if attempt.exception is not None:
                logger.debug("scheduling cycle failed pod=%r", pod.key, exc_info=attempt.exception)
            self._write_status(pod, attempt.nomination, (attempt.reason, attempt.message))
            return Step(pod, attempt.fit_error, attempt.message)
        return Step(pod, None, attempt.message)

    def evict_for_group(self, nominated: GroupNominated) -> None:
        """End the victims of a group whose members were told."""
        for other in nominated.displaced:
            self._write_status(other, "")
        for victim in nominated.preemption.victims:
            self._evict(victim, nominated.lead)
        self.queue.preempting.end(nominated.group.key)

    def changing_claims(self, change: Callable[[], _T]) -> _T:
        """Do what changes claims, and wake the pods that a claim may help which is changed by that."""
        self._claims.follow()
        result = change()
        for before, now in self._claims.follow():
            if before is not None:
                self.changed()
                self.queue.move_all(_CLAIM_DELETE if now is None else _CLAIM_UPDATE, before, now)
        return result

    def _write_status(self, pod: PodInfo, nomination: str | None, condition: tuple[str, str] | None = None) -> None:
        """Hand a pod back to the queue as it is once `bayplan run` has written this on it; see `with_status`."""
        # The scheduler itself reads of a status only the nomination.
        condition = condition if self.keeps_conditions else None
        held = None if nomination is None and condition is None else self.queue.newest(pod.uid)
        if held is not None and (written := with_status(held.pod, nomination, condition)) is not held.pod:
            newest = PodInfo(written)
            newest.take_over(held)
            self.queue.update(newest)

    def _evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        self.changed()
        self.cache.remove_pod(victim.uid)
        self.evicted.add(victim.uid)
        self._charge_budgets(victim)
        report = self.reports.get(victim.uid)
        if report is not None:
            report.attempts.append(AttemptReport(None, None, [], f"evicted to make room for {preemptor.key}", 0))
        self.queue.move_all(ASSIGNED_POD_DELETE, victim, None)
        self.changing_claims(partial(release, self.cache.listers, victim))

    def _charge_budgets(self, victim: PodInfo) -> None:
        """Have the budgets that cover the pod allow one disruption less, as the API server does."""
        for budget in self._budgets.covering(victim):
            if budget.status.disruptions_allowed > 0:
                status = structs.replace(budget.status, disruptions_allowed=budget.status.disruptions_allowed - 1)
                self._budget_lister.set(structs.replace(budget, status=status))
