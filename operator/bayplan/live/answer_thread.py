"""Works out answers on one thread beside the event loop, one at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final, TypeVar

from bayplan.server.live import RefusedQuestionError

MOST_WAITING: Final = 8
"""So many questions wait for their turn, or are worked out; each one more is told to come again."""
ANSWER_SECONDS: Final = 45.0
"""How long anybody waits for an answer, once it is his turn."""
_RETRY_SECONDS: Final = 1

T = TypeVar("T")


class AnswerThread:
    """Gives each question its turn on a thread; the Inspector relies on it.

    What a question needs is copied when its turn has come, so no more than one copy is held. A thread cannot be
    stopped: who gives up waiting leaves it to end, and only then is it the next one's turn.
    """

    def __init__(self, *, most_waiting: int = MOST_WAITING, seconds: float = ANSWER_SECONDS) -> None:
        self._most_waiting = most_waiting
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def answer(self, copy: Callable[[], T], work: Callable[[T], bytes]) -> bytes:
        """Return what `work` makes, on the thread, of what `copy` gave, on the loop.

        Raises:
            RefusedQuestionError: too many wait (429), or it takes too long (503).
        """
        if self._waiting >= self._most_waiting:
            text = f"{self._most_waiting} questions are being worked out or wait already"
            raise RefusedQuestionError(HTTPStatus.TOO_MANY_REQUESTS, text, _RETRY_SECONDS)
        self._waiting += 1
        try:
            await self._turn.acquire()
            try:
                copied = copy()
                made = asyncio.get_running_loop().run_in_executor(self._executor, work, copied)
            except BaseException:
                self._turn.release()
                raise
            made.add_done_callback(self._ended)
            del copied
            try:
                async with asyncio.timeout(self._seconds):
                    return await asyncio.shield(made)
            except TimeoutError:
                text = f"it takes longer than {self._seconds:g} s to work out"
                raise RefusedQuestionError(HTTPStatus.SERVICE_UNAVAILABLE, text) from None
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        """Begin no other answer; one under way ends with the process."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _ended(self, made: "asyncio.Future[bytes]") -> None:
        self._turn.release()
        if not made.cancelled():
            # Nobody may be left to be told.
            made.exception()
