"""How each part of the process reaches the API server: clients that are measured, and kopf's sessions."""

from urllib.parse import urlsplit

import aiohttp

from bayplan import __version__
from bayplan.api.client import ApiClient
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
    `middlewares` see each of its requests.
    """

    def __init__(self, credentials: Credentials, *middlewares: aiohttp.ClientMiddlewareType) -> None:
        self._credentials = credentials
        self._middlewares = middlewares
        self._last_token: str | None = None

    async def open(self) -> aiohttp.ClientSession:
        """A session with a token that was not refused before."""
        token = await self._token()
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._credentials.ssl_context()),
            # On a cluster's network compression costs more time than it saves.
            headers={"User-Agent": f"bayplan/{__version__} kopf", "Accept-Encoding": "identity"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
            proxy=self._credentials.proxy,
            middlewares=self._middlewares,
        )

    async def _token(self) -> str | None:
        if self._last_token is not None:
            self._credentials.invalidate(self._last_token)
        self._last_token = await self._credentials.token()
        return self._last_token
