"""Sends an API call, and again while its answer is one that may change, each time in its turn."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.turns import Turn
from bayplan.shown_text import one_line

logger = logging.getLogger(__name__)

DELAYS_SECONDS: Final = (0.1, 0.5, 2.0)
"""How long a call waits before each further try."""

_LONGEST_PROBLEM: Final = 300
"""So many characters of what the API server says are in the log: a webhook's words have no bound."""


async def answer_to(
    client: ApiClient, call: ApiCall, turn: Turn, sleep: Callable[[float], Awaitable[None]]
) -> tuple[ApiResponse | None, str]:
    """Send a call, and again while its answer is one that may change; return the last answer and its problem.

    What admission refuses is not sent again. `sleep` is how the time between tries passes, in which nothing is held.
    """
    answer, problem = None, ""
    for delay in (0.0, *DELAYS_SECONDS):
        if delay:
            await sleep(delay)
        async with turn:
            answer, problem = await send_once(client, call, turn)
        if answer is not None and (not may_pass(call, answer) or answer.is_refused_by_admission):
            break
    return answer, problem


async def send_once(client: ApiClient, call: ApiCall, turn: Turn) -> tuple[ApiResponse | None, str]:
    """Send a call once; the answer and what is wrong with it."""
    try:
        answer = await client.request(
            call.method,
            call.path,
            body=call.body,
            content_type=call.content_type,
            accept=call.accept,
            on_send=turn.sent,
        )
    except (AmbiguousError, UnreachableError) as error:
        return None, str(error)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return None, "cancelled"
    turn.answered(answer)
    return answer, "" if answer.status < 400 else _refusal(answer)


def _refusal(answer: ApiResponse) -> str:
    """Say in a line what an answer is that is no success."""
    return one_line(": ".join(filter(None, (f"status {answer.status}", answer.problem))), _LONGEST_PROBLEM)


def may_pass(call: ApiCall, answer: ApiResponse) -> bool:
    """Whether the same call may succeed later; after a 409 only a patch that names no version."""
    if answer.status == 409:
        return call.method == "PATCH" and not call.versioned
    return answer.status in {500, 502, 503, 504}


def tell_given_up(call: ApiCall, answer: ApiResponse | None, problem: str) -> None:
    """Say in the log that a call is not made any more; `answer` and `problem` are those of its last try."""
    # 404 and 422 are what a pod deleted, or recreated under its name, answers: nobody misses that write.
    is_missed = answer is None or answer.status not in {404, 409, 422}
    level = logging.WARNING if is_missed else logging.DEBUG
    text = "API call given up method=%s path=%s about=%r problem=%r"
    logger.log(level, text, call.method, call.path, call.about, problem)
