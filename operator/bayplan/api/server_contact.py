"""Tells once that the API server cannot be reached, and once that it can again."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from bayplan.logs.formats import V2, V4

logger = logging.getLogger(__name__)

NO_ANSWER = "<error>"
"""What ApiClient gives as the code of a request that was not answered."""

_CUT_WATCHES_IN_A_ROW = 3


@dataclass(eq=False)
class ServerContact:
    """Counts the requests that nobody answered, from the first one to the next answer, and logs these two.

    The process has one for its API server: whoever lists, watches or writes tells it, and keeps quiet about the
    outage. `server` is its URL without secrets, `clock` is in seconds. All calls are made on one loop.
    """

    server: str
    clock: Callable[[], float] = time.monotonic
    _since: float | None = field(default=None, init=False)
    _failed: int = field(default=0, init=False)
    _answered_at: float = field(default=-inf, init=False)

    @property
    def is_lost(self) -> bool:
        """Whether the last request that was told of had no answer."""
        return self._since is not None

    def failed(self, reason: str) -> None:
        """Count a request without an answer."""
        if self._since is None:
            self._since, self._failed = self.clock(), 0
            logger.warning("cannot reach the API server server=%s reason=%r", self.server, reason)
        self._failed += 1

    def answered(self) -> None:
        """Note that the server answered."""
        self._answered_at = self.clock()
        if self._since is None:
            return
        seconds, self._since = self.clock() - self._since, None
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

        A 5xx says neither: it may be an admission webhook's. So does a request without an answer while others that were
        made since had one: it is that call which has none.
        """
        if code == NO_ANSWER:
            if self._answered_at < self.clock() - seconds:
                self.failed(f"no answer to a {method}")
        elif code < "5":
            self.answered()
