"""What a kubelet makes of a pod of the shipped Deployment, and says of it."""

from pathlib import Path

import pytest
import yaml

from e2e.controlplane.client import Object
from e2e.controlplane.container import (
    UnsupportedPodError,
    arguments_of,
    config_maps_of,
    environment_of,
    readiness_path_of,
    status_of,
)
from e2e.controlplane.installation import MANIFESTS

NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.fixture
def pod() -> Object:
    """A pod of the shipped Deployment, as a controller makes it."""
    template = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())["spec"]["template"]
    template["metadata"] |= {"name": "bayplan-x", "namespace": "here", "uid": "u-1"}
    return {**template, "status": {"phase": "Pending"}}


def test_the_shipped_arguments_name_the_pods_own_namespace_and_a_file_of_this_machine(pod: Object) -> None:
    folder = Path("/somewhere/config")
    assert arguments_of(pod, {"config": folder}) == [
        "run",
        f"--config={folder}/config.yaml",
        "--secure-port=10259",
        "--leader-elect-resource-namespace=here",
    ]
    assert config_maps_of(pod) == {"config": "bayplan-config"}


def test_the_shipped_probe_asks_whether_it_is_ready(pod: Object) -> None:
    assert readiness_path_of(pod) == "/readyz"


def test_variables_are_fields_of_the_pod_or_given(pod: Object) -> None:
    assert environment_of(pod) == {
        "POD_NAMESPACE": "here",
        "POD_NAME": "bayplan-x",
        "POD_UID": "u-1",
        "PYTHONSAFEPATH": "1",
    }


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--a=$(POD_NAME)/$(UNKNOWN)", "--a=bayplan-x/$(UNKNOWN)"),
        ("/etc/bayplan", "/c"),
        ("/etc/bayplan-other/x", "/etc/bayplan-other/x"),
        ("/my/etc/bayplan/x", "/my/etc/bayplan/x"),
    ],
)
def test_only_variables_that_are_known_and_paths_that_are_mounted_are_filled_in(
    pod: Object, argument: str, expected: str
) -> None:
    pod["spec"]["containers"][0]["args"] = [argument]
    assert arguments_of(pod, {"config": Path("/c")}) == [expected]


def test_a_command_takes_the_place_of_the_images_own(pod: Object) -> None:
    container = pod["spec"]["containers"][0]
    container["command"], container["args"] = ["bayplan", "run", "--config=/etc/bayplan/config.yaml"], ["-v=2"]
    assert arguments_of(pod, {"config": Path("/c")}) == ["run", "--config=/c/config.yaml", "-v=2"]
    container["command"] = ["kube-scheduler"]
    with pytest.raises(UnsupportedPodError, match="here/bayplan-x: command kube-scheduler: only bayplan"):
        arguments_of(pod, {})


def test_what_the_kubelet_has_not_is_refused_by_name(pod: Object) -> None:
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    with pytest.raises(UnsupportedPodError, match=r"here/bayplan-x: variable SECRET: only fieldRef"):
        environment_of(pod)
    container["env"] = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    with pytest.raises(UnsupportedPodError, match=r"here/bayplan-x: there is no field status\.podIP"):
        environment_of(pod)
    pod["spec"]["containers"].append(container)
    with pytest.raises(UnsupportedPodError, match=r"here/bayplan-x: 2 containers instead of one"):
        environment_of(pod)


def test_a_running_container_is_ready_when_its_probe_passes(pod: Object) -> None:
    for is_ready in (True, False):
        status = status_of(pod, is_ready=is_ready, restarts=1, running_since=BEFORE, now=NOW)["status"]
        conditions = {each["type"]: each["status"] for each in status["conditions"]}
        assert conditions == {"Initialized": "True", "ContainersReady": str(is_ready), "Ready": str(is_ready)}
        (container,) = status["containerStatuses"]
        assert (container["ready"], container["restartCount"]) == (is_ready, 1)
        assert container["state"] == {"running": {"startedAt": BEFORE}}


def test_a_container_that_ended_waits_to_be_started_again(pod: Object) -> None:
    status = status_of(pod, is_ready=False, restarts=0, running_since=None, now=NOW)["status"]
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert status["containerStatuses"][0]["started"] is False
