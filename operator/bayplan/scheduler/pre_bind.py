"""Performs the effects of PreBind plugins while the loop goes on: slow volumes hold up no other pod."""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from bayplan.api.client import decode_status
from bayplan.framework.effects import Effect, WaitFor, Write
from bayplan.scheduler.api_calls import MERGE_PATCH, ApiCall
from bayplan.scheduler.dispatcher import Dispatcher

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.05
_MAX_PAUSE_SECONDS = 1.0
"""kube-scheduler looks once a second; looking sooner at first costs little and binds fast volumes sooner."""


class PreBindError(Exception):
    """A step before a bind failed; the text is the user's."""


class PreBinder:
    """Performs effects, one task a pod, until they are done, one fails, or the pod is no longer wanted.

    A task takes none of the dispatcher's workers: a claim may take minutes to be bound. Nothing is undone here: what
    was written is found again by the pod's next attempt.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many pods wait for their effects."""
        return len(self._tasks)

    def start(
        self,
        steps: Sequence[tuple[str, Sequence[Effect]]],
        *,
        is_wanted: Callable[[], bool],
        done: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        """Perform each plugin's effects in order; then `done`, or `failed` with the message of the first failure.

        Both are called too when the pod is not wanted any more; what follows must find that out itself.
        """

        async def perform() -> None:
            try:
                for plugin, effects in steps:
                    await self._perform(plugin, effects, is_wanted)
            except PreBindError as error:
                failed(str(error))
            except Exception as error:
                logger.exception("a step before a bind failed unexpectedly")
                failed(str(error) or type(error).__name__)
            else:
                done()

        task = asyncio.create_task(perform(), name="pre-bind")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Leave everything as it is: whoever schedules next finds the pods unbound and the writes done or not."""
        for task in self._tasks:
            task.cancel()

    async def _perform(self, plugin: str, effects: Sequence[Effect], is_wanted: Callable[[], bool]) -> None:
        for effect in effects:
            if not is_wanted():
                return
            try:
                if isinstance(effect, Write):
                    await self._write(effect)
                else:
                    await _wait(effect, is_wanted)
            except PreBindError as error:
                raise PreBindError(f'running PreBind plugin "{plugin}": {error}') from error

    async def _write(self, write: Write) -> None:
        call = ApiCall("PATCH", write.path, msgspec.json.encode(write.body), MERGE_PATCH, write.about)
        response = await self._dispatcher.request(call)
        if response is None:
            raise PreBindError(f"writing {write.about}: no answer from the API server")
        if response.status >= 300:
            reason = ": ".join(filter(None, decode_status(response.body)))
            raise PreBindError(f"writing {write.about}: status {response.status}: {reason}")


async def _wait(wait: WaitFor, is_wanted: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait.timeout_seconds
    pause = _FIRST_PAUSE_SECONDS
    while is_wanted():
        status = wait.condition()
        if status is not None and status.ok:
            return
        if status is not None:
            raise PreBindError(f"{wait.about}: {status.message}")
        left = deadline - loop.time()
        if left <= 0:
            raise PreBindError(f"{wait.about}: context deadline exceeded")
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 2, _MAX_PAUSE_SECONDS)
