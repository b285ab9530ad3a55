"""A queue on a clock that tests move by hand, with plugins whose hints are easy to foretell."""

from typing import Any

from tests.builders import make_pod_info
from tests.clock import Clock
from tests.queue_checks import assert_consistent
from tests.recorded_metrics import RecordedMetrics

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_TAINT,
    TARGET_POD_GATES,
    TARGET_POD_TOLERATION,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
)
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.queue.queue_settings import QueueProfile, QueueSettings
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue
from bayplan.queue.scheduling_queue import SchedulingQueue

FIT = frozenset({"Fit"})
COLOUR = frozenset({"Colour"})


def wants_colour(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """Colour's hint: the object that came is a set of colours, and the pod's is among them."""
    colour = (pod.pod.metadata.labels or {}).get("colour")
    return QueueingHint.QUEUE if colour in new else QueueingHint.SKIP


def scheduling_gates(pod: PodInfo) -> Status:
    """PreEnqueue: pods with gates wait."""
    gates = pod.pod.spec.scheduling_gates
    if not gates:
        return SUCCESS
    return Status(Code.UNSCHEDULABLE, (f"waiting for {len(gates)} gates",), "SchedulingGates")


def make_profile(**changes: Any) -> QueueProfile:
    """Fit wakes by any pod deletion or taint change, Colour by a node of its colour, and nobody by node conditions."""
    registrations = {
        "Fit": [EventRegistration(ASSIGNED_POD_DELETE), EventRegistration(NODE_TAINT)],
        "Colour": [
            EventRegistration(NODE_ADD, wants_colour),
            EventRegistration(TARGET_POD_TOLERATION),
        ],
        "SchedulingGates": [EventRegistration(TARGET_POD_GATES)],
        **changes.pop("registrations", {}),
    }
    return QueueProfile(
        pre_enqueue=changes.pop("pre_enqueue", scheduling_gates),
        registrations=registrations,
        shape=changes.pop("shape", lambda pod: None),
    )


OF_THE_CONFIGURATION = ("sort_key", "initial_backoff_seconds", "max_backoff_seconds")


class Scene:
    """A queue with its clock and metrics; every call goes through `validate`."""

    def __init__(self, *, profile: QueueProfile | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self.metrics = RecordedMetrics()
        profiles = {"bayplan": profile or make_profile(), "other": make_profile()}
        configured = {name: settings.pop(name) for name in OF_THE_CONFIGURATION if name in settings}
        self.queue = SchedulingQueue(
            clock=self.clock, settings=QueueSettings(profiles, **configured), metrics=self.metrics, **settings
        )

    def add(self, name: str, **fields: Any) -> PodInfo:
        pod = info(name, **fields)
        self.queue.add(pod)
        assert_consistent(self.queue)
        return pod

    def pop(self) -> QueuedPodInfo:
        queued = self.queue.pop()
        assert_consistent(self.queue)
        assert queued is not None, "nothing to pop"
        return queued

    def fail(self, queued: QueuedPodInfo, rejectors: frozenset[str] = FIT, **how: Any) -> None:
        how.setdefault("error", False)
        self.queue.add_unschedulable(queued, rejector_plugins=rejectors, **how)
        assert_consistent(self.queue)

    def popped(self, name: str, **fields: Any) -> QueuedPodInfo:
        """Adds a pod and pops it; the queue must be empty of active pods."""
        pod = self.add(name, **fields)
        queued = self.pop()
        assert queued.pod_info is pod
        return queued

    def reject(self, name: str, rejectors: frozenset[str] = FIT, **fields: Any) -> PodInfo:
        """Adds a pod that plugins reject once."""
        queued = self.popped(name, **fields)
        self.fail(queued, rejectors)
        return queued.pod_info

    def break_off(self, name: str, **fields: Any) -> None:
        """Adds a pod whose attempt ends with an error."""
        self.fail(self.popped(name, **fields), frozenset(), error=True)

    def move(self, event: ClusterEvent, new: Any = None) -> None:
        self.queue.move_all(event, None, new)
        assert_consistent(self.queue)

    def update(self, pod: PodInfo) -> None:
        self.queue.update(pod)
        assert_consistent(self.queue)

    def bring_back(self) -> None:
        """Wakes the pods that Fit rejected, and lets all back-offs end."""
        self.move(ASSIGNED_POD_DELETE)
        self.wait(15)

    def wait(self, seconds: float) -> None:
        self.clock.step(seconds)
        self.flush()

    def flush(self) -> None:
        self.queue.flush(self.clock())
        assert_consistent(self.queue)

    def settle(self) -> None:
        """Moves all that events and time have still to move."""
        while self.queue.flush(self.clock()):
            assert_consistent(self.queue)
        assert_consistent(self.queue)

    def sub_queue(self, name: str) -> SubQueue | None:
        """Where the pod of that name (and uid) is; None when it is in no queue."""
        queued = self.queue.get(name)
        return queued.sub_queue if queued is not None else None

    def drain(self) -> list[str]:
        """Pops all there is, as names."""
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod_info.name)
            self.queue.done(queued.uid)
        assert_consistent(self.queue)
        return names


def info(name: str, *, colour: str | None = None, version: str = "1", **fields: Any) -> PodInfo:
    """A pod whose uid is its name unless said otherwise."""
    fields.setdefault("uid", name)
    labels = {"colour": colour} if colour else None
    return make_pod_info(name, labels=labels, resource_version=version, **fields)
