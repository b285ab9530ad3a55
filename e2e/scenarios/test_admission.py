"""What the production overlay's admission policies refuse: to an untrusted user, and to the scheduler's own token.

Every request that is tried is a dry run: the API server admits or refuses it and keeps nothing.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import ApiClient, Object, path_of
from e2e.controlplane.installation import OVERLAYS, SERVICE_ACCOUNT, acting_as, kustomize, write_kustomization
from e2e.controlplane.objects import claim, node, pod, storage_class, volume
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import (
    DRY_RUN,
    TEAM,
    refusal_of,
    try_bind,
    try_change,
    try_create,
    try_delete,
    try_evict,
    try_patch,
    with_annotations,
    with_labels,
)

pytestmark = pytest.mark.controlplane

NAMESPACE = "bayplan-system"
TRUSTED = "trusted"
CEILING = "bayplan-priority-ceiling"
RBAC = "rbac.authorization.k8s.io"
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
READY = {"type": "Ready", "status": "True"}
ZONE = "topology.kubernetes.io/zone"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
OURS = {"kind": "PersistentVolumeClaim", "namespace": TEAM, "name": "wanted", "uid": "u1"}
THEIRS = {**OURS, "name": "theirs", "uid": "u2"}


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A cluster with the production overlay in force, the right to evict besides, and a team that may create pods."""
    plane = start_control_plane(ControlPlaneOptions())
    folder = plane.directory / "install"
    write_kustomization(folder, base=OVERLAYS / "production", components=["careful-preemption"])
    plane.kubectl("apply", "-k", folder)
    admin = plane.client
    for name in (TEAM, TRUSTED):
        admin.create("namespaces", {"metadata": {"name": name}})
    for name, value in (("high", 1000000), ("fair", 999999)):
        admin.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
    admin.create("roles", {"metadata": {"name": "edit", "namespace": TEAM}, "rules": rules})
    binding = {
        "metadata": {"name": "alice", "namespace": TEAM},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "edit"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}],
    }
    admin.create("rolebindings", binding)
    admin.create("pods", pod("ours", TEAM))
    admin.create("pods", pod("strangers", TEAM, scheduler="another"))
    admin.create("pods", pod("plain", "kube-system"))
    admin.create("nodes", node("zoned", labels={ZONE: "a"}))
    admin.create("storageclasses", storage_class("csi", "csi.example"))
    admin.create("persistentvolumeclaims", claim("wanted", TEAM, "csi"))
    source = {"driver": "csi.example", "volumeHandle": "h"}
    admin.create("persistentvolumes", volume("free", "csi", csi=source))
    admin.create("persistentvolumes", volume("named", "csi", csi=source, claimRef={**OURS, "uid": ""}))
    admin.create("persistentvolumes", volume("taken", "csi", csi=source, claimRef=THEIRS))
    _wait_until_in_force(plane)
    admin.patch("configmaps", CEILING, {"data": {"namespaces": f"kube-system {TRUSTED}"}}, namespace=NAMESPACE)
    wait_until(lambda: not refusal_of(lambda: try_create(admin, TRUSTED, "high")), "the changed parameters")
    admin.create("pods", pod("critical", TRUSTED, priorityClassName="system-cluster-critical"))
    return plane


def _wait_until_in_force(plane: ControlPlane) -> None:
    """The API server takes policies, and their parameters, up a moment after they are created."""
    with acting_as(plane, NAMESPACE, SERVICE_ACCOUNT) as scheduler:
        attempts: dict[str, Callable[[], object]] = {
            "the policy on victims": lambda: try_delete(scheduler, "kube-system", "plain"),
            "the policy on status": lambda: try_patch(scheduler, TEAM, "strangers", conditions=[UNSCHEDULABLE]),
            "the ceiling of priorities": lambda: try_create(plane.client, TEAM, "high"),
            "the policy on bindings": lambda: try_bind(scheduler, annotations={"a": "b"}),
            "the policy on claims": lambda: try_change(scheduler, "persistentvolumeclaims", "wanted", with_labels()),
            "the policy on volumes": lambda: try_change(scheduler, "persistentvolumes", "free", with_labels()),
        }
        for what, attempt in attempts.items():
            wait_until(lambda attempt=attempt: refusal_of(attempt), what)  # type: ignore[misc]  # a default is no argument


@pytest.fixture
def admin(plane: ControlPlane) -> ApiClient:
    return plane.client


