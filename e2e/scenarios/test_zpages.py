"""/statusz, /flagz and /metrics/slis answer as the real kube-scheduler's, wherever both mean the same."""

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.health import trusting_anybody
from e2e.controlplane.kube_scheduler_process import USER, KubeSchedulerProcess
from e2e.controlplane.kubernetes_version import kubernetes_version
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import free_ports
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.controlplane

FLAGS = ["--authorization-webhook-cache-authorized-ttl=7s", "--v=2"]
STATUSZ, FLAGZ = "Statusz", "Flagz"
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def document(self) -> dict[str, Any]:
        read = yaml.safe_load if "yaml" in self.headers["Content-Type"] else json.loads
        found: dict[str, Any] = read(self.text)
        return found


@dataclass(frozen=True)
class Asked:
    """A secure port, asked by somebody who may see everything."""

    port: int
    context: ssl.SSLContext

    def get(self, path: str, accept: str | None = None) -> Answer:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS, context=self.context)
        try:
            connection.request("GET", path, headers={} if accept is None else {"Accept": accept})
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
        yield Asked(theirs.port, context), Asked(port, context)


def structured(kind: str, version: str = "v1beta1", media_type: str = "application/json") -> str:
    return f"{media_type};v={version};g=config.k8s.io;as={kind}"


def accepts(kind: str) -> list[str | None]:
    media_types = ("application/json", "application/yaml", "application/*", "*/*", "text/plain", "application/cbor")
    return [
        None,
        "",
        "text/plain",
        "text/*",
        "*/*",
        "application/json",
        "application/yaml",
        "application/yaml, application/json;q=0.3",
        "application/json, text/plain;q=0.5",
        "text/html",
        "garbage",
        *(structured(kind, media_type=media_type) for media_type in media_types),
        structured(kind, "v1alpha1"),
        structured(kind, "v1"),
        structured(kind) + ";pretty=1",
        f"text/plain;q=0.1, {structured(kind)};q=0.9",
    ]


@pytest.mark.parametrize(("kind", "accept"), [(kind, accept) for kind in (STATUSZ, FLAGZ) for accept in accepts(kind)])
def test_every_accept_header_gets_the_same_form(both: tuple[Asked, Asked], kind: str, accept: str | None) -> None:
    theirs, ours = (each.get(f"/{kind.lower()}", accept) for each in both)
    assert ours.status == theirs.status
    for header in ("Content-Type", "Warning"):
        assert ours.headers[header] == theirs.headers[header]
    if theirs.status != 200:
        assert ours.document == theirs.document
    elif not theirs.headers["Content-Type"].startswith("text/plain"):
        assert list(ours.document) == list(theirs.document)
        for field in ("kind", "apiVersion"):
            assert ours.document[field] == theirs.document[field]
        assert ours.text.count("\n") > 1 or theirs.text.count("\n") <= 1


def test_statusz_says_the_same_things(both: tuple[Asked, Asked]) -> None:
    theirs, ours = (each.get("/statusz", structured(STATUSZ)).document for each in both)
    assert theirs["binaryVersion"] == kubernetes_version()
    assert ours["emulationVersion"] == theirs["emulationVersion"]
    # Their /debug is no path of its own, and nobody asks them why.
    assert set(ours["paths"]) == {*theirs["paths"], "/debug", "/bayplan"}
    for field in ("startTime", "uptimeSeconds", "goVersion"):
        assert type(ours[field]) is type(theirs[field])
    assert re.sub(r"\d", "0", ours["startTime"]) == re.sub(r"\d", "0", theirs["startTime"])


def test_the_text_of_statusz_has_the_same_lines(both: tuple[Asked, Asked]) -> None:
    # Theirs puts another sign between name and value each time, so that nobody comes to count on one.
    names = re.compile(r"^(Started|Up|Binary version|Emulation version|Paths)(?:: |:|=| )", re.MULTILINE)
    found = [names.findall(each.get("/statusz").text) for each in both]
    assert found[0] == found[1] == ["Started", "Up", "Binary version", "Emulation version", "Paths"]


def test_flagz_says_the_same_of_flags_that_both_were_given(both: tuple[Asked, Asked]) -> None:
    theirs, ours = (each.get("/flagz", structured(FLAGZ)).document["flags"] for each in both)
    given = {flag.partition("=")[0].removeprefix("--"): flag.partition("=")[2] for flag in FLAGS}
    assert given.items() <= theirs.items()
    assert given.items() <= ours.items()


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
