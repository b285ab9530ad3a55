import pytest

from bayplan.api.objects import Container, PodSpec, ResourceRequirements
from bayplan.api.quantity import QuantityError
from bayplan.server.resource_metrics import exact_limits, exact_requests

CORE = 1000


def container(requests=None, limits=None, **fields):
    return Container(resources=ResourceRequirements(requests=requests, limits=limits), **fields)


def test_limits_are_summed_as_requests_are():
    spec = PodSpec(
        containers=[container({"cpu": "1"}, {"cpu": "2"}), container({"cpu": "1"}, {"cpu": "500m", "memory": "1"})],
        init_containers=[container({"cpu": "9"}, {"cpu": "10"})],
    )
    assert exact_requests(spec) == {"cpu": 9 * CORE}
    assert exact_limits(spec) == {"cpu": 10 * CORE, "memory": CORE}


def test_a_sidecar_counts_beside_the_containers():
    spec = PodSpec(
        containers=[container(limits={"cpu": "1"})],
        init_containers=[container(limits={"cpu": "2"}, restart_policy="Always")],
    )
    assert exact_limits(spec) == {"cpu": 3 * CORE}


def test_pod_level_resources_stand_for_those_of_containers():
    resources = ResourceRequirements(requests={"cpu": "5"}, limits={"cpu": "6", "example.com/gpu": "1"})
    spec = PodSpec(containers=[container({"cpu": "1"}, {"cpu": "2"})], resources=resources)
    assert (exact_requests(spec), exact_limits(spec)) == ({"cpu": 5 * CORE}, {"cpu": 6 * CORE})


def test_overhead_is_requested_and_counts_to_limits_that_there_are():
    spec = PodSpec(containers=[container({"cpu": "1"}, {"memory": "1"})], overhead={"cpu": "1", "memory": "2"})
    assert exact_requests(spec) == {"cpu": 2 * CORE, "memory": 2 * CORE}
    assert exact_limits(spec) == {"memory": 3 * CORE}


def test_a_limit_that_cannot_be_read_is_an_error_with_its_field():
    with pytest.raises(QuantityError, match=r"spec.containers\[0\].resources.limits\[cpu\]"):
        exact_limits(PodSpec(containers=[container(limits={"cpu": "many"})]))
