"""Performs API calls: bounded, retried where that is safe, in order per pod, and the most important ones first."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bayplan.api.client import ApiClient, ApiResponse
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.scheduler.api_calls import ApiCall
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.event_queue import EventQueue, EventWrite
from bayplan.scheduler.pod_patches import Ended, PodPatch, PodPatches
from bayplan.scheduler.worker_pool import Job, WorkerPool

logger = logging.getLogger(__name__)

_RETRY_DELAYS_SECONDS = (0.1, 0.5, 2.0)
_REST_SECONDS = (5.0, 10.0, *[30.0] * 19)
"""How long a patient patch rests before each further try: some ten minutes in all."""

_MAY_PASS = frozenset({409, 500, 502, 503, 504})
"""Answers after which the same call may succeed; 409 only for patches, which name no version."""

_CALLS_BESIDE_WAITING_BINDS = 4
"""So many Events and patches are under way at most while binds wait for a worker: the API server is busy enough."""

_WORKERS_FOR_WAITING_PODS = 2
"""So many patches, and as many Events that say why pods wait, are under way at most: those who create pods go first."""

_SLOW_BIND_SECONDS = 1.0
_MAX_SLOW_BINDS = 512


class Dispatcher:
    """Runs binds at once up to a limit, preemptions and nominations beside them, then conditions, and Events last.

    A lost Event or an old condition is a pity, a lost bind is not acceptable: jobs (binds) look after their own
    retries and are never dropped; calls are retried on answers that promise it helps, then logged and given up, and the
    oldest Events are dropped when very many wait. A bind that takes longer than `slow_bind_seconds`, because its answer
    is lost or a request hangs, holds none of the workers any more. Each of the other kinds has workers of its own, so
    that calls without an answer hold up nothing but their like; Events have a client, and so a rate limit, of their
    own, too, as in kube-scheduler. The writes on one pod are in order: patches that wait are sent as one, those that
    still wait when its bind begins are dropped, one on its way is waited for, and its Events follow each other. What
    pods are told that wait has few workers, so that very many of them take no more than their share of the API server.
    Workers are few long-lived tasks, not one task a call, which costs less per pod. `on_patched` receives the body of
    the answer to each status patch that was taken: the pod in its newest version. `sleep` is how the time between tries
    passes.
    """

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        *,
        on_patched: Callable[[bytes], None] = lambda body: None,
        bind_workers: int = 32,
        patch_workers: int = _WORKERS_FOR_WAITING_PODS,
        preemption_workers: int = 16,
        event_workers: int = 16,
        slow_bind_seconds: float = _SLOW_BIND_SECONDS,
        wake: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._events_client = events_client
        self._on_patched = on_patched
        self._sleep = sleep
        self._jobs: deque[Job] = deque()
        self._held = 0  # Binds that wait for a patch of their pod.
        self._preemptions: deque[Job] = deque()
        self._patches = PodPatches(self._release)
        self._urgent: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()
        self._events = EventQueue()
        self._repeatable = 0  # Events under way that say why a pod waits.
        self._settled = asyncio.Event()
        self._settled.set()
        self._ended = asyncio.Event()
        self._ended_kind = ""
        self._binds = WorkerPool("bind", bind_workers, self._next_bind, self._settled.set, self._worker_ended)
        self._binds.put_aside_after(slow_bind_seconds, at_most=_MAX_SLOW_BINDS, made_room=wake)
        self._preempting = WorkerPool(
            "preemption", preemption_workers, self._next_preemption, self._settled.set, self._worker_ended
        )
        self._patching = WorkerPool("patch", patch_workers, self._next_patch, self._settled.set, self._worker_ended)
        self._announcing = WorkerPool("event", event_workers, self._next_event, self._settled.set, self._worker_ended)
        self._pools = (self._binds, self._preempting, self._patching, self._announcing)

    def start(self) -> None:
        """Start the workers on the running loop."""
        for pool in self._pools:
            pool.start()

    async def run(self) -> None:
        """Return when a worker has ended, which only somebody else's mistake can cause; the process cannot go on."""
        await self._ended.wait()
        raise RuntimeError(f"a worker of the dispatcher ended kind={self._ended_kind}")

    def _worker_ended(self, kind: str) -> None:
        self._ended_kind = kind
        self._ended.set()

    @property
    def jobs_in_flight(self) -> int:
        """Binds waiting or under way, but for slow ones; the scheduling loop pauses while there are too many."""
        return len(self._jobs) + self._binds.busy

    @property
    def events_waiting(self) -> int:
        """Events that no worker has begun to write; whoever could as well write one later asks for it."""
        return len(self._events)

    @property
    def _unfinished_jobs(self) -> int:
        preemptions = len(self._preemptions) + self._preempting.unfinished
        return len(self._jobs) + self._held + self._binds.unfinished + preemptions

    def submit(self, uid: str, job: Job) -> None:
        """Run the bind of a pod as soon as a worker is free and no patch of the pod is on its way.

        Patches of the pod that wait are dropped, as told to those who asked for them.
        """
        if self._patches.make_way(uid, job):
            self._jobs.append(job)
            self._binds.wake()
        else:
            self._held += 1

    def _release(self, job: Job) -> None:
        self._held -= 1
        self._jobs.append(job)
        self._binds.wake()

    def preempt(self, job: Job) -> None:
        """Make room for a pod as soon as a worker is free; binds never wait for that."""
        self._preemptions.append(job)
        self._preempting.wake()

    async def request(self, call: ApiCall) -> ApiResponse | None:
        """Make a call and give its last answer, whatever the status; None if there was none after several tries."""
        answer, _ = await self._answer(self._client, call)
        return answer

    def send(self, uid: str, call: ApiCall, if_missing: ApiCall | None = None, *, repeatable: bool = False) -> None:
        """Write an Event about the pod when there is time, after those about it that were sent before.

        `if_missing` is made where `call` is answered 404: it creates the Event that was lost, or has expired. A
        `repeatable` one says why a pod waits, and is written after the others, a few at a time.
        """
        events = self._events
        dropped = events.dropped
        events.put(uid, call, if_missing, repeatable=repeatable)
        if events.dropped > dropped and (dropped == 0 or events.dropped // 1000 > dropped // 1000):
            logger.warning("events are dropped because the API server takes them too slowly total=%d", events.dropped)
        self._announcing.wake()

    def patch(self, uid: str, call: ApiCall, ended: Ended, *, urgent: bool = False, patient: bool = False) -> None:
        """Patch a pod's status, in one request with a patch of the same pod that still waits.

        `ended` is called with True once it is done, with False when it is given up, or dropped because the pod is about
        to be bound. An `urgent` one waits for no worker, only for a patch of the same pod that is on its way. A
        `patient` one is tried again for ten minutes, as it says what nobody else will say.
        """
        free = self._patches.add(uid, call, ended, urgent=urgent, patient=patient)
        if not free:
            return
        if urgent:
            self._perform_now(uid)
        else:
            self._patching.wake()

    async def drain(self, *, binds_seconds: float, calls_seconds: float) -> None:
        """Wait until all jobs, then all calls, are done, each at most that long; then end the workers."""
        await self._wait_until(lambda: self._unfinished_jobs == 0, binds_seconds)
        await self._wait_until(lambda: self._unfinished_calls == 0, calls_seconds)
        left = self._unfinished_jobs + self._unfinished_calls
        if left:
            logger.warning("ending with API calls not finished left=%d", left)
        tasks = [*self._urgent, *self._resting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(pool.stop() for pool in self._pools), *tasks, return_exceptions=True)

    @property
    def _unfinished_calls(self) -> int:
        under_way = self._patching.unfinished + self._announcing.unfinished + len(self._urgent)
        return len(self._patches) + len(self._events) + under_way

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._settled.clear()
                    await self._settled.wait()

    # What the workers take.

    def _next_bind(self) -> Job | None:
        if self._jobs:
            return self._jobs.popleft()
        # No bind waits any more: what was held back goes on.
        if self._patching.idle:
            self._patching.wake(min(len(self._patches), self._patching.idle))
        if self._announcing.idle:
            self._announcing.wake(min(self._events.ready, self._announcing.idle))
        return None

    def _next_preemption(self) -> Job | None:
        return self._preemptions.popleft() if self._preemptions else None

    def _next_patch(self) -> Job | None:
        if self._jobs and self._patching.busy >= _CALLS_BESIDE_WAITING_BINDS:
            return None
        patch = self._patches.take()
        return None if patch is None else lambda: self._perform_patch(patch)

    def _next_event(self) -> Job | None:
        if self._jobs and self._announcing.busy >= max(1, _CALLS_BESIDE_WAITING_BINDS - self._patching.busy):
            return None
        write = self._events.take(repeatable=self._repeatable < _WORKERS_FOR_WAITING_PODS)
        if write is None:
            return None
        self._repeatable += write.repeatable
        return lambda: self._perform_event(write)

    # What they do.

    def _perform_now(self, uid: str) -> None:
        patch = self._patches.take(uid)
        if patch is not None:
            task = asyncio.create_task(self._perform_urgent(patch), name="urgent patch")
            self._urgent.add(task)
            task.add_done_callback(self._urgent_ended)

    def _urgent_ended(self, task: asyncio.Task[None]) -> None:
        self._urgent.discard(task)
        self._settled.set()
        if len(self._patches):
            self._patching.wake()

    async def _perform_urgent(self, patch: PodPatch) -> None:
        try:
            await self._perform_patch(patch)
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled():
                raise
            logger.exception("a patch failed unexpectedly about=%r", patch.call.about)

    async def _perform_patch(self, patch: PodPatch) -> None:
        done = rests = False
        try:
            answer, problem = await self._answer(self._client, patch.call, patch)
            done = answer is not None and answer.status < 400
            if answer is not None and done:
                self._on_patched(answer.body)
            elif not patch.obsolete:
                may_pass = answer is None or answer.status in _MAY_PASS
                rests = may_pass and patch.patient and patch.rests < len(_REST_SECONDS)
                if not rests:
                    _log_given_up(patch.call, problem)
        finally:
            if rests:
                self._put_by(patch)
            elif self._patches.finish(patch, done=done):
                self._perform_now(patch.uid)

    def _put_by(self, patch: PodPatch) -> None:
        """Free the worker of a patch that fails for now, and try it again later, unless it goes with a newer one."""
        if not self._patches.rest(patch):
            return
        task = asyncio.create_task(self._resume(patch), name="resting patch")
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def _resume(self, patch: PodPatch) -> None:
        patch.rests += 1
        await self._sleep(_REST_SECONDS[patch.rests - 1])
        if self._patches.resume(patch):
            self._patching.wake()

    async def _perform_event(self, write: EventWrite) -> None:
        call = write.call
        try:
            answer, problem = await self._answer(self._events_client, call)
            if answer is not None and answer.status == 404 and write.if_missing is not None:
                call = write.if_missing
                answer, problem = await self._answer(self._events_client, call)
                if answer is not None and answer.status == 409:
                    # It came late, and is there now (upstream: event_broadcaster.go recordEvent).
                    call = write.call
                    answer, problem = await self._answer(self._events_client, call)
            if answer is None or answer.status >= 400:
                _log_given_up(call, problem)
        finally:
            self._repeatable -= write.repeatable
            self._events.done(write.uid)

    async def _answer(
        self, client: ApiClient, call: ApiCall, patch: PodPatch | None = None
    ) -> tuple[ApiResponse | None, str]:
        """Send a call, and again while the answer is one that may change; return the last answer and its problem.

        A `patch` that became obsolete is not sent again.
        """
        problem = ""
        answer: ApiResponse | None = None
        delays = _RETRY_DELAYS_SECONDS if patch is None or not patch.rests else ()
        for delay in (*delays, None):
            if patch is not None and patch.obsolete:
                break
            try:
                answer = await client.request(call.method, call.path, body=call.body, content_type=call.content_type)
            except (AmbiguousError, UnreachableError) as error:
                answer, problem = None, str(error)
            except asyncio.CancelledError:
                if is_being_cancelled():
                    raise
                answer, problem = None, "cancelled"
            else:
                if answer.status < 400:
                    break
                problem = f"status {answer.status}"
                if answer.status not in _MAY_PASS or (answer.status == 409 and call.method != "PATCH"):
                    break
            if delay is not None:
                await self._pause(delay, patch)
        return answer, problem

    async def _pause(self, seconds: float, patch: PodPatch | None) -> None:
        """Wait between two tries, while nothing of the patch is on its way; not for one that is not tried again."""
        if patch is None:
            await self._sleep(seconds)
            return
        if patch.obsolete:
            return
        patch.pausing = True
        try:
            await self._sleep(seconds)
        finally:
            patch.pausing = False


def _log_given_up(call: ApiCall, problem: str) -> None:
    # 404 and 422 are what a pod deleted, or recreated under its name, answers: nobody misses that write.
    level = logging.DEBUG if problem in {"status 404", "status 409", "status 422"} else logging.WARNING
    logger.log(level, "API call given up method=%s about=%r problem=%s", call.method, call.about, problem)
