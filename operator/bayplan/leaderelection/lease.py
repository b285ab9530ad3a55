"""The Lease as the election reads and writes it, and the client that does so."""

import asyncio
import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from bayplan.api.client import ApiClient, ApiResponse
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, UnreachableError
from bayplan.api.kinds import path_segment
from bayplan.config.connections import SHIPPED_NAMESPACES
from bayplan.leaderelection.elector import Answer, Create, Missing, Problem, Read, Update
from bayplan.scheduler.api_calls import rfc3339_micro

API_VERSION: Final = "coordination.k8s.io/v1"
LABEL: Final = "bayplan.io/leader-election"
"""By what the Leases of schedulers are listed, in whatever namespaces they are."""
_SCHEDULER_NAMES: Final = "bayplan.io/scheduler-names"
"""The annotation that says for whose pods the holder schedules."""
RELEASED_SECONDS: Final = 1
"""The duration that a release writes: the API server refuses none."""
MAX_TRANSITIONS: Final = 2**31 - 1

logger = logging.getLogger(__name__)
REASON = "LeaderElection"
_EVENT_SECONDS = 5.0
_LIST_SECONDS = 5.0
_FORBIDDEN = 403
_NOT_FOUND = 404


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


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Object(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _Spec | None = None


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
    spec = msgspec.convert(document, _Object).spec or _Spec()
    record = LeaseRecord(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )
    return Lease(record, document)


def new_lease(lock: LeaseLock, record: LeaseRecord) -> bytes:
    """Return the body that creates the Lease."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": lock.marked({"name": lock.name, "namespace": lock.namespace}),
        "spec": record,
    }
    return msgspec.json.encode(document)


class LeaseClient:
    """Reads and writes one Lease, and turns whatever happens into an answer the elector knows.

    The elector relies on it never raising. `client` is the elector's own, without a gate: these are the requests by
    which the gate opens. A request that is not answered in time costs the connection, so that the next one does not
    wait on a connection that is dead.
    """

    def __init__(self, client: ApiClient, lock: LeaseLock) -> None:
        self._client = client
        self._lock = lock

    async def perform(self, step: Read | Create | Update) -> Answer:
        """Send the request of a step; nothing takes longer than the step allows."""
        if step.timeout <= 0.0:
            return Problem("there was no time left to ask")
        try:
            # Also where the client would wait for a token, or as long as a Retry-After says.
            async with asyncio.timeout(step.timeout):
                response = await self._send(step)
        except (UnreachableError, ValueError) as error:
            return Problem(str(error))
        except (AmbiguousError, TimeoutError) as error:
            await self._client.close()
            return Problem(str(error) or f"no answer within {step.timeout:g} s")
        if response.status == _NOT_FOUND and isinstance(step, Read):
            return Missing()
        return _lease_or_problem(response)

    async def _send(self, step: Read | Create | Update) -> ApiResponse:
        lock, client = self._lock, self._client
        if isinstance(step, Read):
            return await client.request("GET", lock.path, timeout_seconds=step.timeout)
        if isinstance(step, Create):
            body = new_lease(lock, step.record)
            return await client.request("POST", lock.collection, body=body, timeout_seconds=step.timeout)
        body = step.lease.with_record(lock, step.record)
        return await client.request("PUT", lock.path, body=body, timeout_seconds=step.timeout)

    async def find(self) -> list[Lease] | Problem:
        """Return the Leases about pods that the lock is about, too, in all namespaces or else where the role lets it.

        A Lease that says nothing of schedulerNames, such as kube-scheduler's, is none of them.
        It never raises, and the Problem is forbidden where the role allows no list at all.
        """
        names = {*SHIPPED_NAMESPACES, self._lock.namespace}
        everywhere, query = f"/apis/{API_VERSION}/leases", f"?labelSelector={LABEL}"
        readable: list[Lease] | None = None
        for path in (everywhere, *(LeaseLock(name, "").collection for name in sorted(names))):
            try:
                response = await self._client.request("GET", path + query, timeout_seconds=_LIST_SECONDS)
                if response.status >= 300 and response.status != _FORBIDDEN:
                    return _problem(response)
                if response.status != _FORBIDDEN:
                    readable = [*(readable or []), *read_leases(response.body)]
            except (AmbiguousError, UnreachableError, ValueError, *DECODE_ERRORS) as error:
                return Problem(str(error))
            if path == everywhere and readable is not None:
                break
        if readable is None:
            return Problem("no right to list leases in coordination.k8s.io", forbidden=True)
        return [each for each in readable if {*each.lock.scheduler_names} & {*self._lock.scheduler_names}]

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def announce(self, identity: str, what: str, now: datetime) -> None:
        """Write an Event about the Lease; what keeps it from being written is logged and has no other effect."""
        lock = self._lock
        try:
            path = f"/apis/events.k8s.io/v1/namespaces/{path_segment(lock.namespace)}/events"
            body = msgspec.json.encode(_event(lock, identity, f"{identity} {what}", now))
            answer = await self._client.request("POST", path, body=body, timeout_seconds=_EVENT_SECONDS)
        except (AmbiguousError, UnreachableError, ValueError) as error:
            logger.warning("the event of the election was not written lease=%s error=%s", lock, error)
            return
        if answer.status >= 300:
            told = "the event of the election was refused lease=%s status=%d %s"
            logger.warning(told, lock, answer.status, answer.problem)


def _lease_or_problem(response: ApiResponse) -> Lease | Problem:
    if response.status < 300:
        try:
            return read_lease(response.body)
        except DECODE_ERRORS as error:
            return Problem(f"the Lease cannot be read: {error}")
    return _problem(response)


def _problem(response: ApiResponse) -> Problem:
    reason = response.problem
    if response.status == _FORBIDDEN:
        advice = "grant get, create and update on leases in coordination.k8s.io, or switch leaderElect off"
        return Problem(f"permission missing, {advice}: {reason}", forbidden=True)
    return Problem(f"status {response.status}: {reason}")


def _event(lock: LeaseLock, identity: str, note: str, now: datetime) -> dict[str, object]:
    """An Event as upstream's recorder writes it, in today's API (upstream: resourcelock/leaselock.go RecordEvent)."""
    stamp = f"{int(now.timestamp() * 1_000_000) * 1_000:x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{lock.name[: 252 - len(stamp)].rstrip('.-')}.{stamp}", "namespace": lock.namespace},
        "eventTime": rfc3339_micro(now),
        "reportingController": "bayplan",
        "reportingInstance": identity[:128],
        "type": "Normal",
        "reason": REASON,
        "action": REASON,
        "regarding": {"kind": "Lease", "apiVersion": API_VERSION, "namespace": lock.namespace, "name": lock.name},
        "note": note[:1024],
    }