@pytest.fixture
def alice(plane: ControlPlane) -> Iterator[ApiClient]:
    """Somebody who may do everything with the pods of one namespace."""
    plane.kubeconfig_for("alice")
    user = ApiClient(plane.url, plane.tls("alice"))
    yield user
    user.close()


@pytest.fixture
def scheduler(plane: ControlPlane) -> Iterator[ApiClient]:
    """Whoever has the token of the scheduler's ServiceAccount."""
    with acting_as(plane, NAMESPACE, SERVICE_ACCOUNT) as user:
        yield user


@pytest.mark.parametrize("class_name", ["system-node-critical", "system-cluster-critical", "high"])
@pytest.mark.parametrize("scheduler_name", ["bayplan", "default-scheduler"])
def test_a_user_cannot_create_pods_of_high_priority_whichever_scheduler_they_name(
    alice: ApiClient, class_name: str, scheduler_name: str
) -> None:
    refusal = refusal_of(lambda: try_create(alice, TEAM, class_name, scheduler_name))
    assert (
        f"is more than 999999, the highest for namespace {TEAM}: ConfigMap {CEILING} in namespace {NAMESPACE} names"
        " those where pods may have more"
    ) in refusal


def test_a_user_can_create_pods_up_to_the_ceiling(alice: ApiClient) -> None:
    assert try_create(alice, TEAM, "fair")["spec"]["priority"] == 999999
    assert try_create(alice, TEAM, "")["spec"]["priority"] == 0


def test_a_ceiling_that_warns_admits_the_pod_and_says_what_would_be_refused(
    plane: ControlPlane, alice: ApiClient, tmp_path: Path
) -> None:
    folder, rendered = tmp_path / "warn", tmp_path / "warn.yaml"
    write_kustomization(folder, base=OVERLAYS / "production", components=["admission/warn"])
    (binding,) = [
        each
        for each in kustomize(plane, folder)
        if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicyBinding", CEILING)
    ]
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]

    def put(binding: Object) -> None:
        rendered.write_text(json.dumps(binding))
        plane.kubectl("apply", "-f", rendered)

    put(binding)
    try:
        wait_until(lambda: not refusal_of(lambda: try_create(alice, TEAM, "high")), "a ceiling that refuses nobody")
        assert any("is more than 999999" in each for each in _warnings(alice, "high"))
        assert _warnings(alice, "fair") == []
    finally:
        put({**binding, "spec": {**binding["spec"], "validationActions": ["Deny"]}})
        wait_until(lambda: refusal_of(lambda: try_create(alice, TEAM, "high")), "a ceiling that refuses again")


def _warnings(user: ApiClient, class_name: str) -> list[str]:
    """What the API server warns of who creates a pod."""
    document = pod("new", TEAM, priorityClassName=class_name)
    connection = user.connect()
    try:
        headers = {"Content-Type": "application/json"}
        path = path_of("pods", namespace=TEAM) + DRY_RUN
        connection.request("POST", path, body=json.dumps(document), headers=headers)
        response = connection.getresponse()
        assert response.status == 201, response.read()
        return response.headers.get_all("Warning") or []
    finally:
        connection.close()


@pytest.mark.parametrize("namespace", ["kube-system", TRUSTED])
def test_pods_of_the_namespaces_that_the_parameters_name_may_have_any_priority(
    admin: ApiClient, namespace: str
) -> None:
    assert try_create(admin, namespace, "system-node-critical")["spec"]["priority"] == 2000001000


def test_the_schedulers_own_pods_may_have_their_priority(plane: ControlPlane, admin: ApiClient) -> None:
    template = admin.get("deployments", "bayplan", NAMESPACE)["spec"]["template"]
    # Nobody counts for the quota, as no controller runs here.
    admin.delete("resourcequotas", "bayplan", namespace=NAMESPACE)
    document = {"metadata": {"name": "replica", **template["metadata"]}, "spec": template["spec"]}
    created = admin.request("POST", path_of("pods", namespace=NAMESPACE) + DRY_RUN, document)
    assert created["spec"]["priorityClassName"] == "system-cluster-critical"


def test_the_scheduler_ends_pods_but_none_in_kube_system_and_none_of_system_priority(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_delete(scheduler, TEAM, "strangers")) == ""
    assert "bayplan ends no pod in kube-system" in refusal_of(lambda: try_delete(scheduler, "kube-system", "plain"))
    assert "bayplan ends no pod of system priority" in refusal_of(lambda: try_delete(scheduler, TRUSTED, "critical"))


