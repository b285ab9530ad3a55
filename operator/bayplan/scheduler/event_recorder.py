"""Kubernetes Events in events.k8s.io/v1, with kube-scheduler's texts and its aggregation into series."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from bayplan.api.kinds import path_segment
from bayplan.api.response import MERGE_PATCH, ApiCall
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Notice
from bayplan.scheduler.api_calls import rfc3339_micro

logger = logging.getLogger(__name__)

_What = tuple[Literal["Normal", "Warning"], str, str]
"""An event's type, reason and action."""


class Emit(Protocol):
    """Makes a call about a pod, and the other one where the first finds no Event."""

    def __call__(self, uid: str, call: ApiCall, if_missing: ApiCall | None = None, *, repeatable: bool = False) -> None:
        """Make `call` about the pod `uid`; a `repeatable` one says why a pod waits, and comes last."""


_MAX_NOTE_BYTES = 1024
_CUT = " ..."
_MAX_NAME = 253
_SERIES_IDLE_SECONDS = 360.0
_SERIES_REFRESH_SECONDS = 1800.0
_SWEEP_SECONDS = 30.0
_TAKEN_SECONDS = 60.0

COUNTS_PER_SWEEP: Final = 30
"""So many counts of Events that go on are written twice a minute, besides those not written for half an hour."""

MOST_WAITING: Final = 256
"""While more Events than this wait to be written, counts are not: the API server has no time for them."""

ENDED_BYTES: Final = 4 * 2**20
"""What the Events that ended and whose count is to be written take at most: of ordinary ones some two thousand."""

_SERIES_OVERHEAD_BYTES = 1_200


@dataclass(slots=True, eq=False)
class _Series:
    """An Event that may be repeated; times are in seconds of the recorder's clock."""

    uid: str
    note: int
    """The hash of its text, which stands in `create`."""
    path: str
    create: ApiCall
    count: int
    written: int
    last_observed: datetime
    last_seen: float
    last_written: float

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return _SERIES_OVERHEAD_BYTES + len(self.create.body or b"")


