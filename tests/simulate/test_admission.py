"""What the API server would have made of objects from files."""

import math

import pytest
from msgspec import structs
from tests.builders import make_node, make_pod

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement, ObjectMeta
from bayplan.api.objects import (
    Container,
    ContainerPort,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.resources import node_allocatable, pod_requests
from bayplan.simulate.admission import Admission, created_at
from bayplan.simulate.admission_policies import policy
from bayplan.simulate.refusals import AdmissionError


def bare_pod(**spec):
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(**{"containers": [Container()], **spec}))


def priority_class(name, value, *, default=False, policy=None):
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default, preemption_policy=policy)


def with_limits(limits, requests=None):
    return Container(resources=ResourceRequirements(requests=requests, limits=limits))


def test_a_bare_pod_gets_the_api_servers_defaults():
    pod = Admission(()).pod(bare_pod())
    assert (pod.metadata.namespace, pod.metadata.uid) == ("default", "file:default/p")
    assert (pod.spec.scheduler_name, pod.spec.priority) == ("default-scheduler", 0)


def test_a_pod_from_a_cluster_passes_unchanged():
    pod = make_pod(cpu=1, priority=5)
    assert Admission([priority_class("d", 100, default=True)]).pod(pod) is pod


def test_requests_come_from_limits_only_where_they_are_missing():
    pod = Admission(()).pod(bare_pod(containers=[with_limits({"cpu": 2, "memory": "1Gi"}, {"cpu": 1})]))
    assert pod_requests(pod).amounts == {"cpu": 1000, "memory": 2**30}


def test_init_containers_get_requests_from_limits_too():
    pod = Admission(()).pod(bare_pod(init_containers=[with_limits({"cpu": 3})]))
    assert pod_requests(pod).amounts == {"cpu": 3000}


def test_ports_in_the_hosts_network_are_ports_of_the_host():
    ports = [ContainerPort(container_port=80), ContainerPort(container_port=443, host_port=443)]
    containers = {"containers": [Container(ports=ports)], "init_containers": [Container(ports=ports[:1])]}
    spec = Admission(()).pod(bare_pod(host_network=True, **containers)).spec
    assert [port.host_port for each in (*spec.containers, *spec.init_containers) for port in each.ports] == [
        80,
        443,
        80,
    ]
    spec = Admission(()).pod(bare_pod(**containers)).spec
    assert [port.host_port for port in spec.containers[0].ports] == [0, 443]


def test_an_added_pod_has_no_other_priority_than_its_class():
    admission = Admission([priority_class("high", 10)])
    for name, value in ((None, 0), ("high", 10)):
        assert admission.pod(bare_pod(priority=value, priority_class_name=name), is_added=True).spec.priority == value
        with pytest.raises(AdmissionError) as refused:
            admission.pod(bare_pod(priority=5, priority_class_name=name), is_added=True)
        assert str(refused.value) == f"spec.priority: Forbidden: 5; the PriorityClass gives {value}"


def test_a_pod_that_an_api_server_took_keeps_its_priority():
    meta = ObjectMeta(name="p", namespace="default", uid="u", resource_version="7")
    pod = structs.replace(bare_pod(priority=5, scheduler_name="bayplan"), metadata=meta)
    assert Admission(()).pod(pod, is_added=True) is pod


def test_the_class_gives_priority_and_preemption_policy():
    admission = Admission([priority_class("high", 10, policy="Never")])
    spec = admission.pod(bare_pod(priority_class_name="high")).spec
    assert (spec.priority, spec.preemption_policy) == (10, "Never")


def test_without_a_class_the_lowest_global_default_counts():
    admission = Admission([priority_class("a", 9, default=True), priority_class("b", 3, default=True)])
    assert admission.pod(bare_pod()).spec.priority == 3


def test_a_new_pod_stays_a_while_on_a_node_that_is_lost_unless_it_says_otherwise():
    def tolerations(*given):
        pod = Admission(()).pod(bare_pod(tolerations=list(given) or None))
        return [
            (each.key.removeprefix("node.kubernetes.io/"), each.toleration_seconds) for each in pod.spec.tolerations
        ]

    assert tolerations() == [("not-ready", 300), ("unreachable", 300)]
    own = Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute", toleration_seconds=7)
    assert tolerations(own) == [("not-ready", 7), ("unreachable", 300)]
    assert tolerations(Toleration(operator="Exists")) == [("", None)]
    assert tolerations(Toleration("gpu", "Exists")) == [("gpu", None), ("not-ready", 300), ("unreachable", 300)]


@pytest.mark.parametrize(
    ("name", "value", "default", "message"),
    [
        ("high", 10**9 + 1, False, "value: 1000000001 is above 1000000000"),
        ("system-mine", 5, False, "metadata.name: names that begin with system- are reserved"),
        ("system-node-critical", 5, False, "metadata.name: names that begin with system- are reserved"),
        ("second", 5, True, "globalDefault: PriorityClass first is the global default"),
    ],
)
def test_a_priority_class_that_the_api_server_would_refuse_is_refused_when_it_is_new(name, value, default, message):
    first = priority_class("first", 1, default=True)
    refused = priority_class(name, value, default=default)
    with pytest.raises(AdmissionError) as caught:
        policy(refused, [first])
    assert str(caught.value).startswith(message)
    stored = structs.replace(refused, metadata=structs.replace(refused.metadata, resource_version="7"))
    policy(stored, [first])
    policy(priority_class("highest", 10**9), [first])
    policy(priority_class("system-node-critical", 2_000_001_000), [first])


