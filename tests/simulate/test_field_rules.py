"""What the API server refuses of the fields that decisions read, beyond types and enumerations."""

import pytest

from bayplan.simulate.openapi import published_errors

CONTAINER = {"name": "c", "image": "i"}


def errors(api_version, kind, spec):
    made = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return list(map(str, published_errors(api_version, kind, made)))


def errors_of_pod(**spec):
    return errors("v1", "Pod", {"containers": [CONTAINER], **spec})


def errors_of_container(**fields):
    return errors_of_pod(containers=[{**CONTAINER, **fields}])


def errors_of_workload(kind, template=None, api_version="apps/v1", **spec):
    of_pod = {"containers": [CONTAINER], **(template or {})}
    metadata = {"labels": {"a": "b"}}
    selector = {"selector": {"matchLabels": {"a": "b"}}} if api_version == "apps/v1" else {}
    return errors(api_version, kind, {**selector, "template": {"metadata": metadata, "spec": of_pod}, **spec})


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ({"containerPort": 99999}, "containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive"),
        ({"containerPort": 0}, "containerPort: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"hostPort": 80}, "containerPort: Required value"),
        (
            {"containerPort": 80, "hostPort": 70000},
            "hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
    ],
)
def test_a_port_is_one_of_65535(port, message):
    assert errors_of_container(ports=[port]) == [f"spec.containers[0].ports[0].{message}"]


def test_a_host_port_of_0_is_none():
    assert errors_of_container(ports=[{"containerPort": 65535, "hostPort": 0}]) == []


def test_in_the_hosts_network_a_host_port_is_the_containers():
    containers = [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 81}]}]
    assert errors_of_pod(containers=containers) == []
    assert errors_of_pod(containers=containers, hostNetwork=True) == [
        "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    ]
    containers = [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 9}]}]
    assert errors_of_pod(containers=containers, hostNetwork=True) == []


@pytest.mark.parametrize("action", ["httpGet", "tcpSocket", "grpc"])
def test_a_probe_asks_at_a_port(action):
    where = f"spec.containers[0].livenessProbe.{action}.port"
    assert errors_of_container(livenessProbe={action: {}}) == [f"{where}: Required value"]
    assert errors_of_container(livenessProbe={action: {"port": 0}})[0].startswith(f"{where}: Invalid value: 0")
    assert errors_of_container(livenessProbe={action: {"port": 80}}) == []


def test_a_probe_does_something():
    assert errors_of_container(readinessProbe={"periodSeconds": 5}) == [
        "spec.containers[0].readinessProbe: Required value: must specify a handler type"
    ]
    assert errors_of_container(readinessProbe={"exec": {"command": ["true"]}}) == []


def test_a_port_of_a_probe_may_have_a_name():
    assert errors_of_container(livenessProbe={"httpGet": {"port": "http"}}) == []


def test_a_volume_has_one_source():
    assert errors_of_pod(volumes=[{"name": "v", "emptyDir": {}, "configMap": None}]) == []
    assert errors_of_pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]) == [
        "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"
    ]


def test_a_mount_needs_its_volume():
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    where = 'containers[0].volumeMounts[0].name: Not found: "data"'
    assert errors_of_container(**mount) == [f"spec.{where}"]
    assert errors_of_pod(containers=[{**CONTAINER, **mount}], volumes=[{"name": "data"}]) == []
    template = {"containers": [{**CONTAINER, **mount}]}
    assert errors_of_workload("Deployment", template) == [f"spec.template.spec.{where}"]
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    assert errors_of_workload("StatefulSet", template, volumeClaimTemplates=[claim]) == []


def test_a_scheduling_gate_has_a_qualified_name():
    (error,) = errors_of_pod(schedulingGates=[{"name": "a b"}])
    assert error.startswith('spec.schedulingGates[0].name: Invalid value: "a b"')
    assert errors_of_pod(schedulingGates=[{"name": "example.com/quota"}]) == []


def test_a_gated_pod_has_no_node():
    message = "nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"
    gated = {"nodeName": "n1", "schedulingGates": [{"name": "a"}]}
    assert errors_of_pod(**gated) == [f"spec.{message}"]
    assert errors_of_workload("Deployment", gated) == [f"spec.template.spec.{message}"]


def test_containers_of_a_pod_have_different_names():
    assert errors_of_pod(initContainers=[CONTAINER]) == ['spec.initContainers[0].name: Duplicate value: "c"']
    assert errors_of_pod(containers=[CONTAINER, {**CONTAINER, "name": "d"}]) == []


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_pods_that_run_on_are_always_restarted(kind):
    assert errors_of_workload(kind, {"restartPolicy": "Never"}) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
    ]
    assert errors_of_workload(kind, {"restartPolicy": "Always"}) == []


def test_pods_of_a_job_are_not_always_restarted():
    assert errors_of_workload("Job", api_version="batch/v1") == [
        'spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"'
    ]
    assert errors_of_workload("Job", {"restartPolicy": "Never"}, api_version="batch/v1") == []


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            "rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            "rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            'rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
    ],
)
def test_a_strategy_that_replaces_no_pod_is_refused(strategy, message):
    assert errors_of_workload("Deployment", strategy=strategy) == [f"spec.strategy.{message}"]


@pytest.mark.parametrize(
    "strategy", [{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 0}}, {"rollingUpdate": {"maxUnavailable": 0}}]
)
def test_a_strategy_that_replaces_pods_is_taken(strategy):
    assert errors_of_workload("Deployment", strategy=strategy) == []


@pytest.mark.parametrize("amount", ["0.5", "500m"])
def test_devices_come_whole(amount):
    gpu = {"example.com/gpu": amount}
    assert errors_of_container(resources={"requests": gpu, "limits": gpu}) == [
        f"spec.containers[0].resources.limits[example.com/gpu]: Invalid value: '{amount}': must be an integer"
    ]
    assert errors_of_container(resources={"limits": {"example.com/gpu": "2e0"}}) == []


@pytest.mark.parametrize(("kind", "group"), [("Deployment", "apps"), ("Job", "batch")])
def test_a_missing_api_version_is_what_is_said_of_kinds_of_a_group(kind, group):
    (error,) = published_errors("", kind, {"kind": kind})
    assert str(error) == f'apiVersion: Required value: kind "{kind}" is none of v1'
    (error,) = published_errors("v1", kind, {"apiVersion": "v1", "kind": kind})
    assert str(error) == f'kind: no matches for kind "{kind}" in version "v1"'