@dataclass(eq=False, kw_only=True)
class EventRecorder:
    """Turns what happened to a pod into API calls, so that a repeated event becomes one object that counts.

    A pod's first failure is created as an Event, and so is each with another note. Others are counted in memory. The
    count is written when the Event has ended and six minutes have gone by, and before that when there is time: a few
    twice a minute, the oldest first, and any after half an hour, so that it does not expire. kube-scheduler has an
    Event for each version of the pod and writes its second occurrence at once (upstream: client-go tools/events; ADR
    19). An Event that is not there any more is created with its series so far. While Events wait for the API server, so
    do counts; of very many, those that ended first are let go of.

    `emit` takes the calls and `waiting` says how many of them were not made yet; `sweep` may be called at any time and
    does something twice a minute. `now` is the time that is written, `clock` the one that passes, in seconds.
    """

    emit: Emit
    now: Callable[[], datetime]
    hostname: str
    waiting: Callable[[], int] = lambda: 0
    clock: Callable[[], float] = time.monotonic
    _series: dict[str, _Series] = field(default_factory=dict, init=False)
    """What failed pods are told, by the UID of the pod."""
    _ended: deque[_Series] = field(default_factory=deque, init=False)
    """What they were told before, and pods that are bound or gone, as far as its count is not written."""
    _ended_bytes: int = field(default=0, init=False)
    _taken: int = field(default=0, init=False)
    _taken_told: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        """Begin with nothing to write for half a minute."""
        self._swept = self.clock()

    def scheduled(self, pod: PodInfo, node_name: str) -> None:
        """Record that the pod was bound; a pod is bound once, so this is never a series."""
        note = f"Successfully assigned {pod.key} to {node_name}"
        self._create(pod, ("Normal", "Scheduled", "Binding"), note, self.now())

    def noticed(self, pod: PodInfo, notice: Notice) -> None:
        """Record what a plugin has to say of a pod before its bind."""
        self._create(pod, (notice.kind, notice.reason, notice.action), notice.note, self.now())

    def taken(self, pod: PodInfo) -> None:
        """Record that somebody else bound the pod, once a minute over all pods: two schedulers may have one name."""
        self.forget(pod.uid)
        self._taken += 1
        if self.clock() - self._taken_told < _TAKEN_SECONDS:
            return
        scheduler = pod.pod.spec.scheduler_name
        logger.warning("another scheduler binds our pods pod=%r scheduler=%r pods=%d", pod.key, scheduler, self._taken)
        note = (
            f"Pods that name us were bound by somebody else since the last such Event: {self._taken}. "
            f"Another installation may schedule for {scheduler}, too"
        )
        self._taken, self._taken_told = 0, self.clock()
        self._create(pod, ("Warning", "BoundByAnother", "Binding"), note, self.now())

    def failed_scheduling(self, pod: PodInfo, message: str, *, told_later: bool = False) -> None:
        """Record that an attempt on the pod failed, and why.

        If `told_later` the reason waits, as the text of the condition does: until `told` an Event that there is counts.
        """
        series, note = self._current(pod.uid), cut_note(message)
        if series is not None and (told_later or series.note == hash(note)):
            series.count += 1
            series.last_observed, series.last_seen = self.now(), self.clock()
        else:
            self._begin(pod, note)

    def told(self, pod: PodInfo, message: str) -> None:
        """Record why the last attempt on the pod failed, which was recorded as `told_later`."""
        series, note = self._current(pod.uid), cut_note(message)
        if series is not None and series.note == hash(note):
            return
        if series is not None and series.count > series.written:
            series.count -= 1
        self._begin(pod, note)

    def preempted(
        self, victim: PodInfo, preemptor: PodInfo, node_name: str, *, group_uid: str = "", in_memory: bool = False
    ) -> None:
        """Record on a victim the pod it makes room for, by UID: its owner may not see the other's name.

        With `group_uid` it is the group of the pod `preemptor`. `in_memory` is a victim that was not bound yet and goes
        back to the queue.
        """
        by = f"podgroup {group_uid}" if group_uid else f"pod {preemptor.uid}"
        note = f"Preempted by {by} on node {node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        scheduler = preemptor.pod.spec.scheduler_name
        self._create(victim, ("Normal", "Preempted", "Preempting"), note, self.now(), scheduler=scheduler)

    def own(self, pod: PodInfo, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        """Record what became of the scheduler's configuration, on the pod that the scheduler itself runs in."""
        self._create(pod, (kind, reason, "Reload"), note, self.now(), scheduler="bayplan")

    def forget(self, uid: str) -> None:
        """End what was told of a pod that is gone or bound; a count not written yet is written in time."""
        series = self._series.pop(uid, None)
        if series is not None and series.count > series.written:
            self._ended.append(series)
            self._ended_bytes += series.size
            while self._ended_bytes > ENDED_BYTES:
                oldest = self._take_ended()
                if self._has_time:
                    self._write(oldest)

    def sweep(self) -> None:
        """End what was not repeated for long, and write counts."""
        seconds = self.clock()
        if seconds - self._swept < _SWEEP_SECONDS:
            return
        self._swept = seconds
        for series in list(self._series.values()):
            if seconds - series.last_seen >= _SERIES_IDLE_SECONDS:
                self.forget(series.uid)
        while self._ended and seconds - self._ended[0].last_seen >= _SERIES_IDLE_SECONDS and self._has_time:
            self._write(self._take_ended())
        behind = [each for each in self._series.values() if each.count > each.written]
        behind.sort(key=lambda each: each.last_written)
        for number, series in enumerate(behind):
            is_due = seconds - series.last_written >= _SERIES_REFRESH_SECONDS
            if not self._has_time or (number >= COUNTS_PER_SWEEP and not is_due):
                break
            self._write(series)

    @property
    def _has_time(self) -> bool:
        return self.waiting() <= MOST_WAITING

    def _current(self, uid: str) -> _Series | None:
        """What the pod is told, unless that was long ago."""
        series = self._series.get(uid)
        return None if series is None or self.clock() - series.last_seen >= _SERIES_IDLE_SECONDS else series

    def _begin(self, pod: PodInfo, note: str) -> None:
        """Tell the pod, and from now on count how often."""
        self.forget(pod.uid)
        now, seconds = self.now(), self.clock()
        created = self._create(pod, ("Warning", "FailedScheduling", "Scheduling"), note, now, repeatable=True)
        if created is not None:
            path, call = created
            self._series[pod.uid] = _Series(pod.uid, hash(note), path, call, 1, 1, now, seconds, seconds)

    def _create(
        self, pod: PodInfo, what: _What, note: str, now: datetime, *, scheduler: str = "", repeatable: bool = False
    ) -> tuple[str, ApiCall] | None:
        """Emit the event's creation; return its path and the call, or None, and log, for names no request can carry.

        `scheduler` is the profile that reports, if it is not the pod's own.
        """
        scheduler = scheduler or pod.pod.spec.scheduler_name
        regarding = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        if pod.pod.metadata.resource_version:
            regarding["resourceVersion"] = pod.pod.metadata.resource_version
        body = event_body(regarding, what, note, now, controller=scheduler, instance=f"{scheduler}-{self.hostname}")
        try:
            collection = f"/apis/events.k8s.io/v1/namespaces/{path_segment(pod.namespace)}/events"
            path = f"{collection}/{path_segment(body['metadata']['name'])}"
            content = msgspec.json.encode(body)
        except ValueError as error:
            logger.warning("event cannot be written pod=%r error=%s", pod.key, error)
            return None
        call = ApiCall("POST", collection, pod.key, content)
        self.emit(pod.uid, call, repeatable=repeatable)
        return path, call

    def _take_ended(self) -> _Series:
        series = self._ended.popleft()
        self._ended_bytes -= series.size
        return series

    def _write(self, series: _Series) -> None:
        content = {"count": series.count, "lastObservedTime": rfc3339_micro(series.last_observed)}
        series.written, series.last_written = series.count, self.clock()
        body = msgspec.json.encode({"series": content})
        patch = ApiCall("PATCH", series.path, series.create.about, body, MERGE_PATCH)
        self.emit(series.uid, patch, _with_series(series.create, content), repeatable=True)


def event_body(
    regarding: Mapping[str, str], what: _What, note: str, now: datetime, *, controller: str, instance: str
) -> dict[str, Any]:
    """Return an Event in today's API; the recorder relies on it, and the election."""
    kind, reason, action = what
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": _event_name(regarding["name"], now), "namespace": regarding["namespace"]},
        "eventTime": rfc3339_micro(now),
        "reportingController": controller,
        "reportingInstance": instance[:128],
        "type": kind,
        "reason": reason,
        "action": action,
        "regarding": regarding,
        "note": cut_note(note),
    }


def _with_series(create: ApiCall, series: dict[str, Any]) -> ApiCall:
    """The creation of an event that was repeated since."""
    body = msgspec.json.decode(create.body or b"{}")
    return replace(create, body=msgspec.json.encode({**body, "series": series}))


def cut_note(note: str) -> str:
    """The note within the API's 1024 bytes, cut between characters and marked as cut."""
    encoded = note.encode("utf-8", errors="replace")
    if len(encoded) <= _MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: _MAX_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def _event_name(name: str, now: datetime) -> str:
    """`<name>.<hex unix nanoseconds>`, with a long name cut so that the whole stays a valid object name."""
    stamp = f"{int(now.timestamp() * 1_000_000) * 1_000:x}"
    return f"{name[: _MAX_NAME - len(stamp) - 1].rstrip('.-')}.{stamp}"
