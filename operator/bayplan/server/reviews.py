"""What the API server says of who asks, in a TokenReview, and of what it may, in a SubjectAccessReview."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from bayplan.api.client import ApiClient, ApiResponse, decode_status
from bayplan.api.decoding import DECODE_ERRORS
from bayplan.api.errors import AmbiguousError, UnreachableError

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


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User | None = None


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


_tokens = msgspec.json.Decoder(_TokenReview)
_accesses = msgspec.json.Decoder(_AccessReview)


class Reviews:
    """Asks the API server who a token is and what a user may do; answers within `REVIEW_SECONDS`, or ReviewError.

    Authenticator and Authorizer rely on it. Its clients pass no gate: a standby is asked for its metrics as well. A
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
        status = (await self._post(self._token_client, _TOKEN_REVIEWS, body, _tokens)).status
        return status.user if status.authenticated else None

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether `user` may do `verb`, such as `get`, at `path`, which belongs to no resource."""
        spec = {**msgspec.to_builtins(user), "nonResourceAttributes": {"path": path, "verb": verb}}
        spec["user"] = spec.pop("username", "")
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await self._post(self._access_client, _ACCESS_REVIEWS, body, _accesses)).status
        return status.allowed and not status.denied

    async def close(self) -> None:
        """Close the connections."""
        await self._token_client.close()
        await self._access_client.close()

    async def _post(self, client: ApiClient, path: str, body: object, decoder: "msgspec.json.Decoder[Any]") -> Any:  # noqa: ANN401  what the decoder gives
        try:
            return decoder.decode((await self._answer(client, path, body)).body)
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
