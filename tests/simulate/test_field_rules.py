"""What the API server refuses of the fields that decisions read, beyond types and enumerations."""

import pytest
from tests.simulate.field_errors import (
    CLAIM,
    CONTAINER,
    NEAR,
    PORT,
    SELECTOR,
    asking,
    errors,
    errors_of_container,
    errors_of_pod,
    errors_of_workload,
    near,
    spread,
)


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
    claim = {"metadata": {"name": "data"}, "spec": CLAIM}
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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            spread(matchLabelKeys=["a"]),
            (
                "topologySpreadConstraints[0].matchLabelKeys: Forbidden: "
                "must not be specified when labelSelector is not set"
            ),
        ),
        (
            near(mismatchLabelKeys=["a"]),
            f"{NEAR}.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            near(labelSelector=SELECTOR, matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
            f'{NEAR}.matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys',
        ),
        (
            {"resources": {"limits": {"example.com/gpu": 1}}},
            (
                "resources.limits[example.com/gpu]: Unsupported value: 'example.com/gpu': "
                'supported values: "cpu", "hugepages-", "memory"'
            ),
        ),
        (
            {"containers": asking(requests={"cpu": 2}), "resources": {"requests": {"cpu": 1}}},
            (
                "resources.requests[cpu]: Invalid value: '1': "
                "must be greater than or equal to aggregate container requests of 2"
            ),
        ),
        (
            {"containers": asking(limits={"cpu": 2}), "resources": {"limits": {"cpu": 1}}},
            "resources.containers[0][cpu].limits: Invalid value: '2': must be less than or equal to pod limits of 1",
        ),
        (
            {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}},
            "resources.requests: Invalid value: '2': must be less than or equal to cpu limit of 1",
        ),
        (
            {"resources": {"claims": [{"name": "x"}]}},
            "resources.claims: Forbidden: claims may not be set for Resources at pod-level",
        ),
        (
            {"containers": asking(limits={"hugepages-2Mi": "4Mi"})},
            "containers[0].resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            {"containers": [{**CONTAINER, "ports": [PORT, PORT]}]},
            'containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        (
            {"containers": [{**CONTAINER, "ports": [PORT]}, {"name": "d", "ports": [PORT]}]},
            'containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, 'schedulingGates[1]: Duplicate value: "a"'),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'volumes[1].name: Duplicate value: "v"'),
        ({"volumes": [{"emptyDir": {}}]}, "volumes[0].name: Required value"),
        ({"containers": [{"image": "i"}]}, "containers[0].name: Required value"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
    ],
)
def test_a_pod_that_contradicts_itself_is_refused_in_the_api_servers_words(spec, message):
    assert errors_of_pod(**spec) == [f"spec.{message}"]


@pytest.mark.parametrize(
    "spec",
    [
        spread(labelSelector=SELECTOR, matchLabelKeys=["a"]),
        {"containers": asking(requests={"cpu": 1}), "resources": {"requests": {"cpu": 1}}},
        {"containers": [{**CONTAINER, "ports": [PORT, {**PORT, "protocol": "UDP"}, {**PORT, "hostIP": "10.0.0.1"}]}]},
        {"containers": [{**CONTAINER, "ports": [PORT]}], "initContainers": [{"name": "d", "ports": [PORT]}]},
    ],
)
def test_a_pod_that_does_not_is_taken(spec):
    assert errors_of_pod(**spec) == []


TEMPLATES = {"ephemeralContainers": [{"name": "e"}]}, {"activeDeadlineSeconds": 5}
STATEFUL = {"kind": "StatefulSet", "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]}
ROLLING = {"kind": "DaemonSet", "updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}
HELD = {"kind": "DaemonSet", "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}
JOB = {"kind": "Job", "api_version": "batch/v1", "template": {"restartPolicy": "OnFailure"}}


@pytest.mark.parametrize(
    ("workload", "messages"),
    [
        (
            {"kind": "Deployment", "template": TEMPLATES[0]},
            ["template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
        ),
        (
            {"kind": "Deployment", "template": TEMPLATES[1]},
            ["template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"],
        ),
        (
            {"kind": "Deployment", "selector": {}},
            ["selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            {"kind": "Deployment", "minReadySeconds": -1},
            ["minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"kind": "Deployment", "strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            ['strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            STATEFUL,
            [
                "volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
                "volumeClaimTemplates[0].spec.resources[storage]: Required value",
            ],
        ),
        (
            ROLLING,
            ["updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"],
        ),
        (HELD, ["updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
        (
            {**JOB, "podFailurePolicy": {"rules": []}},
            [
                (
                    'template.spec.restartPolicy: Invalid value: "OnFailure": '
                    'only "Never" is supported when podFailurePolicy is specified'
                )
            ],
        ),
        (
            {**JOB, "backoffLimitPerIndex": 1},
            ["backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
    ],
)
def test_a_workload_that_would_make_no_pods_is_refused_in_the_api_servers_words(workload, messages):
    assert errors_of_workload(**workload) == [f"spec.{each}" for each in messages]


@pytest.mark.parametrize("update", [{"maxSurge": 1, "maxUnavailable": 0}, {"maxUnavailable": "50%"}, {"maxSurge": 0}])
def test_a_daemon_set_that_replaces_pods_is_taken(update):
    assert errors_of_workload("DaemonSet", updateStrategy={"rollingUpdate": update}) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            "Invalid value: object: minAvailable and maxUnavailable cannot be both set",
        ),
        ({"minAvailable": "101%"}, 'minAvailable: Invalid value: "101%": must not be greater than 100%'),
        ({"maxUnavailable": -1}, "maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"maxUnavailable": "x"},
            (
                'maxUnavailable: Invalid value: "x": a valid percent string must be a numeric string followed by an '
                "ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ),
        ),
    ],
)
def test_a_budget_asks_for_one_thing_that_can_be(spec, message):
    separator = ": " if message.startswith("Invalid") else "."
    assert errors("policy/v1", "PodDisruptionBudget", spec) == [f"spec{separator}{message}"]
    assert errors("policy/v1", "PodDisruptionBudget", {"minAvailable": "100%", "selector": SELECTOR}) == []


def test_a_volume_says_what_it_holds_and_a_local_one_where_it_is():
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    assert errors("v1", "PersistentVolume", {**volume, "hostPath": {"path": "/x"}}) == []
    assert errors("v1", "PersistentVolume", {"hostPath": {"path": "/x"}}) == [
        "spec.capacity: Required value",
        "spec.accessModes: Required value",
    ]
    assert errors("v1", "PersistentVolume", {**volume, "local": {"path": "/x"}}) == [
        "spec.nodeAffinity: Required value: Local volume requires node affinity"
    ]


@pytest.mark.parametrize("amount", ["0.5", "500m"])
def test_devices_come_whole(amount):
    gpu = {"example.com/gpu": amount}
    assert errors_of_container(resources={"requests": gpu, "limits": gpu}) == [
        f"spec.containers[0].resources.limits[example.com/gpu]: Invalid value: '{amount}': must be an integer"
    ]
    assert errors_of_container(resources={"limits": {"example.com/gpu": "2e0"}}) == []
