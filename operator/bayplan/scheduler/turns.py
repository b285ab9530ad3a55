"""Who may send next: calls wait by namespace and by rank, and those without an answer hold up no other namespace."""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Self

from bayplan.api.response import ApiResponse
from bayplan.scheduler.cancellation import Tasks

SLOW_SECONDS = 1.0
"""A call that has no answer after so long makes room for others."""

_REMEMBERED = 4096
"""Of so many namespaces that have no call it is known that their calls fail or hang."""


class Turn:
    """The place of one call: `async with turn` waits until a request may be sent, and makes room at the end.

    It can be used again and again, for each try. Between tries the call holds nothing. `sent` is called as the request
    leaves, which the client's rate limit may hold up after the turn began: from then on it is measured.
    """

    __slots__ = ("_turns", "begin", "entry", "is_late", "is_slow", "lane", "namespace", "order", "refused", "sent_at")

    def __init__(self, turns: "Turns", namespace: str, order: tuple[int, bool]) -> None:
        self._turns = turns
        self.namespace = namespace
        self.order = order  # -rank, and whether it is one of many.
        self.lane: _Lane | None = None
        """Where it waits or is under way; None while it does neither."""
        self.begin: Callable[[], None] | None = None
        """What is called when its time has come; None while it does not wait."""
        self.entry: _Entry
        """Where it stands among those of its lane; there only while it waits."""
        self.sent_at: float | None = None
        """When its request left, in seconds of the loop's clock; None while it has not."""
        self.is_slow = False
        """Whether it counts no more: it takes long, or others of its namespace did as it began."""
        self.is_late = False
        """Whether it takes long."""
        self.refused: bool | None = None
        """Whether admission refused its request; None while no answer says so."""

    async def __aenter__(self) -> Self:
        if self.lane is None:
            begun = asyncio.Event()
            self._turns.ask(self, begun.set)
            try:
                await begun.wait()
            except asyncio.CancelledError:
                self.leave()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def sent(self) -> None:
        """Have the time of its request begin, unless it has begun already."""
        self._turns.sent(self)

    def answered(self, answer: ApiResponse) -> None:
        """Take note of whether admission let the request pass; other failures say nothing of that."""
        if answer.status < 400 or answer.is_refused_by_admission:
            self.refused = answer.status >= 400

    def leave(self) -> None:
        """Make room for others, if it has not done so yet."""
        self._turns.leave(self)


_Entry = tuple[int, bool, int, Turn]
"""A call that waits: -rank, whether it is one of many, a number of its own, and its turn."""


class _Lane:
    """The calls of one namespace; `waiting` is sorted, and its first one has the highest rank."""

    __slots__ = ("is_held", "last", "late", "namespace", "of_many", "offered", "refused", "under_way", "waiting")

    def __init__(self, namespace: str, last: int) -> None:
        self.namespace = namespace
        self.waiting: list[_Entry] = []
        self.under_way = 0
        self.late = 0
        """How many of these take long."""
        self.is_held = False
        """Whether a call took long and none was answered soon since, or one takes long now."""
        self.refused = False
        """Whether admission refused the last call that it saw, as far as answers say."""
        self.of_many = False
        """Whether the last call that began is one of many."""
        self.last = last
        """The number of the last call that began: whose is smallest goes first."""
        self.offered: _Offer | None = None
        """Its entry among those that may begin a call; None while it has too many under way, and if none waits."""

    def share_of(self, limit: int) -> int:
        """How many of so many calls may be of this namespace."""
        return limit // 12 if self.refused else limit // 3 if self.is_held else limit * 2 // 3

    def pop(self) -> Turn:
        """Take out the next call: of those of the highest rank one of many, and one of the others, in turn."""
        negative, _, _, first = self.waiting[0]
        at = bisect_left(self.waiting, (negative, not self.of_many, 0, first))
        is_other = at < len(self.waiting) and self.waiting[at][0] == negative
        _, self.of_many, _, turn = self.waiting.pop(at if is_other else 0)
        return turn


_Offer = tuple[int, int, _Lane]
"""A namespace that may begin a call: -rank, `last`, which no other has, and the lane."""


