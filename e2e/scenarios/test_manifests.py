"""The manifests are what a real API server takes, and give the scheduler its rights and no others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.controlplane.client import ApiClient, ApiError, path_of
from e2e.controlplane.installation import COMPONENTS, MANIFESTS, NAMESPACE, SERVICE_ACCOUNT, acting_as
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane

from bayplan.api.kinds import RESOURCES
from bayplan.config.load import default_configuration, load_configuration

pytestmark = pytest.mark.controlplane

Rule = tuple[str, str, str]

SHIPPED_RIGHTS: set[Rule] = {
    *(("", "pods", verb) for verb in ("get", "delete")),
    *(("", resource, verb) for resource in ("pods", "nodes") for verb in ("list", "watch")),
    *((resource.group, resource.plural, verb) for resource in RESOURCES for verb in ("list", "watch")),
    *(("", resource, "patch") for resource in ("persistentvolumes", "persistentvolumeclaims")),
    *(("resource.k8s.io", "resourceclaims", verb) for verb in ("get", "patch", "update", "create", "delete")),
    *(("resource.k8s.io", f"resourceclaims/{part}", "patch") for part in ("status", "binding")),
    *(
        (group, "podgroups", verb)
        for group in ("scheduling.k8s.io", "scheduling.x-k8s.io")
        for verb in ("list", "watch")
    ),
    ("scheduling.k8s.io", "podgroups/status", "patch"),
    ("", "pods/binding", "create"),
    ("", "pods/eviction", "create"),
    ("", "pods/status", "patch"),
    *(("events.k8s.io", "events", verb) for verb in ("create", "patch")),
    ("scheduling.k8s.io", "priorityclasses", "list"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}

PUBLISHED_AUTHORITIES = {
    "verbs": ["get"],
    "apiGroups": [""],
    "resources": ["configmaps"],
    "resourceNames": ["extension-apiserver-authentication"],
}
"""What the service account may do with objects of one name."""


@pytest.fixture
def scheduler_client(control_plane: ControlPlane, bayplan_identity: Path) -> Iterator[ApiClient]:
    """A client with the token of the installed service account and no client certificate."""
    with acting_as(control_plane, NAMESPACE, SERVICE_ACCOUNT) as client:
        yield client


def _rules(client: ApiClient, namespace: str) -> list[dict[str, Any]]:
    """What the client's user may do in a namespace."""
    review = client.request(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        },
    )
    rules: list[dict[str, Any]] = review["status"]["resourceRules"]
    return rules


def _rights(client: ApiClient) -> set[Rule]:
    """What the client's user may do with objects of any name in the namespace `default`."""
    rules = [rule for rule in _rules(client, "default") if "resourceNames" not in rule]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _installed(control_plane: ControlPlane, resource: str) -> dict[str, Any]:
    return control_plane.client.get(resource, "bayplan", NAMESPACE)


def test_applying_the_manifests_twice_changes_nothing(control_plane: ControlPlane, bayplan_identity: Path) -> None:
    lines = control_plane.kubectl("apply", "-k", control_plane.directory / "install").splitlines()
    assert len(lines) == 21
    assert [line for line in lines if not line.endswith(" unchanged")] == []


def test_the_service_account_has_the_shipped_rights_besides_those_every_service_account_has(
    control_plane: ControlPlane, scheduler_client: ApiClient, namespace: str
) -> None:
    control_plane.client.create("serviceaccounts", {"metadata": {"name": "anybody", "namespace": namespace}})
    with acting_as(control_plane, namespace, "anybody") as anybody:
        common = _rights(anybody)
    assert not common & SHIPPED_RIGHTS
    assert _rights(scheduler_client) == SHIPPED_RIGHTS | common
    named = [rule for rule in _rules(scheduler_client, "default") if "resourceNames" in rule]
    assert named == [PUBLISHED_AUTHORITIES]


def test_of_leases_the_service_account_may_use_its_own_only(
    control_plane: ControlPlane, scheduler_client: ApiClient
) -> None:
    about_leases = [rule for rule in _rules(scheduler_client, NAMESPACE) if "leases" in rule["resources"]]
    assert sorted((rule["verbs"], rule.get("resourceNames", [])) for rule in about_leases) == [
        (["create"], []),
        (["get", "update"], ["bayplan"]),
    ]


