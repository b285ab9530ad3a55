"""From the flags for serving to options that work together."""

import ipaddress
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from bayplan.api.kubeconfig import PemSource
from bayplan.cli.serving import AuthenticationFlags, AuthorizationFlags, ServingFlags
from bayplan.config.errors import ConfigurationError, FieldError, invalid, required, unsupported
from bayplan.config.feature_gates import BOOLEANS
from bayplan.config.fields import parse_duration
from bayplan.server.options import (
    BROKEN,
    OPENSSL_NAMES,
    TLS_1_3,
    AuthenticationOptions,
    AuthorizationOptions,
    ServingOptions,
    openssl_ciphers,
)
from bayplan.server.serving_tls import TlsPolicy

_VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
_TTL_SECONDS = 10.0


def serving_options(
    serving: ServingFlags,
    authentication: AuthenticationFlags,
    authorization: AuthorizationFlags,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, str] | None = None,
) -> ServingOptions:
    """Return what the flags say; `flags` is what `/flagz` tells of all of them.

    In a pod, probes and scrapes come from outside it. Elsewhere nobody asked for a port that the network can reach.

    Raises:
        ConfigurationError: with every flag that is not what it should be.
    """
    reader = _Reader()
    options = ServingOptions(
        bind_address=reader.address("--bind-address", serving.bind_address, environment),
        secure_port=serving.secure_port or None,
        http_port=serving.http_port,
        shares_port=reader.boolean("--permit-port-sharing", serving.permit_port_sharing, default=False),
        certificate=_pem("--tls-cert-file", serving.tls_cert_file),
        key=_pem("--tls-private-key-file", serving.tls_private_key_file),
        certificate_directory=serving.cert_dir,
        tls=reader.policy(serving),
        flags=dict(flags or {}),
        disabled_metrics=frozenset(_items(serving.disabled_metrics)),
        authentication=AuthenticationOptions(
            kubeconfig=authentication.authentication_kubeconfig,
            token_seconds=reader.seconds("--authentication-token-webhook-cache-ttl", authentication.token_ttl),
            client_authorities=_pem("--client-ca-file", authentication.client_ca_file),
            skips_lookup=reader.boolean("--authentication-skip-lookup", authentication.skip_lookup, default=False),
            tolerates_failed_lookup=reader.boolean(
                "--authentication-tolerate-lookup-failure", authentication.tolerate_lookup_failure, default=True
            ),
        ),
        authorization=AuthorizationOptions(
            kubeconfig=authorization.authorization_kubeconfig,
            always_allow_paths=reader.paths("--authorization-always-allow-paths", authorization.always_allow_paths),
            allowed_seconds=reader.seconds("--authorization-webhook-cache-authorized-ttl", authorization.allowed_ttl),
            denied_seconds=reader.seconds("--authorization-webhook-cache-unauthorized-ttl", authorization.denied_ttl),
        ),
    )
    reader.boolean("--permit-address-sharing", serving.permit_address_sharing, default=False)
    reader.boolean("--disable-http2-serving", serving.disable_http2_serving, default=False)
    for given, other, missing in (
        ("--tls-cert-file", "--tls-private-key-file", options.key is None),
        ("--tls-private-key-file", "--tls-cert-file", options.certificate is None),
    ):
        if missing and (options.certificate is not None or options.key is not None):
            reader.errors.append(required(other, f"{given} is of no use without it"))
    if reader.errors:
        raise ConfigurationError(reader.errors)
    return options


class _Reader:
    """Reads values of flags, and collects what is wrong with them."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def address(self, flag: str, text: str | None, environment: Mapping[str, str]) -> str:
        if text is None:
            return "" if environment.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1"
        try:
            return str(ipaddress.ip_address(text)) if text else ""
        except ValueError:
            self.errors.append(invalid(flag, text, "must be an IP address"))
            return ""

    def boolean(self, flag: str, text: str | None, *, default: bool) -> bool:
        if text is None:
            return default
        if text not in BOOLEANS:
            self.errors.append(invalid(flag, text, "must be true or false"))
        return BOOLEANS.get(text, default)

    def seconds(self, flag: str, text: str | None) -> float:
        if text is None:
            return _TTL_SECONDS
        duration = parse_duration(text)
        if duration is None or duration.total_seconds() < 0:
            self.errors.append(invalid(flag, text, 'must be a duration such as "10s"'))
            return _TTL_SECONDS
        return duration.total_seconds()

    def paths(self, flag: str, given: Sequence[str]) -> tuple[str, ...]:
        # Given and empty is one empty value: then nobody may ask for anything.
        if not given:
            return AuthorizationOptions().always_allow_paths
        paths = _items(given)
        self.errors += [invalid(flag, path, "may have * at its end only") for path in paths if "*" in path[:-1]]
        return paths

    def policy(self, serving: ServingFlags) -> TlsPolicy:
        version = _VERSIONS.get(serving.tls_min_version or "VersionTLS12")
        if version is None:
            self.errors.append(unsupported("--tls-min-version", serving.tls_min_version, list(_VERSIONS)))
            version = ssl.TLSVersion.TLSv1_2
        names = _items(serving.tls_cipher_suites)
        for name in names:
            if name in BROKEN:
                self.errors.append(invalid("--tls-cipher-suites", name, "is broken, and OpenSSL does not speak it"))
            elif name not in TLS_1_3 and name not in OPENSSL_NAMES:
                known = sorted(TLS_1_3 | OPENSSL_NAMES.keys())
                self.errors.append(unsupported("--tls-cipher-suites", name, known))
        if not names or self.errors:
            return TlsPolicy(version)
        ciphers = openssl_ciphers(names)
        # With suites of TLS 1.3 alone nothing is left that an older client could speak.
        return TlsPolicy(ssl.TLSVersion.TLSv1_3 if ciphers is None else version, ciphers)


def _items(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _pem(flag: str, path: Path | None) -> PemSource | None:
    return None if path is None else PemSource(flag, path=path)
