"""A rate limit as client-go has it: a number of requests at once, and so many a second after that."""

import asyncio
import time
from collections.abc import Awaitable, Callable


class TokenBucket:
    """Lets `burst` requests go at once and `qps` a second after that, first come first served.

    Relied on by `ApiClient`. As in client-go (util/flowcontrol/throttle.go) a caller takes its token at once,
    on credit if need be, and sleeps until the credit is paid back: nobody overtakes. `qps` <= 0 means no
    limit.
    """

    def __init__(
        self,
        *,
        qps: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._clock = clock
        self._sleep = sleep
        self._tokens = self._burst
        self._filled_at = clock()

    def reserve(self) -> float:
        """Take one token and return the seconds to wait before using it."""
        if self._qps <= 0:
            return 0.0
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._qps)

    async def wait(self) -> float:
        """Wait for a token and return the seconds waited; a cancelled wait gives its token back."""
        delay = self.reserve()
        if delay > 0.0:
            try:
                await self._sleep(delay)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise
        return delay
