from math import ceil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_container, make_node, make_pod
from tests.reference import requests as oracle

from bayplan.api.objects import Condition, ContainerStatus, Pod, ResourceRequirements
from bayplan.api.quantity import MAX_AMOUNT, TOO_MUCH, QuantityError
from bayplan.cache.resources import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    is_extended,
    is_scalar,
    node_allocatable,
    placed_requests,
    pod_requests,
)

GI = 2**30
INFEASIBLE = Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = Condition(type="PodResizePending", status="True", reason="Deferred")


def _sidecar(name="s", **requests):
    return make_container(name, requests=requests, restart_policy="Always")


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("example.com/gpu", True, True),
        ("nvidia.com/gpu.shared", True, True),
        ("hugepages-2Mi", False, True),
        ("hugepages-", False, True),
        ("kubernetes.io/foo", False, True),
        ("sub.kubernetes.io/foo", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("requests.example.com/gpu", False, False),
        ("cpu", False, False),
        ("memory", False, False),
        ("ephemeral-storage", False, False),
        ("pods", False, False),
        ("gpu", False, False),
        ("", False, False),
        ("/", False, False),
        ("/gpu", False, False),
        ("example.com/", False, False),
        ("example.com/a/b", False, False),
        ("Example.com/gpu", False, False),
        ("example.com/-gpu", False, False),
        ("example.com/" + "a" * 63, True, True),
        ("example.com/" + "a" * 64, False, False),
        ("a" * 63 + "." + "b" * 63 + "." + "c" * 63 + "." + "d" * 52 + "/gpu", True, True),
        ("a" * 63 + "." + "b" * 63 + "." + "c" * 63 + "." + "d" * 53 + "/gpu", False, False),
    ],
)
def test_resource_names_are_told_apart(name, extended, scalar):
    assert is_extended(name) is extended
    assert is_scalar(name) is scalar


def test_containers_add_up_and_untracked_names_and_zeros_are_left_out():
    first = make_container(cpu="500m", memory="1Gi", requests={"example.com/gpu": 1, "gpu": 5, "pods": 3})
    second = make_container(cpu="1", memory=0, requests={"hugepages-2Mi": "4Mi", "example.com/none": 0})
    requests = pod_requests(make_pod(containers=[first, second]))
    assert requests.amounts == {"cpu": 1500, "memory": GI, "example.com/gpu": 1, "hugepages-2Mi": 4 * 2**20}


def test_each_amount_is_rounded_up_to_a_thousandth_as_it_is_stored_and_the_sum_to_what_counts():
    halves = make_pod(containers=[make_container(cpu="1.5m", memory="500m")] * 2)
    assert pod_requests(halves).amounts == {"cpu": 4, "memory": 1}
    assert pod_requests(make_pod(cpu="1.5m")).amounts == {"cpu": 2}
    tenths = make_pod(containers=[make_container(cpu="0.1n")] * 3, overhead={"cpu": "0.0001"})
    assert pod_requests(tenths).amounts == {"cpu": 4}
    assert pod_requests(make_pod(containers=[make_container(cpu="1.0001")] * 2)).amounts == {"cpu": 2002}
    assert node_allocatable(make_node("n", cpu="1.0001"))["cpu"] == 1001


def test_init_containers_raise_the_request_to_their_peak():
    pod = make_pod(cpu="1", memory="1Gi", init_containers=[make_container(cpu="3"), make_container(memory="512Mi")])
    assert pod_requests(pod).amounts == {"cpu": 3000, "memory": GI}


def test_sidecars_run_beside_the_containers_and_the_init_containers_after_them():
    early = make_pod(cpu="1", init_containers=[_sidecar(cpu="2"), make_container(cpu="2")])
    late = make_pod(cpu="1", init_containers=[make_container(cpu="2"), _sidecar(cpu="2")])
    assert pod_requests(early).amounts == {"cpu": 4000}
    assert pod_requests(late).amounts == {"cpu": 3000}


def test_pod_level_requests_replace_the_named_sums_and_overhead_comes_on_top():
    pod = make_pod(
        cpu="1",
        memory="1Gi",
        requests={"ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"},
        pod_level={"cpu": "3", "hugepages-2Mi": "8Mi", "ephemeral-storage": "9Gi"},
        overhead={"cpu": "250m"},
    )
    requests = pod_requests(pod)
    assert requests.amounts == {"cpu": 3250, "memory": GI, "ephemeral-storage": GI, "hugepages-2Mi": 8 * 2**20}
    assert requests.scoring_amounts == {"cpu": 1250, "memory": GI, "ephemeral-storage": GI, "hugepages-2Mi": 2**21}
    assert requests.scoring_cpu == 1250
    assert requests.non_zero_cpu == 3250