class Turns:
    """Allows calls of one kind, each namespace a bounded share; the dispatcher relies on it for all that is sent.

    At most `limit(rank)` calls are under way that left less than `slow_seconds` ago, `size` unless it is given, and at
    most two thirds of them in one namespace, a twelfth while admission refuses its calls. The highest rank goes first,
    then the namespace whose last turn is the longest ago, and in it one `of_many` and one of the others in turn. A call
    that takes longer counts no more. Its namespace is held until none takes longer and one is answered in less time: it
    begins a call only while a third of `size` are under way, and all held namespaces together have `size`, whatever
    their ranks. So what hangs for one namespace leaves the others their room. However many namespaces hang, twice
    `size` calls are under way. A higher rank has no smaller `limit`.

    `freed` is called whenever a call ended or makes room, `broken` when somebody else ended the task of a call.
    """

    def __init__(
        self,
        size: int,
        *,
        name: str = "call",
        limit: Callable[[int], int] | None = None,
        slow_seconds: float = SLOW_SECONDS,
        freed: Callable[[], None] = lambda: None,
        broken: Callable[[], None] = lambda: None,
    ) -> None:
        self._size = size
        self._limit = limit or (lambda rank: size)
        self._slow_seconds = slow_seconds
        self._freed = freed
        self._lanes: dict[str, _Lane] = {}
        self._idle: dict[str, _Lane] = {}  # Those without a call that fail or hang, the last one last.
        self._ready: tuple[list[_Offer], list[_Offer]] = ([], [])  # Sorted: those not held, and those held.
        self._numbers = count(1)
        self._measured: dict[Turn, None] = {}  # Sent and not late, in the order of their leaving.
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks = Tasks(name, "an API call failed unexpectedly", ended=freed, broken=broken)
        self.waiting = 0
        """Calls that wait in namespaces that are not held."""
        self.held = 0
        """Calls that wait in those that are."""
        self.quick = 0
        """Calls under way that count."""
        self.slow = 0
        """Calls under way that count no more."""

    def is_held(self, namespace: str) -> bool:
        """Whether calls of the namespace wait for others of it that have no answer."""
        lane = self._lanes.get(namespace)
        return lane is not None and lane.is_held and bool(lane.waiting)

    def waiting_in(self, namespace: str) -> int:
        """How many calls of a namespace wait."""
        lane = self._lanes.get(namespace)
        return 0 if lane is None else len(lane.waiting)

    @property
    def tasks(self) -> int:
        """Tasks that began and are not at their end, between two tries or not."""
        return len(self._tasks)

    @property
    def unfinished(self) -> int:
        """Calls that wait for their first turn, and tasks that are not at their end."""
        return self.waiting + self.held + len(self._tasks)

    def turn(self, namespace: str, rank: int = 0) -> Turn:
        """Return a place for a call that somebody else's task makes."""
        return Turn(self, namespace, (-rank, False))

    def start(
        self, namespace: str, job: Callable[[Turn], Awaitable[object]], rank: int = 0, *, of_many: bool = False
    ) -> Turn:
        """Run a job in a task of its own as soon as it may send its first request; one that raises is logged.

        Whoever leaves the turn before it began has the job forgotten.
        """
        turn = Turn(self, namespace, (-rank, of_many))
        self.ask(turn, lambda: self._tasks.start(lambda: job(turn), turn.leave))
        return turn

    async def stop(self) -> None:
        """Forget what waits, and end what is under way."""
        while self.unfinished:
            for entry in [each for lane in self._lanes.values() for each in lane.waiting]:
                self.leave(entry[-1])
            await self._tasks.stop()

    def ask(self, turn: Turn, begin: Callable[[], None]) -> None:
        """Have a turn wait; `begin` is called as soon as its request may be sent, perhaps at once."""
        lane = self._lanes.get(turn.namespace)
        if lane is None:
            # A new one goes behind those that wait already.
            lane = self._lanes[turn.namespace] = _Lane(turn.namespace, next(self._numbers))
        self._idle.pop(turn.namespace, None)
        turn.lane, turn.begin = lane, begin
        turn.entry = (*turn.order, next(self._numbers), turn)
        insort(lane.waiting, turn.entry)
        self._count(lane, 1)
        self._offer(lane)
        self.look()

    def sent(self, turn: Turn) -> None:
        """Measure from now on how long a turn that is under way takes."""
        if turn.lane is None or turn.sent_at is not None:
            return
        loop = asyncio.get_running_loop()
        turn.sent_at = loop.time()
        self._measured[turn] = None
        if self._alarm is None:
            self._alarm = loop.call_at(turn.sent_at + self._slow_seconds, self._put_aside)

    def leave(self, turn: Turn) -> None:
        """End a turn that waits, or whose request is over; nothing happens if it does neither."""
        lane = turn.lane
        if lane is None:
            return
        turn.lane = None
        if turn.begin is not None:
            turn.begin = None
            del lane.waiting[bisect_left(lane.waiting, turn.entry)]
            del turn.entry
            self._count(lane, -1)
            self._offer(lane)
            self._forget_if_empty(lane)
            return
        lane.under_way -= 1
        if turn.is_slow:
            self.slow -= 1
        else:
            self.quick -= 1
        self._measured.pop(turn, None)
        lane.late -= turn.is_late
        # What sent nothing says nothing about its namespace.
        if turn.sent_at is not None:
            lane.refused = lane.refused if turn.refused is None else turn.refused
            if not (turn.is_late or lane.late):
                self._hold(lane, held=False)
        turn.sent_at, turn.is_slow, turn.is_late, turn.refused = None, False, False, None
        self._offer(lane)
        self._forget_if_empty(lane)
        self.look()
        self._freed()

    def look(self) -> None:
        """Begin what may begin now; whoever changes what `limit` answers calls it."""
        for ready in self._ready:
            while ready:
                negative, _, lane = ready[0]
                limit = self._size if lane.is_held else self._limit(-negative)
                if (self.slow if lane.is_held else max(self.quick, self.quick + self.slow - self._size)) >= limit:
                    break
                del ready[0]
                lane.offered = None
                if lane.under_way < max(1, lane.share_of(limit)):
                    self._start(lane)
                    self._offer(lane)
                # Else the end of a call of its own offers it again.

    def _start(self, lane: _Lane) -> None:
        turn = lane.pop()
        # It names the turn itself: thousands of such cycles waited for the collector.
        del turn.entry
        self._count(lane, -1)
        begin, turn.begin = turn.begin, None
        lane.under_way += 1
        lane.last = next(self._numbers)
        turn.is_slow = lane.is_held
        if turn.is_slow:
            self.slow += 1
        else:
            self.quick += 1
        if begin is not None:
            begin()

    def _offer(self, lane: _Lane) -> None:
        """Have the namespace stand among those that may begin a call, as its first call wants; or not, without any."""
        ready = self._ready[lane.is_held]
        offer = (0 if lane.is_held else lane.waiting[0][0], lane.last, lane) if lane.waiting else None
        if offer != lane.offered:
            if lane.offered is not None:
                del ready[bisect_left(ready, lane.offered)]
            lane.offered = offer
            if offer is not None:
                insort(ready, offer)

    def _forget_if_empty(self, lane: _Lane) -> None:
        if lane.waiting or lane.under_way:
            return
        if not (lane.is_held or lane.refused):
            self._lanes.pop(lane.namespace, None)
            return
        self._idle[lane.namespace] = lane
        if len(self._idle) > _REMEMBERED:
            del self._lanes[self._idle.pop(next(iter(self._idle))).namespace]

    def _count(self, lane: _Lane, calls: int) -> None:
        if lane.is_held:
            self.held += calls
        else:
            self.waiting += calls

    def _hold(self, lane: _Lane, *, held: bool) -> None:
        """Put a namespace among those that are held, or take it from them."""
        if lane.is_held is held:
            return
        self._count(lane, -len(lane.waiting))
        if lane.offered is not None:
            self._ready[lane.is_held].remove(lane.offered)
            lane.offered = None
        lane.is_held = held
        self._count(lane, len(lane.waiting))

    def _put_aside(self) -> None:
        """Hold the namespaces of calls that take long, and have others go in their stead."""
        self._alarm = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for turn in list(self._measured):
            if turn.lane is None or turn.sent_at is None:
                continue
            if (due := turn.sent_at + self._slow_seconds) > now:
                self._alarm = loop.call_at(due, self._put_aside)
                break
            del self._measured[turn]
            turn.is_late = True
            turn.lane.late += 1
            if not turn.is_slow:
                turn.is_slow = True
                self.quick -= 1
                self.slow += 1
            self._hold(turn.lane, held=True)
            self._offer(turn.lane)
        self.look()
        self._freed()
