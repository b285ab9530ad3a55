"""A scheduler extender that answers as a test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from e2e.conftest import RunBayplan
from e2e.controlplane.client import Object
from e2e.controlplane.loopback_server import QuietHandler, serving
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

    class Handler(QuietHandler):
        def answer(self) -> None:
            body = self.read_json()
            self.reply(200, json.dumps(answer(self.path.rpartition("/")[2], body)).encode())

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}/ext"
