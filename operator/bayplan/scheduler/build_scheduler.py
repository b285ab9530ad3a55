"""Makes the scheduling loop and its parts."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from bayplan.cache.cache import Cache
from bayplan.framework.runtime import Framework
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import AttemptRunner
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.binding_cycle import BindingCycle
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.cycle import ExtendedCycle
from bayplan.scheduler.failure_reporter import FailureReporter
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions
from bayplan.scheduler.pre_bind import PreBinder
from bayplan.scheduler.preemption import PreemptionExecutor
from bayplan.scheduler.scheduler import Scheduler


def build_scheduler(
    *,
    cache: Cache,
    queue: SchedulingQueue,
    cycle: SchedulingCycle,
    frameworks: Mapping[str, Framework],
    dispatcher: Dispatcher,
    binder: Binder,
    recorder: EventRecorder,
    observer: SchedulerObserver,
    news: asyncio.Event | None = None,
    clock: Callable[[], float] = time.monotonic,
    extended: ExtendedCycle | None = None,
    victim_gone: Callable[[str], None] = lambda uid: None,
) -> Scheduler:
    """The loop with the parts that bind, preempt and report.

    `victim_gone` receives the UID of victims that were gone with the API server's answer. Setting `news` wakes the
    loop. `clock` is the queue's, in seconds.
    """
    news = news or asyncio.Event()
    conditions = PodConditions(dispatcher.patch, now=_now)
    failures = FailureReporter(recorder=recorder, conditions=conditions, observer=observer, clock=clock)
    binding = BindingCycle(
        cache=cache,
        queue=queue,
        binder=binder,
        recorder=recorder,
        failures=failures,
        observer=observer,
        dispatcher=dispatcher,
        pre_binder=PreBinder(dispatcher),
        wake=news.set,
        clock=clock,
    )
    preemption = PreemptionExecutor(
        cache=cache,
        queue=queue,
        dispatcher=dispatcher,
        recorder=recorder,
        conditions=conditions,
        failures=failures,
        observer=observer,
        reject_waiting=binding.reject,
        victim_gone=victim_gone,
        now=_now,
        wake=news.set,
    )
    attempts = AttemptRunner(
        cache=cache, queue=queue, cycle=cycle, frameworks=frameworks, observer=observer, clock=clock
    )
    return Scheduler(
        cache=cache,
        queue=queue,
        attempts=attempts,
        binding=binding,
        preemption=preemption,
        failures=failures,
        dispatcher=dispatcher,
        recorder=recorder,
        news=news,
        extended=extended,
        clock=clock,
    )


def _now() -> datetime:
    return datetime.now(UTC)
