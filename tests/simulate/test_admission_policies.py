"""What new pods get of RuntimeClasses and LimitRanges, and what they are refused for."""

import json

import pytest
from msgspec import structs
from tests.simulate.test_admission import bare_pod, priority_class, with_limits

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Toleration
from bayplan.api.workload_objects import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
    Overhead,
    RuntimeClass,
    RuntimeClassScheduling,
)
from bayplan.cache.resources import pod_requests
from bayplan.simulate.admission import Admission
from bayplan.simulate.admission_policies import AdmissionPolicies
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.refusals import AdmissionError

TOLERATION = Toleration("sandboxed", "Exists")
SANDBOX = RuntimeClass(
    ObjectMeta(name="kata"),
    Overhead({"cpu": "250m"}),
    RuntimeClassScheduling({"runtime": "kata"}, [TOLERATION]),
)


def admitted(pod, *objects):
    return Admission((), policies=AdmissionPolicies(objects)).pod(pod)


def limits(namespace="default", **item):
    return LimitRange(ObjectMeta(name="l", namespace=namespace), LimitRangeSpec([LimitRangeItem("Container", **item)]))


def refusal(pod, *objects):
    with pytest.raises(AdmissionError) as caught:
        admitted(pod, *objects)
    return str(caught.value)


def test_a_pod_gets_the_overhead_the_node_selector_and_the_tolerations_of_its_runtime_class():
    own = {"node_selector": {"disk": "nvme"}, "tolerations": [TOLERATION]}
    spec = admitted(bare_pod(runtime_class_name="kata", containers=[with_limits({"cpu": 1})], **own), SANDBOX).spec
    assert pod_requests(bare_pod(containers=spec.containers, overhead=spec.overhead)).amounts == {"cpu": 1250}
    assert spec.node_selector == {"disk": "nvme", "runtime": "kata"}
    assert [each.key for each in spec.tolerations].count("sandboxed") == 1
    assert admitted(bare_pod(runtime_class_name="kata"), SANDBOX).spec.tolerations[0] == TOLERATION
    assert admitted(bare_pod(), SANDBOX).spec.overhead is None


def test_what_a_pod_says_otherwise_than_its_runtime_class_is_refused():
    pod = bare_pod(runtime_class_name="kata")

    def saying(**spec):
        return structs.replace(pod, spec=structs.replace(pod.spec, **spec))

    assert refusal(saying(overhead={"cpu": "1"}), SANDBOX).startswith("spec.overhead: Forbidden")
    assert refusal(saying(node_selector={"runtime": "runc"}), SANDBOX).startswith("spec.nodeSelector[runtime]")
    assert admitted(saying(overhead={"cpu": "0.25"}, node_selector={"runtime": "kata"}), SANDBOX).spec.overhead


def test_a_runtime_class_that_is_not_there_is_refused():
    pod = bare_pod(runtime_class_name="kata")
    assert refusal(pod) == "spec.runtimeClassName: no RuntimeClass with name 'kata' was found"
    stored = structs.replace(pod, metadata=structs.replace(pod.metadata, resource_version="7"))
    assert admitted(stored).spec.overhead is None


def test_containers_get_the_limits_and_requests_that_the_limit_ranges_of_their_namespace_give():
    def resources(container, *objects):
        found = admitted(bare_pod(containers=[container]), *objects).spec.containers[0].resources
        return found and (found.limits, found.requests)

    both = limits(default={"cpu": "2"}, default_request={"cpu": "1"})
    assert resources(bare_pod().spec.containers[0], both) == ({"cpu": "2"}, {"cpu": "1"})
    assert resources(with_limits({"cpu": "3"}), both) == ({"cpu": "3"}, {"cpu": "3"})
    assert resources(with_limits({"memory": "1"}), limits(default={"cpu": "2"})) == (
        {"memory": "1", "cpu": "2"},
        {"memory": "1", "cpu": "2"},
    )
    # Without defaults, the bounds are.
    bounds = limits(max={"cpu": "4"}, min={"cpu": "1", "memory": "1Gi"})
    assert resources(bare_pod().spec.containers[0], bounds) == ({"cpu": "4"}, {"cpu": "4", "memory": "1Gi"})
    assert resources(bare_pod().spec.containers[0], limits("other", default={"cpu": "2"})) is None
    pods = LimitRange(both.metadata, LimitRangeSpec([LimitRangeItem("Pod", max={"cpu": "2"})]))
    assert resources(bare_pod().spec.containers[0], pods) is None


