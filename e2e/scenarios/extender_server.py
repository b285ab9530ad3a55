"""A scheduler extender that answers as a test says."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from e2e.conftest import RunBayplan
from e2e.controlplane.client import Object
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration, profile

SCHEDULERS = ("reference", "bayplan")

Answer = Callable[[str, Object], object]
"""What an extender answers to a verb and the document that came with it."""


@contextmanager
def both_schedulers(plane: ControlPlane, run_bayplan: RunBayplan, answer: Answer, **extender: object) -> Iterator[None]:
    """Runs kube-scheduler and bayplan, under the names of `SCHEDULERS`, behind the same extender.

    `extender` has what a configuration says of it besides its address. bayplan must survive the block.
    """
    reference, ours = map(profile, SCHEDULERS)
    with extender_answering(answer) as url:
        extenders = [{"urlPrefix": url, **extender}]
        bayplan = run_bayplan({**configuration(ours), "extenders": extenders})
        with plane.start_kube_scheduler({"profiles": [reference], "extenders": extenders}):
            yield
        assert_alive_without_a_traceback(bayplan)


@contextmanager
def extender_answering(answer: Answer) -> Iterator[str]:
    """Serves an extender on a loopback port, whose `urlPrefix` it gives, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(answer(self.path.rpartition("/")[2], body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name the base class gives it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/ext"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
