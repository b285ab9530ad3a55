"""What the production overlay's admission policies refuse to the scheduler's own token.

Every request that is tried is a dry run: the API server admits or refuses it and keeps nothing.
"""

from collections.abc import Callable, Iterator

import pytest
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import SERVICE_ACCOUNT, acting_as
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.dry_runs import (
    DRY_RUN,
    MERGE_PATCH,
    TEAM,
    an_event,
    refusal_of,
    try_bind,
    try_change,
    try_delete,
    try_event,
    try_evict,
    try_patch,
    with_annotations,
    with_labels,
)
from e2e.scenarios.guarded_cluster import NAMESPACE, OURS, THEIRS, TRUSTED, UNSCHEDULABLE, ZONE

pytestmark = pytest.mark.controlplane

DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}
READY = {"type": "Ready", "status": "True"}
CLAIM_STATUS = {
    "resourceClaimName": "ours-extended-resources",
    "requestMappings": [{"containerName": "main", "resourceName": "example.com/gpu", "requestName": "request-0"}],
}
CHANGES_NOTHING = "bayplan changes nothing of a pod but conditions"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


@pytest.fixture
def scheduler(guarded_plane: ControlPlane) -> Iterator[ApiClient]:
    """Whoever has the token of the scheduler's ServiceAccount."""
    with acting_as(guarded_plane, NAMESPACE, SERVICE_ACCOUNT) as user:
        yield user


def test_the_scheduler_ends_pods_but_none_in_kube_system_and_none_of_system_priority(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_delete(scheduler, TEAM, "strangers")) == ""
    assert "bayplan ends no pod in kube-system" in refusal_of(lambda: try_delete(scheduler, "kube-system", "plain"))
    assert "bayplan ends no pod of system priority" in refusal_of(lambda: try_delete(scheduler, TRUSTED, "critical"))


def test_the_scheduler_evicts_pods_but_none_in_kube_system(scheduler: ApiClient) -> None:
    assert refusal_of(lambda: try_evict(scheduler, TEAM, "strangers")) == ""
    assert "bayplan ends no pod in kube-system" in refusal_of(lambda: try_evict(scheduler, "kube-system", "plain"))
    # An eviction does not carry the pod, so its priority cannot be known: SECURITY.md says so.
    assert refusal_of(lambda: try_evict(scheduler, TRUSTED, "critical")) == ""


@pytest.mark.parametrize("end", [try_delete, try_evict])
def test_the_scheduler_gives_every_victim_its_own_grace_period(
    scheduler: ApiClient, end: Callable[..., Object]
) -> None:
    assert refusal_of(lambda: end(scheduler, TEAM, "running")) == ""
    for seconds in (0, 1, 29):
        refusal = refusal_of(lambda: end(scheduler, TEAM, "running", gracePeriodSeconds=seconds))  # noqa: B023
        assert "bayplan leaves its victims the time that they ask for" in refusal, seconds


def test_a_pod_that_runs_nowhere_is_ended_at_once(scheduler: ApiClient) -> None:
    # The API server itself makes the grace period 0 before it asks the policy.
    assert refusal_of(lambda: try_delete(scheduler, TEAM, "strangers")) == ""


def test_the_scheduler_writes_verdicts_and_nominations_of_its_own_pods(scheduler: ApiClient) -> None:
    for status in (
        {"conditions": [UNSCHEDULABLE]},
        {"conditions": [UNSCHEDULABLE], "nominatedNodeName": "n1"},
        {"nominatedNodeName": None},
        {"conditions": [DISRUPTED]},
        {"extendedResourceClaimStatus": CLAIM_STATUS},
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
        {"conditions": [DISRUPTED], "extendedResourceClaimStatus": CLAIM_STATUS},
    ):
        refusal = refusal_of(lambda: try_patch(scheduler, TEAM, "strangers", **status))  # noqa: B023  (called at once)
        assert "bayplan writes the" in refusal or CHANGES_NOTHING in refusal, status


@pytest.mark.parametrize(
    ("namespace", "name"), [("kube-system", "plain"), ("kube-system", "dns"), (TRUSTED, "critical")]
)
def test_of_a_pod_that_it_may_not_end_the_scheduler_does_not_say_that_it_ends(
    scheduler: ApiClient, namespace: str, name: str
) -> None:
    refusal = refusal_of(lambda: try_patch(scheduler, namespace, name, conditions=[DISRUPTED]))
    assert "bayplan writes the" in refusal


@pytest.mark.parametrize("name", ["ours", "strangers"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("observedGeneration", 7),
        ("resize", "Infeasible"),
        ("allocatedResources", {"cpu": "9"}),
        ("resources", {"requests": {"cpu": "9"}}),
        ("startTime", "2026-01-01T00:00:00Z"),
    ],
)
def test_the_scheduler_writes_no_other_field_of_a_status_however_new(
    admin: ApiClient, scheduler: ApiClient, name: str, field: str, value: object
) -> None:
    change: Object = {"conditions": [DISRUPTED], field: value}
    # An API server that does not know a field, or has it switched off, drops it from whoever writes it.
    is_dropped = field not in try_patch(admin, TEAM, name, **change)["status"]
    refusal = refusal_of(lambda: try_patch(scheduler, TEAM, name, **change))
    assert (CHANGES_NOTHING in refusal) != is_dropped


@pytest.mark.parametrize("name", ["ours", "strangers"])
def test_the_scheduler_changes_nothing_else_of_a_pod(scheduler: ApiClient, name: str) -> None:
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
        assert CHANGES_NOTHING in refusal, status
    for key in ("labels", "annotations"):
        metadata = {key: {"a": "b"}}
        refusal = refusal_of(lambda: try_patch(scheduler, TEAM, name, metadata, conditions=[DISRUPTED]))  # noqa: B023
        assert CHANGES_NOTHING in refusal, key
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


def test_the_scheduler_writes_events_in_its_own_name_only(admin: ApiClient, scheduler: ApiClient) -> None:
    why = "bayplan writes Events in its own name"
    assert refusal_of(lambda: try_event(scheduler, TEAM, "bayplan")) == ""
    assert why in refusal_of(lambda: try_event(scheduler, TEAM, "kubelet"))
    for controller in ("bayplan", "kubelet"):
        path = f"/apis/events.k8s.io/v1/namespaces/{TEAM}/events"
        admin.request("POST", path, an_event(TEAM, controller))
        one = f"{path}/about-ours.{controller}{DRY_RUN}"
        again = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
        refusal = refusal_of(lambda: scheduler.request("PATCH", one, again, MERGE_PATCH))  # noqa: B023  (called at once)
        assert (why in refusal) == (controller == "kubelet"), controller


def test_the_policies_about_the_scheduler_hold_nobody_else_back(admin: ApiClient) -> None:
    assert refusal_of(lambda: try_delete(admin, TEAM, "running", gracePeriodSeconds=0)) == ""
    assert refusal_of(lambda: try_event(admin, TEAM, "controller")) == ""
    assert refusal_of(lambda: try_bind(admin, annotations={"a": "b"})) == ""
    assert refusal_of(lambda: try_change(admin, "persistentvolumeclaims", "wanted", with_labels())) == ""
    assert refusal_of(lambda: try_change(admin, "persistentvolumes", "taken", {"spec": {"claimRef": None}})) == ""
    assert refusal_of(lambda: try_delete(admin, "kube-system", "plain")) == ""
    assert refusal_of(lambda: try_delete(admin, TRUSTED, "critical")) == ""
    assert refusal_of(lambda: try_patch(admin, TEAM, "strangers", phase="Running", conditions=[READY])) == ""
