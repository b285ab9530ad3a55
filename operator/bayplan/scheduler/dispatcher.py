"""Performs API calls: each in its turn, retried where that is safe, in order per pod, the most important ones first."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final

from bayplan.api.client import ApiClient
from bayplan.api.response import ApiResponse
from bayplan.scheduler.api_calls import BINDING, EVENT, PREEMPTION, STATUS_PATCH, ApiCall, namespace_of
from bayplan.scheduler.cancellation import logged
from bayplan.scheduler.event_queue import EventQueue, EventWrite, event_write
from bayplan.scheduler.pod_patches import Ended, PodPatch, PodPatches
from bayplan.scheduler.retries import MAY_PASS, Retries
from bayplan.scheduler.turn_tasks import TurnTasks
from bayplan.scheduler.turns import SLOW_SECONDS, Turn

logger = logging.getLogger(__name__)

_REST_SECONDS = (5.0, 10.0, *[30.0] * 19)
"""How long a patient patch rests before each further try: some ten minutes in all."""

BINDS: Final = 48
OTHERS: Final = 24
"""So many binds, and of each other kind of call, are under way at most; of one namespace two thirds of that.

Of requests before binds there are two for each claim that gets devices: these have twice as many."""

_FEW: Final = 3
"""So many patches, and Events that say why pods wait: very many of them take no more than their share."""

_BESIDE_WAITING_BINDS: Final = 6
"""So many Events while binds wait for their turn: the API server is busy enough."""

MAX_HELD_BINDS: Final = 1024
"""So many binds wait in a namespace whose binds have no answer; what is more fails, and its pod backs off."""

MAX_WAITING_BINDS: Final = 16384
"""So many wait in a namespace whose binds are answered, and in all others together; what is more fails as well."""

MAX_WAITING_PATCHES: Final = 4096
"""So many patches that are not urgent wait in a namespace; what is more is given up."""

Job = Callable[[Turn], Awaitable[object]]


class Dispatcher:
    """Runs binds at once up to a limit, preemptions and nominations beside them, then conditions, and Events last.

    Each request has a turn (`Turns`): what has no answer for one namespace, or for one kind of call, takes a bounded
    share, and nothing is held between two tries. A lost Event or an old condition is a pity, a lost bind is not
    acceptable: binds look after their own tries and are never dropped; calls are tried again on answers that promise it
    helps, then logged and given up, and Events are dropped when very many wait. Events have a client, and so a rate
    limit, of their own, as in kube-scheduler. The writes on one pod are in order: patches that wait are sent as one,
    those that still wait when its bind begins are dropped, one on its way is waited for, and its Events follow each
    other. `on_patched` receives the body of the answer to each status patch that was taken: the pod in its newest
    version. `wake` is called when binds make room. `sleep` is how the time between tries passes.
    """

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        *,
        on_patched: Callable[[bytes], None] = lambda body: None,
        on_call: Callable[[str, str, float], None] = lambda call_type, result, seconds: None,
        binds: int = BINDS,
        others: int = OTHERS,
        slow_seconds: float = SLOW_SECONDS,
        wake: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._others = others
        self._events_client = events_client
        self._on_patched = on_patched
        self._on_call = on_call
        self._wake = wake
        self._sleep = sleep
        self._retries = Retries(sleep)
        self._patches = PodPatches()
        self._patch_turns: dict[str, Turn] = {}  # Of patches that wait or are under way, by the pod's UID.
        self._events = EventQueue()
        self._behind_patches = 0  # Binds that wait for a patch of their pod.
        self._preemptions: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._broken = asyncio.Event()
        make = partial(TurnTasks, slow_seconds=slow_seconds, broken=lambda name: self._broken.set())
        self._binds = make(BINDING, binds, freed=self._bind_freed)
        self._requests = make("request", 2 * others, freed=self._settled.set)
        self._patching = make(
            STATUS_PATCH, others, freed=self._settled.set, limit=lambda rank: others if rank else min(_FEW, others)
        )
        self._announcing = make(EVENT, others, freed=self._settled.set, limit=self._limit_of_events)

    async def run(self) -> None:
        """Return when somebody else ended a task of it, which is a mistake; the process cannot go on."""
        await self._broken.wait()
        raise RuntimeError("a task of the dispatcher was ended")

    @property
    def jobs_in_flight(self) -> int:
        """Binds that wait or are under way, but for slow ones; the scheduling loop pauses while there are too many."""
        return self._binds.waiting + self._binds.quick

    @property
    def events_waiting(self) -> int:
        """Events that could be written and wait; whoever could as well write one later asks for it."""
        return self._announcing.waiting

    def waiting_calls(self) -> dict[str, int]:
        """How many calls wait for their turn, by what kube-scheduler calls them."""
        binds = self._binds.waiting + self._binds.held + self._behind_patches
        return {BINDING: binds, STATUS_PATCH: len(self._patches)}

    def tasks(self) -> dict[str, int]:
        """How many calls are under way by the work they do; those of binds are BindingCycle's to count."""
        return {
            PREEMPTION: len(self._preemptions),
            STATUS_PATCH: self._patching.tasks,
            EVENT: self._announcing.tasks,
        }

    def takes(self, namespace: str) -> bool:
        """Whether a bind of the namespace may wait: neither behind very many of its own, nor among too many in all."""
        is_held = self._binds.is_held(namespace)
        most = MAX_HELD_BINDS if is_held else MAX_WAITING_BINDS
        return self._binds.waiting_in(namespace) < most and not (is_held and self._binds.held >= MAX_WAITING_BINDS)

    def submit(self, uid: str, namespace: str, job: Job, priority: int = 0) -> None:
        """Run the bind of a pod as soon as it has its turn and no patch of the pod is on its way.

        Patches of the pod that wait are dropped, as told to those who asked for them.
        """
        start = partial(self._binds.start, namespace, job, priority)

        def release() -> None:
            self._behind_patches -= 1
            start()

        if uid in self._patch_turns and not self._patches.is_under_way(uid):
            self._patch_turns.pop(uid).leave()
        if self._patches.make_way(uid, release):
            start()
        else:
            self._behind_patches += 1

    def preempt(self, job: Callable[[], Awaitable[object]]) -> None:
        """Make room for a pod, beside all else; each of its requests has its turn."""
        task = asyncio.create_task(logged(job, "a preemption failed unexpectedly"), name="preemption")
        self._preemptions.add(task)
        task.add_done_callback(self._preempted)

    async def request(self, call: ApiCall) -> ApiResponse | None:
        """Make a call and give its last answer, whatever the status; None if there was none after several tries."""
        answer, _ = await self._retries.answer(self._client, call, self._requests.turn(namespace_of(call.path)))
        return answer

    def send(self, uid: str, call: ApiCall, if_missing: ApiCall | None = None, *, repeatable: bool = False) -> None:
        """Write an Event about the pod when there is time, after those about it that were sent before.

        `if_missing` is made where `call` is answered 404: it creates the Event that was lost, or has expired. A
        `repeatable` one says why a pod waits, and is written after the others, a few at a time.
        """
        write, dropped = event_write(uid, call, if_missing, repeatable=repeatable), self._events.dropped
        if self._events.put(write):
            self._announce(write)
        elif self._events.dropped > dropped and (dropped == 0 or self._events.dropped % 1000 == 0):
            text = "events are dropped because the API server takes them too slowly total=%d namespace=%r"
            logger.warning(text, self._events.dropped, write.namespace)

    def patch(self, uid: str, call: ApiCall, ended: Ended, *, urgent: bool = False, patient: bool = False) -> None:
        """Patch a pod's status, in one request with a patch of the same pod that still waits.

        `ended` is called with True once it is done, with False when it is given up, or dropped because the pod is about
        to be bound. An `urgent` one goes before all others. A `patient` one is tried again for ten minutes, as it says
        what nobody else will say.
        """
        if not urgent and self._patching.waiting_in(namespace_of(call.path)) >= MAX_WAITING_PATCHES:
            ended(False)
        else:
            self._patches.add(uid, call, ended, urgent=urgent, patient=patient)
            self._start_patch(uid, call, urgent=urgent)

    async def drain(self, *, binds_seconds: float, calls_seconds: float) -> None:
        """Wait until all binds and preemptions, then all calls, are done, each at most that long; then end the rest."""
        await self._wait_until(lambda: self._unfinished_jobs == 0, binds_seconds)
        await self._wait_until(lambda: self._unfinished_calls == 0, calls_seconds)
        left = self._unfinished_jobs + self._unfinished_calls
        if left:
            logger.warning("ending with API calls not finished left=%d", left)
        tasks = [*self._preemptions, *self._resting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for turns in (self._requests, self._patching, self._announcing, self._binds):
            await turns.stop()  # Binds are the last: the end of a patch begins one.

    @property
    def _unfinished_jobs(self) -> int:
        return self._binds.unfinished + self._behind_patches + len(self._preemptions)

    @property
    def _unfinished_calls(self) -> int:
        return self._patching.unfinished + self._announcing.unfinished

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._settled.clear()
                    await self._settled.wait()

    def _bind_freed(self) -> None:
        self._settled.set()
        self._wake()
        if not self._binds.waiting:
            self._announcing.look()  # No bind waits any more: what was held back goes on.

    def _limit_of_events(self, rank: int) -> int:
        most = self._others if rank else min(_FEW, self._others)
        return min(most, _BESIDE_WAITING_BINDS) if self._binds.waiting else most

    def _preempted(self, task: asyncio.Task[None]) -> None:
        self._preemptions.discard(task)
        self._settled.set()

    def _start_patch(self, uid: str, call: ApiCall, *, urgent: bool) -> None:
        """Have the pod's patch wait for its turn; behind one that waits or is under way it needs none of its own."""
        turn = self._patch_turns.get(uid)
        if turn is None:
            job = partial(self._perform_patch, uid)
            self._patch_turns[uid] = self._patching.start(namespace_of(call.path), job, rank=int(urgent))
        elif urgent:
            self._patching.promote(turn, rank=1)

    async def _perform_patch(self, uid: str, turn: Turn) -> None:
        patch = self._patches.take(uid)
        if patch is None:
            return  # Its turn had come already as it was dropped.
        done = rests = False
        started = perf_counter()
        self._patch_turns[uid] = turn
        try:
            answer, problem = await self._retries.answer(self._client, patch.call, turn, patch)
            done = answer is not None and answer.status < 400
            if answer is not None and done:
                self._on_patched(answer.body)
            elif not patch.obsolete:
                may_pass = answer is None or (answer.status in MAY_PASS and not answer.is_refused_by_admission)
                rests = may_pass and patch.patient and patch.rests < len(_REST_SECONDS)
                if not rests:
                    _log_given_up(patch.call, problem)
        finally:
            del self._patch_turns[uid]
            self._on_call(STATUS_PATCH, "success" if done else "error", perf_counter() - started)
            following = self._patches.rest(patch) if rests else self._patches.finish(patch, done=done)
            if following is patch:
                task = asyncio.create_task(self._resume(patch), name="resting patch")
                self._resting.add(task)
                task.add_done_callback(self._resting.discard)
            elif following is not None:
                self._start_patch(uid, following.call, urgent=following.urgent)

    async def _resume(self, patch: PodPatch) -> None:
        rests = patch.rests
        await self._sleep(_REST_SECONDS[rests - 1])
        if self._patches.resume(patch, rests):
            self._start_patch(patch.uid, patch.call, urgent=patch.urgent)

    def _announce(self, write: EventWrite) -> None:
        rank = int(not write.repeatable)
        self._announcing.start(write.namespace, partial(self._perform_event, write), rank)

    async def _perform_event(self, write: EventWrite, turn: Turn) -> None:
        call = write.call
        try:
            answer, problem = await self._retries.answer(self._events_client, call, turn)
            if answer is not None and answer.status == 404 and write.if_missing is not None:
                call = write.if_missing
                answer, problem = await self._retries.answer(self._events_client, call, turn)
                if answer is not None and answer.status == 409:
                    # It came late, and is there now (upstream: event_broadcaster.go recordEvent).
                    call = write.call
                    answer, problem = await self._retries.answer(self._events_client, call, turn)
            if answer is None or answer.status >= 400:
                _log_given_up(call, problem)
        finally:
            following = self._events.done(write)
            if following is not None:
                self._announce(following)


def _log_given_up(call: ApiCall, problem: str) -> None:
    # 404 and 422 are what a pod deleted, or recreated under its name, answers: nobody misses that write.
    level = logging.DEBUG if problem in {"status 404", "status 409", "status 422"} else logging.WARNING
    logger.log(level, "API call given up method=%s about=%r problem=%s", call.method, call.about, problem)
