"""An API server that does not serve all kinds, as one older than they are, is scheduled on all the same."""

from collections import Counter
from collections.abc import Iterator

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import pod_of_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    end_pod,
    fill_nodes,
    terminating,
    wait_bound,
)

pytestmark = pytest.mark.controlplane

UNSERVED = {
    "PodDisruptionBudget": "policy/v1",
    "StorageClass": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "CSIDriver": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1",
    "VolumeAttachment": "storage.k8s.io/v1",
}


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    # The admission plugins wait for StorageClasses, and the class of a pod is what the scenario needs.
    off = ("DefaultStorageClass", "PersistentVolumeClaimResize")
    versions = tuple(sorted(set(UNSERVED.values())))
    return start_control_plane(ControlPlaneOptions(audit=True, disable_admission=off, unserved=versions))


@pytest.fixture(scope="module")
def process(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BayplanProcess]:
    with BayplanProcess(
        tmp_path_factory.mktemp("unserved"), kubeconfig=install_bayplan(plane, without={"PodDisruptionBudget"})
    ) as process:
        yield process


def test_pods_are_bound_and_room_is_made_without_the_kinds(plane: ControlPlane, process: BayplanProcess) -> None:
    client = plane.client
    for name, value in (("low", 1), ("high", 1000)):
        client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    low = fill_nodes(client, "default", "n1", pods=2)
    client.create("pods", pod_of_class("high", "default", "high", "1"))
    wait_until(lambda: terminating(client, "default"), "a victim")
    for name in low:
        end_pod(client, "default", name)
    client.create("pods", pod_of_class("next", "default", "low", "1"))
    wait_bound(client, "default", ["high", "next"])
    assert_alive_without_a_traceback(process)


def test_each_kind_is_named_once_and_holds_nothing_up(process: BayplanProcess) -> None:
    status, text = process.get("/readyz?verbose")
    assert status == 200
    assert "[+]storageclasses-synced ok" in text
    told = [line for line in process.log().splitlines() if "does not serve this kind" in line]
    assert len(told) == len(UNSERVED)
    for kind, version in UNSERVED.items():
        assert any(f"going on with none kind={kind} apiVersion={version}" in line for line in told), kind


def test_the_kinds_are_asked_for_again_with_growing_pauses(plane: ControlPlane, process: BayplanProcess) -> None:
    asked = Counter(event.uri.partition("?")[0] for event in plane.audit_events() if event.code == 404)
    lists = {path: count for path, count in asked.items() if path.startswith(("/apis/storage.k8s.io", "/apis/policy"))}
    assert len(lists) == len(UNSERVED)
    # Within the first half minute: after about 1, 3, 8 and 18 seconds.
    assert max(lists.values()) <= 6