def test_system_classes_are_always_known():
    assert Admission(()).pod(bare_pod(priority_class_name="system-node-critical")).spec.priority == 2_000_001_000


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a..b", "a.-b", "a\n", "a" * 254])
def test_names_the_api_server_refuses_are_refused(name):
    with pytest.raises(AdmissionError, match=r"^metadata\.name: "):
        Admission(()).pod(Pod(metadata=ObjectMeta(name=name)))


def test_two_spread_constraints_of_a_kind_for_one_key_are_refused_as_by_the_api_server():
    zone = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
    soft = structs.replace(zone, when_unsatisfiable="ScheduleAnyway")
    assert Admission(()).pod(bare_pod(topology_spread_constraints=[zone, soft])).spec.topology_spread_constraints
    with pytest.raises(
        AdmissionError, match=r"topologySpreadConstraints\[2\]: Duplicate value: 'zone', 'DoNotSchedule'"
    ):
        Admission(()).pod(bare_pod(topology_spread_constraints=[zone, soft, zone]))


def test_creation_times_order_across_time_zones_and_missing_ones_come_last():
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:30:00+01:00", None]
    stamps = [created_at(make_pod(created=time)) for time in times]
    assert stamps[1] < stamps[0] < stamps[2] == math.inf


def test_a_node_without_allocatable_offers_its_capacity():
    node = make_node(cpu=4)
    bare = Admission(()).node(type(node)(metadata=node.metadata, status=NodeStatus(capacity={"cpu": "4"})))
    assert node_allocatable(bare) == {"cpu": 4000}
    assert Admission(()).node(node) is node


@pytest.mark.parametrize("field", ["capacity", "allocatable"])
def test_a_new_node_with_less_than_nothing_is_refused_and_a_stored_one_has_been_checked(field):
    node = structs.replace(make_node(cpu=4), status=NodeStatus(**{field: {"cpu": "-1"}}))
    new = structs.replace(node, metadata=structs.replace(node.metadata, resource_version=""))
    with pytest.raises(AdmissionError) as caught:
        Admission(()).node(new)
    assert str(caught.value) == f"status.{field}[cpu]: Invalid value: '-1': must be greater than or equal to 0"
    stored = structs.replace(node, metadata=structs.replace(node.metadata, resource_version="7"))
    assert node_allocatable(Admission(()).node(stored)) == {"cpu": 0}


def test_a_pods_azure_disk_of_no_kind_is_a_shared_one():
    disks = [Volume(name="a", azure_disk={"diskURI": "d"}), Volume(name="b", azure_disk={"kind": "Managed"})]
    pod = Admission(()).pod(bare_pod(volumes=[*disks, Volume(name="c")]))
    assert [volume.azure_disk for volume in pod.spec.volumes] == [
        {"diskURI": "d", "kind": "Shared"},
        {"kind": "Managed"},
        None,
    ]


APP = LabelSelector(match_labels={"app": "a"})


def term(**fields: object) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key="zone", **{"label_selector": APP, **fields})


def required(pod: Pod) -> PodAffinityTerm:
    block = pod.spec.affinity.pod_affinity
    return block.required_during_scheduling_ignored_during_execution[0]


def expressions(selector: LabelSelector) -> list[tuple[str, str, list[str] | None]]:
    return [(each.key, each.operator, each.values) for each in selector.match_expressions or ()]


def with_terms(*terms: PodAffinityTerm, labels: dict[str, str]) -> Pod:
    block = PodAffinity(required_during_scheduling_ignored_during_execution=list(terms))
    return make_pod(pod_affinity=block, labels=labels, resource_version="")


def test_label_keys_of_affinity_terms_are_written_into_their_selectors():
    wanted = term(match_label_keys=["version"], mismatch_label_keys=["tenant"])
    pod = Admission(()).pod(with_terms(wanted, labels={"version": "1", "tenant": "t"}))
    assert expressions(required(pod).label_selector) == [("version", "In", ["1"]), ("tenant", "NotIn", ["t"])]
    assert required(pod).label_selector.match_labels == {"app": "a"}


def test_a_label_that_is_selected_already_cannot_be_written_into_the_selector():
    with pytest.raises(AdmissionError, match="'app': exists in both matchLabelKeys and labelSelector"):
        Admission(()).pod(with_terms(term(match_label_keys=["app"]), labels={"app": "a"}))


def test_pod_level_limits_are_enough_for_what_the_containers_ask_for():
    whole = ResourceRequirements(limits={"cpu": "1"})
    pod = bare_pod(containers=[with_limits(None, {"cpu": "1500m"})], resources=whole)
    with pytest.raises(AdmissionError) as caught:
        Admission(()).pod(pod)
    assert str(caught.value) == (
        "spec.resources.requests: Invalid value: '1500m': must be less than or equal to cpu limit of 1"
    )