def test_defaults_apply_per_container_and_only_where_the_name_is_absent():
    absent = pod_requests(make_pod(containers=[make_container()] * 3))
    assert absent.amounts == {}
    assert (absent.scoring_cpu, absent.scoring_memory) == (3 * DEFAULT_MILLI_CPU, 3 * DEFAULT_MEMORY)
    assert (absent.non_zero_cpu, absent.non_zero_memory) == (3 * DEFAULT_MILLI_CPU, 3 * DEFAULT_MEMORY)
    zero = pod_requests(make_pod(cpu=0, memory="0"))
    assert (zero.scoring_cpu, zero.scoring_memory, zero.non_zero_cpu, zero.non_zero_memory) == (0, 0, 0, 0)
    null = pod_requests(make_pod(requests={"cpu": None}))
    assert (null.scoring_cpu, null.scoring_memory) == (0, DEFAULT_MEMORY)


def test_defaults_apply_to_init_containers_too():
    pod = make_pod(cpu="50m", memory="1Mi", init_containers=[make_container()])
    requests = pod_requests(pod)
    assert requests.amounts == {"cpu": 50, "memory": 2**20}
    assert (requests.scoring_cpu, requests.scoring_memory) == (DEFAULT_MILLI_CPU, DEFAULT_MEMORY)


def test_with_pod_level_requests_placed_pods_default_only_what_nobody_names():
    requests = pod_requests(make_pod(containers=[make_container()] * 2, pod_level={"cpu": "2"}))
    assert requests.amounts == {"cpu": 2000}
    assert (requests.non_zero_cpu, requests.non_zero_memory) == (2000, 2 * DEFAULT_MEMORY)
    assert (requests.scoring_cpu, requests.scoring_memory) == (2 * DEFAULT_MILLI_CPU, 2 * DEFAULT_MEMORY)
    one = pod_requests(make_pod(containers=[make_container(memory="1Mi"), make_container()], pod_level={"cpu": "2"}))
    assert one.non_zero_memory == 2**20


def test_with_pod_level_requests_overhead_counts_as_naming_a_resource():
    requests = pod_requests(make_pod(pod_level={"cpu": "2"}, overhead={"memory": "1Mi"}))
    assert requests.non_zero_memory == 2**20
    assert requests.scoring_memory == DEFAULT_MEMORY + 2**20


@pytest.mark.parametrize("memory", ["9223372036854775807", "16Ei", "1e100", "1e1000000"])
def test_sums_of_huge_amounts_are_too_much_and_never_wrap(memory):
    requests = pod_requests(make_pod(containers=[make_container(cpu=memory, memory=memory)] * 3))
    assert requests.amounts == {"cpu": TOO_MUCH, "memory": TOO_MUCH}
    assert requests.non_zero_cpu == requests.scoring_memory == TOO_MUCH


def test_amounts_that_only_their_sum_makes_too_much():
    containers = [make_container(memory=str(MAX_AMOUNT)), make_container(memory="1")]
    assert pod_requests(make_pod(containers=containers[:1])).amounts == {"memory": MAX_AMOUNT}
    assert pod_requests(make_pod(containers=containers)).amounts == {"memory": TOO_MUCH}


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (
            make_pod(containers=[make_container(), make_container(cpu="1x")]),
            "spec.containers[1].resources.requests[cpu]",
        ),
        (make_pod(init_containers=[make_container(memory="")]), "spec.initContainers[0].resources.requests[memory]"),
        (make_pod(overhead={"cpu": "1K"}), "spec.overhead[cpu]"),
        (make_pod(pod_level={"cpu": "NaN"}), "spec.resources.requests[cpu]"),
        (make_pod(requests={"\x1b[31m": "x"}), "spec.containers[0].resources.requests['\\x1b[31m']"),
    ],
    ids=["container", "init container", "overhead", "pod level", "hostile name"],
)
def test_an_unreadable_quantity_is_reported_by_its_field(pod, path):
    for read in (pod_requests, placed_requests):
        with pytest.raises(QuantityError) as refusal:
            read(pod)
        assert str(refusal.value).startswith(f"{path}: not a quantity: ")


def test_a_node_offers_its_tracked_allocatable_amounts():
    node = make_node(
        cpu="3920m", memory="7.5Gi", pods="110", allocatable={"example.com/gpu": 8, "gpu": 2, "ephemeral-storage": "1k"}
    )
    assert node_allocatable(node) == {
        "cpu": 3920,
        "memory": 7680 * 2**20,
        "pods": 110,
        "example.com/gpu": 8,
        "ephemeral-storage": 1000,
    }


