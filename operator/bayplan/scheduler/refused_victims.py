"""Finds out which victims the API server refuses to end, before any other victim ends for nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.scheduler.api_calls import delete_call, eviction_call

SYSTEM_NAMESPACE: Final = "kube-system"
SYSTEM_PRIORITY: Final = 2_000_000_000
"""Pods of this namespace, and of this priority and more, are those that the cluster itself needs.

The shipped policy `bayplan-victims` protects them (upstream: apis/scheduling SystemCriticalPriority)."""

REMEMBERED_BYTES: Final = 256 * 2**10
"""What the UIDs of refused victims take at most: some 1,300 of them."""

_AT_ONCE: Final = 8
_UID_BYTES: Final = 160
_GONE = frozenset({404, 409})
"""What a pod that is deleted, or recreated under its name, answers to calls with its UID."""
_REFUSED = frozenset({403, 422})
"""What admission answers when it refuses: Forbidden, and what a policy answers that names no reason."""
_NO_DRY_RUN = 400
"""What a webhook answers that cannot tell in advance; the call itself will."""

_PRIORITY = attrgetter("priority")

Item = TypeVar("Item")


class Unended(NamedTuple):
    """Why a victim could not be ended: for the log, and for the pod that waits, whose owner may not know the victim."""

    text: str
    told: str


class _Cause(msgspec.Struct):
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Refusal(msgspec.Struct):
    message: str = ""
    details: _Details | None = None


_refusal_decoder = msgspec.json.Decoder(_Refusal)


@dataclass(eq=False)
class RefusedVictims:
    """Asks for the end of victims by dry run where a refusal is likely; preemption relies on it to end none in vain.

    Likely are pods that the cluster itself needs, and those whose end was refused before: these are remembered by UID,
    within `REMEMBERED_BYTES`. All other victims cost no request. `request` makes a call and gives its last answer.
    """

    request: Callable[[ApiCall], Awaitable[ApiResponse | None]]
    _uids: RecentlyUsed[str, bool] = field(
        default_factory=lambda: RecentlyUsed(REMEMBERED_BYTES, lambda uid, _: len(uid) + _UID_BYTES), init=False
    )

    @property
    def size(self) -> int:
        """What is remembered, in bytes."""
        return self._uids.size

    def is_likely(self, victim: PodInfo) -> bool:
        """Whether the API server may well refuse to end the pod."""
        return (
            victim.namespace == SYSTEM_NAMESPACE
            or victim.priority >= SYSTEM_PRIORITY
            or self._uids.get(victim.uid) is not None
        )

    def first(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return those that the API server may refuse to end, and all victims in the order in which they are to end.

        Those that may be refused come first, and among equals those of the highest priority.
        """
        in_order = sorted(victims, key=_PRIORITY, reverse=True)
        likely = [victim for victim in in_order if self.is_likely(victim)]
        return likely, in_order if not likely else [*likely, *(each for each in in_order if each not in likely)]

    async def ask(self, victims: Sequence[PodInfo], *, evicts: bool) -> Unended | None:
        """Have the API server say whether it would end these victims; the first refusal."""
        return await several_at_once(victims, lambda victim: self._ask(victim, evicts=evicts))

    async def _ask(self, victim: PodInfo, *, evicts: bool) -> Unended | None:
        call = eviction_call(victim, dry_run=True) if evicts else delete_call(victim, dry_run=True)
        answer = await self.request(call)
        if answer is not None and (answer.status == _NO_DRY_RUN or is_gone(call, answer)):
            return None
        return self.problem(victim, call, answer)

    def problem(self, victim: PodInfo, call: ApiCall, answer: ApiResponse | None) -> Unended | None:
        """Return what is wrong with the answer to a call that is to end a victim; a refusal is remembered."""
        if answer is None:
            return Unended(f"{call.method} of {call.about!r} had no answer", "the end of a victim had no answer")
        if answer.status < 400:
            return None
        said = ""
        if answer.status in _REFUSED:
            self._uids.put(victim.uid, True)
            said = f": {_read(answer).message!r}"
        return Unended(
            f"{call.method} of {call.about!r} answered {answer.status}{said}",
            f"the API server answered {answer.status} to the end of a victim",
        )


def is_gone(call: ApiCall, answer: ApiResponse) -> bool:
    """Whether a call with a pod's UID was answered that no such pod is there any more.

    A patch with another UID than the pod's is answered 422 about that field. Any other 422 is a refusal.
    """
    if answer.status in _GONE:
        return True
    if answer.status != 422 or call.method != "PATCH":
        return False
    details = _read(answer).details
    return details is not None and any(cause.field == "metadata.uid" for cause in details.causes)


async def several_at_once(
    items: Sequence[Item], act: Callable[[Item], Awaitable[Unended | None]], *, at_most: int = _AT_ONCE
) -> Unended | None:
    """Do something with each item in their order, `at_most` at once, until there is a problem; the first problem."""
    problems: list[Unended] = []
    left = iter(items)

    async def worker() -> None:
        for item in left:
            if problems:
                return
            if problem := await act(item):
                problems.append(problem)

    await asyncio.gather(*(worker() for _ in range(min(at_most, len(items)))))
    return problems[0] if problems else None


def _read(answer: ApiResponse) -> _Refusal:
    try:
        return _refusal_decoder.decode(answer.body)
    except DECODE_ERRORS:
        return _Refusal()