def test_the_scheduler_evicts_pods_but_none_in_kube_system(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_evict(scheduler, TEAM, "strangers")) == ""
    assert "bayplan ends no pod in kube-system" in refusal_of(lambda: try_evict(scheduler, "kube-system", "plain"))
    # An eviction does not carry the pod, so its priority cannot be known: SECURITY.md says so.
    assert refusal_of(lambda: try_evict(scheduler, TRUSTED, "critical")) == ""


def test_the_scheduler_writes_verdicts_and_nominations_of_its_own_pods(scheduler: ApiClient) -> None:
    for status in (
        {"conditions": [UNSCHEDULABLE]},
        {"conditions": [UNSCHEDULABLE], "nominatedNodeName": "n1"},
        {"nominatedNodeName": None},
        {"conditions": [DISRUPTED]},
    ):
        assert refusal_of(lambda: try_patch(scheduler, TEAM, "ours", **status)) == ""  # noqa: B023  (called at once)


def test_of_a_strangers_pod_the_scheduler_says_that_it_ends_and_nothing_else(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_patch(scheduler, TEAM, "strangers", conditions=[DISRUPTED])) == ""
    for status in (
        {"conditions": [UNSCHEDULABLE]},
        {"conditions": [{**DISRUPTED, "reason": "EvictionByEvictionAPI"}]},
        {"conditions": [DISRUPTED, UNSCHEDULABLE]},
        {"conditions": [DISRUPTED, READY]},
        {"conditions": [DISRUPTED], "nominatedNodeName": "n1"},
        {"nominatedNodeName": "n1"},
    ):
        refusal = refusal_of(lambda: try_patch(scheduler, TEAM, "strangers", **status))  # noqa: B023  (called at once)
        assert "bayplan writes the" in refusal, status


@pytest.mark.parametrize("name", ["ours", "strangers"])
def test_the_scheduler_changes_nothing_else_of_a_pod(scheduler: ApiClient, name: str) -> None:
    why = "bayplan changes nothing of a pod but conditions and nominatedNodeName"
    running = {"name": "main", "ready": True, "image": "i", "imageID": "i", "restartCount": 0}
    statuses: list[Object] = [
        {"phase": "Succeeded"},
        {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]},
        {"reason": "Evicted"},
        {"message": "m"},
        {"containerStatuses": [running]},
    ]
    for status in statuses:
        refusal = refusal_of(lambda: try_patch(scheduler, TEAM, name, conditions=[DISRUPTED], **status))  # noqa: B023
        assert why in refusal, status
    for key in ("labels", "annotations"):
        metadata = {key: {"a": "b"}}
        refusal = refusal_of(lambda: try_patch(scheduler, TEAM, name, metadata, conditions=[DISRUPTED]))  # noqa: B023
        assert why in refusal, key
    conditions = [DISRUPTED, READY]
    assert "bayplan writes the condition" in refusal_of(lambda: try_patch(scheduler, TEAM, name, conditions=conditions))


def test_the_scheduler_binds_pods_and_the_api_server_labels_them_with_their_zone(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_bind(scheduler)) == ""
    assert refusal_of(lambda: try_bind(scheduler, "not-there-yet")) == ""
    assert refusal_of(lambda: try_bind(scheduler, labels={ZONE: "a"})) == ""


@pytest.mark.parametrize(
    "metadata", [{"annotations": {"a": "b"}}, {"labels": {"app": "b"}}, {"labels": {ZONE + "x": ""}}]
)
def test_the_scheduler_puts_no_labels_or_annotations_on_the_pods_it_binds(
    scheduler: ApiClient, metadata: Object
) -> None:
    refusal = refusal_of(lambda: try_bind(scheduler, **metadata))
    assert "bayplan binds pods and puts no labels or annotations on them" in refusal


