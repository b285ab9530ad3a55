"""Reports rounds of pod groups: to the metrics, and by a condition on groups of Kubernetes' own kind."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from bayplan.api.kinds import POD_GROUPS, path_segment
from bayplan.api.response import STRATEGIC_MERGE_PATCH, ApiCall
from bayplan.groups.pod_groups import INITIALLY_SCHEDULED, PodGroup
from bayplan.metrics.table import Metrics
from bayplan.scheduler.api_calls import condition_message, rfc3339, utc_now
from bayplan.scheduler.attempt import SCHEDULER_ERROR, UNSCHEDULABLE
from bayplan.scheduler.pod_conditions import Patch
from bayplan.scheduler.pod_group_round import RoundResult, RoundStatus

logger = logging.getLogger(__name__)

_REASONS: Final = {
    RoundStatus.SCHEDULED: "Scheduled",
    RoundStatus.UNSCHEDULABLE: UNSCHEDULABLE,
    RoundStatus.ERROR: SCHEDULER_ERROR,
}


class _Condition(NamedTuple):
    status: str
    reason: str
    message: str
    generation: int
    since: str


@dataclass(eq=False)
class PodGroupReporter:
    """Counts each round, and writes PodGroupInitiallyScheduled where it changes; the loop relies on it never raising.

    True is final: a member that comes later and does not fit takes nothing from a group that once ran. What was written
    is remembered until `forget`, as versions of the group from before the write may still arrive; kube-scheduler does
    not remember, and overwrites its own True. A write that was given up is forgotten, so that the next round makes up
    for it. Groups of the CRD have no conditions. `clock` is that of the rounds.
    """

    patch: Patch
    metrics: Metrics
    clock: Callable[[], float]
    now: Callable[[], datetime] = utc_now
    _written: dict[str, _Condition] = field(default_factory=dict, init=False)

    def report(self, group: PodGroup, result: RoundResult) -> None:
        """Report what a round came to; nothing if nobody was left to try."""
        if result.status is RoundStatus.SKIPPED:
            return
        for first in result.members[:1]:
            self.metrics.pod_group_attempt(first.queued.profile, result.status, self.clock() - first.started)
        if group.is_native:
            self._write(group, result)

    def _write(self, group: PodGroup, result: RoundResult) -> None:
        known = self._written.get(group.uid) or _shown(group)
        is_placed = result.status is RoundStatus.SCHEDULED
        if known is not None and known.status == "True" and not is_placed:
            return
        status = "True" if is_placed else "False"
        since = known.since if known is not None and known.status == status else rfc3339(self.now())
        condition = _Condition(
            status, _REASONS[result.status], condition_message(result.message), group.generation, since
        )
        if condition == known:
            return
        try:
            call = _call(group, condition)
        except ValueError as error:
            logger.warning("condition cannot be written podGroup=%r error=%s", str(group.key), error)
            return
        self._written[group.uid] = condition

        def ended(done: bool) -> None:
            if not done and self._written.get(group.uid) == condition:
                del self._written[group.uid]

        self.patch(group.uid, call, ended, urgent=is_placed, patient=True)

    def forget(self, uid: str) -> None:
        """Remember nothing of a group that is gone."""
        self._written.pop(uid, None)


def _shown(group: PodGroup) -> _Condition | None:
    shown = group.condition
    if shown is None:
        return None
    since = shown.last_transition_time or ""
    return _Condition(shown.status, shown.reason, shown.message, shown.observed_generation or 0, since)


def _call(group: PodGroup, condition: _Condition) -> ApiCall:
    """The PATCH of the condition; the UID makes the API server refuse a group made anew under its name."""
    key = group.key
    body = {
        "metadata": {"uid": group.uid},
        "status": {
            "conditions": [
                {
                    "type": INITIALLY_SCHEDULED,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                    "observedGeneration": condition.generation,
                    "lastTransitionTime": condition.since,
                }
            ]
        },
    }
    where = f"/apis/{POD_GROUPS.api_version}/namespaces/{path_segment(key.namespace)}"
    path = f"{where}/{POD_GROUPS.plural}/{path_segment(key.name)}/status"
    return ApiCall("PATCH", path, str(key), msgspec.json.encode(body), STRATEGIC_MERGE_PATCH)
