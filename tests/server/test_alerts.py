import re
from functools import partial
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from tests.server.samples import observed

from bayplan.server.health import HealthChecks
from bayplan.server.metrics import AtScrape, sli_metrics

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "manifests/components/monitoring"
RUNBOOKS = ROOT / "docs/runbooks"
GROUPS = yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text())["spec"]["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
# What Prometheus adds itself.
SCRAPED = {"up"}

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def metrics_of(expression: str) -> list[str]:
    return re.findall(r"\b([a-z_][a-z0-9_]*)\{", expression)


@every_rule
def test_an_alert_says_how_bad_it_is_what_happened_and_where_to_read_on(rule):
    assert rule["alert"].startswith("Bayplan")
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert all(rule["annotations"][key].endswith(".") for key in ("summary", "description"))
    # A summary is the same for all that fire at once, so that they can be told together.
    assert "{{" not in rule["annotations"]["summary"]


@every_rule
def test_an_alert_asks_only_for_metrics_that_are_exported_and_only_for_those_of_bayplan(rule):
    health, slis = HealthChecks(), CollectorRegistry()
    slis.register(AtScrape(partial(sli_metrics, health)))
    health.report("readyz")
    lines = b"".join(map(generate_latest, (observed().registry, slis))).decode().splitlines()
    # A gauge by kind has no series until the first kind is known, so the types count, too.
    exported = {line.split()[2] if line.startswith("#") else re.split(r"[{ ]", line)[0] for line in lines}
    used = metrics_of(rule["expr"])
    assert used
    assert set(used) <= exported | SCRAPED
    assert rule["expr"].count('{job="bayplan"') == len(used)


@every_rule
def test_an_alert_that_adds_up_keeps_clusters_and_installations_apart(rule):
    kept = re.findall(r"\b(?:sum|max|min|count)\b(?: by \(([^)]*)\))?", rule["expr"])
    assert [labels for labels in kept if not labels.startswith("cluster, namespace, job")] == []


@every_rule
def test_an_alert_has_a_page_that_says_what_to_do(rule):
    page = RUNBOOKS / f"{rule['alert']}.md"
    assert rule["annotations"]["runbook_url"] == str(page.relative_to(ROOT))
    text = page.read_text()
    assert text.startswith(f"# {rule['alert']}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    diagnosis = text.split("## Diagnosis")[1].split("## Mitigation")[0]
    assert "```console\n$ " in diagnosis


def test_there_is_no_page_without_an_alert_and_the_list_has_each_with_its_severity_and_how_long_it_waits():
    pages = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == {rule["alert"] for rule in RULES}
    row = re.compile(r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) \| (\w+) \| (.*) \|$", re.MULTILINE)
    listed = row.findall((RUNBOOKS / "README.md").read_text())
    assert listed == [
        (rule["alert"], rule["labels"]["severity"], rule.get("for", "0m"), rule["annotations"]["summary"])
        for rule in RULES
    ]


def test_memory_is_high_at_85_percent_of_the_shipped_limit():
    deployment = yaml.safe_load((ROOT / "manifests/base/deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (rule,) = [rule for rule in RULES if rule["alert"] == "BayplanMemoryHigh"]
    assert container["resources"]["limits"]["memory"] == "1Gi"
    assert rule["expr"].endswith("> 0.85 * 1024 * 1024 * 1024")


@pytest.mark.parametrize("monitor", ["service-monitor.yaml", "pod-monitor/pod-monitor.yaml"])
def test_a_monitor_finds_the_shipped_pods_at_their_port_over_https(monitor):
    document = yaml.safe_load((MONITORING / monitor).read_text())
    template = yaml.safe_load((ROOT / "manifests/base/deployment.yaml").read_text())["spec"]["template"]
    assert document["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    endpoints = document["spec"].get("endpoints") or document["spec"]["podMetricsEndpoints"]
    assert [endpoint["path"] for endpoint in endpoints] == ["/metrics", "/metrics/slis"]
    ports = [port["containerPort"] for port in template["spec"]["containers"][0]["ports"]]
    for endpoint in endpoints:
        assert endpoint.get("targetPort", endpoint.get("portNumber")) in ports
        assert endpoint["scheme"] == "https"


def test_prometheus_may_read_the_metrics_and_nothing_else_that_is_no_object():
    (reader,) = [
        each for each in yaml.safe_load_all((MONITORING / "rbac.yaml").read_text()) if each["kind"] == "ClusterRole"
    ]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics", "/metrics/slis"], "verbs": ["get"]}]
