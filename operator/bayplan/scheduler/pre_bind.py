"""Performs the effects of PreBind plugins: what they want written, and what they wait for."""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter

import msgspec

from bayplan.framework.plugin_calls import ERROR_LABEL, SUCCESS_LABEL
from bayplan.framework.status import Effect, WaitFor, Write
from bayplan.scheduler.api_calls import MERGE_PATCH, ApiCall
from bayplan.scheduler.dispatcher import Dispatcher

_FIRST_PAUSE_SECONDS = 0.05
_MAX_PAUSE_SECONDS = 1.0
"""kube-scheduler looks once a second; looking sooner at first costs little and binds fast volumes sooner."""


class PreBindError(Exception):
    """A step before a bind failed; the text is the user's."""


async def perform_effects(
    dispatcher: Dispatcher,
    steps: Sequence[tuple[str, Sequence[Effect]]],
    is_wanted: Callable[[], bool],
    performed: Callable[[str, str, float], None] = lambda plugin, status, seconds: None,
) -> None:
    """Perform each plugin's effects in order, until all are done, one fails, or the pod is no longer wanted.

    Nothing is undone: what was written is found again by the pod's next attempt. `performed` receives how each plugin's
    effects ended, as a status code's label, and their seconds.

    Raises:
        PreBindError: an effect failed; no other follows.
    """
    for plugin, effects in steps:
        started, status = perf_counter(), ERROR_LABEL
        try:
            for effect in effects:
                if not is_wanted():
                    status = SUCCESS_LABEL
                    return
                if isinstance(effect, Write):
                    await _write(dispatcher, effect)
                else:
                    await _wait(effect, is_wanted)
            status = SUCCESS_LABEL
        except PreBindError as error:
            raise PreBindError(f'running PreBind plugin "{plugin}": {error}') from error
        finally:
            performed(plugin, status, perf_counter() - started)


async def _write(dispatcher: Dispatcher, write: Write) -> None:
    call = ApiCall("PATCH", write.path, msgspec.json.encode(write.body), MERGE_PATCH, write.about)
    response = await dispatcher.request(call)
    if response is None:
        raise PreBindError(f"writing {write.about}: no answer from the API server")
    if response.status >= 300:
        raise PreBindError(f"writing {write.about}: status {response.status}: {response.problem}")


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
