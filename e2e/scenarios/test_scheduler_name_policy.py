"""The policy of docs/adopt.md gives pods of labelled namespaces to bayplan, and leaves all others alone."""

from collections.abc import Iterator

import pytest
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until

pytestmark = pytest.mark.controlplane

POLICY = REPOSITORY / "examples/adopt/scheduler-name.yaml"
DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "u", "controller": True}


@pytest.fixture
def labelled(control_plane: ControlPlane, client: ApiClient, namespace: str) -> Iterator[str]:
    """A namespace whose pods go to bayplan."""
    name = f"{namespace}-packed"
    client.create("namespaces", {"metadata": {"name": name, "labels": {"scheduling": "bayplan"}}})
    control_plane.kubectl("apply", "-f", POLICY)
    yield name
    control_plane.kubectl("delete", "-f", POLICY)


def test_pods_of_labelled_namespaces_name_bayplan_unless_they_name_another_or_are_of_a_daemonset(
    client: ApiClient, namespace: str, labelled: str
) -> None:
    wait_until(lambda: _scheduler_of(client, labelled, "early") == "bayplan", "the policy to be in force")
    assert _scheduler_of(client, namespace, "elsewhere") == "default-scheduler"
    assert _scheduler_of(client, labelled, "theirs", scheduler="another") == "another"
    assert _scheduler_of(client, labelled, "daemon", owner=DAEMON) == "default-scheduler"


def _scheduler_of(
    client: ApiClient, namespace: str, name: str, *, scheduler: str = "default-scheduler", owner: object = None
) -> str:
    """Creates a pod, with another name each time it is asked for, and returns its scheduler."""
    made = pod(f"{name}-{len(client.list('pods', namespace))}", namespace, scheduler=scheduler)
    made["metadata"]["ownerReferences"] = [owner] if owner else []
    return str(client.create("pods", made)["spec"]["schedulerName"])


def test_a_pod_that_is_only_tried_tells_when_the_policy_is_in_force(control_plane: ControlPlane, labelled: str) -> None:
    control_plane.kubectl("create", "serviceaccount", "default", "-n", labelled)
    tried = (
        "run",
        "probe",
        "-n",
        labelled,
        "--image=probe",
        "--dry-run=server",
        "-o",
        "jsonpath={.spec.schedulerName}",
    )
    wait_until(lambda: control_plane.kubectl(*tried) == "bayplan", "the policy to be in force")
    assert control_plane.client.list("pods", labelled) == []
