"""An API server that has the Prometheus operator's kinds takes the components as they are shipped."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import MODULE, cache_root, say_on_stderr
from e2e.controlplane.installation import MANIFESTS
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.toolchain import find_go
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.grafana import DASHBOARD
from e2e.scenarios.monitoring import COMPONENT, SCRAPER, render

pytestmark = pytest.mark.controlplane

PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
KINDS = ("servicemonitors", "podmonitors", "prometheusrules")
NAMESPACE = "kube-system"
DOCUMENT = REPOSITORY / "docs" / "monitoring.md"
POD_MONITOR = COMPONENT / "pod-monitor"


@pytest.fixture(scope="module")
def operator_kinds(control_plane: ControlPlane) -> Iterator[None]:
    """The definitions of the operator's kinds, from its Go module, for as long as this file's tests run."""
    go = find_go(MODULE / "go.mod", cache_root(), say_on_stderr)
    done = subprocess.run(
        [str(go), "mod", "download", "-json", PROMETHEUS_OPERATOR],
        cwd=MODULE,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    folder = Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
    files = [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in KINDS]
    for path in files:
        # Too large for the annotation of a client-side apply.
        control_plane.kubectl("apply", "--server-side", "-f", path)
    for kind in KINDS:
        name = f"crd/{kind}.monitoring.coreos.com"
        control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", name)
    yield
    for path in files:
        control_plane.kubectl("delete", "-f", path)


@pytest.mark.usefixtures("operator_kinds")
@pytest.mark.parametrize("components", [(COMPONENT,), (COMPONENT, POD_MONITOR)], ids=["Service", "pods"])
def test_the_api_server_takes_every_field(
    control_plane: ControlPlane, tmp_path: Path, components: tuple[Path, ...]
) -> None:
    objects = render(control_plane, tmp_path, NAMESPACE, *components, DASHBOARD.parent)
    monitors = [each["kind"] for each in objects if each["kind"].endswith("Monitor")]
    assert monitors == ["PodMonitor" if POD_MONITOR in components else "ServiceMonitor"]
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(yaml.safe_dump_all(objects))

    def applied() -> list[str]:
        # kubectl knows the new kinds once the API server has published their schemas.
        arguments = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", rendered)
        lines = control_plane.kubectl(*arguments, check=False).splitlines()
        return lines if len(lines) == len(objects) else []

    lines = wait_until(applied, "an answer for every object")
    assert all(line.endswith("serverside-applied (server dry run)") for line in lines)


def test_the_components_follow_the_namespace_of_an_overlay(control_plane: ControlPlane, tmp_path: Path) -> None:
    objects = render(control_plane, tmp_path, "batch", COMPONENT, POD_MONITOR, DASHBOARD.parent)
    placed = {each["metadata"].get("namespace") for each in objects if not each["kind"].startswith("ClusterRole")}
    assert placed == {"batch"}
    subjects = {
        (subject["namespace"], subject["name"])
        for each in objects
        if each["kind"].endswith("Binding")
        for subject in each["subjects"]
    }
    assert subjects == {SCRAPER, ("batch", "bayplan-metrics-reader")}


def test_an_overlay_says_where_the_runbooks_are(control_plane: ControlPlane, tmp_path: Path) -> None:
    (documented,) = re.findall(r"```yaml\n(replacements:\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    made = render(control_plane, tmp_path, NAMESPACE, COMPONENT, **yaml.safe_load(documented))
    (rules,) = [each for each in made if each["kind"] == "PrometheusRule"]
    urls = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
    }
    assert urls == {alert: f"https://wiki.example.com/bayplan/docs/runbooks/{alert}.md" for alert in urls}


def test_the_monitors_select_the_shipped_service_and_its_pods(control_plane: ControlPlane, tmp_path: Path) -> None:
    installed = list(yaml.safe_load_all(control_plane.kubectl("kustomize", MANIFESTS)))
    (service,) = [each for each in installed if each["kind"] == "Service"]
    (deployment,) = [each for each in installed if each["kind"] == "Deployment"]
    labels = (service["metadata"]["labels"], deployment["spec"]["template"]["metadata"]["labels"])
    for monitor in ("service-monitor.yaml", "pod-monitor/pod-monitor.yaml"):
        spec = yaml.safe_load((COMPONENT / monitor).read_text())["spec"]
        assert all(spec["selector"]["matchLabels"].items() <= each.items() for each in labels)
        assert all(each[spec["jobLabel"]] == "bayplan" for each in labels)
