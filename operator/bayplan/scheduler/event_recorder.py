"""Kubernetes Events in events.k8s.io/v1, with kube-scheduler's texts and its aggregation into series."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from bayplan.api.kinds import path_segment
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import JSON, MERGE_PATCH, ApiCall, rfc3339_micro

logger = logging.getLogger(__name__)

_What = tuple[Literal["Normal", "Warning"], str, str]
"""An event's type, reason and action."""

_MAX_NOTE_BYTES = 1024
_CUT = " ..."
_MAX_NAME = 253
_SERIES_IDLE = timedelta(minutes=6)
_SERIES_REFRESH = timedelta(minutes=30)
_SWEEP_EVERY = timedelta(seconds=30)


@dataclass(slots=True)
class _Series:
    path: str
    about: str
    count: int
    written: int
    last_seen: datetime
    last_written: datetime


class EventRecorder:
    """Turns what happened to a pod into API calls, so that a repeated event becomes one object that counts.

    As kube-scheduler (upstream: client-go tools/events): the note is not part of what makes two events the same; the
    first is created, the second starts a series, later ones are counted in memory and written when the series has
    been refreshed for half an hour or has been idle for six minutes. `emit` takes the calls; `sweep` may be called
    at any time and does something twice a minute.
    """

    def __init__(self, *, emit: Callable[[ApiCall], None], now: Callable[[], datetime], hostname: str) -> None:
        self._emit = emit
        self._now = now
        self._hostname = hostname
        self._series: dict[str, _Series] = {}
        """What failed pods are told, by the UID of the pod."""
        self._swept = now()

    def scheduled(self, pod: PodInfo, node_name: str) -> None:
        """Record that the pod was bound; a pod is bound once, so this is never a series."""
        note = f"Successfully assigned {pod.key} to {node_name}"
        self._create(pod, ("Normal", "Scheduled", "Binding"), note, self._now())

    def failed_scheduling(self, pod: PodInfo, message: str) -> None:
        """Record why the pod is still pending."""
        now = self._now()
        series = self._series.get(pod.uid)
        if series is not None and now - series.last_seen < _SERIES_IDLE:
            series.count += 1
            series.last_seen = now
            if series.written == 1:
                self._write(series, now)
            return
        if series is not None:
            self._finish(series)
        path = self._create(pod, ("Warning", "FailedScheduling", "Scheduling"), message, now)
        if path is not None:
            self._series[pod.uid] = _Series(path, pod.key, count=1, written=1, last_seen=now, last_written=now)

    def preempted(self, victim: PodInfo, preemptor: PodInfo, node_name: str, *, in_memory: bool = False) -> None:
        """Record on a victim the pod it makes room for, by UID: its owner may not see the other's name.

        `in_memory` is a victim that was not bound yet and goes back to the queue.
        """
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        scheduler = preemptor.pod.spec.scheduler_name
        self._create(victim, ("Normal", "Preempted", "Preempting"), note, self._now(), scheduler=scheduler)

    def forget(self, uid: str) -> None:
        """Drop the series of a pod that is gone, bound or idle, writing a count not written yet."""
        series = self._series.pop(uid, None)
        if series is not None:
            self._finish(series)

    def sweep(self) -> None:
        """Write series that are due and forget those that went idle."""
        now = self._now()
        if now - self._swept < _SWEEP_EVERY:
            return
        self._swept = now
        for uid, series in list(self._series.items()):
            if now - series.last_seen >= _SERIES_IDLE:
                self.forget(uid)
            elif series.count > 1 and now - series.last_written >= _SERIES_REFRESH:
                self._write(series, now)

    def _create(self, pod: PodInfo, what: _What, note: str, now: datetime, *, scheduler: str = "") -> str | None:
        """Emit the event's creation and return its path; None, and logged, for names that no request can carry.

        `scheduler` is the profile that reports, if it is not the pod's own.
        """
        kind, reason, action = what
        scheduler = scheduler or pod.pod.spec.scheduler_name
        name = _event_name(pod.name, now)
        regarding = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        if pod.pod.metadata.resource_version:
            regarding["resourceVersion"] = pod.pod.metadata.resource_version
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": pod.namespace},
            "eventTime": rfc3339_micro(now),
            "reportingController": scheduler,
            "reportingInstance": f"{scheduler}-{self._hostname}"[:128],
            "type": kind,
            "reason": reason,
            "action": action,
            "regarding": regarding,
            "note": cut_note(note),
        }
        try:
            collection = f"/apis/events.k8s.io/v1/namespaces/{path_segment(pod.namespace)}/events"
            path = f"{collection}/{path_segment(name)}"
            content = msgspec.json.encode(body)
        except ValueError as error:
            logger.warning("event cannot be written pod=%r error=%s", pod.key, error)
            return None
        self._emit(ApiCall("POST", collection, content, JSON, pod.key))
        return path

    def _finish(self, series: _Series) -> None:
        if series.count > series.written:
            self._write(series, series.last_seen)

    def _write(self, series: _Series, now: datetime) -> None:
        body = {"series": {"count": series.count, "lastObservedTime": rfc3339_micro(series.last_seen)}}
        series.written, series.last_written = series.count, now
        self._emit(ApiCall("PATCH", series.path, msgspec.json.encode(body), MERGE_PATCH, series.about))


def cut_note(note: str) -> str:
    """The note within the API's 1024 bytes, cut between characters and marked as cut."""
    encoded = note.encode("utf-8", errors="replace")
    if len(encoded) <= _MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: _MAX_NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def _event_name(pod_name: str, now: datetime) -> str:
    """`<pod>.<hex unix nanoseconds>`, with a long pod name cut so that the whole stays a valid object name."""
    stamp = f"{int(now.timestamp() * 1_000_000) * 1_000:x}"
    return f"{pod_name[: _MAX_NAME - len(stamp) - 1].rstrip('.-')}.{stamp}"
