"""What a placed pod takes while its requests are changed in place."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_container, make_pod

from bayplan.api.objects import Condition, ContainerStatus, PodStatus, ResourceRequirements
from bayplan.api.quantity import QuantityError
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import placed_requests, pod_requests

INFEASIBLE = Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = Condition(type="PodResizePending", status="True", reason="Deferred")


def _sidecar(name="s", **requests):
    return make_container(name, requests=requests, restart_policy="Always")


def _resized(*, cpu=None, allocated=None, name="c", **pod):
    status = ContainerStatus(
        name=name,
        resources=ResourceRequirements(requests={"cpu": cpu} if cpu else None),
        allocated_resources={"cpu": allocated} if allocated else None,
    )
    return make_pod(container_statuses=[status], **pod)


def test_an_unreadable_quantity_of_a_status_is_reported_by_its_field():
    for pod, path in [
        (_resized(cpu="x"), "status.containerStatuses[0].resources.requests[cpu]"),
        (_resized(allocated="x"), "status.containerStatuses[0].allocatedResources[cpu]"),
    ]:
        assert pod_requests(pod).amounts == {}
        with pytest.raises(QuantityError) as refusal:
            placed_requests(pod)
        assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("pod", "milli_cpu"),
    [
        (_resized(cpu="2", allocated="3", requests={"cpu": "1"}), 3000),
        (_resized(cpu="2", requests={"cpu": "4"}), 4000),
        (_resized(cpu="2", requests={"cpu": "4"}, conditions=[DEFERRED]), 4000),
        (_resized(cpu="2", allocated="1", requests={"cpu": "4"}, conditions=[INFEASIBLE]), 2000),
        (_resized(cpu="2", requests={"cpu": "4"}, name="other"), 4000),
    ],
    ids=["grown", "shrinking", "deferred", "infeasible", "another container"],
)
def test_a_resize_counts_for_placed_pods_only(pod, milli_cpu):
    assert placed_requests(pod).amounts == {"cpu": milli_cpu}
    assert pod_requests(pod).amounts == {"cpu": int(pod.spec.containers[0].resources.requests["cpu"]) * 1000}


def test_what_is_allocated_stands_in_for_what_is_actuated():
    status = ContainerStatus(name="c", allocated_resources={"cpu": "9"})
    assert placed_requests(make_pod(cpu="1", container_statuses=[status])).amounts == {"cpu": 9000}


def test_sums_over_containers_are_compared_and_not_containers():
    containers = [make_container("a", cpu="4"), make_container("b", cpu="1")]
    statuses = [
        ContainerStatus(name=name, resources=ResourceRequirements(requests={"cpu": cpu}))
        for name, cpu in [("a", "1"), ("b", "3")]
    ]
    assert placed_requests(make_pod(containers=containers, container_statuses=statuses)).amounts == {"cpu": 5000}


def test_an_infeasible_resize_of_which_nothing_is_reported_counts_as_nothing():
    assert placed_requests(make_pod(cpu="1", conditions=[INFEASIBLE])).amounts == {}


def test_a_resize_counts_for_sidecars_and_for_init_containers():
    grown = ResourceRequirements(requests={"cpu": "5"})
    for container, milli_cpu in [(_sidecar(cpu="1"), 6000), (make_container("s", cpu="1"), 5000)]:
        pod = make_pod(cpu="1", init_containers=[container])
        status = msgspec.structs.replace(
            pod.status, init_container_statuses=[ContainerStatus(name="s", resources=grown)]
        )
        assert placed_requests(msgspec.structs.replace(pod, status=status)).amounts == {"cpu": milli_cpu}


def test_what_is_reported_of_the_whole_pod_stands_for_its_containers():
    whole = ResourceRequirements(requests={"cpu": "3"})
    status = PodStatus(
        resources=whole,
        allocated_resources={"cpu": "2"},
        container_statuses=[ContainerStatus(name="c", allocated_resources={"cpu": "9"})],
    )
    assert placed_requests(msgspec.structs.replace(make_pod(cpu="1"), status=status)).amounts == {"cpu": 3000}


def test_pod_level_reports_count_also_for_what_the_spec_leaves_to_containers():
    pod = make_pod(containers=[make_container(memory="1Mi")], pod_level={"cpu": "2"})
    status = PodStatus(resources=ResourceRequirements(requests={"memory": "3Mi"}))
    assert placed_requests(msgspec.structs.replace(pod, status=status)).amounts == {"cpu": 2000, "memory": 3 * 2**20}


def test_a_resize_of_pod_level_requests_counts_for_placed_pods():
    pod = make_pod(pod_level={"cpu": "2"})
    status = PodStatus(resources=ResourceRequirements(requests={"cpu": "3"}), allocated_resources={"cpu": "2500m"})
    pod = msgspec.structs.replace(pod, status=status)
    assert pod_requests(pod).amounts == {"cpu": 2000}
    assert placed_requests(pod).amounts == {"cpu": 3000}


REQUESTS = st.one_of(st.none(), st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "1.0"])))
NAMES = st.sampled_from("abc")
CONTAINERS = st.lists(st.builds(lambda name, asked: make_container(name, requests=asked), NAMES, REQUESTS), max_size=3)
REPORTS = st.lists(
    st.builds(
        lambda name, given, allocated: ContainerStatus(
            name=name,
            resources=None if given is None else ResourceRequirements(requests=given),
            allocated_resources=allocated,
        ),
        NAMES,
        REQUESTS,
        REQUESTS,
    ),
    max_size=3,
)


@given(CONTAINERS, CONTAINERS, REPORTS, REPORTS, st.sampled_from([(), (INFEASIBLE,), (DEFERRED,)]))
def test_a_pod_takes_what_is_reported_of_it_however_little_of_that_need_be_read(
    containers, inits, of_containers, of_inits, conditions
):
    status = PodStatus(container_statuses=of_containers, init_container_statuses=of_inits, conditions=list(conditions))
    pod = msgspec.structs.replace(make_pod(containers=containers, init_containers=inits), status=status)
    assert PodInfo(pod).placed == placed_requests(pod)
