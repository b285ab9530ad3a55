"""How often the API server is asked, when it is asked again, and that it is away, told once."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeVar

from bayplan.logs.formats import V2, V4

Item = TypeVar("Item")

SLICE_SECONDS = 0.010

logger = logging.getLogger(__name__)
NO_ANSWER = "<error>"
"""What ApiClient gives as the code of a request that was not answered."""

_UNAUTHORIZED: Final = "401"
ROLES_SECONDS = 3.0
"""An API server that has just started refuses everybody until it has read the roles, which takes no longer."""
_CUT_WATCHES_IN_A_ROW = 3


async def in_slices(
    items: Iterable[Item],
    act: Callable[[Item], None],
    *,
    seconds: float = SLICE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Act on each item in order, giving way to the rest of the program every `seconds`."""
    until = clock() + seconds
    for item in items:
        act(item)
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """The reflector's patience, in seconds; the defaults are client-go's (tools/cache/reflector.go)."""

    first_delay: float = 0.8
    watch_lifetime: tuple[int, int] = (300, 600)
    # Bookmarks come about every 60 s, so a silence of 75 s is a dead connection.
    inactivity: float = 75.0
    list_timeout: float = 60.0
    slice: float = SLICE_SECONDS
    unserved_delay: float = 60.0
    """How long until a kind that few clusters have is asked for again, where it is not served."""


CLIENT_GO: Final = WatchTiming()
"""How all watches are timed that nobody gives another patience, as tests do."""


@dataclass(slots=True)
class Backoff:
    """Doubles the wait with each failure in a row, apart for a server that is away and one that refuses.

    Relied on by whoever lists or watches. A server that is away costs nothing to ask, and what was missed has to be
    made up for as soon as it returns: waits end at `longest_outage` seconds. One that refuses is spared as by
    client-go: waits end at `longest`. The first refusal after an outage is a new trouble: the server works again.
    """

    first: float = 0.8
    longest: float = 30.0
    longest_outage: float = 4.0
    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0
    """How many in a row."""
    away: bool = False
    """Whether the last failure was the server's absence."""

    def failed(self, *, away: bool) -> float:
        """Return the seconds to wait after a failure; `away` if no answer came, or only that it is in trouble."""
        if self.away and not away:
            self.failures = 0
        self.away = away
        # 2**16 is far past the longest delay and keeps the power small.
        doubled = self.first * 2.0 ** min(self.failures, 16)
        self.failures += 1
        return min(doubled * self.rng.uniform(1.0, 2.0), self.longest_outage if away else self.longest)

    def worked(self) -> None:
        """Begin anew: what fails next is another trouble."""
        self.failures = 0
        self.away = False


def is_away(status: int) -> bool:
    """Whether an answer of this HTTP status says that the server, or what it stands on, does not work."""
    return status >= 500


@dataclass(eq=False)
class ServerContact:
    """Counts the requests that nobody answered, from the first one to the next answer, and logs these two.

    The process has one for its API server: whoever lists, watches or writes tells it, and keeps quiet about the
    outage, and about a login that the server does not know. `server` is its URL without secrets, `clock` is in seconds.
    All calls are made on one loop.
    """

    server: str
    clock: Callable[[], float] = time.monotonic
    _since: float | None = field(default=None, init=False)
    _failed: int = field(default=0, init=False)
    _answered_at: float = field(default=-inf, init=False)
    _back_since: float = field(default=-inf, init=False)
    _is_unknown: bool = field(default=False, init=False)

    @property
    def is_lost(self) -> bool:
        """Whether the last request that was told of had no answer."""
        return self._since is not None

    def has_unread_roles(self) -> bool:
        """Whether the server came back a moment ago, so that a 403 may say no more than that it has just started."""
        return self.clock() - self._back_since < ROLES_SECONDS

    def failed(self, reason: str) -> None:
        """Count a request without an answer."""
        if self._since is None:
            self._since, self._failed = self.clock(), 0
            logger.warning("cannot reach the API server server=%s reason=%r", self.server, reason)
        self._failed += 1

    def unknown(self, reason: str) -> int:
        """Note that the server does not know who asks; return the level at which each asker may say so, too.

        All askers have one login: a line for each of them, at each try, would say the same.
        """
        self._reached()
        if not self._is_unknown:
            self._is_unknown = True
            logger.warning("the API server refuses our login server=%s reason=%r", self.server, reason)
        return V4

    def answered(self) -> None:
        """Note that the server answered, to somebody whom it knows."""
        self._reached()
        if self._is_unknown:
            self._is_unknown = False
            logger.info("the API server takes our login again server=%s", self.server)

    def _reached(self) -> None:
        self._answered_at = self.clock()
        if self._since is None:
            return
        self._back_since = self._answered_at
        seconds, self._since = self._answered_at - self._since, None
        text = "the API server is reached again server=%s failedRequests=%d seconds=%.1f"
        logger.info(text, self.server, self._failed, seconds)

    def interrupted(self, reason: str, failures: int, *, was_open: bool) -> int:
        """Note that a watch ended, or could not be opened; return the level at which that is a line of its own.

        An API server that ends takes its watches along: that is no trouble unless the next ones end as soon.
        """
        if not was_open:
            self.failed(reason)
            return V4
        return V2 if failures <= _CUT_WATCHES_IN_A_ROW else logging.WARNING

    def requested(self, method: str, code: str, seconds: float) -> None:
        """Note how a request of ApiClient ended, and how long it took.

        A 5xx is ignored, because a webhook may have sent it, and so is a write without an answer, because a webhook
        may hold it. A read without one is ignored if the server has answered another request since this one began.
        """
        if code == NO_ANSWER:
            if method == "GET" and self._answered_at < self.clock() - seconds:
                self.failed("no answer to a GET")
        elif code == _UNAUTHORIZED:
            self._reached()
        elif code < "5":
            self.answered()


@dataclass(eq=False, kw_only=True)
class TokenBucket:
    """Lets `burst` requests go at once and `qps` a second after that, first come first served.

    Relied on by `ApiClient`. As in client-go (util/flowcontrol/throttle.go) a caller takes its token at once,
    on credit if need be, and sleeps until the credit is paid back: nobody overtakes. `qps` <= 0 means no
    limit.
    """

    qps: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        """Begin with as many tokens as there can be."""
        self._burst = self._tokens = float(max(self.burst, 1))
        self._filled_at = self.clock()

    def reserve(self) -> float:
        """Take one token and return the seconds to wait before using it."""
        if self.qps <= 0:
            return 0.0
        now = self.clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self.qps)
        self._filled_at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.qps)

    async def wait(self) -> float:
        """Wait for a token and return the seconds waited; a cancelled wait gives its token back."""
        delay = self.reserve()
        if delay > 0.0:
            try:
                await self.sleep(delay)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise
        return delay