def test_a_node_never_offers_too_much_or_less_than_nothing():
    node = make_node(cpu="1e100", memory="16Ei", pods="-1")
    assert node_allocatable(node) == {"cpu": MAX_AMOUNT, "memory": MAX_AMOUNT, "pods": 0}


def test_a_node_without_allocatable_offers_nothing():
    node = make_node()
    bare = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=None))
    assert node_allocatable(bare) == {}


def test_an_unreadable_quantity_of_a_node_is_reported_by_its_field():
    with pytest.raises(QuantityError, match=r"^status\.allocatable\[memory\]: not a quantity: '1gb'$"):
        node_allocatable(make_node(memory="1gb"))


quantities = st.sampled_from(["0", "1", "1.5m", "0.1n", "250m", "1Gi", "1.5Ki", "1e3", 2, 0.5, None])
names = st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "gpu"])
amounts = st.dictionaries(names, quantities, max_size=4)
maybe_amounts = st.none() | amounts
statuses = st.none() | st.lists(
    st.builds(
        ContainerStatus,
        name=st.sampled_from(["c0", "c1", "i0", "i1"]),
        resources=st.none() | st.builds(ResourceRequirements, requests=maybe_amounts),
        allocated_resources=maybe_amounts,
    ),
    max_size=3,
    unique_by=lambda status: status.name,
)


@st.composite
def pods(draw):
    policies = st.sampled_from([None, "Always"])
    containers = [
        make_container(f"c{i}", requests=wanted) for i, wanted in enumerate(draw(st.lists(amounts, max_size=3)))
    ]
    inits = [
        make_container(f"i{i}", requests=wanted, restart_policy=policy)
        for i, (wanted, policy) in enumerate(draw(st.lists(st.tuples(amounts, policies), max_size=3)))
    ]
    pod = make_pod(
        containers=containers,
        init_containers=inits,
        overhead=draw(maybe_amounts),
        pod_level=draw(maybe_amounts),
        conditions=draw(st.sampled_from([[], [INFEASIBLE], [DEFERRED]])),
        container_statuses=draw(statuses) or [],
    )
    resources = draw(st.none() | st.builds(ResourceRequirements, requests=maybe_amounts))
    status = msgspec.structs.replace(pod.status, resources=resources, allocated_resources=draw(maybe_amounts))
    return msgspec.structs.replace(pod, status=status)


def _rounded(exact):
    tracked = {n: ceil(a * 1000) if n == "cpu" else ceil(a) for n, a in exact.items() if n != "gpu"}
    return {name: amount for name, amount in tracked.items() if amount}


def _cpu_and_memory(exact):
    return ceil(exact.get("cpu", 0) * 1000), ceil(exact.get("memory", 0))


@given(pods())
def test_requests_agree_with_a_slow_reading_of_the_rules(pod: Pod):
    incoming, placed = pod_requests(pod), placed_requests(pod)
    assert incoming.amounts == _rounded(oracle.requests(pod))
    assert placed.amounts == _rounded(oracle.requests(pod, placed=True))
    assert incoming.scoring_amounts == _rounded(oracle.requests(pod, pod_level=False))
    scoring = oracle.requests(pod, pod_level=False, defaults=True)
    assert (incoming.scoring_cpu, incoming.scoring_memory) == _cpu_and_memory(scoring)
    non_zero = oracle.requests(pod, defaults=True, placed=True)
    assert (placed.non_zero_cpu, placed.non_zero_memory) == _cpu_and_memory(non_zero)


def test_pods_that_ask_for_the_same_share_one_answer():
    shared = pod_requests(make_pod("a", cpu="1500m", memory="1Gi", labels={"app": "a"}))
    assert pod_requests(make_pod("b", cpu="1500m", memory="1Gi")) is shared
    assert pod_requests(make_pod("b", cpu="1500m", memory="2Gi")).amounts != shared.amounts


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(containers=[make_container(f"c{i}", cpu="1m") for i in range(500)]),
        make_pod(containers=[make_container(cpu="500m", image="\ud800")]),
    ],
    ids=["larger than what is remembered", "of text that nothing can carry"],
)
def test_pods_that_are_not_remembered_are_read_each_time(pod):
    first, second = pod_requests(pod), pod_requests(pod)
    assert first == second
    assert first is not second
    assert first.amounts["cpu"] == 500
