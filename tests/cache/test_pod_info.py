import msgspec
import pytest
from tests.builders import make_container, make_pod, make_pod_info

from bayplan.api.objects import ContainerStatus, Pod, ResourceRequirements
from bayplan.cache.pod_info import PodInfo


def with_status(pod: Pod, **fields) -> PodInfo:
    return PodInfo(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields)))


def resized(cpu: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": cpu})


def test_a_pod_without_a_resize_takes_what_it_asks_for():
    pod = make_pod_info(cpu="1")
    assert pod.placed is pod.requests


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        (
            make_pod(containers=[make_container("c", cpu="1")]),
            {"container_statuses": [ContainerStatus(name="c", resources=resized("2"))]},
        ),
        (
            make_pod(init_containers=[make_container("side", cpu="1", restart_policy="Always")]),
            {"init_container_statuses": [ContainerStatus(name="side", resources=resized("2"))]},
        ),
        (make_pod(pod_level={"cpu": "1"}), {"resources": resized("2")}),
    ],
    ids=["container", "sidecar", "pod-level"],
)
def test_a_pod_that_is_being_shrunk_takes_what_its_status_still_holds(pod, status):
    info = with_status(pod, **status)
    assert info.requests.amounts == {"cpu": 1000}
    assert info.placed.amounts == {"cpu": 2000}


def test_what_is_derived_is_derived_once():
    pod = make_pod_info(cpu="1", host_ports=[80])
    assert pod.requests is pod.requests
    assert pod.placed is pod.placed
    assert pod.host_ports is pod.host_ports
