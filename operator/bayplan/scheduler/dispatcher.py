"""Performs API calls: bounded, retried where that is safe, in order per pod, binds before everything else."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bayplan.api.client import ApiClient, ApiResponse
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.scheduler.api_calls import ApiCall, merged_patch

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[object]]

Ended = Callable[[bool], None]
"""Called once at the end of a patch: True if it was done, False if it was given up."""

_RETRY_DELAYS_SECONDS = (0.1, 0.5, 2.0)
_MAX_WAITING_CALLS = 20_000

_CALLS_BESIDE_WAITING_BINDS = 4
"""So many Events and patches are under way at most while binds wait for a worker: the API server is busy enough."""

_BIND, _CALL, _PREEMPTION = range(3)
_NAMES = ("bind", "call", "preemption")


class Dispatcher:
    """Runs binds at once up to a limit, preemptions at the same time, and Events and status patches after them.

    A lost Event or an old condition is a pity, a lost bind is not acceptable: jobs (binds) look after their own
    retries and are never dropped; calls are retried on answers that promise it helps, then logged and given up, and
    the oldest are dropped when very many wait. Status patches of one pod never overtake each other: those that wait
    are sent as one. Events have a client, and so a rate limit, of their own, as in kube-scheduler. Workers are
    few long-lived tasks, not one task a call, which costs less per pod. `on_patched` receives the body of the answer to
    each status patch that was taken: the pod in its newest version. `sleep` is how the time between tries passes.
    """

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        *,
        on_patched: Callable[[bytes], None] = lambda body: None,
        bind_workers: int = 32,
        call_workers: int = 16,
        preemption_workers: int = 16,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._events_client = events_client
        self._on_patched = on_patched
        self._sleep = sleep
        self._jobs: deque[Job] = deque()
        self._calls: deque[ApiCall] = deque()
        self._latest_patch: dict[str, tuple[ApiCall, tuple[Ended, ...]]] = {}
        self._patching: set[str] = set()
        self._preemptions: deque[Job] = deque()
        self._worker_counts = {_BIND: bind_workers, _CALL: call_workers, _PREEMPTION: preemption_workers}
        self._idle: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque(), deque())
        self._workers: list[asyncio.Task[None]] = []
        self._busy = [0, 0, 0]
        self._dropped = 0
        self._settled = asyncio.Event()
        self._settled.set()

    def start(self) -> None:
        """Start the workers on the running loop."""
        self._workers = [
            asyncio.create_task(self._run(kind), name=f"{_NAMES[kind]}-{i}")
            for kind, number in self._worker_counts.items()
            for i in range(number)
        ]

    @property
    def jobs_in_flight(self) -> int:
        """Binds waiting or under way; the scheduling loop pauses while there are too many."""
        return len(self._jobs) + self._busy[_BIND]

    @property
    def _unfinished_jobs(self) -> int:
        return self.jobs_in_flight + len(self._preemptions) + self._busy[_PREEMPTION]

    def submit(self, job: Job) -> None:
        """Run a bind as soon as a worker is free."""
        self._jobs.append(job)
        self._wake(_BIND)

    def preempt(self, job: Job) -> None:
        """Make room for a pod as soon as a worker is free; binds never wait for that."""
        self._preemptions.append(job)
        self._wake(_PREEMPTION)

    async def request(self, call: ApiCall) -> ApiResponse | None:
        """Make a call and give its last answer, whatever the status; None if there was none after several tries."""
        answer, _ = await self._answer(self._client, call)
        return answer

    def send(self, call: ApiCall) -> None:
        """Send an Event when there is time."""
        if len(self._calls) >= _MAX_WAITING_CALLS:
            self._calls.popleft()
            self._dropped += 1
            if self._dropped == 1 or self._dropped % 1000 == 0:
                logger.warning(
                    "events are dropped because the API server takes them too slowly total=%d", self._dropped
                )
        self._calls.append(call)
        self._wake(_CALL)

    def patch(self, uid: str, call: ApiCall, ended: Ended) -> None:
        """Patch a pod's status, in one request with a patch of the same pod that still waits.

        `ended` is called with True once it is done, with False when it is given up.
        """
        waiting = self._latest_patch.get(uid)
        if waiting is not None:
            self._latest_patch[uid] = (merged_patch(waiting[0], call), (*waiting[1], ended))
            return
        self._latest_patch[uid] = (call, (ended,))
        if uid not in self._patching:
            self._wake(_CALL)

    async def drain(self, *, binds_seconds: float, calls_seconds: float) -> None:
        """Wait until all jobs, then all calls, are done, each at most that long; then end the workers."""
        await self._wait_until(lambda: self._unfinished_jobs == 0, binds_seconds)
        await self._wait_until(lambda: not (self._calls or self._latest_patch or self._busy[_CALL]), calls_seconds)
        left = self._unfinished_jobs + len(self._calls) + len(self._latest_patch)
        if left:
            logger.warning("ending with API calls not finished left=%d", left)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._settled.clear()
                    await self._settled.wait()

    async def _run(self, kind: int) -> None:
        while True:
            job = self._next(kind)
            if job is None:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle[kind].append(waiter)
                self._settled.set()
                await waiter
                continue
            self._busy[kind] += 1
            try:
                await job()
            except (Exception, asyncio.CancelledError):
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                # A worker must outlive any job: without it the queue behind it would stand still.
                logger.exception("an API call failed unexpectedly")
            finally:
                self._busy[kind] -= 1
            if kind == _BIND and not self._jobs:
                self._resume_calls()

    def _next(self, kind: int) -> Job | None:
        if kind != _CALL:
            jobs = self._jobs if kind == _BIND else self._preemptions
            return jobs.popleft() if jobs else None
        if self._jobs and self._busy[_CALL] >= _CALLS_BESIDE_WAITING_BINDS:
            return None
        for uid in self._latest_patch:
            if uid not in self._patching:
                call, ended = self._latest_patch.pop(uid)
                self._patching.add(uid)
                return lambda: self._perform_patch(uid, call, ended)
        if self._calls:
            call = self._calls.popleft()
            return lambda: self._perform(self._events_client, call)
        return None

    def _wake(self, kind: int) -> None:
        idle = self._idle[kind]
        while idle:
            waiter = idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _resume_calls(self) -> None:
        """No bind waits any more: have the calls that were held back go on."""
        for _ in range(min(len(self._calls) + len(self._latest_patch), len(self._idle[_CALL]))):
            self._wake(_CALL)

    async def _perform_patch(self, uid: str, call: ApiCall, ended: tuple[Ended, ...]) -> None:
        answer: ApiResponse | None = None
        try:
            answer = await self._perform(self._client, call)
            if answer is not None:
                self._on_patched(answer.body)
        finally:
            self._patching.discard(uid)
            for end in ended:
                end(answer is not None)

    async def _perform(self, client: ApiClient, call: ApiCall) -> ApiResponse | None:
        """Send a call; the answer if it was taken; None, and logged, if it was given up."""
        answer, problem = await self._answer(client, call)
        if answer is not None and answer.status < 400:
            return answer
        # 404 and 422 are what a pod deleted, or recreated under its name, answers: nobody misses that write.
        level = logging.DEBUG if problem in {"status 404", "status 409", "status 422"} else logging.WARNING
        logger.log(level, "API call given up method=%s about=%r problem=%s", call.method, call.about, problem)
        return None

    async def _answer(self, client: ApiClient, call: ApiCall) -> tuple[ApiResponse | None, str]:
        """Send a call, and again while the answer is one that may change; return the last answer and its problem."""
        problem = ""
        answer: ApiResponse | None = None
        for delay in (*_RETRY_DELAYS_SECONDS, None):
            try:
                answer = await client.request(call.method, call.path, body=call.body, content_type=call.content_type)
            except (AmbiguousError, UnreachableError) as error:
                answer, problem = None, str(error)
            else:
                if answer.status < 400:
                    break
                problem = f"status {answer.status}"
                if answer.status not in {409, 500, 503, 504} or (answer.status == 409 and call.method != "PATCH"):
                    break
            if delay is not None:
                await self._sleep(delay)
        return answer, problem
