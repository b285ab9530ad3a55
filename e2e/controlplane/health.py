"""Plain requests to ports on this machine."""

import http.client
import ssl

_TIMEOUT_SECONDS = 10.0


def get_local(port: int, path: str, *, tls: bool | ssl.SSLContext = False, token: str | None = None) -> tuple[int, str]:
    """Returns the status and text of a GET on 127.0.0.1; with `tls=True` any certificate is fine.

    Raises:
        OSError, http.client.HTTPException: nobody answered.
    """
    return _ask(port, "GET", path, None, tls=tls, token=token)


def post_local(port: int, path: str, body: bytes, *, token: str) -> tuple[int, str]:
    """Returns the status and text of a POST by TLS on 127.0.0.1; any certificate is fine.

    Raises:
        OSError, http.client.HTTPException: nobody answered.
    """
    return _ask(port, "POST", path, body, tls=True, token=token)


def _ask(
    port: int, method: str, path: str, body: bytes | None, *, tls: bool | ssl.SSLContext, token: str | None
) -> tuple[int, str]:
    connection: http.client.HTTPConnection
    if tls:
        context = trusting_anybody(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) if tls is True else tls
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


def trusting_anybody(context: ssl.SSLContext) -> ssl.SSLContext:
    """Returns the same context, which now takes any server for the right one."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_healthy(port: int, *, path: str = "/healthz", tls: bool = False) -> bool:
    """Returns whether a GET is answered with 200."""
    try:
        return get_local(port, path, tls=tls)[0] == 200
    except (OSError, http.client.HTTPException):
        return False
