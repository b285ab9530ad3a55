"""Leads from what a person says to a client of the scheduler that is meant."""

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.kinds import path_segment
from bayplan.api.trust import client_context
from bayplan.client.errors import CannotLogInError, ClientError, answer_to, unexpected
from bayplan.client.leader import Target, find_leader
from bayplan.client.port_forward import LOCAL, port_forward
from bayplan.client.scheduler_client import SchedulerClient, session_with
from bayplan.config.connections import SHIPPED_NAMESPACES

SECURE_PORT: Final = 10259
_MAX_FILE_BYTES: Final = 2**20
_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_REQUESTS_PER_SECOND: Final = 20.0

READER: Final = "bayplan-reader"
"""The ServiceAccount that is shipped for it."""
_LIFETIME_SECONDS: Final = 600
"""The shortest that the API server gives."""
_RENEWED_AFTER: Final = 0.8

Token = Callable[[], Awaitable[str | None]]


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[SchedulerClient]:
    """Give a client of the scheduler that `target` means, and close all that leads to it when the block ends.

    In a port-forward nobody's certificate is checked: the API server, whose certificate the kubeconfig's authority
    signed, leads to the kubelet of the very pod that is named, and that to the pod's own network.

    Raises:
        ClientError: there is none, or it may not be asked; the text says what to do.
    """
    async with AsyncExitStack() as stack:
        try:
            yield await _connected(target, stack)
        except CredentialsError as error:
            hint = "; a token by --token-file needs no kubeconfig" if target.server and not target.token_file else ""
            raise CannotLogInError(f"{error}{hint}") from error


async def _connected(target: Target, stack: AsyncExitStack) -> SchedulerClient:
    if target.server is not None:
        url = _checked_server(target)
        token = _no_token if url.startswith("http://") else _token_for_server(target, stack)
        return SchedulerClient(url, token, await stack.enter_async_context(session_with(_tls(target))))
    if target.namespace is None and (target.own_token or target.token_file is not None):
        # What was only found might be somebody else's.
        raise CannotLogInError(
            "say by --scheduler-namespace whose pods may see the token of --own-token or --token-file"
        )
    credentials = load_credentials(target.kubeconfig, target.context)
    api = _api(credentials, stack)
    pod = await find_leader(api, target)
    token = _token(target, credentials, api, [pod.namespace])
    port = await stack.enter_async_context(port_forward(credentials, pod.namespace, pod.name, SECURE_PORT))
    session = await stack.enter_async_context(session_with(client_context(None, "", insecure=True)))
    return SchedulerClient(f"https://{LOCAL}:{port}", token, session)


def _token_for_server(target: Target, stack: AsyncExitStack) -> Token:
    if target.token_file is not None:
        # It needs no kubeconfig.
        return _token_of_file(target.token_file)
    credentials = load_credentials(target.kubeconfig, target.context)
    # No Lease is needed to ask it at its address, and which one is its own is not known.
    namespaces = [target.namespace] if target.namespace else SHIPPED_NAMESPACES
    return _token(target, credentials, _api(credentials, stack), namespaces)


def _api(credentials: Credentials, stack: AsyncExitStack) -> ApiClient:
    api = ApiClient(credentials, qps=_REQUESTS_PER_SECOND, burst=int(_REQUESTS_PER_SECOND))
    stack.push_async_callback(api.close)
    return api


def _token(target: Target, credentials: Credentials, api: ApiClient, namespaces: Sequence[str]) -> Token:
    if target.token_file is not None:
        return _token_of_file(target.token_file)
    return credentials.token if target.own_token else _reader_token(api, namespaces)


def _token_of_file(file: Path) -> Token:
    text = _read(file, "--token-file").decode("ascii", errors="replace").strip()
    if not text or not text.isprintable() or not text.isascii() or " " in text:
        raise CannotLogInError(f"--token-file: {file} holds no token")

    async def token() -> str:
        return text

    return token


async def _no_token() -> None:
    return None


def _checked_server(target: Target) -> str:
    given = target.server or ""
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if (
        host is None
        or parts.scheme not in {"https", "http"}
        or parts.username
        or parts.query
        or parts.path not in {"", "/"}
    ):
        raise CannotLogInError(f"--server: {given[:200]!a} is no address such as https://HOST:{SECURE_PORT}")
    if parts.scheme == "http" and host not in _LOCAL_HOSTS:
        raise CannotLogInError("--server: http is for a port of this machine (--http-port); elsewhere it must be https")
    return given.rstrip("/")


def _tls(target: Target) -> ssl.SSLContext:
    authority = None if target.authority is None else _read(target.authority, "--certificate-authority")
    return client_context(authority, "--certificate-authority", insecure=target.insecure)


def _read(file: Path, flag: str) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CannotLogInError(f"{flag}: {file}: {error.strerror or error}") from None
    if len(data) > _MAX_FILE_BYTES:
        raise CannotLogInError(f"{flag}: {file} has more than {_MAX_FILE_BYTES >> 20} MiB")
    return data


class _Status(msgspec.Struct):
    token: str = ""


class _TokenRequest(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def _reader_token(api: ApiClient, namespaces: Sequence[str]) -> Token:
    """Give tokens of the ServiceAccount `bayplan-reader` that last ten minutes; whoever asks a scheduler relies on it.

    It is that of the first of the namespaces that has one.

    The scheduler's pod is shown no other credentials: what it could do with this token is to read what it tells anyway.
    A token is asked for when one is needed, and again when most of its time is over. Raises ClientError where there is
    none, with the right that is missing.
    """
    known, until = "", 0.0

    async def token() -> str:
        nonlocal known, until
        now = time.monotonic()
        if now >= until:
            known, until = await _requested(api, namespaces), now + _RENEWED_AFTER * _LIFETIME_SECONDS
        return known

    return token


async def _requested(api: ApiClient, namespaces: Sequence[str]) -> str:
    try:
        return await _request(api, namespaces[0])
    except ClientError:
        for each in namespaces[1:]:
            with suppress(ClientError):
                return await _request(api, each)
        raise


async def _request(api: ApiClient, namespace: str) -> str:
    account = f"{namespace}/{READER}"
    path = f"/api/v1/namespaces/{path_segment(namespace)}/serviceaccounts/{READER}/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _LIFETIME_SECONDS},
    }
    answer = await answer_to(api, "POST", path, msgspec.json.encode(body))
    if answer.status == HTTPStatus.NOT_FOUND:
        raise ClientError(
            f"there is no ServiceAccount {account} to ask with: it comes with the manifests; "
            "or give a token of your own, by --token-file or --own-token"
        )
    if answer.status == HTTPStatus.FORBIDDEN:
        raise ClientError(
            f"you may not have a token of ServiceAccount {account}: the right to it is `create` of "
            "serviceaccounts/token; or give a token of your own, by --token-file or --own-token"
        )
    try:
        token = msgspec.json.decode(answer.body, type=_TokenRequest).status.token
    except DECODE_ERRORS:
        token = ""
    if not token:
        raise unexpected(f"no token of ServiceAccount {account}", answer)
    return token
