"""Where bearer tokens come from: the kubeconfig itself, a file, an exec plugin, an OpenID provider."""

import asyncio
import base64
import binascii
import json
import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote_plus

import aiohttp

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry, without_userinfo
from bayplan.api.meta_objects import parse_time
from bayplan.api.trust import client_context

EXEC_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
FILE_LIFETIME_SECONDS = 60.0
PLUGIN_TIMEOUT_SECONDS = 60.0
# A server that answers 401 to everything must not make bayplan start a process for each request.
PLUGIN_MIN_INTERVAL_SECONDS = 10.0
EXPIRY_MARGIN_SECONDS = 30.0
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, maybe a client identity (PEM certificate and key), good for `lifetime` seconds."""

    token: str | None = field(repr=False)
    identity: bytes | None = field(default=None, repr=False)
    lifetime: float = math.inf


class TokenSource(Protocol):
    """Issues tokens to `Credentials`, which waits `min_interval` seconds between two of them."""

    min_interval: float

    async def issue(self) -> Issued:
        """Return a token that is good now; raises CredentialsError."""


class StaticToken:
    """A token that never changes, or none at all (client certificates, anonymous)."""

    min_interval = 0.0

    def __init__(self, token: str | None) -> None:
        self._issued = Issued(checked_token(token, "token") if token else None)

    async def issue(self) -> Issued:
        """Return the one token."""
        return self._issued


class TokenFile:
    """A token file that is rewritten in place, like a projected service account token."""

    min_interval = 0.0

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str:
        """Return the token as it is now; raises CredentialsError when there is none."""
        try:
            text = self.path.read_bytes().decode("ascii", errors="replace").strip()
        except OSError as error:
            raise CredentialsError(f"token file {self.path}: {error.strerror}") from error
        if not text:
            raise CredentialsError(f"token file {self.path}: is empty")
        return checked_token(text, f"token file {self.path}")

    async def issue(self) -> Issued:
        """Return the token in the file, to be read again after a minute."""
        return Issued(self.read(), lifetime=FILE_LIFETIME_SECONDS)


class ExecPlugin:
    """A client-go credential plugin: a command that prints an ExecCredential."""

    min_interval = PLUGIN_MIN_INTERVAL_SECONDS

    def __init__(self, entry: Entry, *, wall_clock: Callable[[], float] = time.time) -> None:
        config = entry.fields["exec"]
        where = f"{entry.where}.exec"
        if not isinstance(config, dict) or not isinstance(config.get("command"), str):
            raise CredentialsError(f"{where}.command: required")
        if config.get("apiVersion") not in EXEC_API_VERSIONS:
            raise CredentialsError(f"{where}.apiVersion: must be one of {', '.join(EXEC_API_VERSIONS)}")
        if config.get("interactiveMode") == "Always":
            raise CredentialsError(f"{where}.interactiveMode: Always needs a terminal, which bayplan has not")
        command = config["command"]
        resolved = str(entry.folder / command) if os.sep in command else command
        if shutil.which(resolved) is None:
            hint = config.get("installHint")
            raise CredentialsError(
                f"{where}.command: {resolved!r} was not found or cannot be run" + (f"; {hint}" if hint else "")
            )
        self._label = f"exec plugin {command!r}"
        self._config: dict[str, Any] = {**config, "command": resolved}
        self._wall_clock = wall_clock

    async def issue(self) -> Issued:
        """Run the plugin and return what it printed; its stderr is not repeated, it may quote secrets."""
        # Imported here: the official client loads all its models, half a second that other log-ins need not
        # pay.
        from kubernetes.aio.config import ConfigException  # noqa: PLC0415
        from kubernetes.aio.config.exec_provider import ExecProvider  # noqa: PLC0415
        from kubernetes.aio.config.kube_config import ConfigNode  # noqa: PLC0415

        try:
            async with asyncio.timeout(PLUGIN_TIMEOUT_SECONDS):
                status = await ExecProvider(ConfigNode("exec", self._config)).run()
        except TimeoutError:
            raise CredentialsError(f"{self._label}: no answer in {PLUGIN_TIMEOUT_SECONDS:g} s") from None
        except ConfigException as error:
            reason = str(error).removeprefix("exec: ").partition(". ")[0]
            raise CredentialsError(f"{self._label}: {reason}") from None
        except (OSError, TypeError, ValueError) as error:
            raise CredentialsError(f"{self._label}: {type(error).__name__}") from None
        return self._issued(status)

    def _issued(self, status: object) -> Issued:
        if not isinstance(status, dict):
            raise CredentialsError(f"{self._label}: printed no status")
        token, certificate, key = (status.get(k) for k in ("token", "clientCertificateData", "clientKeyData"))
        if not token and not (certificate and key):
            raise CredentialsError(f"{self._label}: gave neither a token nor a certificate with its key")
        lifetime = math.inf
        if expires := status.get("expirationTimestamp"):
            try:
                moment = parse_time(str(expires))
            except ValueError:
                raise CredentialsError(f"{self._label}: expirationTimestamp is no time") from None
            lifetime = _with_margin(moment - self._wall_clock())
        identity = f"{certificate}\n{key}\n".encode() if certificate and key else None
        return Issued(checked_token(str(token), self._label) if token else None, identity, lifetime)


class OidcToken:
    """An OpenID Connect id-token, refreshed when it runs out; the kubeconfig is never written back."""

    min_interval = PLUGIN_MIN_INTERVAL_SECONDS

    def __init__(self, entry: Entry, config: dict[str, Any], *, wall_clock: Callable[[], float] = time.time) -> None:
        self._where = f"{entry.where}.auth-provider.config"
        self._config = {key: str(value) for key, value in config.items() if value is not None}
        self._wall_clock = wall_clock
        authority = Entry(self._where, entry.folder, config).pem("idp-certificate-authority")
        self._context = client_context(authority.read() if authority else None, self._where)
        if "id-token" not in config and "refresh-token" not in config:
            raise CredentialsError(f"{self._where}: has neither id-token nor refresh-token")

    async def issue(self) -> Issued:
        """Return the id-token while it lasts, else fetch the next one from the provider."""
        token = self._config.get("id-token", "")
        if not token or self._remaining(token) <= EXPIRY_MARGIN_SECONDS:
            token = await self._refresh()
        return Issued(checked_token(token, f"{self._where}.id-token"), lifetime=_with_margin(self._remaining(token)))

    def _remaining(self, token: str) -> float:
        try:
            payload = token.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            expires = claims.get("exp")
            return math.inf if expires is None else float(expires) - self._wall_clock()
        except (IndexError, binascii.Error, ValueError, AttributeError, TypeError, RecursionError):
            raise CredentialsError(f"{self._where}.id-token: not a JSON web token") from None

    async def _refresh(self) -> str:
        missing = [key for key in ("client-id", "idp-issuer-url", "refresh-token") if not self._config.get(key)]
        if missing:
            raise CredentialsError(f"{self._where}: the id-token has expired and {', '.join(missing)} is not set")
        issuer = self._config["idp-issuer-url"].rstrip("/")
        try:
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._context),
                timeout=aiohttp.ClientTimeout(total=PLUGIN_TIMEOUT_SECONDS),
                raise_for_status=True,
                trust_env=True,
            ) as session:
                # The official client's requestor checks no certificate here, so the two calls are our own.
                async with session.get(f"{issuer}/.well-known/openid-configuration") as response:
                    endpoint = (await response.json(content_type=None))["token_endpoint"]
                secret = self._config.get("client-secret", "")
                form = {"grant_type": "refresh_token", "refresh_token": self._config["refresh-token"]}
                # RFC 6749, section 2.3.1: both parts are form-encoded first.
                login = aiohttp.encode_basic_auth(quote_plus(self._config["client-id"]), quote_plus(secret))
                async with session.post(endpoint, data=form, headers={"Authorization": login}) as response:
                    answer = await response.json(content_type=None)
            token = str(answer["id_token"])
        except (aiohttp.ClientError, TimeoutError, OSError, KeyError, TypeError, ValueError) as error:
            shown = without_userinfo(issuer)
            raise CredentialsError(f"{self._where}: refresh at {shown} failed: {type(error).__name__}") from None
        self._config["id-token"] = token
        self._config["refresh-token"] = str(answer.get("refresh_token") or self._config["refresh-token"])
        return token


def token_source(user: Entry) -> TokenSource:
    """Return the source that a kubeconfig user names, with kubectl's precedence; raises CredentialsError."""
    if asked := next((key for key in _IMPERSONATION if user.fields.get(key)), None):
        # Whoever asks for the rights of another must not get those of the user itself, which may be all there are.
        raise CredentialsError(f"{user.where}.{asked}: impersonation is not supported; log in as that user")
    if path := user.path("tokenFile"):
        return TokenFile(path)
    if token := user.text("token"):
        return StaticToken(token)
    if user.fields.get("exec") is not None:
        return ExecPlugin(user)
    provider = user.fields.get("auth-provider")
    if provider is not None:
        if not isinstance(provider, dict) or provider.get("name") != "oidc":
            name = provider.get("name") if isinstance(provider, dict) else None
            raise CredentialsError(f"{user.where}.auth-provider: {name!r} is not supported; use an exec plugin")
        config = provider.get("config")
        return OidcToken(user, config if isinstance(config, dict) else {})
    if user.fields.get("username") or user.fields.get("password"):
        raise CredentialsError(f"{user.where}: username and password are not supported; API servers dropped them")
    return StaticToken(None)


def checked_token(token: str, label: str) -> str:
    """Return `token` if a header can carry it, else raise CredentialsError without quoting it."""
    if not all("!" <= character <= "~" for character in token):
        raise CredentialsError(f"{label}: holds characters that no bearer token has")
    return token


def _with_margin(remaining: float) -> float:
    return max(remaining - EXPIRY_MARGIN_SECONDS, remaining / 2, 0.0)
