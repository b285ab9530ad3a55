"""What can go wrong on the way to an API server, one class each; see FakeApiServer.inject."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

Act = Callable[[], Awaitable[web.StreamResponse]]


def status_body(code: int, reason: str = "", message: str = "") -> dict:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure" if code >= 400 else "Success",
        "reason": reason,
        "message": message,
        "code": code,
    }


def status_response(code: int, reason: str = "", message: str = "", retry_after: int | None = None) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return web.json_response(status_body(code, reason, message), status=code, headers=headers)


def reset(request: web.Request) -> None:
    """Close the connection with an RST."""
    transport = request.transport
    if transport is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


class RequestFault:
    """A fault of one request; `act` does what the server would have done."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def serve(self, request: web.Request, act: Act) -> web.StreamResponse:
        raise NotImplementedError


@dataclass
class Refuse(RequestFault):
    """Answer with an error instead of acting."""

    code: int
    reason: str = "Refused"
    retry_after: int | None = None
    message: str = "injected"

    async def serve(self, request, act):
        return status_response(self.code, self.reason, self.message, self.retry_after)


@dataclass
class Delay(RequestFault):
    """Act and answer, later."""

    seconds: float

    async def serve(self, request, act):
        await asyncio.sleep(self.seconds)
        return await act()


@dataclass
class Redirect(RequestFault):
    """Send the client elsewhere."""

    location: str

    async def serve(self, request, act):
        return web.Response(status=307, headers={"Location": self.location})


class BlackHole(RequestFault):
    """Never answer, never act."""

    async def serve(self, request, act):
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class Reset(RequestFault):
    """Cut the connection before acting."""

    async def serve(self, request, act):
        reset(request)
        return web.Response()


class DropReply(RequestFault):
    """Act, then cut the connection instead of answering."""

    async def serve(self, request, act):
        await act()
        reset(request)
        return web.Response()


class HalfReply(RequestFault):
    """Act, then send half of an answer and cut the connection."""

    async def serve(self, request, act):
        await act()
        response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"kind":')
        reset(request)
        return response


@dataclass
class Garbage(RequestFault):
    """Answer 200 with a body that is not the API's."""

    body: bytes = b"<html>hello</html>"

    async def serve(self, request, act):
        return web.Response(body=self.body)


class StreamFault:
    """A fault of an open watch; returns False when the stream is over."""

    async def opened(self, request: web.Request, response: web.StreamResponse) -> bool:
        return True

    async def event(self, request: web.Request, response: web.StreamResponse, line: bytes) -> bool:
        await response.write(line)
        return True


@dataclass
class StreamError(StreamFault):
    """Send an ERROR event as soon as the watch is open."""

    code: int
    reason: str = "Injected"

    async def opened(self, request, response):
        event = {"type": "ERROR", "object": status_body(self.code, self.reason, "injected")}
        await response.write(json.dumps(event).encode() + b"\n")
        return False


@dataclass
class StreamBytes(StreamFault):
    """Send bytes that are no event as soon as the watch is open."""

    data: bytes

    async def opened(self, request, response):
        await response.write(self.data)
        return False


class EndStream(StreamFault):
    """End the watch cleanly as soon as it is open."""

    async def opened(self, request, response):
        return False


class CutLine(StreamFault):
    """Send half of the next event, then end the stream cleanly, as a load balancer does."""

    async def event(self, request, response, line):
        await response.write(line[: len(line) // 2])
        return False


class CutAfterLine(StreamFault):
    """Send the next event, then break the connection."""

    async def event(self, request, response, line):
        await response.write(line)
        await asyncio.sleep(0.02)  # An RST overtakes what the peer has not read yet.
        reset(request)
        return False


class ResetInLine(StreamFault):
    """Send half of the next event, then an RST."""

    async def event(self, request, response, line):
        await response.write(line[: len(line) // 2])
        reset(request)
        return False


class DribbleLines(StreamFault):
    """Send every event in three pieces."""

    async def event(self, request, response, line):
        for piece in (line[:1], line[1:-1], line[-1:]):
            await response.write(piece)
            await asyncio.sleep(0)
        return True


class DuplicateEvents(StreamFault):
    """Send every event twice."""

    async def event(self, request, response, line):
        await response.write(line + line)
        return True


class SilentStream(StreamFault):
    """Keep the watch open and say nothing."""

    async def opened(self, request, response):
        await asyncio.Event().wait()
        return False


Fault = RequestFault | StreamFault
