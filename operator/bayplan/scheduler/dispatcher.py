"""Performs API calls: each in its turn, retried where that is safe, in order per pod, the most important ones first."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.scheduler.api_calls import BINDING, EVENT, PREEMPTION, STATUS_PATCH, namespace_of
from bayplan.scheduler.pod_patches import Ended, PodPatches
from bayplan.scheduler.retries import answer_to, tell_given_up
from bayplan.scheduler.turns import SLOW_SECONDS, Turn, Turns

logger = logging.getLogger(__name__)

BINDS: Final = 48
OTHERS: Final = 24
"""So many binds, and of each other kind of call, are under way at most; of one namespace two thirds of that.

Of requests before binds there are two for each claim that gets devices: these have twice as many."""

PREEMPTIONS: Final = 96
"""So many preemptions are under way, more than their requests have turns: one that waits takes little memory."""

_FEW: Final = 3
"""So many patches, and Events that say why pods wait: very many of them take no more than their share."""

_BESIDE_WAITING_BINDS: Final = 6
"""So many Events while binds wait for their turn: the API server is busy enough."""

MAX_HELD_BINDS: Final = 1024
"""So many binds wait in a namespace whose binds have no answer; what is more fails, and its pod backs off."""

MAX_WAITING_BINDS: Final = 16384
"""So many wait in a namespace whose binds are answered, and in all others together; what is more fails as well."""

MAX_EVENT_BYTES: Final = 32 * 2**20
"""Some 25,000 Events: what a burst leaves while the API server takes none."""

_OVERHEAD_BYTES: Final = 1_600
"""What a waiting Event takes besides its bodies: two calls with their paths, its turn and its place in the queue."""

_SHARE_OF_FREE: Final = 2
"""A namespace takes so many times what is free."""

Job = Callable[[Turn], Awaitable[object]]


class EventWrite(msgspec.Struct, frozen=True, gc=False):
    """A write of an Event about one pod; `if_missing` creates it where `call` finds none to change.

    If it is `repeatable` it says why a pod waits, or how often: it comes last, as another will say the same.
    """

    uid: str
    call: ApiCall
    if_missing: ApiCall | None
    repeatable: bool
    namespace: str
    """Whose share of the room it takes."""
    size: int
    """About how many bytes it takes while it waits."""


def event_write(uid: str, call: ApiCall, if_missing: ApiCall | None, *, repeatable: bool) -> EventWrite:
    """Return the write, with whose room it takes and how much."""
    create = b"" if if_missing is None else if_missing.body or b""
    size = _OVERHEAD_BYTES + len(call.body or b"") + len(create)
    return EventWrite(uid, call, if_missing, repeatable, namespace_of(call.path), size)


class EventQueue:
    """Keeps the Events of each pod in order, and all of them within `max_bytes`; the dispatcher relies on it.

    None of a pod may be written before the one before it is `done`, so that a pod is never said to fail after it was
    said to be bound, and no series is counted before its Event is created. What finds no room is dropped and counted.
    A namespace takes at most twice the room that is free, so that some is left however many are not taken for others:
    a burst in one alone has two thirds (dynamic thresholds: Choudhury and Hahne, 1998).
    """

    __slots__ = ("_behind", "_bytes", "_free", "dropped")

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._free = max_bytes
        self._bytes: Counter[str] = Counter()  # By namespace.
        # What waits for an earlier write of the same pod; a pod without such has None, so that most cost no deque.
        self._behind: dict[str, deque[EventWrite] | None] = {}
        self.dropped = 0

    def put(self, write: EventWrite) -> bool:
        """Keep an Event if there is room; whether it can be written now, as none of its pod comes before it."""
        size, namespace = write.size, write.namespace
        if size > self._free or self._bytes[namespace] + size > _SHARE_OF_FREE * self._free:
            self.dropped += 1
            return False
        self._add(namespace, size)
        if write.uid not in self._behind:
            self._behind[write.uid] = None
            return True
        behind = self._behind[write.uid]
        if behind is None:
            behind = self._behind[write.uid] = deque()
        behind.append(write)
        return False

    def done(self, write: EventWrite) -> EventWrite | None:
        """Let go of an Event that was written or given up; the next of its pod, which can be written now."""
        self._add(write.namespace, -write.size)
        behind = self._behind[write.uid]
        if behind:
            return behind.popleft()
        del self._behind[write.uid]
        return None

    def _add(self, namespace: str, size: int) -> None:
        self._free -= size
        self._bytes[namespace] += size
        if not self._bytes[namespace]:
            del self._bytes[namespace]


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
        self._wake = wake
        self._sleep = sleep
        self._events = EventQueue()
        self._settled = asyncio.Event()
        self._broken = asyncio.Event()
        make = partial(Turns, slow_seconds=slow_seconds, broken=self._broken.set)
        self._preemptions = make(PREEMPTIONS, name="preemption", freed=self._settled.set)
        self._binds = make(binds, name=BINDING, freed=self._bind_freed)
        self._requests = make(2 * others, name="request", freed=self._settled.set)
        self._patching = make(
            others,
            name=STATUS_PATCH,
            freed=self._settled.set,
            limit=lambda rank: others if rank else min(_FEW, others),
        )
        self._patches = PodPatches(client, self._patching, on_patched, on_call, sleep)
        self._event_turns = make(others, name=EVENT, freed=self._settled.set, limit=self._limit_of_events)

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
        return self._event_turns.waiting

    def waiting_calls(self) -> dict[str, int]:
        """How many calls wait for their turn, by what kube-scheduler calls them."""
        binds = self._binds.waiting + self._binds.held + self._patches.binds
        return {BINDING: binds, STATUS_PATCH: self._patching.waiting + self._patching.held}

    def tasks(self) -> dict[str, int]:
        """How many calls are under way by the work they do; those of binds are BindingCycle's to count."""
        return {
            PREEMPTION: self._preemptions.tasks,
            STATUS_PATCH: self._patching.tasks,
            EVENT: self._event_turns.tasks,
        }

    def takes(self, namespace: str) -> bool:
        """Whether a bind of the namespace may wait: neither behind very many of its own, nor among too many in all."""
        is_held = self._binds.is_held(namespace)
        most = MAX_HELD_BINDS if is_held else MAX_WAITING_BINDS
        return self._binds.waiting_in(namespace) < most and not (is_held and self._binds.held >= MAX_WAITING_BINDS)

    def submit(self, uid: str, namespace: str, job: Job, priority: int = 0, *, of_many: bool = False) -> None:
        """Run the bind of a pod, perhaps one of a gang, as soon as it has its turn and no patch of it is on its way.

        Patches of the pod that wait are dropped, as told to those who asked for them.
        """
        self._patches.make_way(uid, partial(self._binds.start, namespace, job, priority, of_many=of_many))

    def preempt(self, job: Callable[[], Awaitable[object]], namespace: str = "", priority: int = 0) -> None:
        """Make room for a pod of the namespace, beside all else, in its turn; so has each of its requests."""

        async def perform(turn: Turn) -> None:
            turn.sent()  # One that takes long for one namespace holds up no other.
            await job()

        self._preemptions.start(namespace, perform, priority)

    async def request(self, call: ApiCall) -> ApiResponse | None:
        """Make a call and give its last answer, whatever the status; None if there was none after several tries."""
        answer, _ = await answer_to(self._client, call, self._requests.turn(namespace_of(call.path)), self._sleep)
        return answer

    def send(self, uid: str, call: ApiCall, if_missing: ApiCall | None = None, *, repeatable: bool = False) -> None:
        """Write an Event about the pod when there is time, after those about it that were sent before.

        `if_missing` is made where `call` is answered 404: it creates the Event that was lost, or has expired. A
        `repeatable` one says why a pod waits, and is written after the others, a few at a time.
        """
        write, dropped = event_write(uid, call, if_missing, repeatable=repeatable), self._events.dropped
        if self._events.put(write):
            self._start_event(write)
        elif self._events.dropped > dropped and (dropped == 0 or self._events.dropped % 1000 == 0):
            text = "events are dropped because the API server takes them too slowly total=%d namespace=%r"
            logger.warning(text, self._events.dropped, write.namespace)

    def patch(self, uid: str, call: ApiCall, ended: Ended, *, urgent: bool = False, patient: bool = False) -> None:
        """Patch a pod's status, in one request with a patch of the same pod that still waits.

        `ended` is called with True once it is done, with False when it is given up, or dropped because the pod is about
        to be bound. An `urgent` one goes before all others. A `patient` one is tried again for ten minutes, as it says
        what nobody else will say.
        """
        self._patches.add(uid, call, ended, urgent=urgent, patient=patient)

    async def drain(self, *, binds_seconds: float, calls_seconds: float) -> None:
        """Wait until all binds and preemptions, then all calls, are done, each at most that long; then end the rest."""
        await self._wait_until(lambda: self._unfinished_jobs == 0, binds_seconds)
        await self._wait_until(lambda: self._unfinished_calls == 0, calls_seconds)
        left = self._unfinished_jobs + self._unfinished_calls
        if left:
            logger.warning("ending with API calls not finished left=%d", left)
        for tasks in (self._preemptions, self._patches, self._requests, self._patching, self._event_turns, self._binds):
            await tasks.stop()  # Binds are the last: the end of a patch begins one.

    @property
    def _unfinished_jobs(self) -> int:
        return self._binds.unfinished + self._patches.binds + self._preemptions.unfinished

    @property
    def _unfinished_calls(self) -> int:
        return self._patches.unfinished + self._event_turns.unfinished

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
            self._event_turns.look()  # No bind waits any more: what was held back goes on.

    def _limit_of_events(self, rank: int) -> int:
        most = self._others if rank else min(_FEW, self._others)
        return min(most, _BESIDE_WAITING_BINDS) if self._binds.waiting else most

    def _start_event(self, write: EventWrite) -> None:
        rank = int(not write.repeatable)
        self._event_turns.start(write.namespace, partial(self._perform_event, write), rank)

    async def _perform_event(self, write: EventWrite, turn: Turn) -> None:
        steps = [(write.call, 404)]
        if write.if_missing is not None:
            # A 409 to that: it came late, and is there now (upstream: event_broadcaster.go recordEvent).
            steps += [(write.if_missing, 409), (write.call, 0)]
        try:
            for call, goes_on in steps:
                answer, problem = await answer_to(self._events_client, call, turn, self._sleep)
                if answer is None or answer.status != goes_on:
                    break
            if answer is None or answer.status >= 400:
                tell_given_up(call, answer, problem)
        finally:
            following = self._events.done(write)
            if following is not None:
                self._start_event(following)
