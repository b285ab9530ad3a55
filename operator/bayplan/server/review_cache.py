"""Keeps what the API server said of a token or a right for some seconds, in bounded memory."""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from bayplan.cache.recently_used import RecentlyUsed

V = TypeVar("V")

KEEP_BYTES = 1024 * 1024
_ENTRY_BYTES = 512
"""What an entry takes besides its value: key, times and their places in the tables."""


class _Kept(NamedTuple, Generic[V]):
    value: V
    until: float
    size: int


class ReviewCache(Generic[V]):
    """Answers from memory while an answer is young, and asks once for all who want the same at the same time.

    Authenticator and Authorizer rely on it. `seconds_of` says how long an answer holds, `size_of` its bytes; a failure
    is kept for nobody. Keys are hashed with a key of this process: no token stays in memory. At most `KEEP_BYTES`.
    `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        seconds_of: Callable[[V], float],
        size_of: Callable[[V], int],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds_of = seconds_of
        self._size_of = size_of
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._kept: RecentlyUsed[bytes, _Kept[V]] = RecentlyUsed(KEEP_BYTES, lambda _, kept: kept.size)
        self._asking: dict[bytes, asyncio.Task[V]] = {}

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._kept.size

    async def get(self, key: bytes, ask: Callable[[], Awaitable[V]]) -> V:
        """Return what is known under `key`, or what `ask` returns; raises what it raises."""
        hashed = hashlib.blake2b(key, digest_size=32, key=self._secret).digest()
        kept = self._kept.get(hashed)
        if kept is not None and self._clock() < kept.until:
            return kept.value
        task = self._asking.get(hashed)
        if task is None:
            task = self._asking[hashed] = asyncio.create_task(self._ask(hashed, ask))
        # Whoever asked first may hang up; the others still wait for it.
        return await asyncio.shield(task)

    async def _ask(self, hashed: bytes, ask: Callable[[], Awaitable[V]]) -> V:
        try:
            value = await ask()
        finally:
            del self._asking[hashed]
        size = _ENTRY_BYTES + self._size_of(value)
        self._kept.put(hashed, _Kept(value, self._clock() + self._seconds_of(value), size))
        return value
