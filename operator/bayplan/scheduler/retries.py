"""Sends an API call again while its answer is one that may change, each time in its turn."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.response import ApiResponse
from bayplan.scheduler.api_calls import ApiCall
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.pod_patches import PodPatch
from bayplan.scheduler.turns import Turn

_DELAYS_SECONDS = (0.1, 0.5, 2.0)

MAY_PASS = frozenset({409, 500, 502, 503, 504})
"""Answers after which the same call may succeed; 409 only for patches, which name no version."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Makes calls for the dispatcher; `sleep` is how the time between tries passes, in which nothing is held."""

    sleep: Callable[[float], Awaitable[None]]

    async def answer(
        self, client: ApiClient, call: ApiCall, turn: Turn, patch: PodPatch | None = None
    ) -> tuple[ApiResponse | None, str]:
        """Send a call, and again while the answer is one that may change; return the last answer and its problem.

        A `patch` that became obsolete is not sent again. What admission refuses is not, but for patches: theirs is
        tried as often as upstream's (pkg/scheduler/util PatchPodStatus).
        """
        problem = ""
        answer: ApiResponse | None = None
        for delay in (0.0, *(_DELAYS_SECONDS if patch is None or not patch.rests else ())):
            if delay:
                if patch is not None:
                    if patch.obsolete:
                        break
                    patch.pausing = True  # Nothing of it is on its way.
                await self.sleep(delay)
            async with turn:
                if patch is not None:
                    patch.pausing = False
                    if patch.obsolete:
                        break
                answer, problem = await _try(client, call, turn)
            if answer is None:
                continue
            if answer.status not in MAY_PASS or (answer.status == 409 and (call.method != "PATCH" or call.versioned)):
                break
            if patch is None and answer.is_refused_by_admission:
                break
        return answer, problem


async def _try(client: ApiClient, call: ApiCall, turn: Turn) -> tuple[ApiResponse | None, str]:
    """Send a call once; the answer and what is wrong with it."""
    try:
        answer = await client.request(
            call.method, call.path, body=call.body, content_type=call.content_type, on_send=turn.sent
        )
    except (AmbiguousError, UnreachableError) as error:
        return None, str(error)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return None, "cancelled"
    return answer, "" if answer.status < 400 else f"status {answer.status}"
