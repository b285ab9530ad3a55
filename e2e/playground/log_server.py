"""What `kubectl logs` reads: the part of a kubelet's port that serves the logs of bayplan's pods."""

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from e2e.controlplane.credentials import CertificateAuthority

LOG_NAME = "bayplan.log"
_POLL_SECONDS = 0.2


class LogServer:
    """Serves `FOLDER/POD/bayplan.log` over HTTPS on 127.0.0.1, at the paths where the API server asks kubelets."""

    def __init__(self, folder: Path, certificates: Path) -> None:
        certificates.mkdir()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*CertificateAuthority(certificates).serving())
        self._stopping = threading.Event()

        class Handler(_Handler):
            logs = folder
            stopping = self._stopping

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="log-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()


def lines_from_the_end(content: bytes, count: int) -> bytes:
    """Returns the last lines of a log."""
    lines = content.splitlines(keepends=True)
    return b"".join(lines[max(0, len(lines) - count) :])


class _Handler(BaseHTTPRequestHandler):
    """One request of the API server, such as /containerLogs/NAMESPACE/POD/CONTAINER?tailLines=10&follow=true."""

    logs: Path
    stopping: threading.Event

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        options = {name: values[-1] for name, values in parse_qs(url.query).items()}
        parts = url.path.strip("/").split("/")
        there = {each.name for each in self.logs.iterdir()} if self.logs.is_dir() else set()
        if len(parts) != 4 or parts[0] != "containerLogs" or parts[2] not in there:
            self.send_error(404, "only bayplan's own pods have logs here: the others are pretended")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        with (self.logs / parts[2] / LOG_NAME).open("rb") as log:
            content = log.read()
            if "tailLines" in options:
                content = lines_from_the_end(content, int(options["tailLines"]))
            try:
                self.wfile.write(content)
                while options.get("follow") == "true" and not self.stopping.is_set():
                    self.wfile.write(log.read())
                    time.sleep(_POLL_SECONDS)
            except OSError:
                return  # the reader has gone

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # its name in the standard library
        """Says nothing: what is printed is for who plays."""
