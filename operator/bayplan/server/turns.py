"""When the next piece of work for clients may begin: it takes the loop from the scheduler."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

AHEAD_SECONDS: Final = 0.25
"""How much may begin at once: as much as this time has."""


@dataclass(eq=False)
class PeerTurns:
    """Bounds what is done a second, and lets peers take turns, so that who floods the port waits for itself.

    HttpServer relies on it: a kubelet's probe waits for one piece of work of each other peer at most. `per_second` is
    how many of cost 1 there may be; `cost` is asked at each. `clock` is monotonic, in seconds.
    """

    per_second: float
    cost: Callable[[], float] = lambda: 1.0
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, kw_only=True)
    # Dictionaries keep the order of coming: who had a turn goes to the end.
    _waiting: dict[str, list[asyncio.Future[None]]] = field(default_factory=dict, init=False)
    _giving: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with nothing ahead."""
        self._paid_until = self.clock()

    async def wait(self, peer: str, *, ahead: bool = False) -> None:
        """Wait for a turn, after the peer's other work or `ahead` of it; who is cancelled before it takes none."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own = self._waiting.setdefault(peer, [])
        own.insert(0 if ahead else len(own), turn)
        if self._giving is None:
            self._giving = asyncio.create_task(self._give())
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(peer, turn)
            raise

    async def _give(self) -> None:
        try:
            while self._waiting:
                early = self._paid_until - AHEAD_SECONDS - self.clock()
                if early > 0.0:
                    # Who comes or leaves meanwhile is looked at afterwards.
                    await self.sleep(early)
                elif not (turn := self._next()).done():
                    self._paid_until = max(self._paid_until, self.clock()) + self.cost() / self.per_second
                    turn.set_result(None)
        finally:
            # Who was cancelled may have a successor already.
            if self._giving is asyncio.current_task():
                self._giving = None

    def _next(self) -> asyncio.Future[None]:
        peer = next(iter(self._waiting))
        own = self._waiting.pop(peer)
        turn = own.pop(0)
        if own:
            self._waiting[peer] = own
        return turn

    def _leave(self, peer: str, turn: asyncio.Future[None]) -> None:
        own = self._waiting.get(peer)
        if own is None or turn not in own:
            return
        own.remove(turn)
        if not own:
            del self._waiting[peer]
        if not self._waiting and self._giving is not None:
            self._giving.cancel()
            self._giving = None
