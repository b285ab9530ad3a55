"""What the running scheduler says of pods on a real API server, to whom, and that it then does what it said."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.credentials import CertificateAuthority
from e2e.controlplane.health import get_local, post_local
from e2e.controlplane.installation import NAMESPACE
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import free_ports
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    configuration,
    node_of,
    wait_bound,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

NODES = 300
READER = "bayplan-reader"
GATE = "example.com/later"


@dataclass(frozen=True)
class Asked:
    """A running scheduler, and what a person with the kubeconfig of an administrator is told."""

    process: BayplanProcess
    port: int
    authority: Path
    kubeconfig: Path
    namespace: str

    def explain(
        self, *arguments: str | Path, at_its_address: bool = True, command: str = "explain"
    ) -> subprocess.CompletedProcess[str]:
        """`bayplan explain` or another command, at the scheduler's address unless by a port-forward."""
        address: Sequence[str | Path] = ()
        if at_its_address:
            address = ["--server", f"https://127.0.0.1:{self.port}", "--certificate-authority", self.authority]
        return subprocess.run(
            [sys.executable, "-m", "bayplan", command, "--kubeconfig", self.kubeconfig, *address, *arguments],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def status(self, path: str, token: str | None = None) -> int:
        return get_local(self.port, path, tls=True, token=token)[0]


@pytest.fixture
def asked(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan, tmp_path: Path
) -> Iterator[Asked]:
    (port,) = free_ports(1)
    authority = CertificateAuthority(tmp_path)
    certificate, key = authority.serving()
    client.create_all("nodes", [node(f"n{number}", memory="8Gi", pods="10") for number in range(NODES)])
    flags = ["--leader-elect", f"--leader-elect-resource-namespace={NAMESPACE}", "--leader-elect-resource-name=bayplan"]
    process = run_bayplan(
        configuration(),
        arguments=[f"--secure-port={port}", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", *flags],
    )
    administrator = control_plane.kubeconfig_for("test-asking-admin", groups=("system:masters",))
    yield Asked(process, port, Path(authority.certificate_file), administrator, namespace)
    assert_alive_without_a_traceback(process)


@pytest.fixture
def token_of(control_plane: ControlPlane) -> Callable[[str, str], str]:
    def token(namespace: str, account: str) -> str:
        return control_plane.kubectl("-n", namespace, "create", "token", account).strip()

    return token


def test_a_person_is_told_why_a_pod_is_pending_with_a_token_made_for_that(asked: Asked, client: ApiClient) -> None:
    client.create("pods", pod("large", asked.namespace, requests={"cpu": "5"}))
    wait_refused(client, asked.namespace, "large")
    done = asked.explain("large", "-n", asked.namespace)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    nodes = f"n0, n1, n2, n3, n4 and {NODES - 5} more"
    assert lines[:4] == [
        f"{asked.namespace}/large: waits, no node fits; would help: 1000m less of cpu, on n0",
        f"  now: 0 of {NODES} nodes fit",
        f"  {NODES} nodes: NodeResourcesFit: cpu, asked 5000m, most free 4000m on n0 ({nodes})",
        "  would help: 1000m less of cpu, on n0",
    ]
    assert lines[4].startswith("  waits: unschedulable, priority 0, 1 attempt, since ")
    told = json.loads(asked.explain("large", "-n", asked.namespace, "-o", "json").stdout)
    written = condition_of(client.get("pods", "large", asked.namespace))
    assert told["message"] == told["queue"]["message"] == written["message"]


def test_where_a_pod_of_a_file_would_go_is_told_and_nothing_is_made(
    asked: Asked, client: ApiClient, tmp_path: Path
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Pod", **pod("later", asked.namespace, requests={"cpu": "2"})})
    )
    done = asked.explain("-f", file)
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"{asked.namespace}/later: n0 with ")
    assert first.endswith(f"; {NODES} of {NODES} nodes fit")
    assert client.list("pods", asked.namespace) == []
    client.create("pods", pod("later", asked.namespace, requests={"cpu": "2"}))
    wait_bound(client, asked.namespace, ["later"])
    assert node_of(client, asked.namespace, "later") == "n0"
    file.write_text(file.read_text().replace("schedulerName", "schedulrName"))
    refused = asked.explain("-f", file)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert 'spec.schedulrName: unknown field, did you mean "schedulerName"?' in refused.stderr


def test_all_that_wait_are_told_by_reason_and_by_queue(asked: Asked, client: ApiClient) -> None:
    for number in range(3):
        client.create("pods", pod(f"large-{number}", asked.namespace, requests={"cpu": "5"}))
        wait_refused(client, asked.namespace, f"large-{number}")
    client.create("pods", pod("gated", asked.namespace, schedulingGates=[{"name": GATE}]))
    wait_until(lambda: "4 pods wait" in asked.explain("--pending").stdout, "all to be known")
    heading, large, gated = asked.explain("--pending", "-n", asked.namespace).stdout.splitlines()
    assert heading == "4 pods wait"
    assert large.startswith(f"  3 unschedulable: 0/{NODES} nodes are available: {NODES} Insufficient cpu. ")
    assert large.endswith(f"(such as {asked.namespace}/large-0)")
    assert gated == f"  1 gated: waiting for scheduling gates: [{GATE}] (such as {asked.namespace}/gated)"
    rows = [line.split() for line in asked.explain(command="queue").stdout.splitlines()]
    assert rows[0][:4] == ["NAMESPACE", "NAME", "QUEUE", "PRIORITY"]
    assert [row[:3] for row in rows[1:]] == [
        *([asked.namespace, f"large-{number}", "unschedulable"] for number in range(3)),
        [asked.namespace, "gated", "gated"],
    ]
    (only,) = [line for line in asked.explain("-o", "wide", command="queue").stdout.splitlines() if "gated" in line]
    assert GATE in only


def test_only_who_may_is_told_and_the_command_says_what_is_missing(
    asked: Asked, client: ApiClient, token_of: Callable[[str, str], str], tmp_path: Path
) -> None:
    path = f"/bayplan/v1/namespaces/{asked.namespace}/pods/any/explanation"
    client.create("serviceaccounts", {"metadata": {"name": "stranger", "namespace": asked.namespace}})
    stranger, reader = token_of(asked.namespace, "stranger"), token_of(NAMESPACE, READER)
    assert asked.status(path) == 401
    assert asked.status(path, "made-up") == 401
    # Below /api every authenticated user might: Kubernetes' system:discovery says so.
    assert asked.status(path, stranger) == 403
    assert asked.status(path, reader) == 404
    assert asked.status("/bayplan/v1/summary", reader) == 200
    assert asked.status("/metrics", reader) == 403
    for token, said in (("made-up", "401 Unauthorized"), (stranger, "ClusterRole bayplan-reader")):
        file = tmp_path / "token"
        file.write_text(token)
        done = asked.explain("any", "-n", asked.namespace, "--token-file", file)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert said in done.stderr
        assert token not in done.stderr or token == "made-up"
    assert reader not in asked.process.log()


def test_what_is_not_there_is_said_in_one_line(asked: Asked, client: ApiClient) -> None:
    client.create("pods", pod("theirs", asked.namespace, scheduler="another"))
    known = "the one that was asked does not know it and schedules for bayplan"
    for arguments, said in (
        (("nobody", "-n", asked.namespace), f"there is no pod {asked.namespace}/nobody\n"),
        (
            ("theirs", "-n", asked.namespace),
            f"pod {asked.namespace}/theirs is for the scheduler 'another'; {known}\n",
        ),
    ):
        done = asked.explain(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    # The holder of the Lease is no pod here, as nothing is installed in the cluster.
    done = asked.explain("theirs", at_its_address=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f" holds Lease {NAMESPACE}/bayplan and is no pod there" in done.stderr
    assert "by --server" in done.stderr
    done = asked.explain("theirs", "--lease", "another", at_its_address=False)
    assert done.stderr.startswith("there is no Lease bayplan-system/another or kube-system/another: ")


def test_what_is_said_of_a_pod_is_what_then_happens(
    asked: Asked, client: ApiClient, token_of: Callable[[str, str], str], request: pytest.FixtureRequest
) -> None:
    dice = random.Random(request.config.getoption("--seed"))
    reader = token_of(NAMESPACE, READER)
    for number in range(60):
        name = f"p{number}"
        requests = {"cpu": f"{dice.choice([250, 500, 1500, 3000, 6000])}m", "memory": f"{dice.choice([1, 2, 7])}Gi"}
        client.create("pods", pod(name, asked.namespace, requests=requests, schedulingGates=[{"name": GATE}]))
        path = f"/bayplan/v1/namespaces/{asked.namespace}/pods/{name}/explanation"
        wait_until(lambda path=path: asked.status(path, reader) == 200, f"{name} to be known")  # type: ignore[misc]
        told = json.loads(get_local(asked.port, path, tls=True, token=reader)[1])
        assert (told["state"], told["queue"]["queue"]) == ("pending", "gated")
        client.patch("pods", name, {"spec": {"schedulingGates": []}}, namespace=asked.namespace)
        chosen = told["explanation"]["chosen"]
        if chosen is None:
            assert wait_refused(client, asked.namespace, name)["message"] == told["message"], name
        else:
            wait_bound(client, asked.namespace, [name])
            assert node_of(client, asked.namespace, name) == chosen["node"], name


def test_a_pod_that_is_asked_about_has_the_priority_of_its_class(
    asked: Asked, client: ApiClient, token_of: Callable[[str, str], str]
) -> None:
    client.create("priorityclasses", {"metadata": {"name": "test-asked-urgent"}, "value": 1000})
    on_n0 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_n0]}}}
    client.create("pods", pod("low", asked.namespace, requests={"cpu": "4"}, affinity=affinity))
    wait_bound(client, asked.namespace, ["low"])
    urgent = pod_of_class("urgent", asked.namespace, "test-asked-urgent", cpu="4", affinity=affinity)
    body = json.dumps(urgent | {"kind": "Pod", "apiVersion": "v1"}).encode()
    status, text = post_local(asked.port, "/bayplan/v1/simulate", body, token=token_of(NAMESPACE, READER))
    assert status == 200, text
    (attempt,) = [each for each in json.loads(text)["pods"][0]["attempts"] if each["victims"]]
    assert (attempt["victims"], attempt["nominatedNodeName"]) == ([f"{asked.namespace}/low"], "n0")
    client.create("pods", urgent)
    wait_bound(client, asked.namespace, ["urgent"])
    assert [each["metadata"]["name"] for each in client.list("pods", asked.namespace)] == ["urgent"]
    client.delete("priorityclasses", "test-asked-urgent")
