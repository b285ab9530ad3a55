"""What the API server says of who asks, in a TokenReview, and of what it may, in a SubjectAccessReview."""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, UnreachableError
from bayplan.api.response import ApiResponse, decode_status
from bayplan.cache.recently_used import RecentlyUsed

logger = logging.getLogger(__name__)

REVIEW_SECONDS = 5.0
"""How long one review may take, retries included; the kubelet and Prometheus give up after ten at the latest."""
_TOLD_EVERY_SECONDS = 60.0
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ReviewError(Exception):
    """The API server did not say; whoever asked gets nothing."""


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who somebody is to the API server, with its names of the fields."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: User | None = None
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct):
    """A TokenReview or a SubjectAccessReview."""

    status: _Status


_decoder = msgspec.json.Decoder(_Review)


class Reviews:
    """Asks the API server who a token is and what a user may do; answers within `REVIEW_SECONDS`, or ReviewError.

    Security relies on it. Its clients pass no gate: a standby is asked for its metrics as well. A
    review changes nothing, though it is posted. Failures are logged once a minute, and never with a token. `clock` is
    monotonic, in seconds.
    """

    def __init__(self, tokens: ApiClient, accesses: ApiClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._token_client = tokens
        self._access_client = accesses
        self._clock = clock
        self._told_at = -_TOLD_EVERY_SECONDS

    async def user_of(self, token: str) -> User | None:
        """Return whose token it is, None for nobody's."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = await self._post(self._token_client, _TOKEN_REVIEWS, body)
        return status.user if status.authenticated else None

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether `user` may do `verb`, such as `get`, at `path`, which belongs to no resource."""
        spec = {**msgspec.to_builtins(user), "nonResourceAttributes": {"path": path, "verb": verb}}
        spec["user"] = spec.pop("username", "")
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = await self._post(self._access_client, _ACCESS_REVIEWS, body)
        return status.allowed and not status.denied

    async def close(self) -> None:
        """Close the connections."""
        await self._token_client.close()
        await self._access_client.close()

    async def _post(self, client: ApiClient, path: str, body: object) -> _Status:
        try:
            return _decoder.decode((await self._answer(client, path, body)).body).status
        except (AmbiguousError, UnreachableError, TimeoutError) as error:
            reason = str(error) or f"POST {path}: no answer within {REVIEW_SECONDS:.0f} s"
        except ReviewError as error:
            reason = str(error)
        except (*DECODE_ERRORS, UnicodeEncodeError):
            reason = f"POST {path}: the answer cannot be read"
        if self._clock() - self._told_at >= _TOLD_EVERY_SECONDS:
            self._told_at = self._clock()
            logger.warning("clients cannot be authenticated or authorized, and get nothing reason=%s", reason)
        raise ReviewError(reason)

    @staticmethod
    async def _answer(client: ApiClient, path: str, body: object) -> ApiResponse:
        answer: ApiResponse | None = None
        encoded = msgspec.json.encode(body)
        async with asyncio.timeout(REVIEW_SECONDS):
            # It changes nothing, so it can be asked again where the answer was lost; once, as a connection may be dead.
            with suppress(AmbiguousError):
                answer = await client.request("POST", path, body=encoded, timeout_seconds=REVIEW_SECONDS)
            if answer is None:
                answer = await client.request("POST", path, body=encoded, timeout_seconds=REVIEW_SECONDS)
        if answer.status not in {200, 201}:
            raise ReviewError(f"POST {path}: {answer.status} {decode_status(answer.body)[1]}")
        return answer


V = TypeVar("V")

KEEP_BYTES = 1024 * 1024
_ENTRY_BYTES = 512
"""What an entry takes besides its value: key, times and their places in the tables."""


class _Kept(NamedTuple, Generic[V]):
    value: V
    until: float
    size: int


@dataclass(eq=False)
class ReviewCache(Generic[V]):
    """Answers from memory while an answer is young, and asks once for all who want the same at the same time.

    Security relies on it. `seconds_of` says how long an answer holds, `size_of` its bytes; a failure
    is kept for nobody. Keys are hashed with a key of this process: no token stays in memory. At most `KEEP_BYTES`.
    `clock` is monotonic, in seconds.
    """

    seconds_of: Callable[[V], float]
    size_of: Callable[[V], int]
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), init=False)
    _kept: RecentlyUsed[bytes, _Kept[V]] = field(
        default_factory=lambda: RecentlyUsed(KEEP_BYTES, lambda _, kept: kept.size), init=False
    )
    _asking: dict[bytes, asyncio.Task[V]] = field(default_factory=dict, init=False)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._kept.size

    async def get(self, key: bytes, ask: Callable[[], Awaitable[V]]) -> V:
        """Return what is known under `key`, or what `ask` returns; raises what it raises."""
        hashed = hashlib.blake2b(key, digest_size=32, key=self._secret).digest()
        kept = self._kept.get(hashed)
        if kept is not None and self.clock() < kept.until:
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
        size = _ENTRY_BYTES + self.size_of(value)
        self._kept.put(hashed, _Kept(value, self.clock() + self.seconds_of(value), size))
        return value
