"""Text as it may stand in a log: not too long, and without secrets."""

import re
from typing import Final

HIDDEN: Final = "[hidden]"

# A password may have a "/" or an "@" that should have been escaped; what follows a host's colon is a port and a "/".
_USERINFO: Final = re.compile(r"(?<=://)(?:[^/\s:]*:(?!\d+/)\S*|[^/\s]+)(?=@)")
_BEARER: Final = re.compile(r"(?i)\b(bearer\s+)[^\s'\",]+")
# A JSON web token, as service accounts and OpenID providers have them: its first part is the base64 of '{"'.
_TOKEN: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")


def redacted(text: str) -> str:
    """Return `text` without users and passwords of URLs, bearer tokens and JSON web tokens.

    No line is meant to have any: this holds for what libraries and plugins put into their errors.
    """
    if "@" in text and "://" in text:
        text = _USERINFO.sub(HIDDEN, text)
    if "eyJ" in text:
        text = _TOKEN.sub(HIDDEN, text)
    if "earer" in text or "EARER" in text:
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return text


def cut(text: str, length: int) -> str:
    """Return the first `length` characters of `text`, with a word that it was longer."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"