def test_the_service_account_does_a_schedulers_work(
    control_plane: ControlPlane, scheduler_client: ApiClient, namespace: str
) -> None:
    control_plane.client.create("nodes", node("n1"))
    control_plane.client.create("pods", pod("waiting", namespace))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    patched = scheduler_client.patch(
        "pods",
        "waiting",
        {"status": {"conditions": [condition]}},
        namespace=namespace,
        subresource="status",
        content_type="application/strategic-merge-patch+json",
    )
    assert patched["status"]["conditions"][0]["reason"] == "Unschedulable"
    scheduler_client.bind(namespace, "waiting", "n1")
    assert scheduler_client.get("pods", "waiting", namespace)["spec"]["nodeName"] == "n1"
    event = scheduler_client.create(
        "events",
        {
            "metadata": {"name": "waiting.1", "namespace": namespace},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "bayplan",
            "reportingInstance": "bayplan-0",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "regarding": {"kind": "Pod", "name": "waiting", "namespace": namespace},
        },
    )
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    repeated = scheduler_client.patch("events", event["metadata"]["name"], series, namespace=namespace)
    assert repeated["series"]["count"] == 2


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/api/v1/namespaces/{namespace}/pods", None),
        ("PATCH", "/api/v1/namespaces/{namespace}/pods/other", {"metadata": {"labels": {"a": "b"}}}),
        ("DELETE", "/api/v1/namespaces/{namespace}/persistentvolumeclaims/other", None),
        ("PATCH", "/api/v1/persistentvolumes/other/status", {"status": {"phase": "Failed"}}),
        ("GET", "/apis/apps/v1/deployments", None),
        ("GET", "/api/v1/namespaces/{namespace}/pods/other/log", None),
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/configmaps", None),
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", None),
        ("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}),
        ("POST", "/api/v1/namespaces/{namespace}/serviceaccounts/default/token", {"spec": {}}),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", None),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", None),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {"metadata": {"name": "a"}}),
        ("GET", "/metrics", None),
    ],
)
def test_the_service_account_may_not(
    scheduler_client: ApiClient, namespace: str, method: str, path: str, body: object
) -> None:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refusal:
        scheduler_client.request(method, path.format(namespace=namespace), body, content_type)
    assert refusal.value.status == 403


def test_the_pod_of_the_deployment_passes_the_restricted_pod_security_standard(
    control_plane: ControlPlane, bayplan_identity: Path, namespace: str
) -> None:
    enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    control_plane.client.patch("namespaces", namespace, enforce)
    template = _installed(control_plane, "deployments")["spec"]["template"]
    document = {
        "metadata": {"name": "bayplan", "namespace": namespace, **template["metadata"]},
        "spec": template["spec"],
    }
    created = control_plane.client.create("pods", document)
    assert created["spec"]["securityContext"]["runAsUser"] == 65532
    document["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    document["metadata"]["name"] = "escalating"
    with pytest.raises(ApiError, match="violates PodSecurity"):
        control_plane.client.create("pods", document)


def test_the_probes_the_service_and_the_configuration_meet_in_the_pod(
    control_plane: ControlPlane, bayplan_identity: Path
) -> None:
    deployment = _installed(control_plane, "deployments")
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (port,) = container["ports"]
    (service_port,) = _installed(control_plane, "services")["spec"]["ports"]
    assert (port["name"], port["containerPort"]) == ("https", 10259)
    assert (service_port["name"], service_port["targetPort"]) == ("https", "https")
    selector = _installed(control_plane, "services")["spec"]["selector"]
    assert selector.items() <= template["metadata"]["labels"].items()
    timeouts = [container[name]["timeoutSeconds"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert timeouts == [5, 5, 5]
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {name: probe["port"] for name, probe in probes.items()} == dict.fromkeys(probes, "https")
    assert [probe["path"] for probe in probes.values()] == ["/livez", "/readyz"]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    config_map = control_plane.client.get("configmaps", volumes["config"]["configMap"]["name"], NAMESPACE)
    assert config_map["data"]["config.yaml"] == (COMPONENTS / "preemption" / "config.yaml").read_text()
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "config"]
    assert f"--config={mount['mountPath']}/config.yaml" in container["args"]


def test_the_shipped_configuration_is_the_built_in_one_with_a_faster_client() -> None:
    shipped = load_configuration(COMPONENTS / "preemption" / "config.yaml")
    built_in = default_configuration()
    assert shipped.profiles == built_in.profiles
    assert shipped.client_connection.qps > 20 * built_in.client_connection.qps


def test_no_file_of_the_base_names_a_namespace_but_the_kustomization() -> None:
    files = [path for path in MANIFESTS.glob("*.yaml") if path.name != "kustomization.yaml"]
    assert len(files) == 6
    assert not [path.name for path in files if "namespace:" in path.read_text()]


def test_the_installed_objects_carry_the_standard_labels(control_plane: ControlPlane, bayplan_identity: Path) -> None:
    client = control_plane.client
    for path in (
        path_of("serviceaccounts", "bayplan", namespace=NAMESPACE),
        path_of("deployments", "bayplan", namespace=NAMESPACE),
        path_of("services", "bayplan", namespace=NAMESPACE),
        path_of("clusterroles", "bayplan"),
        path_of("clusterroles", "bayplan-volumes"),
        path_of("clusterroles", "bayplan-devices"),
        path_of("clusterrolebindings", "bayplan"),
    ):
        assert client.request("GET", path)["metadata"]["labels"]["app.kubernetes.io/name"] == "bayplan"
