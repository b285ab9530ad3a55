"""Gangs as users bring them: by the label and the CRD of scheduler-plugins, as the controllers of others make them."""

from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane.client import ApiClient, ApiError, Object, path_of
from e2e.controlplane.objects import container, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until

GROUPS = "podgroups.scheduling.x-k8s.io"
LABEL = "scheduling.x-k8s.io/pod-group"
_CRD = Path(__file__).parent / "add-ons" / "scheduler-plugins-podgroups.yaml"


def install_crd(plane: ControlPlane) -> None:
    """Applies the CRD and waits until the API server serves it."""
    plane.kubectl("apply", "-f", _CRD)

    def is_served() -> bool:
        try:
            plane.client.request("GET", path_of(GROUPS))
        except ApiError:
            return False
        return True

    wait_until(is_served, "PodGroups of scheduler-plugins being served")


def group(name: str, namespace: str, least: int | None, **spec: object) -> Object:
    """Returns a PodGroup of scheduler-plugins, without minMember where `least` is None."""
    asked = {} if least is None else {"minMember": least}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**asked, **spec},
    }


def member(name: str, namespace: str, of: str, *, labels: Mapping[str, str] | None = None, **fields: object) -> Object:
    """Returns a pod with the label of its group; keywords are those of `pod`."""
    return pod(name, namespace, labels={LABEL: of, **(labels or {})}, **fields)  # type: ignore[arg-type]


def put(client: ApiClient, groups: list[Object], pods: list[Object]) -> None:
    """Creates groups and pods."""
    client.create_all(GROUPS, groups)
    client.create_all("pods", pods)


def mpi_job(name: str, namespace: str, workers: int) -> tuple[Object, list[Object]]:
    """Returns the group and the pods of an MPIJob, as mpi-operator makes them with `--gang-scheduling=bayplan`.

    The amounts are those of its example `examples/v2beta1/pi/pi.yaml`: a launcher and workers of one CPU and 1Gi.
    """
    amounts = {"cpu": "1", "memory": "1Gi"}
    count = workers + 1
    made = group(
        name,
        namespace,
        count,
        scheduleTimeoutSeconds=0,
        minResources={"cpu": str(count), "memory": f"{count}Gi"},
    )
    roles = [
        ("launcher", f"{name}-launcher-x7k2p"),
        *(("worker", f"{name}-worker-{index}") for index in range(workers)),
    ]
    pods = []
    for role, pod_name in roles:
        labels = {
            "training.kubeflow.org/job-name": name,
            "training.kubeflow.org/job-role": role,
            "training.kubeflow.org/operator-name": "mpi-operator",
        }
        one = member(pod_name, namespace, name, labels=labels, restartPolicy="Never", subdomain=name, hostname=pod_name)
        # Limits alone, which the API server copies to the requests.
        one["spec"]["containers"] = [
            {"name": f"mpi-{role}", "image": "mpioperator/mpi-pi:openmpi", "resources": {"limits": amounts}}
        ]
        pods.append(one)
    return made, pods


def ray_cluster(name: str, namespace: str, workers: int) -> tuple[Object, list[Object]]:
    """Returns the group and the pods of a RayCluster, as KubeRay makes them for the batch scheduler scheduler-plugins.

    The amounts are those of its sample `ray-cluster.scheduler-plugins.yaml`: a head of 2Gi and workers of 1Gi.
    """
    amounts = {"cpu": str(workers + 1), "memory": f"{workers + 2}Gi"}
    made = group(name, namespace, workers + 1, minResources=amounts)
    pods = []
    for role, pod_name, memory in [
        ("head", f"{name}-head-4zvtn", "2Gi"),
        *(("worker", f"{name}-worker-worker-{index:05d}", "1Gi") for index in range(workers)),
    ]:
        labels = {"ray.io/cluster": name, "ray.io/node-type": role, "ray.io/is-ray-node": "yes"}
        one = member(pod_name, namespace, name, labels=labels, scheduler="scheduler-plugins-scheduler")
        needs = container({"cpu": "1", "memory": memory}, "ray-head")
        needs["resources"]["limits"] = needs["resources"]["requests"]
        one["spec"]["containers"] = [needs]
        if role == "worker":
            # Workers wait for the head's control store, which runs long after all of them are bound.
            one["spec"]["initContainers"] = [container({"cpu": "200m", "memory": "256Mi"}, "wait-gcs-ready")]
        pods.append(one)
    return made, pods
