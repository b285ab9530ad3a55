"""Cipher suites up to TLS 1.2, by Go's names, which kube-scheduler's flags have (crypto/tls), and by OpenSSL's."""

from collections.abc import Iterable
from typing import Final

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
