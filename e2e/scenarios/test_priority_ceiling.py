"""Who may create pods of high priority that name bayplan where the production overlay's ceiling is in force.

Every request that is tried is a dry run: the API server admits or refuses it and keeps nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.controlplane.client import ApiClient, Object, path_of
from e2e.controlplane.installation import OVERLAYS, kustomize, write_kustomization
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import DRY_RUN, TEAM, refusal_of, try_create
from e2e.scenarios.guarded_cluster import CEILING, NAMESPACE, TRUSTED

pytestmark = pytest.mark.controlplane


@pytest.fixture
def alice(guarded_plane: ControlPlane) -> Iterator[ApiClient]:
    """Somebody who may do everything with the pods of one namespace."""
    guarded_plane.kubeconfig_for("alice")
    user = ApiClient(guarded_plane.url, guarded_plane.tls("alice"))
    yield user
    user.close()


@pytest.mark.parametrize("class_name", ["system-node-critical", "system-cluster-critical", "high"])
def test_a_user_cannot_create_pods_of_high_priority_that_name_bayplan(alice: ApiClient, class_name: str) -> None:
    refusal = refusal_of(lambda: try_create(alice, TEAM, class_name))
    assert (
        f"is more than 999999, the highest for namespace {TEAM}: ConfigMap {CEILING} in namespace {NAMESPACE} names"
        " those where pods that name bayplan may have more"
    ) in refusal


@pytest.mark.parametrize("class_name", ["system-node-critical", "high"])
@pytest.mark.parametrize("scheduler_name", ["default-scheduler", "another"])
def test_pods_of_other_schedulers_may_have_any_priority(alice: ApiClient, class_name: str, scheduler_name: str) -> None:
    assert try_create(alice, TEAM, class_name, scheduler_name)["spec"]["schedulerName"] == scheduler_name


def test_a_user_can_create_pods_up_to_the_ceiling(alice: ApiClient) -> None:
    assert try_create(alice, TEAM, "fair")["spec"]["priority"] == 999999
    assert try_create(alice, TEAM, "")["spec"]["priority"] == 0


def test_a_ceiling_that_warns_admits_the_pod_and_says_what_would_be_refused(
    guarded_plane: ControlPlane, alice: ApiClient, tmp_path: Path
) -> None:
    folder, rendered = tmp_path / "warn", tmp_path / "warn.yaml"
    write_kustomization(folder, base=OVERLAYS / "production", components=["admission/warn"])
    (binding,) = [
        each
        for each in kustomize(guarded_plane, folder)
        if (each["kind"], each["metadata"]["name"]) == ("ValidatingAdmissionPolicyBinding", CEILING)
    ]
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]

    def put(binding: Object) -> None:
        rendered.write_text(json.dumps(binding))
        guarded_plane.kubectl("apply", "-f", rendered)

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


def test_the_schedulers_own_pods_may_have_their_priority(guarded_plane: ControlPlane, admin: ApiClient) -> None:
    template = admin.get("deployments", "bayplan", NAMESPACE)["spec"]["template"]
    # Nobody counts for the quota, as no controller runs here.
    admin.delete("resourcequotas", "bayplan", namespace=NAMESPACE)
    document = {"metadata": {"name": "replica", **template["metadata"]}, "spec": template["spec"]}
    created = admin.request("POST", path_of("pods", namespace=NAMESPACE) + DRY_RUN, document)
    assert created["spec"]["priorityClassName"] == "system-cluster-critical"


def test_names_that_were_written_over_several_lines_are_found(admin: ApiClient) -> None:
    before = admin.get("configmaps", CEILING, NAMESPACE)["data"]["namespaces"]
    admin.patch(
        "configmaps", CEILING, {"data": {"namespaces": f"kube-system\n{TRUSTED},\tanother\n"}}, namespace=NAMESPACE
    )
    try:
        wait_until(lambda: not refusal_of(lambda: try_create(admin, "another", "high")), "the changed parameters")
        assert refusal_of(lambda: try_create(admin, TRUSTED, "high")) == ""
        assert CEILING in refusal_of(lambda: try_create(admin, TEAM, "high"))
    finally:
        admin.patch("configmaps", CEILING, {"data": {"namespaces": before}}, namespace=NAMESPACE)
        wait_until(lambda: refusal_of(lambda: try_create(admin, "another", "high")), "the parameters of before")


@pytest.mark.parametrize("highest", ["1e6", "", "1_000_000"])
def test_a_ceiling_that_is_no_number_refuses_with_a_message_that_says_where_it_is(
    admin: ApiClient, highest: str
) -> None:
    before = admin.get("configmaps", CEILING, NAMESPACE)["data"]["highestPriority"]
    admin.patch("configmaps", CEILING, {"data": {"highestPriority": highest}}, namespace=NAMESPACE)
    try:
        wait_until(lambda: refusal_of(lambda: try_create(admin, TEAM, "fair")), "the changed parameters")
        assert refusal_of(lambda: try_create(admin, TEAM, "high", "another")) == ""
        refusal = refusal_of(lambda: try_create(admin, TEAM, ""))
        assert f"highestPriority of ConfigMap {CEILING} in namespace {NAMESPACE} is no whole number" in refusal
    finally:
        admin.patch("configmaps", CEILING, {"data": {"highestPriority": before}}, namespace=NAMESPACE)
        wait_until(lambda: not refusal_of(lambda: try_create(admin, TEAM, "fair")), "the parameters of before")