@pytest.mark.parametrize("whole", [{"requests": {"cpu": "3"}}, {"limits": {"cpu": "3"}}])
def test_huge_pages_of_containers_are_pod_level_limits_as_well(whole):
    pages = {"hugepages-2Mi": "4Mi"}
    pod = bare_pod(containers=[with_limits(pages, {"cpu": "1"})] * 2, resources=ResourceRequirements(**whole))
    found = Admission(()).pod(pod).spec.resources
    assert found.requests["hugepages-2Mi"] == found.limits["hugepages-2Mi"] == str(2 * 4 * 2**20)


def test_preferred_anti_affinity_is_merged_as_well():
    wish = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term(match_label_keys=["version"]))
    block = PodAffinity(preferred_during_scheduling_ignored_during_execution=[wish])
    pod = Admission(()).pod(make_pod(pod_anti_affinity=block, labels={"version": "1"}, resource_version=""))
    found = pod.spec.affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution[0]
    assert found.weight == 1
    assert expressions(found.pod_affinity_term.label_selector) == [("version", "In", ["1"])]


def test_keys_the_pod_has_no_label_for_and_terms_without_a_selector_add_nothing():
    pod = Admission(()).pod(with_terms(term(match_label_keys=["version"]), labels={"app": "a"}))
    assert required(pod).label_selector == APP
    pod = Admission(()).pod(with_terms(term(match_label_keys=["app"], label_selector=None), labels={"app": "a"}))
    assert required(pod).label_selector is None


def test_selectors_that_name_the_label_already_stay_as_they_are():
    merged = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["a"])])
    pod = with_terms(term(match_label_keys=["app"], label_selector=merged), labels={"app": "a"})
    assert Admission(()).pod(pod).spec.affinity == pod.spec.affinity


@pytest.mark.parametrize("created_with", [[], [LabelSelectorRequirement(key="app", operator="In", values=["old"])]])
def test_a_pod_from_a_live_cluster_keeps_its_selectors_though_its_labels_changed(created_with):
    selector = LabelSelector(match_expressions=created_with)
    block = PodAffinity(
        required_during_scheduling_ignored_during_execution=[term(match_label_keys=["app"], label_selector=selector)]
    )
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", label_selector=selector, match_label_keys=["app"], when_unsatisfiable=""
    )
    pod = make_pod(pod_affinity=block, spread=[constraint], labels={"app": "new"}, priority=0)
    assert Admission(()).pod(pod) is pod


def test_label_keys_of_spread_constraints_are_written_into_their_selectors():
    def constraint(key: str, label_keys: list[str] | None) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(
            max_skew=1, topology_key=key, label_selector=APP, match_label_keys=label_keys, when_unsatisfiable=""
        )

    spread = [constraint("zone", ["version"]), constraint("host", None)]
    pod = Admission(()).pod(make_pod(spread=spread, labels={"version": "1"}, resource_version=""))
    first, second = pod.spec.topology_spread_constraints
    assert expressions(first.label_selector) == [("version", "In", ["1"])]
    assert second.label_selector == APP


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (PodSpec(containers=[]), "spec.containers: Required value"),
        (
            PodSpec(containers=[Container(), with_limits(None, {"cpu": "-1"})]),
            "spec.containers[1].resources.requests[cpu]: Invalid value: '-1': must be greater than or equal to 0",
        ),
        (
            PodSpec(containers=[Container()], init_containers=[with_limits({"a": -2})]),
            "spec.initContainers[0].resources.limits[a]: Invalid value: -2: must be greater than or equal to 0",
        ),
        (
            PodSpec(containers=[with_limits({"cpu": "1"}, {"example.com/gpu": "1"})]),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            PodSpec(containers=[with_limits({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "2Mi"})]),
            "spec.containers[0].resources.requests: Invalid value: '2Mi': must be equal to hugepages-2Mi limit of 4Mi",
        ),
    ],
)
def test_a_new_pod_has_containers_no_negative_amounts_and_limits_of_devices(spec, message):
    with pytest.raises(AdmissionError) as caught:
        Admission(()).pod(Pod(metadata=ObjectMeta(name="p"), spec=spec))
    assert str(caught.value) == message
    Admission(()).pod(Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[with_limits(None, {"cpu": "-0"})])))


def test_what_cannot_be_overcommitted_may_have_its_limit_written_otherwise_and_a_stored_pod_has_been_checked():
    same = PodSpec(containers=[with_limits({"example.com/gpu": "1000m"}, {"example.com/gpu": 1})])
    assert Admission(()).pod(Pod(metadata=ObjectMeta(name="p"), spec=same)).spec.containers == same.containers
    stored = ObjectMeta(name="p", resource_version="7")
    bare = PodSpec(containers=[with_limits(None, {"example.com/gpu": "1"})])
    assert Admission(()).pod(Pod(metadata=stored, spec=bare)).spec.containers == bare.containers
