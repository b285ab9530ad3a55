"""What the component for Prometheus scrapes, and who may read it. Whether it is taken: test_applying.py."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.installation import MANIFESTS, OVERLAYS, kustomize, write_kustomization
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.monitoring import COMPONENT, SCRAPER

pytestmark = pytest.mark.controlplane

DOCUMENT = REPOSITORY / "docs" / "monitoring.md"
RIGHTS = {"bayplan-metrics-reader", "bayplan-metrics-reader-pods", "bayplan-discovery"}


@pytest.mark.parametrize(
    ("components", "monitor"),
    [(("monitoring",), "ServiceMonitor"), (("monitoring", "monitoring/pod-monitor"), "PodMonitor")],
)
def test_each_replica_is_scraped_once(
    control_plane: ControlPlane, tmp_path: Path, components: tuple[str, ...], monitor: str
) -> None:
    write_kustomization(tmp_path, components=components)
    kinds = [each["kind"] for each in kustomize(control_plane, tmp_path)]
    assert [kind for kind in kinds if kind.endswith("Monitor")] == [monitor]


def test_those_who_may_read_the_metrics_are_the_scraper_and_the_account_of_the_pod_monitor(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    write_kustomization(tmp_path, components=["monitoring", "monitoring/pod-monitor"], namespace="batch")
    bindings = [
        each
        for each in kustomize(control_plane, tmp_path)
        if each["kind"].endswith("Binding") and each["metadata"]["name"] in RIGHTS
    ]
    assert len(bindings) == len(RIGHTS)
    subjects = {(subject["namespace"], subject["name"]) for each in bindings for subject in each["subjects"]}
    assert subjects == {SCRAPER, ("batch", "bayplan-metrics-reader")}


def test_an_overlay_says_where_the_runbooks_are(control_plane: ControlPlane, tmp_path: Path) -> None:
    (documented,) = re.findall(r"```yaml\n(replacements:\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    write_kustomization(tmp_path, components=["monitoring"], **yaml.safe_load(documented))
    made = kustomize(control_plane, tmp_path)
    (rules,) = [each for each in made if each["kind"] == "PrometheusRule"]
    urls = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
    }
    assert urls == {alert: f"https://wiki.example.com/bayplan/docs/runbooks/{alert}.md" for alert in urls}


def test_the_documented_scrape_configurations_are_prometheus_own(prometheus_binaries: None, tmp_path: Path) -> None:
    shown = re.findall(r"```yaml\n((?:scrape_configs:|  metrics_path:).*?)```", DOCUMENT.read_text(), re.DOTALL)
    metrics, slis = map(yaml.safe_load, shown)
    (entry,) = metrics["scrape_configs"]
    # Debian builds Prometheus without discovery in Kubernetes.
    discovery = entry.pop("kubernetes_sd_configs")
    assert discovery == [{"role": "endpointslice", "namespaces": {"names": ["bayplan-system"]}}]
    relabelings = [*entry["relabel_configs"], *slis["relabel_configs"]]
    entries = [entry, {**entry, **slis, "job_name": "bayplan-slis", "relabel_configs": relabelings}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": entries}))
    command = ["promtool", "check", "config", "--syntax-only", "prometheus.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nobody_who_goes_by_annotations_is_told_to_scrape_without_a_token(control_plane: ControlPlane) -> None:
    made = kustomize(control_plane, OVERLAYS / "production")
    annotations = [key for each in made for key in each["metadata"].get("annotations", {})]
    assert [key for key in annotations if key.startswith("prometheus.io/")] == []


def test_the_monitors_select_the_shipped_service_and_its_pods(control_plane: ControlPlane, tmp_path: Path) -> None:
    installed = kustomize(control_plane, MANIFESTS)
    (service,) = [each for each in installed if each["kind"] == "Service"]
    (deployment,) = [each for each in installed if each["kind"] == "Deployment"]
    labels = (service["metadata"]["labels"], deployment["spec"]["template"]["metadata"]["labels"])
    for monitor in ("service-monitor.yaml", "pod-monitor/pod-monitor.yaml"):
        spec = yaml.safe_load((COMPONENT / monitor).read_text())["spec"]
        assert all(spec["selector"]["matchLabels"].items() <= each.items() for each in labels)
        assert all(each[spec["jobLabel"]] == "bayplan" for each in labels)