def test_the_scheduler_asks_for_a_volume_on_a_node_and_changes_nothing_else_of_a_claim(scheduler: ApiClient) -> None:
    for node_name in ("zoned", None):
        asked = with_annotations(**{SELECTED_NODE: node_name})
        assert refusal_of(lambda: try_change(scheduler, "persistentvolumeclaims", "wanted", asked)) == ""  # noqa: B023
    changes: list[Object] = [
        with_labels(),
        with_annotations(**{SELECTED_NODE: "zoned", "a": "b"}),
        {"metadata": {"finalizers": None}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "ours", "uid": "u"}]}},
        {"spec": {"volumeName": "taken"}},
    ]
    for change in changes:
        refusal = refusal_of(lambda: try_change(scheduler, "persistentvolumeclaims", "wanted", change))  # noqa: B023
        assert "bayplan changes nothing of a claim but its annotation" in refusal, change


@pytest.mark.parametrize("name", ["free", "named"])
def test_the_scheduler_reserves_a_volume_that_nobody_has_reserved(scheduler: ApiClient, name: str) -> None:
    reserved = {**with_annotations(**{BOUND_BY_CONTROLLER: "yes"}), "spec": {"claimRef": {**OURS, "apiVersion": "v1"}}}
    assert refusal_of(lambda: try_change(scheduler, "persistentvolumes", name, reserved)) == ""


@pytest.mark.parametrize(
    ("name", "claim_ref"), [("taken", OURS), ("taken", {**THEIRS, "uid": "u3"}), ("taken", None), ("named", THEIRS)]
)
def test_the_scheduler_takes_no_volume_from_the_claim_it_is_reserved_for(
    scheduler: ApiClient, name: str, claim_ref: Object | None
) -> None:
    refusal = refusal_of(lambda: try_change(scheduler, "persistentvolumes", name, {"spec": {"claimRef": claim_ref}}))
    assert "bayplan reserves volumes that nobody has reserved, and takes none away" in refusal


MUTABLE: dict[str, object] = {
    "accessModes": ["ReadOnlyMany"],
    "capacity": {"storage": "2Gi"},
    "csi": {"controllerExpandSecretRef": {"name": "s", "namespace": TEAM}},
    "mountOptions": ["ro"],
    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}},
    "persistentVolumeReclaimPolicy": "Delete",
    "storageClassName": "other",
    "volumeAttributesClassName": "other",
}
"""Of the spec of a volume what the API server lets change, besides claimRef."""
IMMUTABLE = {
    *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker"),
    *("gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume"),
    *("quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume"),
    "volumeMode",
}


@pytest.mark.parametrize("field", MUTABLE)
def test_the_scheduler_changes_nothing_else_of_a_volume(admin: ApiClient, scheduler: ApiClient, field: str) -> None:
    change: Object = {"spec": {"claimRef": OURS, field: MUTABLE[field]}}
    # Before 1.34 the API server drops volumeAttributesClassName from whoever writes it.
    is_dropped = field not in try_change(admin, "persistentvolumes", "free", change)["spec"]
    refusal = refusal_of(lambda: try_change(scheduler, "persistentvolumes", "free", change))
    assert ("bayplan changes nothing of a volume but claimRef and its annotation" in refusal) != is_dropped


def test_the_scheduler_changes_no_other_metadata_of_a_volume(scheduler: ApiClient) -> None:
    for change in (with_labels(), with_annotations(a="b"), {"metadata": {"finalizers": None}}):
        refusal = refusal_of(lambda: try_change(scheduler, "persistentvolumes", "free", change))  # noqa: B023
        assert "bayplan changes nothing of a volume but claimRef and its annotation" in refusal, change


def test_no_field_of_a_volume_is_new_to_the_policy(admin: ApiClient) -> None:
    schemas = admin.request("GET", "/openapi/v3/api/v1")["components"]["schemas"]
    fields = schemas["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"].keys()
    assert fields == {"claimRef", *MUTABLE, *IMMUTABLE}


def test_the_policies_about_the_scheduler_hold_nobody_else_back(admin: ApiClient) -> None:
    assert refusal_of(lambda: try_bind(admin, annotations={"a": "b"})) == ""
    assert refusal_of(lambda: try_change(admin, "persistentvolumeclaims", "wanted", with_labels())) == ""
    assert refusal_of(lambda: try_change(admin, "persistentvolumes", "taken", {"spec": {"claimRef": None}})) == ""
    assert refusal_of(lambda: try_delete(admin, "kube-system", "plain")) == ""
    assert refusal_of(lambda: try_delete(admin, TRUSTED, "critical")) == ""
    assert refusal_of(lambda: try_patch(admin, TEAM, "strangers", phase="Running", conditions=[READY])) == ""
