"""The election's part in the running process: when it may decide, what it may write, and when it has to end."""

import asyncio
import logging
import math
import random
import socket
import uuid
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from bayplan.api.backoff import ROLES_SECONDS
from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.config.connections import LeaderElection
from bayplan.controller.own_thread import begin, hand_over
from bayplan.leaderelection.election_thread import ElectionThread
from bayplan.leaderelection.elector import Elector, LeaseTiming, Problem, Read
from bayplan.leaderelection.lease import Lease, LeaseLock
from bayplan.leaderelection.lease_client import LeaseClient
from bayplan.leaderelection.write_gate import WriteGate, boot_clock
from bayplan.scheduler.api_calls import utc_now
from bayplan.server.health import HealthChecks
from bayplan.server.metrics import AtScrape, SchedulerMetrics
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

    `settings.leader_elect` has three values: True contends, False schedules without a Lease unless another holds one
    for the same pods, and None does as the Leases that are found say.

    The process relies on this order: `contend` at the start; `warm` is set when it could schedule; `won` before the
    first decision; `give_up` after the last write. `scheduler_names` are whose pods it is about; with
    `heeds_other_leases` it first looks for other Leases about them.
    """

    def __init__(
        self,
        settings: LeaderElection,
        credentials: Credentials,
        scheduler_names: Collection[str],
        metrics: SchedulerMetrics,
        *,
        heeds_other_leases: bool,
    ) -> None:
        self.lock = LeaseLock(settings.resource_namespace, settings.resource_name, tuple(sorted(scheduler_names)))
        self.has_lost = False
        """Whether it ended without being told: nothing that is left to write can be written."""
        self.warm = asyncio.Event()
        """Set from outside; no Lease is claimed before."""
        self._leader_elect = settings.leader_elect
        self._heeds_other_leases = heeds_other_leases
        self._is_alone = False
        """Whether it leads without a Lease."""
        self._gate = WriteGate(boot_clock)
        self.admit = self._gate.seconds_left
        """What clients ask at the moment before they send a write."""
        # As upstream has it: a process that is started again is another contender.
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._elector = Elector(
            identity=self.identity,
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
        self._metrics = metrics
        self._leading = asyncio.Event()
        self._thread: ElectionThread | None = None
        self._ended: asyncio.Future[BaseException | None] | None = None
        metrics.registry.register(
            AtScrape(
                lambda: leader_election_metrics(
                    self.lock.name, is_leading=self.is_leading(), slow_paths=self._elector.slow_paths
                )
            )
        )

    def is_leading(self) -> bool:
        """Whether this process is the leader."""
        return self._elector.leading or self._is_alone

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
        own = self.lock
        client = LeaseClient(ApiClient(self._credentials.twin()), own)
        try:
            is_to_contend = await self._is_to_contend(client)
            await self.warm.wait()
            if not self._leader_elect:
                # Another may have come meanwhile, or the one that was found have gone.
                self.lock = own
                is_to_contend = await self._is_to_contend(client)
        finally:
            await client.close()
        if not is_to_contend:
            self._is_alone = True
            self._gate.open_until(math.inf)
            self._leading.set()
            await asyncio.Event().wait()
        loop, host = asyncio.get_running_loop(), urlsplit(self._credentials.server).netloc

        def connect() -> LeaseClient:
            def on_request(method: str, code: str, seconds: float) -> None:
                hand_over(loop, self._metrics.rest_request, method, code, host, seconds)

            # Without a rate limit: a renewal never waits for what others send.
            return LeaseClient(ApiClient(self._credentials.twin(), on_request=on_request), self.lock)

        self._thread = ElectionThread(self._elector, connect, on_leading=partial(hand_over, loop, self._lead))
        logger.info("contending for the lease lease=%s identity=%s", self.lock, self.identity)
        self._ended = begin(self._thread.run, "leader-election")
        error = await asyncio.shield(self._ended)
        if error is not None:
            self.has_lost = True
            raise error

    async def _is_to_contend(self, client: LeaseClient) -> bool:
        """Look for Leases about the same pods, and choose the one to contend for; False to lead without any."""
        timing = self._elector.timing
        if self._leader_elect:
            await self._tell_others(client)
            return True
        began, told = boot_clock(), None
        while True:
            found = await client.find()
            if isinstance(found, Problem) and not found.forbidden:
                if found != told:
                    logger.warning("the leases of other schedulers were not read problem=%s", found.reason)
                told = found
            elif self._leader_elect is False:
                self._refuse_beside(found)
                return False
            elif found and not isinstance(found, Problem):
                latest = max(found, key=lambda each: each.record.renew_time)
                logger.info("found the lease of a scheduler of the same pods lease=%s", latest.lock)
                self.lock = replace(self.lock, namespace=latest.lock.namespace, name=latest.lock.name)
                return True
            else:
                own = await client.perform(Read(timing.request_timeout))
                if not (isinstance(own, Problem) and own.forbidden):
                    return True
                if boot_clock() - began >= ROLES_SECONDS:
                    raise SecondSchedulerError(
                        "it cannot be known whether another schedules the same pods, and --leader-elect=false "
                        f"schedules all the same: {own.reason}"
                    )
            await asyncio.sleep(timing.retry_period)

    def _refuse_beside(self, found: Collection[Lease] | Problem) -> None:
        if isinstance(found, Problem):
            logger.info("nothing else may schedule the same pods, which was not looked for problem=%s", found.reason)
            return
        for each in found:
            if each.is_live(utc_now()):
                raise SecondSchedulerError(
                    f"{_shown(each)}: leave --leader-elect=false out to stand by, or add --ignore-other-leases to "
                    "schedule them, too"
                )

    async def _tell_others(self, client: LeaseClient) -> None:
        """Say what keeps it from contending, and who else leads for the same pods; it contends all the same."""
        own = await client.perform(Read(self._elector.timing.request_timeout))
        if isinstance(own, Problem) and own.forbidden:
            self._elector.problem = own
            logger.warning("the lease was not read or written problem=%s", own.reason)
        found = await client.find() if self._heeds_other_leases else []
        for each in [] if isinstance(found, Problem) else found:
            if str(each.lock) != str(self.lock) and each.is_live(utc_now()):
                logger.warning(
                    "%s: both schedule them once this process holds %s; leave --leader-elect out to stand by, or add "
                    "--ignore-other-leases if that is meant",
                    _shown(each),
                    self.lock,
                )

    async def won(self) -> None:
        """Return as soon as this process leads."""
        await self._leading.wait()

    async def give_up(self, seconds: float) -> None:
        """Let no write start any more and another replica lead at once; two seconds more are for the Event.

        Who leads without a Lease has none to give up, and goes on.
        """
        if self._thread is None or self._ended is None or self._ended.done():
            return
        if self._elector.leading:
            logger.info("giving the lease up lease=%s", self.lock)
        self._thread.stop(seconds)
        await asyncio.wait([self._ended], timeout=seconds + _LAST_WORDS_SECONDS)

    def _lead(self) -> None:
        logger.info("leading lease=%s identity=%s", self.lock, self.identity)
        self._leading.set()

    def _tell_leader(self, holder: str) -> None:
        if holder not in {"", self.identity}:
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


def _shown(lease: Lease) -> str:
    """Say who holds a Lease, and for whose pods."""
    names = ", ".join(lease.lock.scheduler_names)
    return f"{lease.record.holder_identity!r} holds the lease {lease.lock} and schedules pods of {names}"
