"""Sends an API call again while its answer is one that may change."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bayplan.api.client import ApiClient, ApiResponse
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.scheduler.api_calls import ApiCall
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.pod_patches import PodPatch

_RETRY_DELAYS_SECONDS = (0.1, 0.5, 2.0)

MAY_PASS = frozenset({409, 500, 502, 503, 504})
"""Answers after which the same call may succeed; 409 only for patches, which name no version."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Makes calls for the dispatcher; `sleep` is how the time between tries passes."""

    sleep: Callable[[float], Awaitable[None]]

    async def answer(
        self, client: ApiClient, call: ApiCall, patch: PodPatch | None = None
    ) -> tuple[ApiResponse | None, str]:
        """Send a call, and again while the answer is one that may change; return the last answer and its problem.

        A `patch` that became obsolete is not sent again.
        """
        problem = ""
        answer: ApiResponse | None = None
        delays = _RETRY_DELAYS_SECONDS if patch is None or not patch.rests else ()
        for delay in (*delays, None):
            if patch is not None and patch.obsolete:
                break
            try:
                answer = await client.request(call.method, call.path, body=call.body, content_type=call.content_type)
            except (AmbiguousError, UnreachableError) as error:
                answer, problem = None, str(error)
            except asyncio.CancelledError:
                if is_being_cancelled():
                    raise
                answer, problem = None, "cancelled"
            else:
                if answer.status < 400:
                    break
                problem = f"status {answer.status}"
                if answer.status not in MAY_PASS or (answer.status == 409 and call.method != "PATCH"):
                    break
            if delay is not None:
                await self._pause(delay, patch)
        return answer, problem

    async def _pause(self, seconds: float, patch: PodPatch | None) -> None:
        """Wait between two tries, while nothing of the patch is on its way; not for one that is not tried again."""
        if patch is None:
            await self.sleep(seconds)
            return
        if patch.obsolete:
            return
        patch.pausing = True
        try:
            await self.sleep(seconds)
        finally:
            patch.pausing = False
