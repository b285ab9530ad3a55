"""The component manifests/components/monitoring as a user renders it, and the account it lets read the metrics."""

from pathlib import Path

import yaml
from e2e.controlplane.installation import COMPONENTS, kustomize, write_kustomization
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token

COMPONENT = COMPONENTS / "monitoring"
SCRAPER = ("monitoring", "prometheus-k8s")
_RIGHTS = {"bayplan-metrics-reader", "bayplan-discovery"}


def install_scraper(plane: ControlPlane, folder: Path, **spec: object) -> Path:
    """Gives the component's subject the component's rights, and returns a file with its token.

    `spec` is what a TokenRequest may ask for.
    """
    namespace, name = SCRAPER
    plane.client.create("namespaces", {"metadata": {"name": namespace}})
    plane.client.create("serviceaccounts", {"metadata": {"name": name, "namespace": namespace}})
    write_kustomization(folder, components=["monitoring"])
    rights = [each for each in kustomize(plane, folder) if each["metadata"]["name"] in _RIGHTS]
    rendered = folder / "rights.yaml"
    rendered.write_text(yaml.safe_dump_all(rights))
    plane.kubectl("apply", "-f", rendered)
    token = folder / "token"
    token.write_text(request_token(plane.client, namespace, name, **spec))
    return token
