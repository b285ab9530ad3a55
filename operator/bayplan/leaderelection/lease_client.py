"""Performs an elector's steps on the API server: reads and writes of one Lease, and the Events about it."""

import asyncio
import logging
from datetime import datetime
from http import HTTPStatus

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, UnreachableError
from bayplan.api.kinds import path_segment
from bayplan.api.response import ApiResponse
from bayplan.config.connections import SHIPPED_NAMESPACES
from bayplan.leaderelection.elector import Answer, Create, Missing, Problem, Read, Update
from bayplan.leaderelection.lease import API_VERSION, LABEL, Lease, LeaseLock, new_lease, read_lease, read_leases
from bayplan.scheduler.event_recorder import event_body

logger = logging.getLogger(__name__)

REASON = "LeaderElection"
_EVENT_SECONDS = 5.0
_LIST_SECONDS = 5.0


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
        if response.status == HTTPStatus.NOT_FOUND and isinstance(step, Read):
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
                if response.status >= 300 and response.status != HTTPStatus.FORBIDDEN:
                    return _problem(response)
                if response.status != HTTPStatus.FORBIDDEN:
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
        """Write an Event about the Lease (upstream: resourcelock/leaselock.go RecordEvent).

        What keeps it from being written is logged and has no other effect.
        """
        lock = self._lock
        try:
            path = f"/apis/events.k8s.io/v1/namespaces/{path_segment(lock.namespace)}/events"
            regarding = {"kind": "Lease", "apiVersion": API_VERSION, "namespace": lock.namespace, "name": lock.name}
            note, reasons = f"{identity} {what}", (REASON, REASON)
            event = event_body(regarding, ("Normal", *reasons), note, now, controller="bayplan", instance=identity)
            body = msgspec.json.encode(event)
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
    if response.status == HTTPStatus.FORBIDDEN:
        advice = "grant get, create and update on leases in coordination.k8s.io, or switch leaderElect off"
        return Problem(f"permission missing, {advice}: {reason}", forbidden=True)
    return Problem(f"status {response.status}: {reason}")
