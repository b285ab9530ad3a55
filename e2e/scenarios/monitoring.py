"""The component manifests/components/monitoring as a user renders it, whom it lets read the metrics, and how."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.installation import COMPONENTS, kustomize, write_kustomization
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token
from e2e.scenarios.prometheus_server import Target, secured_by

COMPONENT = COMPONENTS / "monitoring"
SCRAPER = ("monitoring", "prometheus-k8s")
_POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
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


def bayplan_targets(process: BayplanProcess, token_file: Path) -> list[Target]:
    """How the shipped ServiceMonitor has a replica scraped, its endpoints one by one, by a Prometheus with a token."""
    return [Target("bayplan", process.secure_port, settings=each) for each in scrape_settings(token_file)]


def scrape_settings(token_file: Path) -> list[dict[str, Any]]:
    """What each endpoint of the shipped ServiceMonitor is in `scrape_configs`; `token_file` is Prometheus' own.

    Settings are named as the Prometheus operator names them for Prometheus; any that this does not know is an error.
    """
    monitor = yaml.safe_load((COMPONENT / "service-monitor.yaml").read_text())
    return [_scrape_settings(**endpoint, token_file=token_file) for endpoint in monitor["spec"]["endpoints"]]


def _scrape_settings(
    *,
    targetPort: int,  # noqa: N803  as the ServiceMonitor has them
    path: str,
    interval: str,
    scheme: str,
    bearerTokenFile: str,  # noqa: N803
    tlsConfig: dict[str, bool],  # noqa: N803
    token_file: Path,
    relabelings: Sequence[dict[str, Any]] = (),
    metricRelabelings: Sequence[dict[str, Any]] = (),  # noqa: N803
) -> dict[str, Any]:
    # A process under test has a port of its own, and is scraped more often.
    assert (targetPort, interval[-1]) == (10259, "s")
    assert (scheme, bearerTokenFile, tlsConfig) == ("https", _POD_TOKEN, {"insecureSkipVerify": True})
    return {
        **secured_by(token_file),
        "metrics_path": path,
        "relabel_configs": [_relabeling(each) for each in relabelings],
        "metric_relabel_configs": [_relabeling(each) for each in metricRelabelings],
    }


def _relabeling(rule: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", key): value for key, value in rule.items()}
