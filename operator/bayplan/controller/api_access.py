"""How each part of the process reaches the API server: clients that are measured, and kopf's sessions."""

import asyncio
import ssl
from urllib.parse import urlsplit

import aiohttp

from bayplan.api.client import USER_AGENT, ApiClient
from bayplan.api.credentials import Credentials
from bayplan.scheduler.observer import SchedulerObserver


def measured_client(credentials: Credentials, qps: float, burst: int, observer: SchedulerObserver) -> ApiClient:
    """A client with a rate limit of its own that tells the observer of each request and each wait for the limit."""
    host = urlsplit(credentials.server).netloc

    def on_request(method: str, code: str, seconds: float) -> None:
        observer.rest_request(method, code, host, seconds)

    def on_throttle(method: str, seconds: float) -> None:
        observer.throttled(method, host, seconds)

    return ApiClient(credentials, qps=qps, burst=burst, on_request=on_request, on_throttle=on_throttle)


class KopfSessions:
    """Logs kopf in.

    kopf logs in again when a session was refused, so a second session means the token of the first is no good.
    """

    def __init__(self, credentials: Credentials) -> None:
        self.server = credentials.server
        self._credentials = credentials
        self._last_token: str | None = None

    async def open(self, home: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        """A session on the running loop, with a token that was not refused before; credentials live on `home`."""
        token, context = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._identity(), home))
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            # On a cluster's network compression costs more time than it saves.
            headers={"User-Agent": f"{USER_AGENT} kopf", "Accept-Encoding": "identity"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
            proxy=self._credentials.proxy,
        )

    async def _identity(self) -> tuple[str | None, ssl.SSLContext]:
        if self._last_token is not None:
            self._credentials.invalidate(self._last_token)
        self._last_token = await self._credentials.token()
        return self._last_token, self._credentials.ssl_context()
