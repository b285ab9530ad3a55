"""What `bayplan simulate` refuses of a file is what the API server refuses, and what it admits it admits."""

from typing import Any

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import ApiClient, ApiError, path_of
from e2e.controlplane.openapi_document import FILE, OPTIONS, published
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import DRY_RUN

from bayplan.api.quantity import milli
from bayplan.simulate.validation import READ, published_errors

pytestmark = pytest.mark.controlplane

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
STRICT = f"{DRY_RUN}&fieldValidation=Strict"


def spread(**fields: object) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    return {"topologySpreadConstraints": [{**constraint, **fields}]}


def tolerating(**fields: object) -> dict[str, Any]:
    return {"tolerations": [fields]}


def asking(**resources: object) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


def near(**affinity: object) -> dict[str, Any]:
    return {"affinity": affinity}


def on_nodes(*terms: object) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return near(nodeAffinity={required: {"nodeSelectorTerms": list(terms)}})


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "disk", "operator": operator, "values": list(values)}]}


def beside(**term: object) -> dict[str, Any]:
    return near(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [term]})


def preferring(weight: int) -> dict[str, Any]:
    term = {"weight": weight, "preference": expression("Exists")}
    return near(nodeAffinity={"preferredDuringSchedulingIgnoredDuringExecution": [term]})


def container(**fields: object) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


def listening(**port: object) -> dict[str, Any]:
    return {"containers": [container(ports=[port])]}


def probed(**action: object) -> dict[str, Any]:
    return {"containers": [container(livenessProbe=action)]}


def scratch(*modes: str) -> dict[str, Any]:
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": "1.0001"}}}
    return {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}


MOUNTING = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
GATED = {"schedulingGates": [{"name": "example.com/quota"}]}

REFUSED: list[dict[str, Any]] = [
    {"nodeSelectr": {}},
    {"nodeSelector": {"a": "b c"}},
    {"nodeSelector": {"a": 1}},
    {"toleration": []},
    spread(maxSkew=0),
    spread(maxSkew="1"),
    spread(maxSkew=2**31),
    spread(minDomains=0),
    spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
    spread(whenUnsatisfiable="DoNotSchedul"),
    spread(whenUnsatisfiable=None),
    spread(topologyKey=""),
    spread(nodeTaintsPolicy="Honour"),
    spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["b"]}]}),
    spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
    tolerating(key="a", operator="Equals"),
    tolerating(key="a", operator="Exists", value="b"),
    tolerating(key="a", effect="NoScedule"),
    tolerating(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=5),
    tolerating(operator="Equal"),
    tolerating(key="a b", operator="Exists"),
    asking(request={"cpu": 1}),
    asking(requests={"mem": "1Gi"}),
    asking(requests={"cpu": "x"}),
    asking(requests={"cpu": "-1"}),
    asking(requests={"cpu": 2}, limits={"cpu": 1}),
    asking(requests={"example.com/gpu": 1}),
    on_nodes(),
    on_nodes(expression("Is", "ssd")),
    on_nodes(expression("In")),
    on_nodes(expression("Exists", "ssd")),
    beside(labelSelector=SELECTOR),
    beside(labelSelector=SELECTOR, topologyKey="a b"),
    preferring(0),
    preferring(101),
    {"containers": []},
    {"restartPolicy": "Sometimes"},
    listening(containerPort=99999),
    listening(containerPort=80, hostPort=70000),
    listening(hostPort=80),
    {**listening(containerPort=80, hostPort=81), "hostNetwork": True},
    probed(periodSeconds=5),
    probed(httpGet={}),
    probed(tcpSocket={"port": 0}),
    {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
    {"containers": [MOUNTING]},
    {"containers": [container(), container()]},
    {"initContainers": [container()]},
    {"schedulingGates": [{"name": "a b"}]},
    {**GATED, "nodeName": "n1"},
    asking(requests={"example.com/gpu": "0.5"}, limits={"example.com/gpu": "0.5"}),
    {"dnsPolicy": "None"},
    {"dnsPolicy": "None", "dnsConfig": {"searches": ["a"]}},
    {"hostPID": True, "shareProcessNamespace": True},
    {"os": {"name": "beos"}},
    {"ephemeralContainers": [container()]},
    scratch("ReadWriteOnce", "ReadWriteOncePod"),
]
ADMITTED: list[dict[str, Any]] = [
    {},
    {"nodeSelector": None, "priorityClassName": ""},
    spread(),
    spread(minDomains=2, nodeTaintsPolicy="Honor"),
    spread(whenUnsatisfiable="ScheduleAnyway", labelSelector=None),
    tolerating(operator="Exists"),
    tolerating(key="a", operator="", effect=""),
    tolerating(key="a", operator="Exists", effect="NoExecute", tolerationSeconds=5),
    asking(requests={"cpu": 1.5, "memory": "1Gi"}, limits={"cpu": "2"}),
    asking(limits={"example.com/gpu": 1, "ephemeral-storage": "1Gi"}),
    on_nodes(expression("In", "ssd"), expression("Gt", "5")),
    on_nodes(expression("Gt", "many")),
    beside(labelSelector=SELECTOR, topologyKey="zone"),
    preferring(100),
    listening(containerPort=80, hostPort=0),
    {**listening(containerPort=80, hostPort=80), "hostNetwork": True},
    probed(httpGet={"port": "http"}),
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]}, "os": {"name": "linux"}},
    asking(requests={"cpu": "1.0002"}, limits={"cpu": "1.0001"}),
    scratch("ReadWriteOncePod"),
    {"volumes": [{"name": "data", "configMap": None}], "containers": [MOUNTING]},
    GATED,
]


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def workload(kind: str, restart_policy: str, **spec: object) -> tuple[str, dict[str, Any]]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container()], "restartPolicy": restart_policy}}
    of_apps = {"selector": SELECTOR} if kind != "Job" else {}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": {**of_apps, "template": template}}
    return f"{kind.lower()}s", {**made, "spec": {**made["spec"], **spec}}  # type: ignore[dict-item]


