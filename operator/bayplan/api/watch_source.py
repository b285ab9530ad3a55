"""Lists, page by page, and watches of one path of the API server."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec

from bayplan.api.client import USER_AGENT
from bayplan.api.credentials import Credentials
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.meta_objects import is_later_version
from bayplan.api.response import decode_status, parse_retry_after

# The largest object a server sends is some megabytes; a line without end is a broken or hostile peer.
MAX_LINE_BYTES = 64 * 1024 * 1024
READ_BUFFER_BYTES = 256 * 1024
CONNECT_TIMEOUT_SECONDS = 10.0
MAX_PAGE_BYTES = 8 * 1024 * 1024
"""What a page of more than one object may have; 500 pods have some 3 MiB, one of them can have that much."""

PAGE_SIZE: Final = 500
# Of the bytes that a page may have, so that objects a little larger than the last ones fit as well.
_AIM_BYTES: Final = MAX_PAGE_BYTES * 3 // 4
_SHRINKING: Final = 8


class AnswerError(Exception):
    """The server answered something other than the list or the watch; `status` is its HTTP or in-stream code."""

    def __init__(self, status: int, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.retry_after = retry_after


class BrokenStreamError(Exception):
    """The bytes are not the API's: a malformed line or page."""


class PageTooLargeError(Exception):
    """A page has more than MAX_PAGE_BYTES: its objects are to be asked for in smaller ones."""


class ListMeta(msgspec.Struct, rename="camel"):
    """Where a list stands."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """A page of a list; the objects are still JSON."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


_page_decoder = msgspec.json.Decoder(ListPage)


