"""Requests to the API server: the writes of the hot path and the few cold reads, at a bounded rate."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import urlsplit

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import DetailedPyreqwestError, PyreqwestError
from pyreqwest.proxy import ProxyBuilder

from bayplan import __version__
from bayplan.api.admitted_writes import AdmittedWrites
from bayplan.api.backoff import NO_ANSWER, TokenBucket
from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError, CredentialsError, UnreachableError
from bayplan.api.response import JSON, ApiCall, ApiResponse, parse_retry_after
from bayplan.api.trust import without_system_roots

USER_AGENT = f"bayplan/{__version__}"
CONNECT_TIMEOUT_SECONDS = 5.0
ANSWER_SECONDS = 12.0
"""How long an answer is waited for: an admission webhook has ten seconds by default, and only then the API server says
which of them did not answer."""
# client-go gives up after ten answers of 429 (rest/with_retry.go); a wait longer than this is the caller's to
# plan.
MAX_THROTTLED_TRIES = 10
MAX_RETRY_AFTER_SECONDS = 30.0
_ROLES_PAUSE_SECONDS = 0.5
_TIMED_OUT = "operation timed out"
# How much of an answer may arrive before it is read. By default 2 MiB, which every watch takes, and keeps in the
# client's allocator, whenever the loop is held up; this is still 128 MiB a second at a round trip of two milliseconds.
_WATCH_AHEAD_BYTES = 256 << 10


@dataclass(eq=False, repr=False, kw_only=True)
class ApiClient:
    """Sends requests with current credentials at a bounded rate, and tells lost answers from unsent requests.

    Relied on by the dispatcher and the elector. HTTP/2 over verified TLS, one pool, no redirects. The network
    part runs outside the interpreter's lock. Callbacks: `on_request(method, code, seconds)` for each try,
    code "<error>" when there was no answer; `on_throttle(method, seconds)` when the rate limit made a request
    wait; `on_refused(method, path)` when admission refused a write; `on_forbidden(problem)` for another 403 to a write,
    which is not believed while `has_unread_roles`: the write is sent again.
    `admit` is asked at the moment before each try of a write is sent: it gives the seconds for which writes are
    allowed, or raises UnreachableError, and nothing is sent. It is asked again when they are over, and a try that is
    under way ends unless there are more. A `bucket` that is given is the rate limit; without it and
    `qps` there is none.
    """

    credentials: Credentials = field(kw_only=False)
    qps: float = 0.0
    burst: int = 1
    bucket: TokenBucket | None = None
    on_request: Callable[[str, str, float], None] | None = None
    on_throttle: Callable[[str, float], None] | None = None
    on_refused: Callable[[str, str], None] = lambda method, path: None
    on_forbidden: Callable[[str], None] = lambda problem: None
    has_unread_roles: Callable[[], bool] = lambda: False
    admit: Callable[[], float] | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _client: Client | None = field(default=None, init=False)
    _retired: Client | None = field(default=None, init=False)
    _generation: int = field(default=-1, init=False)
    _token: str | None = field(default=None, init=False)
    _authorization: str = field(default="", init=False)
    _building: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        """Begin with the address that the credentials name."""
        self._bucket = self.bucket or TokenBucket(qps=self.qps, burst=self.burst, clock=self.clock, sleep=self.sleep)
        self._origin = self.credentials.server
        self._writes = None if self.admit is None else AdmittedWrites(self.admit)

    def twin(self) -> "ApiClient":
        """Return a client with connections of its own and the same rate limit, for calls that may hang."""
        return replace(self, bucket=self._bucket)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        on_send: Callable[[], None] | None = None,
    ) -> ApiResponse:
        """Send one request and return the answer, whatever its status.

        A 401 gets a new token and one more try; a 429 with Retry-After was not acted on and is tried again when it
        says, a bounded number of times, unless admission gave it: that speaks for one namespace only.
        `timeout_seconds` bounds each try, connecting and body included. `path` is absolute, its names quoted by
        `path_segment`, and may hold a query. `accept` names another representation than plain JSON. `on_send` is called
        before each try leaves, which the rate limit and a 429 may have held up for long; nothing is sent if it raises.

        Raises:
            AmbiguousError: the request may have reached the server and the answer is lost.
            UnreachableError: nothing was sent, or not again after a 429.
        """
        waited = await self._bucket.wait()
        if waited > 0.0 and self.on_throttle is not None:
            self.on_throttle(method, waited)
        call = ApiCall(method, path, f"{method} {path}", body, content_type, accept=accept)
        renewed = False
        throttled = 0
        while True:
            try:
                token = await self.credentials.token()
                client = await self._current_client()
            except CredentialsError as error:
                raise UnreachableError(str(error)) from error
            if on_send is not None:
                on_send()
            response = await self._send(client, token, call, timeout_seconds)
            if response.status == 401 and not renewed:
                renewed = True
                self.credentials.invalidate(token)
                continue
            refused = response.is_refused_by_admission
            if response.status == 429 and response.retry_after is not None and not refused:
                throttled += 1
                if throttled < MAX_THROTTLED_TRIES and response.retry_after <= MAX_RETRY_AFTER_SECONDS:
                    await self.sleep(response.retry_after)
                    continue
            if method != "GET" and response.status >= 400:
                if response.status == 403 and not refused and self.has_unread_roles():
                    await self.sleep(_ROLES_PAUSE_SECONDS)
                    continue
                self._tell(method, path, response, refused=refused)
            return response

    def _tell(self, method: str, path: str, response: ApiResponse, *, refused: bool) -> None:
        if refused:
            self.on_refused(method, path)
        elif response.status == 403:
            self.on_forbidden(response.problem)

    async def close(self) -> None:
        """Close all connections; a request still in flight ends as AmbiguousError."""
        for client in (self._client, self._retired):
            if client is not None:
                await client.close()
        self._client = self._retired = None
        self._generation = -1
        if self._writes is not None:
            self._writes.close()

    async def _send(self, client: Client, token: str | None, call: ApiCall, seconds: float) -> ApiResponse:
        task = asyncio.current_task()
        if self._writes is None or task is None:
            return await self._exchange(client, token, call, seconds)
        cancelled_before = task.cancelling()
        try:
            return await self._exchange(client, token, call, seconds)
        except asyncio.CancelledError as error:
            if not self._writes.end(task) or task.uncancel() > cancelled_before:
                raise
            raise AmbiguousError(f"{call.about}: no answer while this replica surely led") from error
        finally:
            self._writes.end(task)

    async def _exchange(self, client: Client, token: str | None, call: ApiCall, seconds: float) -> ApiResponse:
        request = client.request(call.method, self._origin + call.path)
        if token is not None:
            if token is not self._token:
                self._token, self._authorization = token, f"Bearer {token}"
            request.header("authorization", self._authorization, is_sensitive=True)
        if call.accept is not None:
            request.header("accept", call.accept)
        if call.body is not None:
            request.header("content-type", call.content_type).body_bytes(call.body)
        started = self.clock()
        code = NO_ANSWER
        task = asyncio.current_task()
        cancelled_before = task.cancelling() if task is not None else 0
        if self._writes is not None and task is not None and call.method != "GET":
            # The last thing before it is handed over: from then on it cannot be held back.
            self._writes.begin(task)
        try:
            answer = await request.timeout(timedelta(seconds=seconds)).build().send()
            status = answer.status
            content = bytes(await answer.bytes())
            code = str(status)
        except PyreqwestError as error:
            raise self._failure(error, call.about, seconds) from error
        finally:
            if self.on_request is not None:
                self.on_request(call.method, code, self.clock() - started)
            if task is not None and task.cancelling() > cancelled_before:
                # pyreqwest swallows a cancellation that meets the answer; the task would go on as if nobody had asked.
                raise asyncio.CancelledError
        if status < 400:
            return ApiResponse(status, content)
        return ApiResponse(status, content, parse_retry_after(answer.get_header("retry-after")))

    def _failure(self, error: PyreqwestError, asked: str, seconds: float) -> AmbiguousError | UnreachableError:
        causes = (error.details.get("causes") or []) if isinstance(error, DetailedPyreqwestError) else []
        messages = [cause["message"] for cause in causes]
        reason = f"{asked}: {error.message}" + (f": {messages[-1]}" if messages else "")
        # The exception's class does not decide: a connection that is cut after the request also is a
        # ConnectError.
        if "client error (Connect)" in messages:
            if self.credentials.tls_server_name:
                self._generation = -1  # The address was looked up when the client was built: look again.
            return UnreachableError(reason)
        if _TIMED_OUT in messages:
            # It is called a "connection timeout" also where the answer alone did not come.
            return AmbiguousError(f"{asked}: no answer within {seconds:.3g} s")
        return AmbiguousError(reason)

    async def _current_client(self) -> Client:
        if self._client is not None and self._generation == self.credentials.generation:
            return self._client
        async with self._building:
            generation = self.credentials.generation
            if self._client is None or self._generation != generation:
                client = await self._build()
                if self._retired is not None:
                    await self._retired.close()
                # Requests in flight end on the connections they have.
                self._retired, self._client, self._generation = self._client, client, generation
            return self._client

    async def _build(self) -> Client:
        credentials = self.credentials
        builder = (
            ClientBuilder()
            .user_agent(USER_AGENT)
            .default_headers({"accept": JSON})
            .http2(True)
            .http2_initial_stream_window_size(_WATCH_AHEAD_BYTES)
            .http2_keep_alive_interval(timedelta(seconds=30))
            .http2_keep_alive_timeout(timedelta(seconds=15))
            .http2_keep_alive_while_idle(True)
            .tcp_keepalive(timedelta(seconds=30))
            .connect_timeout(timedelta(seconds=CONNECT_TIMEOUT_SECONDS))
            .min_tls_version("TLSv1.2")
            .follow_redirects(False)
            .gzip(False)
            .brotli(False)
            .zstd(False)
            .deflate(False)
            .no_proxy()
        )
        if credentials.insecure:
            builder = builder.danger_accept_invalid_certs(True)
        if credentials.ca_pem is not None:
            builder = builder.add_root_certificate_pem(credentials.ca_pem)
        if credentials.identity_pem is not None:
            builder = builder.identity_pem(credentials.identity_pem)
        if credentials.proxy is not None:
            builder = builder.proxy(ProxyBuilder.all(credentials.proxy))
        if credentials.tls_server_name:
            builder = await self._with_server_name(builder, credentials.tls_server_name)
        # Without an authority of its own, the cluster's certificate is one that the system trusts.
        roots = nullcontext() if credentials.ca_pem is None else without_system_roots()
        try:
            with roots:
                return builder.build()
        except (PyreqwestError, ValueError) as error:
            raise CredentialsError(f"{credentials.server}: the TLS settings are not usable") from error

    async def _with_server_name(self, builder: ClientBuilder, name: str) -> ClientBuilder:
        """Make the URL carry the certificate's name, and that name resolve to the server's address."""
        parts = urlsplit(self.credentials.server)
        port = parts.port or 443
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UnreachableError(f"{self.credentials.server}: {error.strerror}") from error
        self._origin = f"{parts.scheme}://{name}:{port}{parts.path}"
        return builder.resolve(name, str(found[0][4][0]), port)
