"""Where and to whom the process serves, as flags of `bayplan run` say it (upstream: apiserver, server/options)."""

import ipaddress
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from bayplan.api.kubeconfig import PemSource
from bayplan.config.errors import ConfigurationError, invalid, required, unsupported
from bayplan.config.flags import flag, items, seconds

_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
}
_CHACHA: Final = {"CHACHA20_POLY1305": "CHACHA20-POLY1305", "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305"}

_TLS_1_3: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Suites that cannot be chosen, in Go as here: who speaks TLS 1.3 has them all."""
_OPENSSL_NAMES: Final = {
    f"TLS_{exchange}_WITH_{name}": prefix + openssl
    for exchange, prefix in _EXCHANGES.items()
    for name, openssl in (_CIPHERS | (_CHACHA if prefix else {})).items()
}
"""What can be chosen."""
_BROKEN: Final = frozenset(
    f"TLS_{exchange}_WITH_{cipher}" for exchange in _EXCHANGES for cipher in ("RC4_128_SHA", "3DES_EDE_CBC_SHA")
)
"""What Go still has and OpenSSL refuses to speak."""

_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsPolicy:
    """What a client has to be able to do."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    """The oldest version of TLS that is spoken."""
    ciphers: str | None = None
    """Cipher suites up to TLS 1.2 in OpenSSL's words; None for Python's choice. Those of TLS 1.3 are always on."""


def _address(name: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        raise ConfigurationError([invalid(name, text, "must be an IP address")]) from None


def _own_address() -> str:
    """In a pod, probes and scrapes come from outside it. Elsewhere nobody asked for a port that the network reaches."""
    return "" if os.environ.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1"


def _port(_name: str, port: int) -> int | None:
    return port or None


def _version(name: str, text: str) -> ssl.TLSVersion:
    # Given and empty is the default.
    if (version := _VERSIONS.get(text or "VersionTLS12")) is None:
        raise ConfigurationError([unsupported(name, text, list(_VERSIONS))])
    return version


def _cipher_suites(name: str, values: Sequence[str]) -> tuple[str, ...]:
    errors, suites = [], items(name, values)
    for suite in suites:
        if suite in _BROKEN:
            errors.append(invalid(name, suite, "is broken, and OpenSSL does not speak it"))
        elif suite not in _TLS_1_3 and suite not in _OPENSSL_NAMES:
            errors.append(unsupported(name, suite, sorted(_TLS_1_3 | _OPENSSL_NAMES.keys())))
    if errors:
        raise ConfigurationError(errors)
    return suites


def _metrics(name: str, values: Sequence[str]) -> frozenset[str]:
    return frozenset(items(name, values))


def _paths(name: str, values: Sequence[str]) -> tuple[str, ...]:
    paths = items(name, values)
    if wrong := [path for path in paths if "*" in path[:-1]]:
        raise ConfigurationError([invalid(name, path, "may have * at its end only") for path in wrong])
    return paths


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationOptions:
    """How clients of the secure port are known."""

    section: ClassVar = "Authentication options"

    kubeconfig: Path | None = flag(
        "--authentication-kubeconfig FILE",
        "Whom to ask about tokens and client certificates; by default the cluster that is scheduled.",
    )
    token_seconds: float = flag(
        "--authentication-token-webhook-cache-ttl DURATION",
        "How long an answer about a token holds; 10s by default.",
        default=10.0,
        read=seconds,
    )
    client_authorities: PemSource | None = flag(
        "--client-ca-file FILE",
        "Whose client certificates count; by default the cluster's, which are looked up.",
        read=PemSource,
    )
    skips_lookup: bool = flag(
        "--authentication-skip-lookup BOOL", "Look up no authorities in the cluster.", default=False
    )
    tolerates_failed_lookup: bool = flag(
        "--authentication-tolerate-lookup-failure BOOL",
        "Start even if the authorities cannot be looked up; true by default.",
        default=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationOptions:
    """What clients of the secure port may."""

    section: ClassVar = "Authorization options"

    kubeconfig: Path | None = flag(
        "--authorization-kubeconfig FILE", "Whom to ask about rights; by default the cluster that is scheduled."
    )
    allowed_seconds: float = flag(
        "--authorization-webhook-cache-authorized-ttl DURATION",
        "How long a yes holds; 10s by default.",
        default=10.0,
        read=seconds,
    )
    denied_seconds: float = flag(
        "--authorization-webhook-cache-unauthorized-ttl DURATION",
        "How long a no holds; 10s by default.",
        default=10.0,
        read=seconds,
    )
    always_allow_paths: tuple[str, ...] = flag(
        "--authorization-always-allow-paths PATH,...",
        "What everybody may ask for; /healthz,/readyz,/livez by default.",
        default=("/healthz", "/readyz", "/livez"),
        read=_paths,
    )
    """`*` at the end stands for all that follows; given and empty, nobody may ask for anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """The ports, and how the secure one is secured; plain HTTP is on 127.0.0.1 only."""

    section: ClassVar = "Secure serving options"

    bind_address: str = flag(
        "--bind-address IP",
        "Address of the secure port; by default all addresses in a pod, and 127.0.0.1 elsewhere.",
        default=_own_address,
        read=_address,
    )
    secure_port: int | None = flag(
        "--secure-port PORT",
        "Port of HTTPS, for clients that may; 0 serves none.",
        default=10259,
        read=_port,
    )
    """The port of HTTPS, 0 for a free one; None serves none."""
    http_port: int | None = flag(
        "--http-port PORT",
        "Also serve plain HTTP to everybody on this machine, at this port of 127.0.0.1; 0 picks a free one.",
    )
    certificate: PemSource | None = flag(
        "--tls-cert-file FILE", "Serving certificate and what is between it and its CA.", read=PemSource
    )
    key: PemSource | None = flag("--tls-private-key-file FILE", "The key to it.", read=PemSource)
    certificate_directory: Path | None = flag(
        "--cert-dir FOLDER",
        "Where bayplan.crt and bayplan.key are, or are put; without it a new pair is made in memory.",
    )
    tls_version: ssl.TLSVersion = flag(
        "--tls-min-version VERSION",
        "VersionTLS12, the default, or VersionTLS13.",
        default=ssl.TLSVersion.TLSv1_2,
        read=_version,
    )
    cipher_suites: tuple[str, ...] = flag(
        "--tls-cipher-suites NAME,...", "Cipher suites to accept, by Go's names.", default=(), read=_cipher_suites
    )
    shares_port: bool = flag(
        "--permit-port-sharing BOOL", "Let other processes listen at the port as well.", default=False
    )
    shares_address: bool = flag("--permit-address-sharing BOOL", "Accepted: an address is always shared.", default=True)
    disables_http2: bool = flag(
        "--disable-http2-serving BOOL", "Accepted: HTTP/1.1 is all that is served.", default=True
    )
    http2_streams: int | None = flag("--http2-max-streams-per-connection INT", "Accepted: there is no HTTP/2.")
    disabled_metrics: frozenset[str] = flag(
        "--disabled-metrics NAME,...", "Metrics that are not served.", default=frozenset(), read=_metrics
    )
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    """Who clients are."""
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    """What they may."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What `/flagz` tells: the flags that have a value."""

    def __post_init__(self) -> None:
        """Refuse one of certificate and key without the other."""
        pair = {"--tls-cert-file": self.certificate, "--tls-private-key-file": self.key}
        missing = [name for name, pem in pair.items() if pem is None]
        if len(missing) == 1:
            (given,) = pair.keys() - missing
            raise ConfigurationError([required(missing[0], f"{given} is of no use without it")])

    @property
    def tls(self) -> TlsPolicy:
        """What clients have to speak."""
        if not self.cipher_suites:
            return TlsPolicy(self.tls_version)
        ciphers = [_OPENSSL_NAMES[suite] for suite in self.cipher_suites if suite not in _TLS_1_3]
        # With suites of TLS 1.3 alone nothing is left that an older client could speak.
        return TlsPolicy(self.tls_version, ":".join(ciphers)) if ciphers else TlsPolicy(ssl.TLSVersion.TLSv1_3)
