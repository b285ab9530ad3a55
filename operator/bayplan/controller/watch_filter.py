"""Leaves out of kopf's pod watch what would cost it much and is no news to the scheduler."""

from collections.abc import AsyncIterator, Callable
from typing import cast

import aiohttp
import msgspec

from bayplan.api.watch_event import UNREADABLE, Identity
from bayplan.controller.stream_content import StreamContent

_DELETED = b'{"type":"DELETED"'
_MODIFIED = b'{"type":"MODIFIED"'


class _Object(msgspec.Struct):
    metadata: Identity


class _Event(msgspec.Struct):
    object: _Object


_decoder = msgspec.json.Decoder(_Event)


class WatchFilter:
    """An aiohttp client middleware that takes out of a watch what the scheduler brought about itself.

    A pod that was bound leaves the selection of unscheduled pods, which is half of all that the watch says and no news:
    the scheduler bound it, or saw it among the pods with nodes. The API server tells that as `DELETED` with the pod as
    it was before, so nothing in it says why the pod left: `departed` is told its UID, and says whether that was all
    there is to do. A pod that could not be placed is `MODIFIED` by the condition that says so; `knows` says whether a
    version, by UID and resource version, was taken from the API server's answer already. Everything else passes as it
    is, in its order, bad lines included.
    """

    def __init__(self, *, departed: Callable[[str], bool], knows: Callable[[str, str], bool]) -> None:
        self._departed = departed
        self._knows = knows

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send the request; the content of a watch that was accepted comes filtered."""
        response = await handler(request)
        if response.status == 200 and request.url.query.get("watch") == "true":
            response.content = cast("aiohttp.StreamReader", _Filtered(response.content, self._is_left))
        return response

    def _is_left(self, line: bytes) -> bool:
        is_departure = line.startswith(_DELETED)
        if not is_departure and not line.startswith(_MODIFIED):
            return True
        try:
            identity = _decoder.decode(line).object.metadata
        except UNREADABLE:
            return True
        if is_departure:
            return not self._departed(identity.uid)
        return not self._knows(identity.uid, identity.resource_version)


class _Filtered(StreamContent):
    """A stream's content by whole lines, of which some are left out."""

    def __init__(self, content: aiohttp.StreamReader, wanted: Callable[[bytes], bool]) -> None:
        super().__init__(content)
        self._wanted = wanted

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Lines that are wanted, each with its end, as many as came at once."""
        parts: list[bytes] = []
        async for chunk in self._content.iter_chunked(size):
            *lines, rest = chunk.split(b"\n")
            if lines:
                # Only here, so that a line of many chunks is put together once.
                lines[0] = b"".join((*parts, lines[0]))
                parts.clear()
                if kept := [line for line in lines if self._wanted(line)]:
                    yield b"\n".join((*kept, b""))
            parts.append(rest)
        if last := b"".join(parts):
            yield last
