"""What kopf's thread and the scheduler's loop tell each other; many pods go over at one wake-up."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable

import kopf

logger = logging.getLogger(__name__)


class Handover:
    """Carries pod events from kopf's loop to the scheduler's `loop`, in their order.

    kopf's handlers rely on it; its methods may be called from any thread. `take` is called on `loop` with each event,
    `on_start` with nothing once the operator is up. What `take` raises is logged, and the next event goes on. `stop` is
    the operator's stop flag: set it to end the operator; one that ends by itself sets it, too.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, take: Callable[[kopf.RawEvent], None], on_start: Callable[[], None]
    ) -> None:
        self.loop = loop
        self.stop = threading.Event()
        self._take = take
        self._on_start = on_start
        self._events: deque[kopf.RawEvent] = deque()
        self._is_waking = False

    def started(self) -> None:
        """The operator is up."""
        self.loop.call_soon_threadsafe(self._on_start)

    def put(self, event: kopf.RawEvent) -> None:
        """Hand over an event; the loop is woken only if it does not come for others anyway."""
        if self.stop.is_set():
            return  # Nobody waits for it, and the loop may be closed.
        self._events.append(event)
        if not self._is_waking:
            self._is_waking = True
            self.loop.call_soon_threadsafe(self._take_all)

    def _take_all(self) -> None:
        # First, so that an event that comes from here on either is seen below or wakes the loop again.
        self._is_waking = False
        while self._events:
            event = self._events.popleft()
            try:
                self._take(event)
            except Exception:
                logger.exception("a pod's event was not taken type=%s", event["type"])
