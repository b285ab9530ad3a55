"""How every answer of the port looks."""

from http import HTTPStatus

from aiohttp import web

PLAIN_TEXT = "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Server": "bayplan",
    "X-Content-Type-Options": "nosniff",
}


def plain(status: int, headers: dict[str, str] | None = None, text: str | None = None) -> web.Response:
    """Return an answer in plain text, by default the words for its status."""
    return answer(
        (text if text is not None else f"{HTTPStatus(status).phrase}\n").encode(), PLAIN_TEXT, status, headers
    )


def answer(
    body: bytes, content_type: str, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> web.Response:
    """Return an answer that no browser takes for anything else."""
    return web.Response(status=status, body=body, headers=HEADERS | {"Content-Type": content_type} | (headers or {}))


def bare(status: int) -> bytes:
    """Return the words for a status as they are sent, where there is no request to answer; the connection ends."""
    text = f"{HTTPStatus(status).phrase}\n"
    head = HEADERS | {"Content-Type": PLAIN_TEXT, "Content-Length": str(len(text)), "Connection": "close"}
    lines = [f"HTTP/1.1 {int(status)} {text.rstrip()}", *(f"{name}: {value}" for name, value in head.items())]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode() + text.encode()
