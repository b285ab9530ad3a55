"""The running scheduler as a process: its parts started in order and stopped in order."""

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from bayplan import __version__
from bayplan.config.types import Profile, ScoringStrategy
from bayplan.controller.build import Parts
from bayplan.controller.leadership import GIVE_UP_SECONDS, Leadership, SecondSchedulerError
from bayplan.framework.runtime import Framework
from bayplan.leaderelection.elector import LeaseLostError
from bayplan.live.cluster_view import scoring_fit


def profiles_with_strategy(profiles: Iterable[Profile], frameworks: Mapping[str, Framework]) -> str:
    """Return each profile with what nodes are scored by: "bayplan MostAllocated(cpu 1, memory 1)"."""
    return "; ".join([f"{each.scheduler_name} {_strategy(each, frameworks[each.scheduler_name])}" for each in profiles])


def _strategy(profile: Profile, framework: Framework) -> str:
    args = scoring_fit(profile, framework)
    if args is None:
        return "without NodeResourcesFit" if framework.scores else "the first node that fits"
    if args.scoring_strategies:
        return " + ".join([f"{each.weight} {_shown(each.strategy)}" for each in args.scoring_strategies])
    return _shown(args.scoring_strategy)


def _shown(strategy: ScoringStrategy) -> str:
    return f"{strategy.type}({', '.join([f'{each.name} {each.weight}' for each in strategy.resources])})"


logger = logging.getLogger(__name__)

COLLECTION_THRESHOLDS: Final = (20_000, 20, 50)
"""How many objects are made, and how many younger collections come, before a collection: what benchmarks have, too."""

_COMPARE_SECONDS = 60.0
# Checked often: a read is cheap, and room held for a pod that is gone is not.
_ASSUMED_CHECK_SECONDS = 15.0
# A change is taken over once it was seen twice, after two to three seconds with the check; the kubelet takes longer.
_LOOK_SECONDS = 1.0
# How often a standby collects, unless that took more than a hundredth of its time.
_COLLECT_SECONDS = 15.0
_COLLECT_SHARE = 0.01
_FIRST_LIST_SECONDS = 10.0
# Together under ten seconds, API server or not: a Deployment's grace period is thirty.
_DRAIN_BINDS_SECONDS = 6.0
_DRAIN_CALLS_SECONDS = 2.0
# Of that and of the time for the Lease, where the API server did not answer last: it may be back any moment.
_PATIENCE_WITHOUT_SERVER = 0.25
_KOPF = "kopf"
_ELECTION = "leader election"


