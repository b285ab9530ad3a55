"""/statusz, /flagz and /metrics/slis answer as the real kube-scheduler's, wherever both mean the same."""

import http.client
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.health import trusting_anybody
from e2e.controlplane.kube_scheduler_process import USER, KubeSchedulerProcess
from e2e.controlplane.kubernetes_version import kubernetes_version
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import free_ports
from e2e.controlplane.waiting import wait_until
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.controlplane

FLAGS = ["--authorization-webhook-cache-authorized-ttl=7s", "--v=2"]
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass(frozen=True)
class Asked:
    """A secure port, asked by somebody who may see everything."""

    port: int
    context: ssl.SSLContext

    def get(self, path: str) -> Answer:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS, context=self.context)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def both(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Asked, Asked]]:
    """Kube-scheduler and bayplan with the same flags, where they have them."""
    control_plane.kubeconfig_for("test-zpages", groups=("system:masters",))
    context = trusting_anybody(control_plane.tls("test-zpages"))
    kubeconfig = control_plane.kubeconfig_for(USER)
    (port,) = free_ports(1)
    with (
        KubeSchedulerProcess(tmp_path_factory.mktemp("theirs"), {}, kubeconfig, arguments=FLAGS) as theirs,
        BayplanProcess(
            tmp_path_factory.mktemp("ours"), kubeconfig=bayplan_identity, arguments=FLAGS, secure_port=port
        ) as ours,
    ):
        theirs.wait_ready()
        ours.wait_ready()
        asked = Asked(theirs.port, context), Asked(port, context)
        wait_until(lambda: all(each.get("/statusz").status == 200 for each in asked), "certificates to be known")
        yield asked


def test_the_text_has_the_same_media_type(both: tuple[Asked, Asked]) -> None:
    for path in ("/statusz", "/flagz"):
        theirs, ours = (each.get(path) for each in both)
        assert (ours.status, ours.headers["Content-Type"]) == (theirs.status, theirs.headers["Content-Type"])


def test_statusz_says_the_same_things(both: tuple[Asked, Asked]) -> None:
    line = re.compile(r"^(Emulation version|Binary version|Paths)[:= ] *(.*)$", re.MULTILINE)
    theirs, ours = (dict(line.findall(each.get("/statusz").text)) for each in both)
    assert theirs["Binary version"] == kubernetes_version()
    assert ours["Emulation version"] == theirs["Emulation version"]
    # Their /debug is no path of its own, and nobody asks them why.
    assert set(ours["Paths"].split()) == {*theirs["Paths"].split(), "/debug", "/bayplan"}


def test_the_text_of_statusz_has_the_same_lines(both: tuple[Asked, Asked]) -> None:
    # Theirs puts another sign between name and value each time, so that nobody comes to count on one.
    names = re.compile(r"^(Started|Up|Binary version|Emulation version|Paths)(?:: |:|=| )", re.MULTILINE)
    found = [names.findall(each.get("/statusz").text) for each in both]
    assert found[0] == found[1] == ["Started", "Up", "Binary version", "Emulation version", "Paths"]


def test_flagz_says_the_same_of_flags_that_both_were_given(both: tuple[Asked, Asked]) -> None:
    for asked in both:
        found = set(re.findall(r"^([a-z-]+)(?:: |:|=| )(.*)$", asked.get("/flagz").text, re.MULTILINE))
        assert found >= {tuple(flag.removeprefix("--").split("=")) for flag in FLAGS}


def test_slis_are_the_same_metrics_with_the_same_labels(both: tuple[Asked, Asked]) -> None:
    def shape(asked: Asked) -> dict[str, tuple[str, set[str]]]:
        for endpoint in ("livez", "readyz", "healthz"):
            asked.get(f"/{endpoint}")
        families = text_string_to_metric_families(asked.get("/metrics/slis").text)
        return {
            family.name: (family.type, {label for sample in family.samples for label in sample.labels})
            for family in families
        }

    theirs, ours = map(shape, both)
    assert ours == theirs
    assert len(ours) == 3
