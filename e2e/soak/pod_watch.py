"""A list and a watch of the soak's pods, told to the ledger in the API server's order, for as long as it runs."""

import asyncio
import logging
import ssl
import time
from http import HTTPStatus

import aiohttp

from e2e.controlplane.client import path_of
from e2e.soak.ledger import Ledger
from e2e.soak.seen import SeenPod, bookmark_decoder, pod_decoder, pod_event_decoder, pod_list_decoder
from e2e.soak.workload import NAMESPACE

logger = logging.getLogger(__name__)

_PAGE = "500"
_WATCH_SECONDS = 3600
_PAUSE_SECONDS = 0.2
_BUFFER_BYTES = 1 << 20


class _ExpiredError(Exception):
    """The API server does not know any more what happened since."""


class PodWatch:
    """The witness: a client of its own, which shares nothing with the scheduler under test.

    Where the API server has forgotten what happened since (it does when it restarts), a list closes the gap; `gaps`
    counts them. `version` is the last one seen.
    """

    def __init__(self, url: str, tls: ssl.SSLContext, ledger: Ledger) -> None:
        self.gaps = 0
        self._path = f"{url}{path_of('pods', namespace=NAMESPACE)}"
        self._tls = tls
        self._ledger = ledger
        self._version = ""

    async def run(self) -> None:
        """Follows the pods until cancelled, whatever happens to the API server."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=None)
        connector = aiohttp.TCPConnector(ssl=self._tls)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=_BUFFER_BYTES) as session:
            while True:
                try:
                    if not self._version:
                        await self._list(session)
                    await self._watch(session)
                except _ExpiredError:
                    self._version = ""
                    self.gaps += 1
                except (aiohttp.ClientError, OSError) as error:
                    logger.debug("pod watch broke off error=%r", error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _list(self, session: aiohttp.ClientSession) -> None:
        found: list[SeenPod] = []
        query = {"limit": _PAGE}
        while True:
            async with session.get(self._path, params=query) as response:
                _check(response.status)
                page = pod_list_decoder.decode(await response.read())
            found += page.items or []
            if not page.metadata.continue_token:
                break
            query["continue"] = page.metadata.continue_token
        self._ledger.replace(found, time.monotonic())
        self._version = page.metadata.resource_version

    async def _watch(self, session: aiohttp.ClientSession) -> None:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        async with session.get(self._path, params=query) as response:
            _check(response.status)
            parts: list[bytes] = []
            async for data in response.content.iter_any():
                *lines, rest = data.split(b"\n")
                for line in lines:
                    self._take(b"".join([*parts, line]))
                    parts.clear()
                if rest:
                    parts.append(rest)

    def _take(self, line: bytes) -> None:
        event = pod_event_decoder.decode(line)
        if event.type == "ERROR":
            raise _ExpiredError
        if event.type == "BOOKMARK":
            self._version = bookmark_decoder.decode(event.object).metadata.resource_version
            return
        pod = pod_decoder.decode(event.object)
        self._version = pod.metadata.resource_version
        self._ledger.see(event.type, pod, time.monotonic())


def _check(status: int) -> None:
    if status == HTTPStatus.GONE:
        raise _ExpiredError
    if status != HTTPStatus.OK:
        raise OSError(f"answered {status}")
