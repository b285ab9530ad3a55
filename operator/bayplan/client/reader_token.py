"""Asks the API server for a token that shows a scheduler who asks, and opens nothing else."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import path_segment
from bayplan.client.errors import ClientError, answer_to, unexpected

ACCOUNT: Final = "bayplan-reader"
"""The ServiceAccount that is shipped for it."""
LIFETIME_SECONDS: Final = 600
"""The shortest that the API server gives."""
_RENEWED_AFTER: Final = 0.8


class _Status(msgspec.Struct):
    token: str = ""


class _TokenRequest(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class ReaderToken:
    """Gives tokens of the ServiceAccount `bayplan-reader` that last ten minutes; whoever asks a scheduler relies on it.

    The scheduler's pod is shown no other credentials: what it could do with this token is to read what it tells anyway.
    A token is asked for when one is needed, and again when most of its time is over. Raises ClientError where there is
    none, with the right that is missing.
    """

    def __init__(self, api: ApiClient, namespace: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._namespace = namespace
        self._clock = clock
        self._token = ""
        self._until = 0.0

    async def __call__(self) -> str:
        """Return a token that still holds for a while."""
        if not self._token or self._clock() >= self._until:
            now = self._clock()
            self._token = await self._request()
            self._until = now + _RENEWED_AFTER * LIFETIME_SECONDS
        return self._token

    async def _request(self) -> str:
        account = f"{self._namespace}/{ACCOUNT}"
        path = f"/api/v1/namespaces/{path_segment(self._namespace)}/serviceaccounts/{ACCOUNT}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME_SECONDS},
        }
        answer = await answer_to(self._api, "POST", path, msgspec.json.encode(body))
        if answer.status == HTTPStatus.NOT_FOUND:
            raise ClientError(
                f"there is no ServiceAccount {account} to ask with: it comes with the manifests; "
                "or give a token of your own, by --token-file or --own-token"
            )
        if answer.status == HTTPStatus.FORBIDDEN:
            raise ClientError(
                f"you may not have a token of ServiceAccount {account}: the right to it is `create` of "
                "serviceaccounts/token; or give a token of your own, by --token-file or --own-token"
            )
        try:
            token = msgspec.json.decode(answer.body, type=_TokenRequest).status.token
        except DECODE_ERRORS:
            token = ""
        if not token:
            raise unexpected(f"no token of ServiceAccount {account}", answer)
        return token
