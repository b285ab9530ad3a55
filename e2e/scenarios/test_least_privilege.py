"""What the API server saw the scheduler do: no more than its role allows, and only what scheduling needs."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.health import get_local
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT, granted, install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import free_ports
from e2e.scenarios.monitoring import install_scraper
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, wait_bound, wait_event_counts, wait_refused

from bayplan.api.kinds import RESOURCES
from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.plugins.registry import build_frameworks

pytestmark = pytest.mark.controlplane

USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
DISCOVERY = re.compile(r"/api(/v1)?|/apis(/[a-z0-9.]+/v[a-z0-9]+)?")
QUIET_SECONDS = 3.0
BOUND = 30
# What this run has no occasion for.
NOT_NEEDED_HERE = {
    # A pod is read only when the answer to its bind was lost.
    ("get", "pods"),
    # Nothing is preempted.
    ("delete", "pods"),
    ("create", "pods/eviction"),
    # There are no groups of pods, nor is their kind served.
    ("watch", "podgroups"),
    ("patch", "podgroups/status"),
    # Nobody asks what would come of a pod.
    ("list", "priorityclasses"),
    # No pod has a volume.
    ("patch", "persistentvolumes"),
    ("patch", "persistentvolumeclaims"),
    # Nor a claim on devices.
    *((verb, "resourceclaims") for verb in ("get", "update", "create", "delete")),
    *(("patch", f"resourceclaims{part}") for part in ("", "/status", "/binding")),
}


@dataclass(frozen=True)
class Run:
    """A finished run: what the service account asked for, and what is left of it."""

    plane: ControlPlane
    process: BayplanProcess
    kubeconfig: Path
    asked: list[AuditEvent]
    asked_when_quiet: list[AuditEvent]

    def writes(self) -> list[AuditEvent]:
        return [event for event in self.asked if event.verb not in {"get", "list", "watch"}]


def schedule_everything(client: ApiClient) -> None:
    """Binds, failures, repeated failures, gates, deletions: all that makes a scheduler write."""
    client.create_all("nodes", [node("n1"), node("n2", taints=[{"key": "kept", "effect": "NoSchedule"}])])
    client.create_all("pods", [pod(f"p{index}", "default") for index in range(BOUND)])
    client.create("pods", pod("big", "default", requests={"cpu": "100"}))
    client.create("pods", pod("gated", "default", schedulingGates=[{"name": "example.com/gate"}]))
    client.create("pods", pod("stranger", "default", scheduler="another"))
    wait_bound(client, "default", [f"p{index}" for index in range(BOUND)])
    wait_refused(client, "default", "big")
    client.delete("pods", "p0", namespace="default", grace_seconds=0)
    wait_event_counts(client, "default", "big", "FailedScheduling", [2])


@pytest.fixture(scope="module")
def run(start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    kubeconfig = install_bayplan(plane)
    directory = tmp_path_factory.mktemp("least")
    (port,) = free_ports(1)
    arguments = ["-v", "10", "--leader-elect", f"--secure-port={port}"]
    scraper = install_scraper(plane, directory).read_text()
    with BayplanProcess(directory, kubeconfig=kubeconfig, arguments=arguments) as process:
        schedule_everything(plane.client)
        assert get_local(port, "/metrics", tls=True, token=scraper)[0] == 200
        time.sleep(1)
        before = len(requests_of(plane))
        time.sleep(QUIET_SECONDS)
        quiet = requests_of(plane)[before:]
        assert_alive_without_a_traceback(process)
        process.terminate()
        assert process.wait(10) == 0
        yield Run(plane, process, kubeconfig, requests_of(plane), quiet)


def requests_of(plane: ControlPlane) -> list[AuditEvent]:
    return [event for event in plane.audit_events() if event.user == USER]


def test_every_request_is_one_the_shipped_role_allows_and_none_was_forbidden(run: Run) -> None:
    used = {(event.verb, event.resource) for event in run.asked if event.resource}
    assert used <= granted(run.plane)
    # Every authenticated user may ask which resources there are.
    assert all(DISCOVERY.fullmatch(event.uri) for event in run.asked if not event.resource)
    assert [event.uri for event in run.asked if event.code in {401, 403}] == []


def test_the_role_allows_nothing_the_scheduler_does_not_use(run: Run) -> None:
    used = {(event.verb, event.resource) for event in run.asked}
    assert granted(run.plane) - used - not_watched_by_default() == NOT_NEEDED_HERE


def not_watched_by_default() -> set[tuple[str, str]]:
    """The rights that only plugins need which no default profile has: what a lister is wanted for is watched."""
    cache = Cache()
    build_frameworks(default_configuration(), cache.nodes, cache.listers)
    unwanted = [resource for resource in RESOURCES if resource.type not in set(cache.listers.wanted())]
    return {(verb, resource.plural) for resource in unwanted for verb in ("list", "watch")}


def test_pods_are_written_by_bindings_and_status_patches_alone(run: Run) -> None:
    written = Counter((event.verb, event.resource) for event in run.writes())
    assert written.keys() == {
        ("create", "pods/binding"),
        ("patch", "pods/status"),
        ("create", "events"),
        ("patch", "events"),
        ("create", "leases"),
        ("update", "leases"),
        ("create", "tokenreviews"),
        ("create", "subjectaccessreviews"),
    }
    assert written["create", "pods/binding"] == BOUND
    assert {event.name for event in run.writes() if event.resource == "pods/status"} == {"big"}


def test_each_pod_is_bound_by_one_request_that_names_its_uid(run: Run) -> None:
    bindings = [event for event in run.writes() if event.resource == "pods/binding"]
    assert Counter(event.key for event in bindings) == {f"default/p{index}": 1 for index in range(BOUND)}
    assert all(event.code == 201 and event.document["metadata"]["uid"] for event in bindings)
    assert not any({"labels", "annotations"} & event.document["metadata"].keys() for event in bindings)


def test_a_status_patch_names_the_pods_uid_and_changes_one_condition(run: Run) -> None:
    for event in run.writes():
        if event.resource == "pods/status":
            assert event.document.keys() == {"metadata", "status"}
            assert event.document["metadata"].keys() == {"uid"}
            assert [one["type"] for one in event.document["status"]["conditions"]] == ["PodScheduled"]


def test_nothing_is_asked_while_nothing_happens_but_the_lease_is_renewed_and_once_a_minute_whom_to_believe(
    run: Run,
) -> None:
    asked = Counter((event.verb, event.resource, event.name) for event in run.asked_when_quiet)
    assert asked.pop(("get", "configmaps", "extension-apiserver-authentication"), 0) <= 1
    assert asked.keys() == {("update", "leases", "bayplan")}
    assert asked.total() <= QUIET_SECONDS / 2 + 1


def test_the_lease_is_made_renewed_and_given_up_and_no_other_is_touched(run: Run) -> None:
    about_leases = [event for event in run.asked if event.resource == "leases"]
    # Whether it may read its Lease is found out at the start; then it contends.
    assert [event.verb for event in about_leases[:3]] == ["get", "get", "create"]
    assert {event.verb for event in about_leases[3:]} == {"update"}
    assert {event.name for event in about_leases} == {"bayplan"}
    lease = run.plane.client.get("leases", "bayplan", NAMESPACE)
    assert lease["spec"]["holderIdentity"] == ""


def test_neither_the_token_nor_a_part_of_it_is_in_the_log(run: Run) -> None:
    token: str = json.loads(run.kubeconfig.read_text())["users"][0]["user"]["token"]
    log = run.process.log()
    assert log
    for part in token.split("."):
        assert part not in log
    assert "bearer" not in log.lower()
