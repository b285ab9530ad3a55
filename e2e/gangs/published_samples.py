"""The samples of mpi-operator and KubeRay as published, under these controllers themselves: `make controllers`.

Not among the scenarios that run with every change: the programs take minutes to build, and mpi-operator listens on port
8080.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.gangs.controllers import MPI, RAY, Controller, ControllerProcess
from e2e.gangs.objects import GROUPS, LABEL, install_crd
from e2e.gangs.wholeness import Gang, longest, parts
from e2e.scenarios.outcomes import configuration, nodes_bound, profile

pytestmark = pytest.mark.controlplane

WHOLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A sample of which three pods are to start together, two of which two CPUs have room for."""

    controller: Controller
    sample: str
    kind: str
    name: str
    suspended: Mapping[str, object]
    resumed: Mapping[str, object]


MPI_JOB = Workload(
    MPI,
    "pi/pi.yaml",
    "mpijob",
    "pi",
    {"spec": {"runPolicy": {"suspend": True}}},
    {"spec": {"runPolicy": {"suspend": False}}},
)
RAY_CLUSTER = Workload(
    RAY,
    "ray-cluster.scheduler-plugins.yaml",
    "raycluster",
    "test-podgroup-0",
    {"spec": {"suspend": True}},
    {"spec": {"suspend": False}},
)
MEMBERS = 3


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """A cluster with kwok's nodes, the CRD of scheduler-plugins, both controllers and bayplan."""
    plane = start_control_plane(ControlPlaneOptions(kube_controller_manager=True, kwok=True))
    install_crd(plane)
    (directory := plane.directory / "samples").mkdir()
    # Of KubeRay the name of the scheduler is no choice.
    document = configuration(profile(), profile("scheduler-plugins-scheduler"))
    with (
        BayplanProcess(directory, config=document, kubeconfig=install_bayplan(plane, without={"Deployment"})),
        ControllerProcess(plane, MPI, "--gang-scheduling=bayplan"),
        ControllerProcess(plane, RAY, "--batch-scheduler=scheduler-plugins"),
    ):
        yield plane


@dataclass(frozen=True, slots=True)
class Scene:
    """One sample on a cluster that has no nodes at first."""

    plane: ControlPlane
    workload: Workload

    @property
    def client(self) -> ApiClient:
        return self.plane.client

    def submit(self) -> None:
        self.plane.kubectl("apply", "-f", self.workload.controller.sample(self.workload.sample))

    def delete(self) -> None:
        self.plane.kubectl("delete", self.workload.kind, self.workload.name)

    def patch(self, change: Mapping[str, object]) -> None:
        text = json.dumps(change)
        self.plane.kubectl("patch", self.workload.kind, self.workload.name, "--type", "merge", "-p", text)

    def members(self) -> list[Object]:
        """The pods of the gang that do not end."""
        found = self.client.list("pods", "default", labelSelector=f"{LABEL}={self.workload.name}")
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def wait_running(self) -> None:
        def running() -> bool:
            return [each["status"]["phase"] for each in self.members()] == ["Running"] * MEMBERS

        wait_until(running, "all of the gang running", timeout_seconds=WHOLE_SECONDS, detail=self.told)

    def wait_refused(self) -> None:
        """Wait until the gang is there and was told that there is no room; none of it is bound."""
        wait_until(
            lambda: len(self.members()) == MEMBERS and all(_is_refused(each) for each in self.members()),
            "a word about what is missing",
            timeout_seconds=WHOLE_SECONDS,
            detail=self.told,
        )
        assert nodes_bound(self.client, "default").keys() <= {"other"}

    def told(self) -> str:
        """What is there, for a message of what is missing."""
        return self.plane.kubectl("get", "pods,podgroups.scheduling.x-k8s.io", "-o", "wide")


def _is_refused(each: Object) -> bool:
    return any(one.get("reason") == "Unschedulable" for one in each["status"].get("conditions", []))


@pytest.fixture(params=[MPI_JOB, RAY_CLUSTER], ids=lambda workload: workload.name)
def scene(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(plane, request.param)
    yield scene
    plane.kubectl("delete", scene.workload.kind, "--all", check=False)
    plane.client.delete_all("pods", "default")
    plane.client.delete_all("nodes")
    wait_until(lambda: not plane.client.list(GROUPS, "default"), "the end of the groups")


def test_a_sample_starts_when_there_is_room_for_all_of_it(scene: Scene) -> None:
    scene.client.create("nodes", node("small", cpu="2", memory="8Gi"))
    scene.submit()
    scene.wait_refused()
    with PodRecorder(scene.client) as recorder:
        scene.client.create("nodes", node("late", cpu="1", memory="8Gi"))
        scene.wait_running()
        bound = recorder.bound_at().values()
    assert max(bound) - min(bound) < 2.0


def test_a_sample_that_is_deleted_while_it_waits_and_submitted_again_starts_whole(scene: Scene) -> None:
    scene.client.create("nodes", node("small", cpu="2", memory="8Gi"))
    for _ in range(3):
        scene.submit()
        scene.wait_refused()
        scene.delete()
    scene.submit()
    scene.client.create("nodes", node("late", cpu="1", memory="8Gi"))
    scene.wait_running()


def test_a_sample_that_is_submitted_again_while_its_pods_end_starts_whole(scene: Scene) -> None:
    scene.client.create("nodes", node("n0", cpu="4", memory="16Gi"))
    scene.submit()
    scene.wait_running()
    scene.delete()
    with PodRecorder(scene.client) as recorder:
        scene.submit()
        scene.wait_running()
        members = {each["metadata"]["uid"]: each["metadata"]["name"] for each in scene.members()}
        events = [each for each in recorder.catch_up() if each.uid in members]
    gang = Gang(MEMBERS, frozenset(f"default/{name}" for name in members.values()))
    assert longest(parts(events, {"sample": gang}, float("inf"))) < 2.0


def test_a_suspended_sample_starts_again_when_there_is_room_for_all_of_it(scene: Scene) -> None:
    scene.client.create("nodes", node("n0", cpu="3", memory="8Gi"))
    scene.submit()
    scene.wait_running()
    scene.patch(scene.workload.suspended)
    wait_until(lambda: not nodes_bound(scene.client, "default"), "the end of its pods", timeout_seconds=WHOLE_SECONDS)
    scene.client.create("pods", pod("other", "default", requests={"cpu": "1"}))
    wait_until(lambda: nodes_bound(scene.client, "default"), "another pod in its place")
    scene.patch(scene.workload.resumed)
    scene.wait_refused()
    scene.client.delete("pods", "other", namespace="default")
    scene.wait_running()


def test_a_pod_of_a_running_sample_that_is_lost_is_replaced(scene: Scene) -> None:
    scene.client.create("nodes", node("n0", cpu="3", memory="8Gi"))
    scene.submit()
    scene.wait_running()
    for lost in scene.members():
        scene.client.delete("pods", lost["metadata"]["name"], namespace="default", grace_seconds=0)
        scene.wait_running()
