"""Small HTTP servers on loopback ports, for what asks somebody beside the API server."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_POLL_SECONDS = 0.05


class QuietHandler(BaseHTTPRequestHandler):
    """Answers requests and prints nothing; whoever is one says in `answer` what to a GET or a POST."""

    def answer(self) -> None:
        """Replies to one request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """See `answer`."""
        self.answer()

    def do_POST(self) -> None:
        """See `answer`."""
        self.answer()

    def read_json(self) -> Any:  # noqa: ANN401  whatever was sent
        """Returns the request's body."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def reply(self, status: int, body: bytes) -> None:
        """Sends a whole answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name the base class gives it
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Leaves a client alone that ended in the middle of a call."""


@contextmanager
def serving(handler: type[QuietHandler], *, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves on a free port of 127.0.0.1, which it gives, each request in a thread, until the block ends."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="loopback-server", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
