"""A recorder on a clock moved by hand, and the calls it made."""

import json
from datetime import UTC, datetime, timedelta

from tests.builders import make_pod_info

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.event_recorder import EventRecorder

START = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
STAMP = f"{int(START.timestamp()) * 10**9 + 123456000:x}"
COLLECTION = "/apis/events.k8s.io/v1/namespaces/shop/events"


class Scene:
    """A recorder on a clock moved by hand, and the calls it made."""

    def __init__(self):
        self.now = START
        self.calls = []
        self.creations = {}
        self.passed = 0.0
        self.waiting = 0  # None: nobody makes the calls.
        self.recorder = EventRecorder(
            emit=self._emit,
            now=lambda: self.now,
            hostname="host-1",
            waiting=lambda: len(self.calls) if self.waiting is None else self.waiting,
            clock=lambda: self.passed,
        )

    def _emit(self, uid, call, if_missing=None, *, repeatable=False):
        assert uid.startswith("u")
        assert repeatable == (b"FailedScheduling" in call.body or call.method == "PATCH")
        assert (if_missing is not None) == (call.method == "PATCH")
        self.calls.append(call)
        self.creations[call.path] = if_missing

    def after(self, **delta):
        self.now += timedelta(**delta)
        self.passed += timedelta(**delta).total_seconds()
        return self

    def fail(self, pod, message="no room", *, times=1):
        for _ in range(times):
            self.recorder.failed_scheduling(pod, message)

    def take(self):
        """The calls since last asked, as (method, body)."""
        calls, self.calls[:] = [(c.method, json.loads(c.body)) for c in self.calls], []
        return calls

    def methods(self):
        return [method for method, _ in self.take()]

    def counts(self):
        return [body["series"]["count"] for method, body in self.take() if method == "PATCH"]


def web_pod(name="web", **fields) -> PodInfo:
    return make_pod_info(name, **{"namespace": "shop", "uid": "u1", "resource_version": "42", **fields})
