"""What the API server fills into pod-level requests."""

import pytest
from tests.builders import make_container

from bayplan.api.objects import Container, PodSpec, ResourceRequirements
from bayplan.api.quantity import milli
from bayplan.simulate.admission import with_pod_level_requests
from bayplan.simulate.refusals import AdmissionError, check_containers

GI = 2**30


def requests_of(*containers, requests=None, limits=None, inits=()):
    """The pod-level requests that come of it, by name, in whole units."""
    resources = ResourceRequirements(requests=requests, limits=limits)
    found = with_pod_level_requests(
        PodSpec(containers=list(containers), init_containers=list(inits), resources=resources)
    )
    return {name: milli(quantity) / 1000 for name, quantity in (found.requests or {}).items()}


def huge(size, *, limit=None):
    return Container(resources=ResourceRequirements(requests={"hugepages-2Mi": size}, limits=limit))


def test_limits_stand_in_only_for_what_no_container_asks_for():
    assert requests_of(make_container(cpu=1), limits={"cpu": 4, "memory": "2Gi"}) == {"cpu": 1, "memory": 2 * GI}


def test_pods_with_pod_level_requests_alone_are_completed_too():
    containers = [make_container(cpu="250m", memory="1Gi"), make_container(memory="1Gi")]
    assert requests_of(*containers, requests={"cpu": 3}) == {"cpu": 3, "memory": 2 * GI}


def test_init_containers_and_sidecars_count_as_they_run():
    sidecar = make_container(cpu=1, restart_policy="Always")
    assert requests_of(make_container(cpu=1), limits={"memory": "1Gi"}, inits=[sidecar]) == {"cpu": 2, "memory": GI}
    assert requests_of(make_container(cpu=1), limits={"memory": "1Gi"}, inits=[make_container(cpu=4)])["cpu"] == 4


def test_huge_pages_come_from_limits():
    limit = {"hugepages-2Mi": "64Mi"}
    both = [huge("64Mi", limit=limit)] * 2
    assert requests_of(*both, requests={"cpu": 1}) == {"cpu": 1, "hugepages-2Mi": 128 * 2**20}
    with pytest.raises(AdmissionError, match="Limit must be set"):
        check_containers(PodSpec(containers=[huge("64Mi")]))
    assert requests_of(*both, requests={"hugepages-2Mi": "256Mi"})["hugepages-2Mi"] == 256 * 2**20
    assert requests_of(*both, limits={"hugepages-2Mi": "512Mi"}) == {"hugepages-2Mi": 512 * 2**20}


def test_other_resources_stay_with_their_containers():
    gpu = Container(resources=ResourceRequirements(requests={"example.com/gpu": 1, "ephemeral-storage": "1Gi"}))
    assert requests_of(gpu, requests={"cpu": 1}, limits={"ephemeral-storage": "2Gi"}) == {"cpu": 1}


def test_pods_without_any_stay_as_they_are():
    spec = PodSpec(containers=[make_container(cpu=1)])
    assert with_pod_level_requests(spec) is None
    empty = ResourceRequirements()
    assert with_pod_level_requests(PodSpec(containers=spec.containers, resources=empty)) is empty


def test_what_cannot_be_read_is_left_to_be_reported_with_the_pod():
    own = ResourceRequirements(requests={"cpu": "1"})
    assert with_pod_level_requests(PodSpec(containers=[make_container(cpu="x")], resources=own)) is own
