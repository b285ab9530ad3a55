"""Addresses of servers: checked before they are used, and shown without the secrets they may hold."""

import re
from typing import Final
from urllib.parse import urlsplit

from bayplan.api.errors import CredentialsError

_USERINFO: Final = re.compile(r"\A([^/?#]*//)[^/?#]*@")


def checked_url(url: str, label: str) -> str:
    """Return `url` if it is one of http or https with a host.

    Raises:
        CredentialsError: it is not; names `label` and does not quote the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable or any(character <= " " for character in url):
        raise CredentialsError(f"{label}: expected a URL with http or https")
    return url


def without_userinfo(url: str) -> str:
    """Return `url` without the user and the password before its host, fit for logs, labels and messages.

    All else stays as it was written, also in what is no URL: a configuration that was printed reads back equal.
    """
    return _USERINFO.sub(r"\1", url)
