"""Calls one extender over HTTP."""

import asyncio
import ssl
from collections.abc import Callable, Collection, Sequence

import aiohttp
import msgspec

from bayplan.api.errors import CredentialsError
from bayplan.api.objects import Node
from bayplan.cache.pod_info import PodInfo
from bayplan.config.connections import Extender, tls_context
from bayplan.config.errors import ConfigurationError
from bayplan.framework.candidate import Candidate
from bayplan.framework.interface import Binding
from bayplan.scheduler.extender.wire import (
    ExtenderError,
    FilterAnswer,
    ProposedVictims,
    binding_args,
    extender_args,
    is_interested,
    preemption_args,
    read_bind_answer,
    read_filter_answer,
    read_preemption_answer,
    read_priorities,
)

_DEFAULT_TIMEOUT_SECONDS = 5.0
_MAX_ANSWER_BYTES = 64 * 2**20


class ExtenderClient:
    """Calls one extender as kube-scheduler does; every failure is an ExtenderError (upstream: extender.go).

    Certificates are read when it is made. Redirects are not followed and no credentials are sent but the client
    certificate of its own tlsConfig. `admit` is asked at the moment before a bind is sent, as in ApiClient.

    Raises:
        CredentialsError: the tlsConfig cannot be used.
    """

    def __init__(self, extender: Extender, admit: Callable[[], float] | None = None) -> None:
        self.spec = extender
        self._admit = admit
        self._ssl = _ssl_context(extender)
        seconds = extender.http_timeout.total_seconds() or _DEFAULT_TIMEOUT_SECONDS
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def interested(self, pod: PodInfo) -> bool:
        """Whether it is called for the pod at all."""
        return is_interested(self.spec, pod)

    async def filter(self, pod: msgspec.Raw, nodes: Sequence[Node]) -> FilterAnswer:
        """Which of the nodes it leaves."""
        given = [node.metadata.name for node in nodes]
        body = await self._send(self.spec.filter_verb, extender_args(self.spec, pod, nodes))
        return read_filter_answer(self.spec, body, given)

    async def prioritize(self, pod: msgspec.Raw, nodes: Sequence[Node]) -> dict[str, int]:
        """Its weighted scores by node name."""
        return read_priorities(
            self.spec, await self._send(self.spec.prioritize_verb, extender_args(self.spec, pod, nodes))
        )

    async def preempt(self, pod: msgspec.Raw, candidates: Sequence[Candidate]) -> dict[str, ProposedVictims]:
        """The victims it would have, on those of the candidates' nodes that it leaves, or on others."""
        body = await self._send(self.spec.preempt_verb, preemption_args(self.spec, pod, candidates))
        return read_preemption_answer(body)

    async def bind(self, binding: Binding) -> None:
        """Have it bind the pod; returns after its confirmation.

        Raises:
            UnreachableError: it was not asked, since no write may start now.
        """
        seconds = self._seconds if self._admit is None else min(self._seconds, self._admit())
        read_bind_answer(await self._send(self.spec.bind_verb, binding_args(binding), seconds))

    async def close_when_idle(self) -> None:
        """Close its connections once the calls under way have ended; for one that gets no more calls."""
        await self._idle.wait()
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, verb: str, body: bytes, seconds: float | None = None) -> bytes:
        self._calls += 1
        self._idle.clear()
        try:
            return await self._exchange(verb, body, seconds)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _exchange(self, verb: str, body: bytes, seconds: float | None) -> bytes:
        url = f"{self.spec.url_prefix.rstrip('/')}/{verb}"
        shown = f"{self.spec.shown_url.rstrip('/')}/{verb}"
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._ssl))
        try:
            async with self._session.post(
                url,
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=self._seconds if seconds is None else seconds),
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise ExtenderError(f"failed {verb} with extender at URL {shown}, code {response.status}")
                return await _read(response)
        except TimeoutError as error:
            why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderError(f'Post "{shown}": {why}') from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ExtenderError(f'Post "{shown}": {error or type(error).__name__}') from error


async def _read(response: aiohttp.ClientResponse) -> bytes:
    answer = bytearray()
    async for chunk in response.content.iter_any():
        answer += chunk
        if len(answer) > _MAX_ANSWER_BYTES:
            raise ExtenderError(f"the answer is longer than {_MAX_ANSWER_BYTES} bytes")
    return bytes(answer)


def _ssl_context(extender: Extender) -> ssl.SSLContext:
    try:
        return tls_context(extender)
    except ConfigurationError as error:
        problems = "; ".join(map(str, error.errors))
        raise CredentialsError(f"extender {extender.shown_url}: {problems}") from error


def make_clients(
    extenders: Collection[Extender], admit: Callable[[], float] | None = None
) -> tuple[ExtenderClient, ...]:
    """The clients in the order they are called: ignorable extenders last (upstream: scheduler.go buildExtenders).

    Raises:
        CredentialsError: a tlsConfig cannot be used; names the extender.
    """
    return tuple(ExtenderClient(each, admit) for each in sorted(extenders, key=lambda each: each.ignorable))
