"""What comes before a bind: the wait for Permit plugins, then the exchanges of PreBind plugins."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import perf_counter

from bayplan.api.response import ApiCall
from bayplan.config.fields import format_duration
from bayplan.framework.plugin_calls import ERROR_LABEL, SUCCESS_LABEL
from bayplan.framework.status import EffectError, Exchange, Notice, Status
from bayplan.metrics.instruments import Histogram
from bayplan.scheduler.attempt import Reserved
from bayplan.scheduler.cancellation import Tasks
from bayplan.scheduler.dispatcher import Dispatcher

logger = logging.getLogger(__name__)


async def perform_effects(
    dispatcher: Dispatcher,
    steps: Sequence[tuple[str, Exchange]],
    is_wanted: Callable[[], bool],
    performed: Callable[[str, str, float], None] = lambda plugin, status, seconds: None,
    notify: Callable[[Notice], None] = lambda notice: None,
) -> None:
    """Have each plugin's exchange in order, until all are done, one fails, or the pod is no longer wanted.

    Nothing is undone: what was written is found again by the pod's next attempt. `performed` receives how each plugin's
    exchange ended, as a status code's label, and its seconds; `notify` the Events that it tells.

    Raises:
        EffectError: an exchange failed; no other follows.
    """
    for plugin, exchange in steps:
        started, status = perf_counter(), ERROR_LABEL
        try:
            if not is_wanted():
                status = SUCCESS_LABEL
                return
            await perform_exchange(dispatcher, exchange, is_wanted, notify)
            status = SUCCESS_LABEL
        except EffectError as error:
            raise EffectError(f'running PreBind plugin "{plugin}": {error}') from error
        finally:
            performed(plugin, status, perf_counter() - started)


async def perform_exchange(
    dispatcher: Dispatcher, exchange: Exchange, is_wanted: Callable[[], bool], notify: Callable[[Notice], None]
) -> None:
    """Have the conversation to its end; what was answered it is always told, even if nobody wants the pod any more.

    Raises:
        EffectError: it failed.
    """
    conversation = exchange.begin()
    try:
        step = next(conversation)
        while is_wanted():
            answer = None
            if isinstance(step, ApiCall):
                answer = await dispatcher.request(step.encoded())
            elif isinstance(step, Notice):
                notify(step)
            else:
                await asyncio.sleep(step)
            step = conversation.send(answer)
    except StopIteration:
        return
    finally:
        conversation.close()


class LaterExchanges:
    """Performs what plugins have to write that no bind waits for, at once and beside all else; what fails is logged."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._tasks = Tasks("afterwards", "a write was given up unexpectedly")

    def perform(self, exchange: Exchange) -> None:
        """Begin an exchange."""
        self._tasks.start(lambda: self._perform(exchange))

    def stop(self) -> None:
        """End what is under way: who schedules next finds what was written."""
        self._tasks.cancel()

    async def _perform(self, exchange: Exchange) -> None:
        try:
            await perform_exchange(self._dispatcher, exchange, lambda: True, lambda notice: None)
        except EffectError as error:
            logger.warning("a write was given up about=%r problem=%s", exchange.about, error)


@dataclass(eq=False)
class PermitWaits:
    """Has each reserved pod wait until its plugins allow it, one rejects it, or the time of one is up.

    `ended` is called once a wait, later than whoever ended it returns: that may be a plugin in the middle of another
    pod's attempt. It is not called for a wait that was given up by `forget` or `stop`. `waits` receives the
    seconds of a wait by `clock`, and how it ended: `Success`, `Unschedulable` (rejected) or `Error` (its room was
    taken).
    """

    ended: Callable[[Reserved, Status], None]
    waits: Histogram[str]
    clock: Callable[[], float]
    _started: dict[str, float] = field(default_factory=dict, init=False)
    _timers: dict[str, list[asyncio.TimerHandle]] = field(default_factory=dict, init=False)

    def start(self, reserved: Reserved) -> None:
        """Begin the wait that the pod's plugins asked for."""
        loop = asyncio.get_running_loop()
        uid = reserved.pod.uid

        def ended(status: Status) -> None:
            self._cancel(uid)
            self._observe(uid, "Success" if status.ok else "Unschedulable")
            loop.call_soon(self.ended, reserved, status)

        waiting_pods = reserved.framework.waiting_pods
        waiting = waiting_pods.add(reserved.pod, reserved.placement.node_name, reserved.permit_waits, ended)
        self._started[uid] = self.clock()
        self._timers[uid] = [
            loop.call_later(seconds, waiting.reject, plugin, _timeout_message(plugin, seconds))
            for plugin, seconds in reserved.permit_waits.items()
        ]

    def forget(self, reserved: Reserved) -> bool:
        """Give up the wait, which counts as ended by an error; False if the pod does not wait."""
        uid = reserved.pod.uid
        self._cancel(uid)
        waited = reserved.framework.waiting_pods.remove(uid)
        if waited:
            self._observe(uid, "Error")
        return waited

    def stop(self) -> None:
        """Let no time run out any more."""
        for uid in list(self._timers):
            self._cancel(uid)

    def _observe(self, uid: str, result: str) -> None:
        self.waits.observe(self.clock() - self._started.pop(uid), result)

    def _cancel(self, uid: str) -> None:
        for timer in self._timers.pop(uid, ()):
            timer.cancel()


def _timeout_message(plugin: str, seconds: float) -> str:
    waited = format_duration(timedelta(seconds=seconds))
    return f"rejected due to timeout after waiting {waited} at plugin {plugin}"
