"""Runs an elector in a thread of its own, so that no decision, however long, keeps the Lease from being renewed."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.leaderelection.elector import Announce, Answer, Create, Elector, Pause, Problem, Read, Steps, Update
from bayplan.leaderelection.lease_client import LeaseClient

logger = logging.getLogger(__name__)

_LAST_ANNOUNCE_SECONDS = 1.5


@dataclass(eq=False)
class ElectionThread:
    """An elector on a loop and connections that are its alone, until it lost or was told to stop.

    `connect` makes the client, on that loop. `on_leading` is called in the thread, once at most: whoever is to hear of
    it on another loop hands it over.
    """

    elector: Elector
    connect: Callable[[], LeaseClient]
    on_leading: Callable[[], None]
    _stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stop_seconds: float = field(default=0.0, init=False)
    _announcing: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _state: threading.Lock = field(default_factory=threading.Lock, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    _is_stopping: bool = field(default=False, init=False)
    _told: Problem | None = field(default=None, init=False)

    def run(self) -> BaseException | None:
        """Contend, in a thread that is for nothing else; return why it ended, and the gate is shut by then.

        That is LeaseLostError, another exception if it broke, or None after `stop`.
        """
        try:
            asyncio.run(self._elect())
        except BaseException as error:  # noqa: BLE001  whoever began it ends the process with it
            return error
        finally:
            self.elector.gate.shut()
        return None

    def stop(self, seconds: float) -> None:
        """Shut the gate, give the Lease up within `seconds` if this process has it, and end; from any thread."""
        self.elector.gate.shut()
        with self._state:
            self._stop_seconds, self._is_stopping = seconds, True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _elect(self) -> None:
        client = self.connect()
        try:
            with self._state:
                if self._is_stopping:
                    return
                self._loop = asyncio.get_running_loop()
            # Held here, since what it knows of the Lease has to outlive the task that performs its steps.
            steps = self.elector.contend()
            contending = asyncio.create_task(self._drive(client, steps))
            stopping = asyncio.create_task(self._stop.wait())
            await asyncio.wait([contending, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if contending.done():
                contending.result()
            contending.cancel()
            await asyncio.wait([contending])
            await self._drive(client, self.elector.give_up(self._stop_seconds))
        finally:
            with self._state:
                self._loop = None
            for task in self._announcing:
                task.cancel()
            await asyncio.gather(*self._announcing, return_exceptions=True)
            await client.close()

    async def _drive(self, client: LeaseClient, steps: Steps) -> None:
        """Perform steps until there are none left."""
        answer: Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Announce):
                await self._announce(client, step)
            else:
                answer = await client.perform(step)
                self._tell(step, answer)

    def _tell(self, step: Read | Create | Update, answer: Answer) -> None:
        """Log what keeps the Lease from being read or written: a contender's trouble once, a leader's each renewal."""
        problem = answer if isinstance(answer, Problem) else None
        # A renewal that failed is followed by a look at the Lease, which then mostly fails likewise.
        is_new = self._told is None or isinstance(step, Update) if self.elector.leading else problem != self._told
        if problem is not None and is_new:
            logger.warning("the lease was not read or written problem=%s", problem.reason)
        self._told = problem

    async def _announce(self, client: LeaseClient, step: Announce) -> None:
        """Write the Event: beside the renewals while it leads, and for a moment only when it does so no longer."""
        elector = self.elector
        if step.what == "became leader":
            self.on_leading()
        task = asyncio.create_task(client.announce(elector.identity, step.what, elector.now()))
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)
        if step.what == "stopped leading":
            await asyncio.wait([task], timeout=_LAST_ANNOUNCE_SECONDS)
