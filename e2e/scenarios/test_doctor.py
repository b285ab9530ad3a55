"""`bayplan doctor` on a real API server: what is read live, and the rights that whoever asks lacks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane


def findings(kubeconfig: Path) -> list[Object]:
    done = subprocess.run(
        [sys.executable, "-m", "bayplan", "doctor", "--kubeconfig", str(kubeconfig), "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    found: list[Object] = json.loads(done.stdout)["findings"]
    assert done.returncode == bool(found), done.stderr
    return found


def test_the_shipped_rights_are_enough_and_those_of_a_reader_are_not(
    control_plane: ControlPlane, client: ApiClient, namespace: str, bayplan_identity: Path
) -> None:
    client.create_all("nodes", [node("n1"), node("n2")])
    web = pod("web", namespace, node_name="n1", requests={"cpu": "1", "memory": "1Gi"})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    web["metadata"]["ownerReferences"] = [owner]
    client.create("pods", web)
    assert findings(bayplan_identity) == []
    user, role = f"reader-of-{namespace}", f"reader-{namespace}"
    client.create("clusterroles", {"metadata": {"name": role}, "rules": [_reading("nodes", "pods")]})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    client.create("clusterrolebindings", {"metadata": {"name": role}, "roleRef": bound, "subjects": [subject]})
    try:
        missing = {each["about"]: each["fix"] for each in findings(control_plane.kubeconfig_for(user))}
    finally:
        client.delete("clusterrolebindings", role)
        client.delete("clusterroles", role)
    assert missing == {
        "create pods/binding": "kubectl apply -k manifests/base",
        "patch pods/status": "kubectl apply -k manifests/base",
        "delete pods": "kubectl apply -k manifests/components/preemption",
        "patch persistentvolumes": "kubectl apply -k manifests/components/volumes",
        "patch resourceclaims.resource.k8s.io/binding": "kubectl apply -k manifests/components/devices",
        "update resourceclaims.resource.k8s.io": "kubectl apply -k manifests/components/devices",
        "create resourceclaims.resource.k8s.io": "kubectl apply -k manifests/components/devices",
        "delete resourceclaims.resource.k8s.io": "kubectl apply -k manifests/components/devices",
    }


def _reading(*resources: str) -> Object:
    return {"apiGroups": [""], "resources": list(resources), "verbs": ["list", "watch"]}