RECREATE: dict[str, Any] = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
NOTHING_AT_ONCE: dict[str, Any] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
WORKLOADS_REFUSED = [
    workload("Deployment", "Never"),
    workload("DaemonSet", "OnFailure"),
    workload("Job", "Always"),
    workload("Deployment", "Always", strategy=RECREATE),
    workload("Deployment", "Always", strategy=NOTHING_AT_ONCE),
]
WORKLOADS_ADMITTED = [
    workload("Deployment", "Always", strategy={"rollingUpdate": {"maxSurge": 0}}),
    workload("Job", "Never"),
]


def is_admitted(client: ApiClient, spec: dict[str, Any]) -> bool:
    return is_taken(client, "pods", pod(spec))


def is_taken(client: ApiClient, plural: str, made: dict[str, Any]) -> bool:
    try:
        client.request("POST", path_of(plural, namespace="default") + STRICT, made)
    except ApiError as error:
        if error.status not in {400, 422}:
            raise
        return False
    return True


@pytest.mark.parametrize("spec", REFUSED, ids=str)
def test_what_the_api_server_refuses_is_refused(control_plane: ControlPlane, spec: dict[str, Any]) -> None:
    assert not is_admitted(control_plane.client, spec)
    assert published_errors("v1", "Pod", pod(spec))


@pytest.mark.parametrize("spec", ADMITTED, ids=str)
def test_what_the_api_server_admits_is_admitted(control_plane: ControlPlane, spec: dict[str, Any]) -> None:
    assert is_admitted(control_plane.client, spec)
    assert published_errors("v1", "Pod", pod(spec)) == []


def test_keys_of_annotations_are_refused_and_admitted_alike(control_plane: ControlPlane) -> None:
    for key, is_right in (("Example.com/Owner", True), ("a b", False)):
        made = pod({})
        made["metadata"]["annotations"] = {key: "x"}
        assert is_taken(control_plane.client, "pods", made) == is_right
        assert (published_errors("v1", "Pod", made) == []) == is_right


FINE = {"cpu": "1.0001", "memory": "0.1"}
STORED = {"cpu": "1001m", "memory": "100m"}


def test_each_amount_is_stored_as_it_is_read(control_plane: ControlPlane) -> None:
    client, asked = control_plane.client, {"requests": FINE, "limits": FINE}
    spec = {**asking(**asked), "resources": asked}
    found = client.request("POST", path_of("pods", namespace="default") + STRICT, pod(spec))["spec"]
    for each in (found["resources"], found["containers"][0]["resources"]):
        assert (each["requests"], each["limits"]) == (STORED, STORED)
    status = {"capacity": FINE, "allocatable": FINE}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fine"}, "status": status}
    stored = client.request("POST", path_of("nodes") + STRICT, node)["status"]
    assert (stored["capacity"], stored["allocatable"]) == (STORED, STORED)
    assert {name: milli(FINE[name]) for name in FINE} == {name: milli(STORED[name]) for name in STORED}


def test_each_amount_of_storage_and_overhead_is_stored_as_it_is_read(control_plane: ControlPlane) -> None:
    client, modes = control_plane.client, ["ReadWriteOnce"]
    claim = {"accessModes": modes, "resources": {"requests": {"storage": "1.0001"}}}
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "fine"}, "spec": claim}
    path = path_of("persistentvolumeclaims", namespace="default") + STRICT
    assert client.request("POST", path, made)["spec"]["resources"]["requests"]["storage"] == "1001m"
    spec = {"accessModes": modes, "capacity": {"storage": "1.0001"}, "hostPath": {"path": "/"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "fine"}, "spec": spec}
    stored = client.request("POST", path_of("persistentvolumes") + STRICT, volume)["spec"]
    assert stored["capacity"]["storage"] == "1001m"
    classes, runtime = "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "fine"}, "handler": "fine"}
    client.request("POST", classes, {**runtime, "overhead": {"podFixed": FINE}})

    def created() -> bool:
        try:
            client.request("POST", path_of("pods", namespace="default"), pod({"runtimeClassName": "fine"}))
        except ApiError:
            # Admission has not heard of the class yet.
            return False
        return True

    wait_until(created, "the pod")
    stored = client.request("GET", path_of("pods", "p", namespace="default"))["spec"]
    assert stored["overhead"] == STORED
    client.request("DELETE", path_of("pods", "p", namespace="default"), {"gracePeriodSeconds": 0})
    client.request("DELETE", f"{classes}/fine")


@pytest.mark.parametrize(("plural", "made"), WORKLOADS_REFUSED, ids=str)
def test_a_workload_that_the_api_server_refuses_is_refused(
    control_plane: ControlPlane, plural: str, made: dict[str, Any]
) -> None:
    assert not is_taken(control_plane.client, plural, made)
    assert published_errors(made["apiVersion"], made["kind"], made)


@pytest.mark.parametrize(("plural", "made"), WORKLOADS_ADMITTED, ids=str)
def test_a_workload_that_the_api_server_admits_is_admitted(
    control_plane: ControlPlane, plural: str, made: dict[str, Any]
) -> None:
    assert is_taken(control_plane.client, plural, made)
    assert published_errors(made["apiVersion"], made["kind"], made) == []


def test_the_document_is_the_one_that_the_api_server_publishes(start_control_plane: StartControlPlane) -> None:
    assert published(start_control_plane(OPTIONS), READ) == FILE.read_text()
