"""Asks the API of a running scheduler: one method for each of its answers."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import aiohttp
import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.live_paths import PREFIX, SIMULATE
from bayplan.client.errors import NotReachedError, RefusedError
from bayplan.shown_text import one_line

MAX_ANSWER_BYTES: Final = 64 * 2**20
"""A larger answer is refused: a scheduler sends a few megabytes at most."""
_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 60.0
_CHUNK_BYTES: Final = 2**18
_LONGEST_TEXT: Final = 400


def session_with(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    """Return connections to one scheduler, whose certificate `tls` verifies."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, limit=4),
        timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )


class SchedulerClient:
    """Asks one scheduler at `url`; `bayplan explain` relies on it, and `bayplan web` as on any `Inspector`.

    Answers are JSON objects in the shapes of docs/live-api.schema.json, each on one line, whoever wrote them. `token`
    gives the bearer token of each request, None for none; `session` says how the peer is verified. Every method raises
    RefusedError where the scheduler says no, with its words, and NotReachedError where it does not answer. No redirect
    is followed, so the token goes nowhere else.
    """

    def __init__(self, url: str, token: Callable[[], Awaitable[str | None]], session: aiohttp.ClientSession) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session = session

    async def summary(self) -> bytes:
        """Who it is, by what it packs, and how full the cluster is."""
        return await self._ask("GET", f"{PREFIX}/summary")

    async def nodes(self) -> bytes:
        """What is taken of each node, column by column."""
        return await self._ask("GET", f"{PREFIX}/nodes")

    async def node(self, name: str) -> bytes:
        """One node and its pods."""
        return await self._ask("GET", f"{PREFIX}/nodes/{quote(name, safe='')}")

    async def queue_page(self, start: int, limit: int) -> bytes:
        """Some of the pods that wait; `start` is what the page before ended with, 0 for the first."""
        return await self._ask("GET", f"{PREFIX}/queue", query={"limit": str(limit), "continue": str(start)})

    async def decisions(self, after: int, limit: int) -> bytes:
        """The decisions after the one numbered `after`, the oldest first."""
        return await self._ask("GET", f"{PREFIX}/decisions", query={"after": str(after), "limit": str(limit)})

    async def explanation(self, namespace: str, name: str) -> bytes:
        """Why the pod is where it is, or nowhere, worked out now."""
        path = f"{PREFIX}/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/explanation"
        return await self._ask("GET", path)

    async def simulation(self, body: bytes, count: str) -> bytes:
        """What would come of the pods or workloads in `body`, JSON; `count` is a number, `max`, or "".

        Of YAML, `bayplan.web.updates.as_json` makes such a body.
        """
        return await self._ask("POST", SIMULATE, query={"count": count}, body=body)

    async def _ask(self, method: str, path: str, *, query: Mapping[str, str] = {}, body: bytes | None = None) -> bytes:
        token = await self._token()
        headers = {"Accept": "application/json", **({} if token is None else {"Authorization": f"Bearer {token}"})}
        try:
            async with self._session.request(
                method, self.url + path, params=query, data=body, headers=headers, allow_redirects=False
            ) as response:
                read = await _body(response)
        except aiohttp.ClientConnectorCertificateError as error:
            raise NotReachedError(f"the scheduler at {self.url} is not trusted: {_distrust(error)}") from error
        except aiohttp.ClientConnectorSSLError as error:
            advice = "--http-port of this machine is asked by http://"
            raise NotReachedError(f"what listens at {self.url} does not speak TLS: {advice}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise NotReachedError(f"the scheduler at {self.url} does not answer: {said}") from error
        if response.status != HTTPStatus.OK:
            raise RefusedError(response.status, _refusal(response.status, read))
        try:
            answer = msgspec.json.decode(read)
        except DECODE_ERRORS:
            answer = None
        if not isinstance(answer, dict):
            raise NotReachedError(
                f"what answers at {self.url} is no scheduler of this kind: {path} gives no JSON object"
            )
        return msgspec.json.encode(answer)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    read = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        read += chunk
        if len(read) > MAX_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError(f"an answer of more than {MAX_ANSWER_BYTES >> 20} MiB")
    return bytes(read)


def _refusal(status: int, body: bytes) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return (
            "401 Unauthorized: the scheduler does not know who asks; the token is none of its cluster, or has expired"
        )
    try:
        said = msgspec.json.decode(body)["error"]
    except (*DECODE_ERRORS, KeyError, TypeError):
        said = body.decode("utf-8", errors="replace")
    text = one_line(str(said), _LONGEST_TEXT)
    if status == HTTPStatus.FORBIDDEN:
        return f"403 {text}; the right to it is that of ClusterRole bayplan-reader to the nonResourceURLs /bayplan/v1/*"
    return text or f"{status} {HTTPStatus(status).phrase}"


def _distrust(error: aiohttp.ClientConnectorCertificateError) -> str:
    """Say what is wrong with a certificate, and how it is trusted."""
    cause = error.certificate_error
    said = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else str(cause)
    flags = "name the authority by --certificate-authority, or take any by --insecure-skip-tls-verify"
    return f"its certificate: {said}; {flags}"
