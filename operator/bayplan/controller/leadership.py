"""The election's part in the running process: when it may decide, what it may write, and when it has to end."""

import asyncio
import logging
import math
import random
import socket
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.config.connections import LeaderElection
from bayplan.leaderelection.election_thread import ElectionThread
from bayplan.leaderelection.elector import Elector, LeaseTiming, Problem, Read
from bayplan.leaderelection.lease import LeaseLock
from bayplan.leaderelection.lease_client import LeaseClient
from bayplan.leaderelection.write_gate import WriteGate, boot_clock
from bayplan.metrics.table import Metrics
from bayplan.scheduler.api_calls import utc_now
from bayplan.server.health import HealthChecks
from bayplan.server.metrics import Reading, SchedulerMetrics
from bayplan.server.state import leader_election_metrics

logger = logging.getLogger(__name__)

GIVE_UP_SECONDS = 6.0
"""How long a release may take: it is what a standby waits for, and spares it the whole duration of the lease."""
_LAST_WORDS_SECONDS = 2.0
_STALE_SECONDS = 20.0
"""So long after its lease ran out a leader that did not notice is not alive (upstream: LeaderHealthzAdaptor)."""
_CHECK = "leaderElection"


class SecondSchedulerError(Exception):
    """Somebody leads for the same pods, or that cannot be known; the text names the Lease or the missing right."""


