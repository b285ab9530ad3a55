"""The component manifests/components/monitoring as a user renders it, and the account it lets read the metrics."""

from pathlib import Path
from typing import Any

import yaml
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token

COMPONENT = REPOSITORY / "manifests" / "components" / "monitoring"
SCRAPER = ("monitoring", "prometheus-k8s")
_RIGHTS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def render(plane: ControlPlane, folder: Path, namespace: str, *components: Path) -> list[dict[str, Any]]:
    """Returns the objects of an overlay in `folder` that consists of components."""
    relative = [str(Path(*[".."] * (len(folder.resolve().parts) - 1), *path.parts[1:])) for path in components]
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "components": relative,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return [each for each in yaml.safe_load_all(plane.kubectl("kustomize", folder)) if each]


def install_scraper(plane: ControlPlane, folder: Path, **spec: object) -> Path:
    """Gives the component's subject the component's rights, and returns a file with its token.

    `spec` is what a TokenRequest may ask for.
    """
    namespace, name = SCRAPER
    plane.client.create("namespaces", {"metadata": {"name": namespace}})
    plane.client.create("serviceaccounts", {"metadata": {"name": name, "namespace": namespace}})
    rights = [each for each in render(plane, folder, "kube-system", COMPONENT) if each["kind"] in _RIGHTS]
    rendered = folder / "rights.yaml"
    rendered.write_text(yaml.safe_dump_all(rights))
    plane.kubectl("apply", "-f", rendered)
    token = folder / "token"
    token.write_text(request_token(plane.client, namespace, name, **spec))
    return token