class App:
    """One scheduler process, from its `parts` to its exit code.

    A changed configuration is taken over while it runs, at once after SIGHUP.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._stop = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: BaseException | None = None
        self._ending = False

    async def run(self) -> int:
        """Schedule until told to stop; 0 after a signal, 1 if a part that must not end did, or the lease is lost.

        2 if another schedules the same pods and this process was told not to contend with it, or that cannot be known.
        """
        parts = self.parts
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, self._told_to_stop, signum)
        if parts.reload.source is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, parts.reload.ask)
        self._tell_start()
        # Most of what a pod makes dies by reference count before a collection this rare would look at it.
        gc.set_threshold(*COLLECTION_THRESHOLDS)
        await parts.serving.start()
        self._spawn("dispatcher", parts.scheduler.dispatcher.run())
        for name, work in (parts.serving.work() | parts.watches.work()).items():
            self._spawn(name, work)
        if parts.leadership is not None:
            # From the start, so that what keeps it from leading is told before all kinds are listed.
            self._spawn(_ELECTION, parts.leadership.contend())
        try:
            if await self._synced():
                cache = parts.scheduler.cache
                logger.info("caches synced nodes=%d pods=%d", len(cache.nodes), cache.sizes().pods)
                # What was listed stays: keep the collector from walking it at every full collection.
                gc.collect()
                gc.freeze()
                if parts.shadow is None:
                    self._spawn("intake list", parts.intake_list.run(_COMPARE_SECONDS))
                    self._spawn("scheduler", self._schedule())
                    self._spawn("assumed", parts.assumed_pods.run(_ASSUMED_CHECK_SECONDS))
                    self._spawn("configuration", parts.reload.run(_LOOK_SECONDS))
                else:
                    self._spawn("shadow", parts.shadow.run())
                await self._stop.wait()
        finally:
            await self._shut_down()
        if isinstance(self._failed, LeaseLostError):
            logger.critical("leader election lost, ending so that another replica takes over reason=%s", self._failed)
            return 1
        if isinstance(self._failed, SecondSchedulerError):
            logger.critical("refused: %s", self._failed)
            return 2
        if self._failed is not None:
            logger.critical("ending because a part failed error=%r", self._failed)
            return 1
        logger.info("ended")
        return 0

    def _tell_start(self) -> None:
        parts = self.parts
        identity = socket.gethostname() if parts.leadership is None else parts.leadership.identity
        profiles = profiles_with_strategy(parts.reload.configuration.profiles, parts.scheduler.frameworks)
        text = "bayplan starts version=%s server=%s profiles=%r identity=%s"
        logger.info(text, __version__, parts.contact.server, profiles, identity)

    def _told_to_stop(self, signum: signal.Signals) -> None:
        logger.info("told to stop, ending signal=%s", signum.name)
        self._stop.set()

    async def _synced(self) -> bool:
        """Wait for the first list of every kind; False if told to stop first."""
        while not self.parts.watches.synced:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await self._stop.wait()
            if self._stop.is_set():
                return False
        return True

    async def _schedule(self) -> None:
        """Schedule once all pods that waited for us are in the queue in order of priority, or have not come in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await self.parts.intake_list.complete.wait()
        if not self._stop.is_set():
            # Not before, or kopf's start would hold up the first decision.
            self._spawn(_KOPF, self.parts.operator.run())
            if (leadership := self.parts.leadership) is not None:
                # Watches, kopf and queue keep a standby warm: it decides at once when it is its turn.
                leadership.warm.set()
                self._spawn("collection", self._collect_while_standing_by(leadership))
                await leadership.won()
            await self.parts.scheduler.run()

    async def _collect_while_standing_by(self, leadership: Leadership) -> None:
        """Give memory back that only a full collection finds, while nobody waits for a decision of this process.

        kopf leaves each object that it handled in a cycle, 1.5 MB of a hostile pod, too. Those that are still handled
        at a young collection get old, and a process with little else to do collects old objects every ten minutes.
        """
        pause = _COLLECT_SECONDS
        while True:
            await asyncio.sleep(pause)
            if not leadership.is_leading():
                began = time.perf_counter()
                gc.collect()
                pause = max(_COLLECT_SECONDS, (time.perf_counter() - began) / _COLLECT_SHARE)

    async def _shut_down(self) -> None:
        """Stop deciding, let binds under way finish, then end everything else."""
        parts, self._ending = self.parts, True
        parts.health.begin_shutdown()
        parts.scheduler.stop()
        if parts.shadow is not None:
            parts.shadow.measure()
            parts.shadow.tell()
        # kopf takes a moment to end: it does so while the binds drain.
        ending = [task for name, task in self._tasks.items() if name == _KOPF]
        others = [task for name, task in self._tasks.items() if name != _KOPF]
        for task in ending:
            task.cancel()
        leadership = parts.leadership
        patience = 1.0
        if leadership is not None and leadership.has_lost:
            # It may write nothing more: there is nothing to wait for.
            patience = 0.0
        elif parts.contact.is_lost:
            logger.warning("the API server does not answer, so what is under way has little time left to finish")
            patience = _PATIENCE_WITHOUT_SERVER
        await parts.scheduler.dispatcher.drain(
            binds_seconds=patience * _DRAIN_BINDS_SECONDS, calls_seconds=patience * _DRAIN_CALLS_SECONDS
        )
        if leadership is not None:
            await leadership.give_up(patience * GIVE_UP_SECONDS)
        for task in others:
            task.cancel()
        await asyncio.gather(*ending, *others, return_exceptions=True)
        for client in parts.clients:
            await client.close()
        await parts.reload.close()
        await parts.serving.stop()

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run a part that must not end; if it does, the process ends with it rather than go on half alive."""
        task = self._tasks[name] = asyncio.create_task(work, name=name)
        task.add_done_callback(partial(self._part_ended, name))

    def _part_ended(self, name: str, task: asyncio.Task[None]) -> None:
        error: BaseException | None
        if task.cancelled():
            # Whoever did it, and if it never ran: only the end of all parts is no failure.
            error = None if self._ending else RuntimeError(f"{name} ended, cancelled")
        else:
            error = task.exception() or (None if self._stop.is_set() else RuntimeError(f"{name} ended"))
        if self._stop.is_set() and isinstance(error, LeaseLostError):
            # It was to end anyway, and whether it led until then changes nothing for who takes over.
            logger.warning("the lease was lost while ending reason=%s", error)
            error = None
        self._failed = self._failed or error
        self._stop.set()