class Leadership:
    """Contends for the Lease while the rest of the process keeps warm, and tells when it leads and when no longer.

    The process relies on this order: `contend` when it could schedule; `won` before the first decision; `give_up`
    after the last write. `admit` is for every client that writes. `host` names the API server in metrics.
    `scheduler_names` are whose pods it is about; unless `settings` say to contend, it first looks for their Lease.
    """

    def __init__(
        self,
        settings: LeaderElection,
        credentials: Credentials,
        scheduler_names: Collection[str],
        *,
        hostname: str,
        host: str,
        metrics: Metrics,
    ) -> None:
        self.lock = LeaseLock(settings.resource_namespace, settings.resource_name, tuple(sorted(scheduler_names)))
        self.has_lost = False
        """Whether it ended without being told: nothing that is left to write can be written."""
        self._leader_elect = settings.leader_elect
        self._is_alone = False
        """Whether it leads without a Lease."""
        self._gate = WriteGate(boot_clock)
        self._elector = Elector(
            # As upstream has it: a process that is started again is another contender.
            identity=f"{hostname}_{uuid.uuid4()}",
            timing=LeaseTiming(
                settings.lease_duration.total_seconds(),
                settings.renew_deadline.total_seconds(),
                settings.retry_period.total_seconds(),
            ),
            gate=self._gate,
            clock=boot_clock,
            now=utc_now,
            random=random.random,
            on_new_leader=self._tell_leader,
        )
        self._credentials = credentials
        self._host = host
        self._metrics = metrics
        self._leading = asyncio.Event()
        self._thread: ElectionThread | None = None
        self._ended: asyncio.Future[BaseException | None] | None = None

    @property
    def admit(self) -> Callable[[], float]:
        """What clients ask at the moment before they send a write."""
        return self._gate.seconds_left

    @property
    def identity(self) -> str:
        """As whom it holds the Lease."""
        return self._elector.identity

    def is_leading(self) -> bool:
        """Whether this process is the leader."""
        return self._elector.leading or self._is_alone

    def slow_paths(self) -> int:
        """How many renewals had to read the Lease first."""
        return self._elector.slow_paths

    def add_checks(self, health: HealthChecks) -> None:
        """Have `/livez` and `/readyz` tell when the election does not work; a standby is ready."""
        health.add_liveness(_CHECK, self._stale)
        health.add_readiness(_CHECK, self._problem)

    async def contend(self) -> None:
        """Contend until the Lease is lost, or `give_up` is called.

        Raises:
            LeaseLostError: the process has to end; the gate is shut.
            SecondSchedulerError: the process has to end, and did nothing yet.
        """
        if self._leader_elect is not True and not await self._is_to_contend():
            self._is_alone = True
            self._gate.open_until(math.inf)
            self._leading.set()
            await asyncio.Event().wait()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()
        self._ended = ended

        def end(error: BaseException | None) -> None:
            if not ended.done():
                ended.set_result(error)

        def hand_over(call: Callable[..., object], *arguments: object) -> None:
            with suppress(RuntimeError):  # The loop did not wait for the thread and is closed.
                loop.call_soon_threadsafe(call, *arguments)

        def connect() -> LeaseClient:
            def on_request(method: str, code: str, seconds: float) -> None:
                hand_over(self._metrics.rest_request, method, code, self._host, seconds)

            # Without a rate limit: a renewal never waits for what others send.
            return LeaseClient(ApiClient(self._credentials.twin(), qps=0, burst=1, on_request=on_request), self.lock)

        self._thread = ElectionThread(
            self._elector, connect, on_leading=lambda: hand_over(self._lead), on_end=lambda error: hand_over(end, error)
        )
        logger.info("contending for the lease lease=%s identity=%s", self.lock, self._elector.identity)
        self._thread.start()
        error = await asyncio.shield(ended)
        if error is not None:
            self.has_lost = True
            raise error

    async def _is_to_contend(self) -> bool:
        """Look for a Lease about the same pods, which is then the one to contend for; False to lead without any."""
        client = LeaseClient(ApiClient(self._credentials.twin(), qps=0, burst=1), self.lock)
        timing = self._elector.timing
        try:
            while isinstance(found := await client.find(), Problem) and not found.forbidden:
                logger.warning("the leases of other schedulers were not read problem=%s", found.reason)
                await asyncio.sleep(timing.retry_period)
            if self._leader_elect is None and (isinstance(found, Problem) or not found):
                answer = await client.perform(Read(timing.request_timeout))
                found = answer if isinstance(answer, Problem) and answer.forbidden else []
        finally:
            await client.close()
        if isinstance(found, Problem):
            if self._leader_elect is None:
                raise SecondSchedulerError(
                    "it cannot be known whether another schedules the same pods, and --leader-elect=false schedules "
                    f"all the same: {found.reason}"
                )
            logger.info("nothing else may schedule the same pods, which was not looked for problem=%s", found.reason)
            return False
        if self._leader_elect is False:
            for each in found:
                if each.is_live(utc_now()):
                    raise SecondSchedulerError(
                        f"{each.record.holder_identity!r} holds the lease {each.lock} and schedules pods of "
                        f"{', '.join(each.lock.scheduler_names)}: leave --leader-elect=false out to stand by, "
                        "or add --ignore-other-leases to schedule them, too"
                    )
            return False
        if found:
            latest = max(found, key=lambda each: each.record.renew_time)
            logger.info("found the lease of a scheduler of the same pods lease=%s", latest.lock)
            self.lock = replace(self.lock, namespace=latest.lock.namespace, name=latest.lock.name)
        return True

    async def won(self) -> None:
        """Return as soon as this process leads."""
        await self._leading.wait()

    async def give_up(self, seconds: float) -> None:
        """Let no write start any more and another replica lead at once; two seconds more are for the Event."""
        if self._thread is None or self._ended is None or self._ended.done():
            return
        logger.info("giving the lease up lease=%s", self.lock)
        self._thread.stop(seconds)
        await asyncio.wait([self._ended], timeout=seconds + _LAST_WORDS_SECONDS)

    def _lead(self) -> None:
        logger.info("leading lease=%s identity=%s", self.lock, self._elector.identity)
        self._leading.set()

    def _tell_leader(self, holder: str) -> None:
        if holder not in {"", self._elector.identity}:
            logger.info("the lease is held by another lease=%s holder=%r", self.lock, holder)

    def _problem(self) -> str | None:
        problem = self._elector.problem
        if problem is not None and problem.forbidden:
            return "the role does not allow to get, create and update the lease"
        since = self._elector.refused_since
        if since is not None and boot_clock() - since > self._elector.timing.lease_duration:
            return "the lease is free, and the API server does not let it be taken"
        return self._stale()

    def _stale(self) -> str | None:
        age = boot_clock() - self._elector.renewed_at
        if self._elector.leading and age > self._elector.timing.lease_duration + _STALE_SECONDS:
            return "the lease was not renewed"
        return None


def build_leadership(
    settings: LeaderElection,
    credentials: Credentials,
    metrics: SchedulerMetrics,
    scheduler_names: Collection[str],
    *,
    heeds_other_leases: bool,
) -> Leadership | None:
    """Make the part in the election that the configuration asks for, with its metrics.

    Where it does not say to contend, other schedulers' Leases are heeded or there is no election, which is None.
    """
    if not (settings.leader_elect or heeds_other_leases):
        return None
    leadership = Leadership(
        settings,
        credentials,
        scheduler_names,
        hostname=socket.gethostname(),
        host=urlsplit(credentials.server).netloc,
        metrics=metrics,
    )
    metrics.registry.register(
        Reading(
            lambda: leader_election_metrics(
                leadership.lock.name, is_leading=leadership.is_leading(), slow_paths=leadership.slow_paths()
            )
        )
    )
    return leadership