def test_init_containers_get_them_too_and_what_comes_of_it_is_checked():
    init = bare_pod(init_containers=[with_limits(None)])
    spec = admitted(init, limits(default={"cpu": "2"})).spec
    assert spec.init_containers[0].resources.requests == {"cpu": "2"}
    large = bare_pod(containers=[with_limits(None, {"cpu": "3"})])
    assert "must be less than or equal to cpu limit of 2" in refusal(large, limits(default={"cpu": "2"}))


def test_a_namespace_that_is_not_there_is_refused_where_an_api_server_gave_the_namespaces():
    pod = bare_pod()
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, namespace="shop"))
    written, given = (Namespace(ObjectMeta(name="a", resource_version=version)) for version in ("", "7"))
    assert refusal(pod, given) == "metadata.namespace: no Namespace with name 'shop' was found"
    shop = Namespace(ObjectMeta(name="shop"))
    for objects in ((), (written,), (given, shop)):
        assert admitted(pod, *objects).metadata.namespace == "shop"
    assert admitted(bare_pod(), given).metadata.namespace == "default"


@pytest.mark.parametrize(("of_class", "own"), [("Never", "PreemptLowerPriority"), (None, "Never")])
def test_a_new_pod_does_not_say_otherwise_than_its_class_whether_it_preempts(of_class, own):
    admission = Admission([priority_class("high", 10, policy=of_class)])
    pod = bare_pod(priority_class_name="high", preemption_policy=own)
    with pytest.raises(AdmissionError, match=r"spec\.preemptionPolicy: Forbidden: "):
        admission.pod(pod)
    same = bare_pod(priority_class_name="high", preemption_policy=of_class)
    assert admission.pod(same).spec.preemption_policy == of_class
    assert Admission(()).pod(bare_pod(preemption_policy="PreemptLowerPriority")).spec.priority == 0


NODE = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 4, "pods": 9}}}
CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "1"}},
}
RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]},
}
POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"runtimeClassName": "kata", "containers": [{"name": "c"}]}}


def test_both_are_read_from_files_and_can_be_added_and_removed(tmp_path):
    files = {}
    for name, objects in (("in", [NODE, CLASS, RANGE, POD]), ("more", [{**CLASS, "overhead": {}}])):
        files[name] = str(tmp_path / name)
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def cpu(**changes):
        (pod,) = read_cluster([files["in"]], Changes(**changes)).pods
        return pod.requests.amounts.get("cpu", 0)

    assert cpu() == 3000
    assert cpu(add=[files["more"]]) == 2000
    assert cpu(remove=["limitrange/l"]) == cpu(remove=["limits/default/l"]) == 1000
    without = read_cluster([files["in"]], Changes(remove=["runtimeclasses/kata"]))
    assert [each.message.partition(":")[0] for each in without.skipped] == ["spec.runtimeClassName"]
    with pytest.raises(ClusterFileError, match="there is no LimitRange 'm' in namespace default"):
        cpu(remove=["limitranges/m"])


@pytest.mark.parametrize(
    ("schedule", "is_valid"),
    [
        ("*/5 0-23 1,15 jan mon-fri", True),
        ("0 0 * * 0", True),
        ("@hourly", True),
        ("@every 1h30m", True),
        ("60 * * * *", False),
        ("* 24 * * *", False),
        ("* * 0 * *", False),
        ("* * * 13 *", False),
        ("* * * * 99", False),
        ("* * * *", False),
        ("* * * * * *", False),
        (f"{'9' * 5000} * * * *", False),
    ],
)
def test_a_cron_job_with_a_schedule_that_is_none_is_refused(tmp_path, schedule, is_valid):
    template = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    cron = {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "c"}}
    file = tmp_path / "in"
    file.write_text(json.dumps({**cron, "spec": {"schedule": schedule, "jobTemplate": {"spec": template}}}))
    if is_valid:
        assert len(read_cluster([str(file)]).pods) == 1
        return
    with pytest.raises(ClusterFileError, match=r"spec\.schedule: Invalid value: "):
        read_cluster([str(file)])
