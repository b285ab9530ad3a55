"""Names of objects in the paths of the API."""

import re
from urllib.parse import quote

_AS_IT_IS = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*")


def path_segment(name: str) -> str:
    """Return `name` quoted as exactly one path segment of a URL.

    Names of nodes come from users by way of spec.nodeName and can hold anything.

    Raises:
        ValueError: for "", "." and ".." (which URL normalisation would swallow) and for text that is not
        Unicode.
    """
    if _AS_IT_IS.fullmatch(name):
        return name
    if name in {"", ".", ".."}:
        raise ValueError(f"{name!r} cannot be the name of an object")
    return quote(name, safe="")
