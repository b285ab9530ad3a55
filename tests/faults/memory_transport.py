"""A client and a watch source that reach the fake API server in memory, through whatever goes wrong on the way."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import msgspec
from tests.faults.api_server import Change
from tests.faults.faults import status_body
from tests.faults.memory_api import BOOKMARK_SECONDS, MemoryApi, verb_of

from bayplan.api.backoff import TokenBucket
from bayplan.api.client import ANSWER_SECONDS, MAX_THROTTLED_TRIES
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.response import ApiResponse
from bayplan.api.watch_source import AnswerError, BrokenStreamError, ListPage

_page_decoder = msgspec.json.Decoder(ListPage)
_RETRY_AFTER_SECONDS = 1.0


class MemoryClient:
    """Stands for `ApiClient`: the same answers, errors, rate limit and retries."""

    def __init__(self, api: MemoryApi, *, qps: float, burst: int) -> None:
        self._api = api
        self._bucket = TokenBucket(qps=qps, burst=burst, clock=api.loop.time)

    def twin(self) -> "MemoryClient":
        """Itself, as there are no connections."""
        return self

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "",
        accept: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        on_send: Callable[[], None] | None = None,
    ) -> ApiResponse:
        await self._bucket.wait()
        for throttled in range(MAX_THROTTLED_TRIES):
            if on_send is not None:
                on_send()
            try:
                async with asyncio.timeout(timeout_seconds):
                    answer = await self._try(method, path, body)
            except TimeoutError:
                raise AmbiguousError(f"{method} {path}: no answer in time") from None
            if answer.status != 429 or throttled == MAX_THROTTLED_TRIES - 1:
                break
            await asyncio.sleep(answer.retry_after or _RETRY_AFTER_SECONDS)
        return answer

    async def close(self) -> None:
        """Nothing is open."""

    async def _try(self, method: str, path: str, body: bytes | None) -> ApiResponse:
        api, way = self._api, self._api.rng.uniform(0.001, 0.01)
        if verb_of(method, path) == "BIND":
            api.posted(body)
        if api.is_down:
            raise UnreachableError(f"{method} {path}: connection refused")
        plain, _, query = path.partition("?")
        fault = api.take(verb_of(method, plain), plain)
        name, seconds = (fault.fault, fault.seconds) if fault else ("", 0.0)
        if name == "refused":
            raise UnreachableError(f"{method} {path}: connection refused")
        await asyncio.sleep(way)
        if name == "lost-request" or api.is_down:
            raise AmbiguousError(f"{method} {path}: reset")
        if name == "late":
            api.carry_out_late(seconds, lambda: api.answer(method, plain, body))
            return _refusal(504)
        if name == "hangs":
            await asyncio.sleep(3600)
        if name.isdigit():
            return _refusal(int(name))
        if verb_of(method, plain) == "LIST":
            response = api.page(plain, _query(query))
        else:
            response = api.answer(method, plain, body)
        await asyncio.sleep(way + (seconds if name == "slow" else 0.0))
        if name == "lost-answer" or api.is_down:
            raise AmbiguousError(f"{method} {path}: reset")
        return ApiResponse(response.status, bytes(response.body or b""))


class MemorySource:
    """Stands for `WatchSource`."""

    def __init__(self, api: MemoryApi, path: str, *, list_timeout: float = 60.0, inactivity: float = 75.0) -> None:
        self._api = api
        self._path = path
        self._list_timeout = list_timeout
        self._inactivity = inactivity
        self._lag = api.rng.uniform(0.001, 0.03)
        self._interruptions = 0

    def interrupt(self) -> None:
        self._interruptions += 1

    async def close(self) -> None:
        """Nothing is open."""

    async def page(self, query: Mapping[str, str], *, accept: str = "") -> ListPage:
        name = await self._send("LIST")
        response = self._api.page(self._path, dict(query))
        await asyncio.sleep(self._lag)
        if name == "truncated":
            raise BrokenStreamError("the list is not readable: truncated")
        if name == "lost-answer":
            raise aiohttp.ClientPayloadError
        if response.status != 200:
            raise AnswerError(response.status, "Expired")
        page = _page_decoder.decode(bytes(response.body or b""))
        if not page.metadata.continue_:
            self._deliver(query, int(page.metadata.resource_version))
        return page

    async def watch(self, query: Mapping[str, str]) -> AsyncGenerator[list[bytes], None]:
        name = await self._send("WATCH")
        yield []
        if name == "ends":
            return
        if name.startswith("error-"):
            yield [_error(int(name.removeprefix("error-")))]
            return
        async for line in self._lines(query, name):
            yield [line, line] if name == "duplicates" else [line]

    async def _send(self, verb: str) -> str:
        """Reach the server; the fault that is left for the answer."""
        api = self._api
        if api.is_down:
            raise aiohttp.ClientConnectionError("refused")
        fault = api.take(verb, self._path)
        name = fault.fault if fault else ""
        await asyncio.sleep(self._lag + (fault.seconds if fault and name == "slow" else 0.0))
        if name == "hangs":
            await asyncio.sleep(self._list_timeout)
            raise TimeoutError
        if name == "refused" or api.is_down:
            raise aiohttp.ClientConnectionError("refused")
        if name.isdigit():
            raise AnswerError(int(name), "Injected", _RETRY_AFTER_SECONDS if name == "429" else None)
        return name

    async def _lines(self, query: Mapping[str, str], name: str) -> AsyncGenerator[bytes, None]:
        """The lines of an open watch, each a little after it happened, as far as the fault lets them."""
        api, loop = self._api, self._api.loop
        version, selector = int(query["resourceVersion"]), query.get("fieldSelector", "")
        if version < api.compacted:
            yield _error(410)
            return
        position, endings, interruptions = _position(api.history, version), api.endings, self._interruptions
        ends = loop.time() + float(query["timeoutSeconds"])
        heard = marked = loop.time()
        while endings == api.endings and loop.time() < ends and not api.is_down:
            if interruptions != self._interruptions:
                raise aiohttp.ClientPayloadError
            if position == len(api.history):
                if api.sends_bookmarks and loop.time() >= marked + BOOKMARK_SECONDS:
                    heard = marked = loop.time()
                    yield _bookmark(api.version)
                await self._more(heard, marked, ends)
            elif loop.time() < (at := api.times[position] + self._lag):
                await asyncio.sleep(at - loop.time())  # the stream may end meanwhile
            else:
                change = api.history[position]
                position += 1
                if line := api.line(change, selector) if self._concerns(change) else b"":
                    if name in {"cut", "reset", "silence"}:
                        await self._break(name)
                        return
                    heard = loop.time()
                    yield line
                self._deliver(query, change.version)
        if api.is_down:
            raise aiohttp.ClientPayloadError

    async def _more(self, heard: float, marked: float, ends: float) -> None:
        """Wait until there may be something to send.

        Raises:
            TimeoutError: nothing was heard for too long.
        """
        loop = self._api.loop
        if loop.time() >= heard + self._inactivity:
            raise TimeoutError
        until = min(ends, heard + self._inactivity)
        if self._api.sends_bookmarks:
            until = min(until, marked + BOOKMARK_SECONDS)
        await self._api.changed(until - loop.time())

    async def _break(self, name: str) -> None:
        """End the stream instead of a line; nobody reads the half of one that "cut" sends."""
        if name == "reset":
            raise aiohttp.ClientPayloadError
        if name == "silence":
            await asyncio.sleep(self._inactivity)
            raise TimeoutError

    def _concerns(self, change: Change) -> bool:
        return change.collection == self._path and change.type != "BOOKMARK"

    def _deliver(self, query: Mapping[str, str], version: int) -> None:
        name = f"{self._path}?{query.get('fieldSelector', '')}"
        self._api.delivered[name].append((self._api.loop.time(), version))


def source_for(api: MemoryApi) -> Callable[..., MemorySource]:
    """What `Reflector` opens its sources with."""

    def open_source(_: Any, path: str, **limits: float) -> MemorySource:
        return MemorySource(api, path, **limits)

    return open_source


def client_for(api: MemoryApi) -> Callable[..., MemoryClient]:
    """What `build` makes its clients with."""

    def make_client(_: Any, *, qps: float, burst: int, **__: Any) -> MemoryClient:
        return MemoryClient(api, qps=qps, burst=burst)

    return make_client


def _refusal(code: int) -> ApiResponse:
    return ApiResponse(code, msgspec.json.encode(status_body(code, "Injected", "injected")), _RETRY_AFTER_SECONDS)


def _error(code: int) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": status_body(code, "Injected", "injected")})


def _bookmark(version: int) -> bytes:
    return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}})


def _query(text: str) -> dict[str, str]:
    return dict(parse_qsl(text))


def _position(history: list[Change], version: int) -> int:
    """The first change after `version`."""
    low, high = 0, len(history)
    while low < high:
        middle = (low + high) // 2
        if history[middle].version <= version:
            low = middle + 1
        else:
            high = middle
    return low
