"""Where and to whom the process serves: what the flags of `bayplan run` say, checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bayplan.api.kubeconfig import PemSource
from bayplan.server.serving_tls import TlsPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationOptions:
    """How clients of the secure port are known."""

    kubeconfig: Path | None = None
    """Whom to ask about tokens and the cluster's authorities; None is the cluster that is scheduled."""
    token_seconds: float = 10.0
    """How long an answer about a token holds."""
    client_authorities: PemSource | None = None
    """Whose client certificates count; None has them looked up in the cluster."""
    skips_lookup: bool = False
    """Whether they are not looked up, so that without `client_authorities` no certificate counts."""
    tolerates_failed_lookup: bool = True
    """Whether the process starts without them where the first lookup fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationOptions:
    """What clients of the secure port may."""

    kubeconfig: Path | None = None
    """Whom to ask about rights; None is the cluster that is scheduled."""
    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    """What everybody may ask for; `*` at the end stands for all that follows."""
    allowed_seconds: float = 10.0
    """How long a yes holds."""
    denied_seconds: float = 10.0
    """How long a no holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """The ports, and how the secure one is secured."""

    bind_address: str = "127.0.0.1"
    """Where the secure port listens; plain HTTP is on 127.0.0.1 only."""
    secure_port: int | None = 10259
    """The port of HTTPS, 0 for a free one; None serves none."""
    http_port: int | None = None
    """The port of plain HTTP without authentication, 0 for a free one; None serves none."""
    shares_port: bool = False
    """Whether other processes may listen at the secure port as well."""
    certificate: PemSource | None = None
    """The serving certificate; None makes one."""
    key: PemSource | None = None
    """The key to it."""
    certificate_directory: Path | None = None
    """Where a certificate that is made is kept; None keeps it in memory."""
    tls: TlsPolicy = field(default_factory=TlsPolicy)
    """What clients have to speak."""
    disabled_metrics: frozenset[str] = frozenset()
    """Names of metrics that are not served."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """What `/flagz` tells: the flags that have a value."""
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    """Who clients are."""
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    """What they may."""


_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
}
_CHACHA: Final = {"CHACHA20_POLY1305": "CHACHA20-POLY1305", "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305"}

TLS_1_3: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Suites that cannot be chosen, in Go as here: who speaks TLS 1.3 has them all."""
OPENSSL_NAMES: Final = {
    f"TLS_{exchange}_WITH_{name}": prefix + openssl
    for exchange, prefix in _EXCHANGES.items()
    for name, openssl in (_CIPHERS | (_CHACHA if prefix else {})).items()
}
"""What can be chosen."""
BROKEN: Final = frozenset(
    f"TLS_{exchange}_WITH_{cipher}" for exchange in _EXCHANGES for cipher in ("RC4_128_SHA", "3DES_EDE_CBC_SHA")
)
"""What Go still has and OpenSSL refuses to speak."""


def openssl_ciphers(names: Iterable[str]) -> str | None:
    """Return the suites up to TLS 1.2 as `set_ciphers` takes them; None where all `names` are of TLS 1.3.

    Raises:
        LookupError: for the first one that cannot be spoken.
    """
    return ":".join([OPENSSL_NAMES[name] for name in names if name not in TLS_1_3]) or None
