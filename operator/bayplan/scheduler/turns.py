"""Who may send next: calls wait by namespace and by rank, and those without an answer hold up no other namespace."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Self

from bayplan.scheduler.cancellation import logged

SLOW_SECONDS = 1.0
"""A call that has no answer after so long makes room for others."""


class Turn:
    """The place of one call: `async with turn` waits until a request may be sent, and makes room at the end.

    It can be used again and again, for each try. Between tries the call holds nothing.
    """

    __slots__ = ("_turns", "begin", "is_slow", "namespace", "rank", "since")

    def __init__(self, turns: "Turns", namespace: str, rank: int) -> None:
        self._turns = turns
        self.namespace = namespace
        self.rank = rank
        self.begin: Callable[[], None] | None = None
        """What is called when its time has come; None while it does not wait."""
        self.since: float | None = None
        """When its request was allowed, in seconds of the loop's clock; None while it was not."""
        self.is_slow = False

    async def __aenter__(self) -> Self:
        if self.since is None:
            begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.ask(self, partial(_begin, begun))
            try:
                await begun
            except asyncio.CancelledError:
                self.leave()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Make room for others, if it has not done so yet."""
        self._turns.leave(self)


def _begin(begun: asyncio.Future[None]) -> None:
    if not begun.done():
        begun.set_result(None)


class _Lane:
    """The calls of one namespace; `waiting` is a heap of (-rank, number, turn), of which `alive` still wait."""

    __slots__ = ("alive", "is_held", "last", "offered", "under_way", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, Turn]] = []
        self.alive = 0
        self.under_way = 0
        self.is_held = False
        """Whether a call took long and none was answered soon since."""
        self.last = 0
        """The number of the last call that began: whose is smallest goes first."""
        self.offered: tuple[int, int] | None = None
        """As what it stands among those that may begin a call: the rank and `last` of then."""


class Turns:
    """Allows calls of one kind, each namespace a bounded share; the dispatcher relies on it for all that is sent.

    At most `limit(rank)` calls are under way that were begun less than `slow_seconds` ago, `size` unless it is given,
    and at most two thirds of them in one namespace. The highest rank goes first, then the namespace whose last turn is
    the longest ago. A call that takes longer counts no more. Its namespace is held until one of its calls is answered
    in less time: it has a third of `size` calls under way at most, and all held namespaces together `size`. So what
    hangs for one namespace leaves the others their room, whatever hangs and however many wait.

    `freed` is called whenever a call ended or makes room, and `broken` when somebody else ended a task of it.
    """

    def __init__(
        self,
        name: str,
        size: int,
        *,
        limit: Callable[[int], int] | None = None,
        slow_seconds: float = SLOW_SECONDS,
        freed: Callable[[], None] = lambda: None,
        broken: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._name = name
        self._size = size
        self._limit = limit or (lambda rank: size)
        self._slow_seconds = slow_seconds
        self._freed = freed
        self._broken = broken
        self._lanes: dict[str, _Lane] = {}
        self._ready: list[tuple[int, int, int, str]] = []  # (-rank, last, number, namespace), some of them out of date.
        self._blocked: set[str] = set()
        self._numbers = count(1)
        self._quick: dict[Turn, None] = {}  # Under way and not slow, in the order of their beginning.
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self.waiting = 0
        """Calls that wait in namespaces that are not held."""
        self.held = 0
        """Calls that wait in those that are."""
        self.slow = 0
        """Calls under way that count no more."""

    @property
    def quick(self) -> int:
        """Calls under way that count."""
        return len(self._quick)

    @property
    def unfinished(self) -> int:
        """Calls that wait for their first turn, and tasks that are not at their end."""
        return self.waiting + self.held + len(self._tasks)

    @property
    def tasks(self) -> int:
        """Tasks that began and are not at their end, between two tries or not."""
        return len(self._tasks)

    def is_held(self, namespace: str) -> bool:
        """Whether calls of the namespace wait for others of it that have no answer."""
        lane = self._lanes.get(namespace)
        return lane is not None and lane.is_held and lane.alive > 0

    def turn(self, namespace: str, rank: int = 0) -> Turn:
        """Return a place for a call that somebody else's task makes."""
        return Turn(self, namespace, rank)

    def start(self, namespace: str, job: Callable[[Turn], Awaitable[object]], rank: int = 0) -> None:
        """Run a job in a task of its own as soon as it may send its first request; one that raises is logged."""
        turn = Turn(self, namespace, rank)
        self.ask(turn, lambda: self._run(job, turn))

    async def stop(self) -> None:
        """Forget what waits, and end what is under way."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._tasks or self._lanes:
            self._lanes.clear()
            self._ready.clear()
            self.waiting = self.held = 0
            tasks, self._tasks = self._tasks, set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def ask(self, turn: Turn, begin: Callable[[], None]) -> None:
        """Have a turn wait; `begin` is called as soon as its request may be sent, perhaps at once."""
        namespace = turn.namespace
        lane = self._lanes.get(namespace)
        if lane is None:
            lane = self._lanes[namespace] = _Lane()
            lane.last = next(self._numbers)  # It goes behind those that wait already.
        turn.begin = begin
        heappush(lane.waiting, (-turn.rank, next(self._numbers), turn))
        lane.alive += 1
        self._count(lane, 1)
        self._offer(namespace, lane)
        self.look()

    def leave(self, turn: Turn) -> None:
        """End a turn that waits, or whose request is over; nothing happens if it does neither."""
        namespace = turn.namespace
        lane = self._lanes.get(namespace)
        if turn.since is None:
            if turn.begin is not None and lane is not None:
                turn.begin = None
                lane.alive -= 1
                self._count(lane, -1)
                self._forget_if_empty(namespace, lane)
            return
        loop = asyncio.get_running_loop()
        is_soon = loop.time() - turn.since < self._slow_seconds
        turn.since = None
        if turn.is_slow:
            turn.is_slow = False
            self.slow -= 1
        else:
            self._quick.pop(turn, None)
        if lane is not None:
            lane.under_way -= 1
            if is_soon:
                self._hold(lane, held=False)
            self._offer(namespace, lane)
            self._forget_if_empty(namespace, lane)
        for blocked in self._blocked & self._lanes.keys():
            self._offer(blocked, self._lanes[blocked])
        self._blocked.clear()
        self.look()
        self._freed()

    def look(self) -> None:
        """Begin what may begin now; whoever changes what `limit` answers calls it."""
        ready = self._ready
        while ready:
            negative, last, _, namespace = ready[0]
            lane = self._lanes.get(namespace)
            if lane is None or lane.offered != (negative, last):
                heappop(ready)
                continue
            if lane.waiting[0][2].begin is None:
                heappop(lane.waiting)  # It was given up.
                self._offer(namespace, lane)
                continue
            limit = self._limit(-negative)
            if lane.is_held:
                has_room = lane.under_way < max(1, self._size // 3) and self.slow < self._size
            elif self.quick >= limit:
                return
            else:
                has_room = lane.under_way < max(1, limit * 2 // 3)
            heappop(ready)
            lane.offered = None
            if has_room:
                self._start(lane, heappop(lane.waiting)[2])
                self._offer(namespace, lane)
            else:
                self._blocked.add(namespace)

    def _start(self, lane: _Lane, turn: Turn) -> None:
        begin, turn.begin = turn.begin, None
        loop = asyncio.get_running_loop()
        lane.alive -= 1
        self._count(lane, -1)
        lane.under_way += 1
        lane.last = next(self._numbers)
        turn.since, turn.is_slow = loop.time(), lane.is_held
        if turn.is_slow:
            self.slow += 1
        else:
            self._quick[turn] = None
            if self._alarm is None:
                self._alarm = loop.call_later(self._slow_seconds, self._put_aside)
        if begin is not None:
            begin()

    def _offer(self, namespace: str, lane: _Lane) -> None:
        """Have the namespace stand among those that may begin a call, as its first call wants."""
        wanted = (lane.waiting[0][0], lane.last) if lane.waiting else None
        if wanted is not None and wanted != lane.offered:
            heappush(self._ready, (*wanted, next(self._numbers), namespace))
        lane.offered = wanted

    def _forget_if_empty(self, namespace: str, lane: _Lane) -> None:
        if not (lane.alive or lane.under_way) and self._lanes.get(namespace) is lane:
            del self._lanes[namespace]

    def _count(self, lane: _Lane, number: int) -> None:
        if lane.is_held:
            self.held += number
        else:
            self.waiting += number

    def _hold(self, lane: _Lane, *, held: bool) -> None:
        if lane.is_held is not held:
            self._count(lane, -lane.alive)
            lane.is_held = held
            self._count(lane, lane.alive)

    def _put_aside(self) -> None:
        """Hold the namespaces of calls that take long, and have others go in their stead."""
        self._alarm = None
        loop = asyncio.get_running_loop()
        latest = loop.time() - self._slow_seconds
        for turn in list(self._quick):
            if turn.since is None or turn.since > latest:
                break
            del self._quick[turn]
            turn.is_slow = True
            self.slow += 1
            self._hold(self._lanes[turn.namespace], held=True)
        first = next(iter(self._quick), None)
        if first is not None and first.since is not None:
            self._alarm = loop.call_at(first.since + self._slow_seconds, self._put_aside)
        self.look()
        self._freed()

    def _run(self, job: Callable[[Turn], Awaitable[object]], turn: Turn) -> None:
        task = asyncio.create_task(logged(lambda: job(turn), "an API call failed unexpectedly"), name=self._name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, turn))

    def _ended(self, turn: Turn, task: asyncio.Task[None]) -> None:
        is_known = task in self._tasks
        self._tasks.discard(task)
        turn.leave()
        self._freed()
        if is_known and task.cancelled():
            self._broken(self._name)