@dataclass(slots=True)
class LineSplitter:
    """Cuts a stream of chunks into complete lines; what follows the last newline waits for more."""

    _parts: list[bytes]
    _size: int = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines completed by `chunk`, without their newlines and without empty ones."""
        head, newline, rest = chunk.partition(b"\n")
        self._parts.append(head)
        self._size += len(head)
        if self._size > MAX_LINE_BYTES:
            raise BrokenStreamError(f"a line of more than {MAX_LINE_BYTES} bytes")
        if not newline:
            return []
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        tail = lines.pop()
        self._parts, self._size = [tail], len(tail)
        return [line for line in lines if line]


class WatchSource:
    """Fetches pages and watch lines of one path over one session that follows the credentials.

    Whoever lists or watches relies on it. A 401 gets a new token and one more try. Nothing else is retried here.

    Raises (all methods): AnswerError, BrokenStreamError, CredentialsError, aiohttp.ClientError, TimeoutError, OSError;
    `page` also PageTooLargeError.
    """

    def __init__(self, credentials: Credentials, path: str, *, list_timeout: float, inactivity: float) -> None:
        self._credentials = credentials
        self._path = path
        self._list_timeout = aiohttp.ClientTimeout(total=list_timeout, connect=CONNECT_TIMEOUT_SECONDS)
        self._watch_timeout = aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT_SECONDS, sock_read=inactivity)
        self._session: aiohttp.ClientSession | None = None
        self._generation = -1
        self._watched: aiohttp.ClientResponse | None = None

    async def page(self, query: Mapping[str, str], *, accept: str = "application/json") -> ListPage:
        """Return one page of the list; unless it is of one object, or has no `limit`, it is bounded in bytes."""
        response = await self._get(query, self._list_timeout, accept)
        parts: list[bytes] = []
        size = 0
        async with response:
            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > MAX_PAGE_BYTES and int(query.get("limit", 1)) > 1:
                    response.close()
                    raise PageTooLargeError
        body = b"".join(parts)
        del parts
        try:
            page = _page_decoder.decode(body)
        except DECODE_ERRORS as error:
            raise BrokenStreamError(f"the list is not readable: {error}") from error
        if not page.metadata.resource_version:
            raise BrokenStreamError("the list has no resourceVersion")
        return page

    async def watch(self, query: Mapping[str, str]) -> AsyncGenerator[list[bytes], None]:
        """Yield the complete lines of a watch as they come; first an empty batch once the stream is open."""
        response = self._watched = await self._get(query, self._watch_timeout)
        try:
            yield []
            splitter = LineSplitter([])
            while chunk := await response.content.readany():
                if lines := splitter.feed(chunk):
                    yield lines
        finally:
            self._watched = None
            response.close()

    def interrupt(self) -> None:
        """Break the watch that is open, if there is one, as if the network had."""
        if self._watched is not None:
            self._watched.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _get(
        self, query: Mapping[str, str], limits: aiohttp.ClientTimeout, accept: str = "application/json"
    ) -> aiohttp.ClientResponse:
        for attempt in range(2):
            token = await self._credentials.token()
            session = await self._current_session()
            response = await session.get(
                self._credentials.server + self._path,
                params=query,
                headers={"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token is not None else {}),
                proxy=self._credentials.proxy,
                timeout=limits,
                allow_redirects=False,
            )
            if response.status == 200:
                return response
            async with response:
                body = await response.content.read(READ_BUFFER_BYTES)
            if response.status == 401:
                self._credentials.invalidate(token)
                if attempt == 0:
                    continue
            break
        reason, message = decode_status(body)
        retry_after = parse_retry_after(response.headers.get("Retry-After"))
        raise AnswerError(response.status, f"{reason}: {message}", retry_after)

    async def _current_session(self) -> aiohttp.ClientSession:
        context = self._credentials.ssl_context()
        if self._session is None or self._generation != self._credentials.generation:
            await self.close()
            self._generation = self._credentials.generation
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context),
                # On a cluster's network compression costs more time than it saves.
                headers={"Accept-Encoding": "identity", "User-Agent": USER_AGENT},
                read_bufsize=READ_BUFFER_BYTES,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def list_pages(
    ask: Callable[[Mapping[str, str]], Awaitable[ListPage]],
    query: Mapping[str, str] | None = None,
    *,
    page_size: int = PAGE_SIZE,
    restarts: int = 0,
) -> AsyncGenerator[tuple[bool, ListPage], None]:
    """Yield the pages of a list that `ask`, a `WatchSource.page`, gives, each with whether it is the first.

    Whoever lists relies on it for its bound of memory: a page has at most `page_size` objects, fewer where they are
    large, and a page that turns out too large is given up and asked for in smaller ones. A first page makes void what
    came before: a list that outlives its version is begun anew `restarts` times, the last time in one piece, which
    has no bound.

    Raises: what `ask` raises, also 410 when no restart is left; BrokenStreamError where a continue token is repeated.
    """
    limit, token = page_size, ""
    while True:
        try:
            page = await ask(
                {**(query or {})} | ({"limit": str(limit)} if limit else {}) | ({"continue": token} if token else {})
            )
        except PageTooLargeError:
            limit = max(1, limit // _SHRINKING)
            continue
        except AnswerError as error:
            if error.status != HTTPStatus.GONE or not token or not restarts:
                raise
            restarts -= 1
            limit, token = page_size if restarts else 0, ""
            continue
        yield not token, page
        if not page.metadata.continue_:
            return
        if page.metadata.continue_ == token:
            raise BrokenStreamError("the list repeats its continue token")
        token = page.metadata.continue_
        items = page.items or ()
        size = sum(memoryview(raw).nbytes for raw in items)
        limit = min(page_size, 2 * limit, max(1, _AIM_BYTES * len(items) // size) if size else page_size)


class VersionHistory:
    """The latest resourceVersion that was seen of one kind.

    Versions of consistent lists never go back, unless etcd was restored from a backup: everything known since then is
    of a history that did not happen. Reflector and IntakeList rely on it.
    """

    def __init__(self) -> None:
        self._latest = ""

    def seen(self, version: str) -> None:
        """Take the version of a list or an event; "" says nothing."""
        self._latest = version or self._latest

    def went_back(self, version: str) -> bool:
        """Take the version of a consistent list, and return whether a later one was seen before.

        Versions that are no decimal numbers have no order, and never went back.
        """
        latest, self._latest = self._latest, version
        return latest.isdecimal() and version.isdecimal() and is_later_version(latest, version)

    def forget(self) -> None:
        """Know of no version: another history begins."""
        self._latest = ""
