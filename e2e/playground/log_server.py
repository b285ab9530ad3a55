"""What `kubectl logs` reads: the part of a kubelet's port that serves the logs of bayplan's pods."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from e2e.controlplane.credentials import CertificateAuthority
from e2e.controlplane.deployed import LOG_NAME
from e2e.controlplane.loopback_server import QuietHandler, serving

_POLL_SECONDS = 0.2


@contextmanager
def serving_logs(folder: Path, certificates: Path) -> Iterator[int]:
    """Serves `FOLDER/POD/bayplan.log` over HTTPS where the API server asks kubelets; gives its port on 127.0.0.1."""
    certificates.mkdir()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*CertificateAuthority(certificates).serving())

    class Handler(_Handler):
        logs = folder
        stopping = threading.Event()

    with serving(Handler, tls=context) as port:
        try:
            yield port
        finally:
            Handler.stopping.set()


def lines_from_the_end(content: bytes, count: int) -> bytes:
    """Returns the last lines of a log."""
    lines = content.splitlines(keepends=True)
    return b"".join(lines[max(0, len(lines) - count) :])


class _Handler(QuietHandler):
    """One request of the API server, such as /containerLogs/NAMESPACE/POD/CONTAINER?tailLines=10&follow=true."""

    logs: Path
    stopping: threading.Event

    def answer(self) -> None:
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
