"""How extenders are reached over TLS, and whether their `tlsConfig` can work (upstream: extender.go makeTransport)."""

import ssl
import tempfile
from pathlib import Path
from typing import Final

from bayplan.config.bounded_file import UnreadableFileError, read_file
from bayplan.config.connections import Extender, ExtenderTLSConfig
from bayplan.config.errors import ConfigurationError, FieldError, child, item

_MAX_BYTES: Final = 1024 * 1024
"""Largest file of certificates or of a key, in bytes."""
_TLS: Final = "tlsConfig"


def extender_tls_errors(extenders: tuple[Extender, ...]) -> list[FieldError]:
    """Say what keeps each `tlsConfig` from being used, after reading the files that it names."""
    errors: list[FieldError] = []
    for index, extender in enumerate(extenders):
        if extender.tls_config is not None:
            try:
                tls_context(extender)
            except ConfigurationError as error:
                path = item("extenders", index)
                errors += [FieldError(f"{path}.{each.path}", each.message) for each in error.errors]
    return errors


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return how to reach the extender over TLS, with the certificates that its `tlsConfig` holds or names.

    Raises:
        ConfigurationError: with all that is wrong, each at `tlsConfig` or a field of it; key material never shows.
    """
    tls = extender.tls_config or ExtenderTLSConfig()
    errors: list[FieldError] = []
    roots = _pem(tls, "ca", errors)
    certificate, key = _pem(tls, "cert", errors), _pem(tls, "key", errors)
    trusts = bool(tls.ca_data or tls.ca_file)
    if trusts and tls.insecure:
        message = "specifying a root certificates file with the insecure flag is not allowed"
        errors.append(FieldError(_TLS, message))
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        errors.append(FieldError(_TLS, "certificate and key: one is given without the other"))
    try:
        context = _trusting(roots)
    except ssl.SSLError:
        context = ssl.create_default_context()
        errors.append(FieldError(_given(tls, "ca"), "holds no certificates in PEM"))
    # kube-scheduler does not check certificates when enableHTTPS is set and no CA is given.
    if tls.insecure or (extender.enable_https and not trusts):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None and key is not None:
        try:
            _load_certificate(context, certificate, key)
        except ssl.SSLError:
            message = "certificate and key must be in PEM, without a password, and belong together"
            errors.append(FieldError(_TLS, message))
    if errors:
        raise ConfigurationError(errors)
    return context


def certificates_of(extenders: tuple[Extender, ...]) -> tuple[bytes | None, ...]:
    """Return what the files of certificates and keys hold, so that a reload sees whether one was rotated."""
    settings = [each.tls_config for each in extenders if each.tls_config is not None]
    return tuple(_pem(tls, name, []) for tls in settings for name in ("ca", "cert", "key"))


def _given(tls: ExtenderTLSConfig, name: str) -> str:
    """The path of the field that counts; data goes before a file."""
    return child(_TLS, f"{name}Data" if getattr(tls, f"{name}_data") else f"{name}File")


def _pem(tls: ExtenderTLSConfig, name: str, errors: list[FieldError]) -> bytes | None:
    """What is given as data or stands in the file; None without either, and when it cannot be read."""
    data: bytes = getattr(tls, f"{name}_data")
    file: str = getattr(tls, f"{name}_file")
    if data or not file:
        return data or None
    try:
        content = read_file(Path(file), _MAX_BYTES + 1, only_regular=True)
    except UnreadableFileError as error:
        errors.append(FieldError(_given(tls, name), str(error)))
        return None
    if 0 < len(content) <= _MAX_BYTES:
        return content
    errors.append(FieldError(_given(tls, name), f"is larger than {_MAX_BYTES} bytes" if content else "is empty"))
    return None


def _trusting(roots: bytes | None) -> ssl.SSLContext:
    if roots is None:
        return ssl.create_default_context()
    # What is not ASCII is a comment. Without anything left the system's certificates would be trusted.
    text = roots.decode("ascii", "ignore")
    return ssl.create_default_context(cadata=text or "\n")


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        # An empty password, so that a key with one is an error and nobody is asked for it.
        context.load_cert_chain(file.name, password="")
