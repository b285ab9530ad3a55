"""The Lease object: what it says about who leads, and how it is written."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from bayplan.api.kinds import path_segment
from bayplan.scheduler.api_calls import rfc3339_micro

API_VERSION: Final = "coordination.k8s.io/v1"
LABEL: Final = "bayplan.io/leader-election"
"""By what the Leases of schedulers are listed, in whatever namespaces they are."""
_SCHEDULER_NAMES: Final = "bayplan.io/scheduler-names"
"""The annotation that says for whose pods the holder schedules."""
RELEASED_SECONDS: Final = 1
"""The duration that a release writes: the API server refuses none."""
MAX_TRANSITIONS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LeaseLock:
    """Which Lease is contended for, and for whose pods its holder schedules."""

    namespace: str
    name: str
    scheduler_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        """The path where it is created."""
        return f"/apis/{API_VERSION}/namespaces/{path_segment(self.namespace)}/leases"

    @property
    def path(self) -> str:
        """The path where it is read and updated."""
        return f"{self.collection}/{path_segment(self.name)}"

    def marked(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the Lease's metadata with what lets other processes find it and see whose pods it is about."""
        labels = {**(metadata.get("labels") or {}), LABEL: "true"}
        annotations = {**(metadata.get("annotations") or {}), _SCHEDULER_NAMES: ",".join(self.scheduler_names)}
        return {**metadata, "labels": labels, "annotations": annotations}


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What a Lease's spec says of its holder (upstream: resourcelock/interface.go LeaderElectionRecord).

    The times are only ever written for people to read: whether a record still counts is decided by how long this
    process has seen it unchanged.
    """

    holder_identity: str = ""
    """Who leads; empty for nobody."""
    lease_duration_seconds: int = 0
    """How long others wait after they saw the last change."""
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0
    """How often the holder changed."""

    @property
    def is_released(self) -> bool:
        """Whether it is exactly what a holder writes that gives it up, and not what somebody emptied by hand."""
        is_written = bool(self.renew_time) and self.renew_time == self.acquire_time
        return not self.holder_identity and self.lease_duration_seconds == RELEASED_SECONDS and is_written

    def renews(self, seen: "LeaseRecord") -> bool:
        """Whether it may be what the holder of `seen` wrote next."""
        is_later = bool(self.renew_time) and self.renew_time != seen.renew_time
        return is_later and self.holder_identity == seen.holder_identity

    def releases(self, seen: "LeaseRecord") -> bool:
        """Whether its holder gave it up after it had written `seen`, or somebody who led since then did."""
        if seen.is_released:
            return self.is_released
        is_later = self.renew_time != seen.renew_time and self.lease_transitions >= seen.lease_transitions
        return self.is_released and is_later


def record_of_holder(identity: str, seconds: int, now: datetime, *, transitions: int) -> LeaseRecord:
    """Return the record of somebody who leads from now on."""
    moment = rfc3339_micro(now)
    return LeaseRecord(identity, seconds, moment, moment, transitions)


def released(record: LeaseRecord, now: datetime) -> LeaseRecord:
    """Return the record that gives a lease up (upstream: leaderelection.go tryRelease)."""
    return record_of_holder("", RELEASED_SECONDS, now, transitions=record.lease_transitions)


class _Object(msgspec.Struct):
    metadata: dict[str, Any]
    spec: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as the API server gave it: its record, and the whole object, of which a write keeps what is others'."""

    record: LeaseRecord
    document: dict[str, Any]

    @property
    def lock(self) -> LeaseLock:
        """Which Lease it is, and for whose pods its last holder schedules; no names where somebody else made it."""
        metadata = self.document["metadata"]
        names = (metadata.get("annotations") or {}).get(_SCHEDULER_NAMES, "")
        return LeaseLock(metadata["namespace"], metadata["name"], tuple(filter(None, names.split(","))))

    def is_live(self, now: datetime) -> bool:
        """Whether somebody holds it and renewed it in time, as far as the clocks of both agree."""
        record = self.record
        if not (record.holder_identity and record.renew_time):
            return False
        return datetime.fromisoformat(record.renew_time) + timedelta(seconds=record.lease_duration_seconds) > now

    def with_record(self, lock: LeaseLock, record: LeaseRecord) -> bytes:
        """Return the body of an update, which is refused if the Lease changed since it was read."""
        document = copy.copy(self.document)
        document["metadata"] = lock.marked(document["metadata"])
        document["spec"] = {**(document.get("spec") or {}), **msgspec.to_builtins(record)}
        return msgspec.json.encode(document)


def read_lease(body: bytes) -> Lease:
    """Return the Lease in an answer.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _lease(msgspec.json.decode(body, type=dict[str, Any]))


def read_leases(body: bytes) -> list[Lease]:
    """Return the Leases in the answer to a list.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return [_lease(each) for each in msgspec.json.decode(body, type=_List).items]


class _List(msgspec.Struct):
    items: list[dict[str, Any]]


def _lease(document: dict[str, Any]) -> Lease:
    spec = msgspec.convert(document, _Object).spec or {}
    given = {name: value for name, value in spec.items() if value is not None}
    return Lease(msgspec.convert(given, LeaseRecord), document)


def new_lease(lock: LeaseLock, record: LeaseRecord) -> bytes:
    """Return the body that creates the Lease."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": lock.marked({"name": lock.name, "namespace": lock.namespace}),
        "spec": record,
    }
    return msgspec.json.encode(document)
