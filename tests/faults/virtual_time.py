"""An event loop on which waiting takes no time: when nothing is left to do now, the clock jumps to what is next."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

TICK_SECONDS = 0.0005


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: the time that it is asked to wait for files passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout is None or timeout <= 0:
            if timeout is None and not ready:
                raise AssertionError("everything waits, and nothing will ever happen")
            return ready
        self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop of its own time, in seconds; `clock` lets a little of it pass, as work would."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def clock(self) -> float:
        """The time, of which each look takes half a millisecond: so that slices of work end."""
        self._jumping.now += TICK_SECONDS
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on a virtual loop until it ends, with all that it started; raise what escaped from any task."""
    loop = VirtualLoop()
    escaped: list[Mapping[str, Any]] = []
    loop.set_exception_handler(lambda _, context: escaped.append(context))
    try:
        result = loop.run_until_complete(main)
        loop.run_until_complete(cancel_all())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    if escaped:
        raise AssertionError(f"escaped: {escaped[0]}") from escaped[0].get("exception")
    return result


async def cancel_all() -> None:
    """Cancel every task but this one, and wait for their ends."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def virtual_loop() -> VirtualLoop:
    """The running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
