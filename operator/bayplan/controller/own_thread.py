"""Work in a thread of its own, whose end is told on the event loop that began it."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Outcome = TypeVar("Outcome")


def hand_over(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: object) -> None:
    """Have `loop` make a call, from any thread; nothing happens if the loop did not wait for the thread and is closed.

    kopf's operator and the election rely on it.
    """
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


def begin(work: Callable[[], Outcome], name: str) -> asyncio.Future[Outcome]:
    """Do the work in a thread of that name, and return what tells the running loop of its outcome; it may not raise.

    The thread is a daemon, so that the process can end although the work does not.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome] = loop.create_future()

    def tell(outcome: Outcome) -> None:
        if not ended.done():
            ended.set_result(outcome)

    threading.Thread(target=lambda: hand_over(loop, tell, work()), name=name, daemon=True).start()
    return ended
