"""Leads connections of this machine to a port of a pod, through the API server and its kubelet."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp

from bayplan.api.credentials import Credentials
from bayplan.client.errors import ClientError, NotReachedError
from bayplan.scheduler.api_calls import pod_path

logger = logging.getLogger(__name__)

LOCAL: Final = "127.0.0.1"
_PROTOCOL: Final = "v4.channel.k8s.io"
_CONNECT_SECONDS: Final = 10.0
_CHUNK_BYTES: Final = 2**15
_DATA, _ERROR = 0, 1
"""The channels of the one port that is asked for."""


@asynccontextmanager
async def port_forward(credentials: Credentials, namespace: str, pod: str, port: int) -> AsyncIterator[int]:
    """Give a port of the loopback address that leads to `port` of the pod until the block ends.

    Each connection is a websocket of its own. The first is opened at once, so that what is wrong is known before
    anybody uses the port.

    Raises:
        ClientError: you may not, with the right that is missing.
        NotReachedError: there is no such pod, or the API server does not lead to it.
    """
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=credentials.ssl_context()), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        forward = _Forward(session, credentials, namespace, pod, port)
        probe = await forward.open()
        await probe.close()
        server = await asyncio.start_server(forward.accept, LOCAL, 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            forward.stop()


class _Forward:
    def __init__(
        self, session: aiohttp.ClientSession, credentials: Credentials, namespace: str, pod: str, port: int
    ) -> None:
        self._session = session
        self._credentials = credentials
        self._pod = f"{namespace}/{pod}"
        self._url = f"{credentials.server}{pod_path(namespace, pod)}/portforward?ports={port}"
        self._tasks: set[asyncio.Task[object]] = set()

    async def open(self) -> aiohttp.ClientWebSocketResponse:
        token = await self._credentials.token()
        try:
            return await self._session.ws_connect(
                self._url,
                protocols=(_PROTOCOL,),
                headers={} if token is None else {"Authorization": f"Bearer {token}"},
                proxy=self._credentials.proxy,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                max_msg_size=0,
            )
        except aiohttp.WSServerHandshakeError as error:
            if error.status in {401, 403}:
                raise ClientError(
                    f"you may not forward a port of pod {self._pod} ({error.status}): the right to it is `get` and "
                    "`create` of pods/portforward; or ask the scheduler at its own address, by --server"
                ) from error
            raise NotReachedError(
                f"pod {self._pod}: no port can be forwarded: {error.status} {error.message}"
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotReachedError(f"pod {self._pod}: no port can be forwarded: {error}") from error

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of asyncio's own server that is cancelled, as `stop` does, is reported as an error.
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                socket = await self.open()
            async with socket, asyncio.TaskGroup() as both:
                down = both.create_task(self._down(socket, writer))
                up = both.create_task(_up(reader, socket))
                await asyncio.wait({down, up}, return_when=asyncio.FIRST_COMPLETED)
                down.cancel()
                up.cancel()
        except (ClientError, TimeoutError) as error:
            logger.warning("%s", error)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _down(self, socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
        # The first message on each channel is the number of the port, and nothing of the connection.
        begun: set[int] = set()
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in begun:
                begun.add(channel)
            elif channel == _ERROR:
                logger.warning("pod %s: %s", self._pod, ascii(data.decode(errors="replace"))[1:-1])
                return
            elif channel == _DATA:
                try:
                    writer.write(data)
                    await writer.drain()
                except OSError:
                    return


async def _up(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            await socket.send_bytes(bytes([_DATA]) + data)
    except (OSError, aiohttp.ClientError):
        return
