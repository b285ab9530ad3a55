import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from tests.server.samples import observed

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "manifests/components/dashboards/bayplan.json").read_text())
PANELS = DASHBOARD["panels"]
TARGETS = [(panel, target) for panel in PANELS for target in panel.get("targets", [])]
EXPRESSIONS = [target["expr"] for _, target in TARGETS]
TARGETS_CHOSEN = 'cluster=~"$cluster", namespace=~"$namespace", job=~"$job", instance=~"$instance"'

# What Prometheus adds itself.
SCRAPED = {"up"}
METRIC = re.compile(r"\b([a-z_][a-z0-9_]*)\{")


def exported_names() -> set[str]:
    """The names of all samples, once every call of the observer was made."""
    lines = generate_latest(observed().registry).decode().splitlines()
    return {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}


def documented_names() -> set[str]:
    return set(re.findall(r"^\| `([a-z_]+)`", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))


def overlap(one, other):
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def test_panels_have_ids_of_their_own():
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)


def test_panels_lie_inside_the_grid_and_do_not_overlap():
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    assert [pair for pair in combinations(places, 2) if overlap(*pair)] == []


def test_every_panel_but_a_row_says_what_it_shows_in_which_unit_and_has_queries():
    for panel in PANELS:
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert panel["targets"]
            refs = [target["refId"] for target in panel["targets"]]
            assert len(set(refs)) == len(refs)


def test_the_rows_are_what_an_operator_asks_about():
    rows = [panel["title"] for panel in PANELS if panel["type"] == "row"]
    assert rows == ["Overview", "Decisions", "Gangs", "Packing", "Preemption", "API server", "Leadership", "Process"]


def test_every_query_goes_to_the_chosen_data_source():
    for panel, target in TARGETS:
        assert panel["datasource"] == target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_query_uses_only_metrics_that_are_exported(expression):
    used = METRIC.findall(expression)
    assert used
    assert set(used) <= exported_names() | SCRAPED


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_selector_of_a_query_follows_the_variables(expression):
    assert expression.count("{" + TARGETS_CHOSEN) == len(METRIC.findall(expression))


def test_what_an_alert_goes_by_is_on_a_panel():
    rules = (ROOT / "manifests/components/monitoring/prometheus-rule.yaml").read_text()
    asked = {name for name in METRIC.findall(rules) if name.startswith("bayplan_")}
    shown = {name for expression in EXPRESSIONS for name in METRIC.findall(expression)}
    # What is compared only when somebody asks has no course.
    assert asked - shown == {"bayplan_cache_differences"}


def test_each_variable_offers_what_the_ones_before_it_leave():
    variables = DASHBOARD["templating"]["list"]
    assert [variable["name"] for variable in variables] == ["datasource", "cluster", "namespace", "job", "instance"]
    matchers = TARGETS_CHOSEN.split(", ")
    for index, variable in enumerate(variables[1:]):
        chosen = f"{{{', '.join(matchers[:index])}}}" if index else ""
        assert variable["query"] == f"label_values(bayplan_build_info{chosen}, {variable['name']})"


def test_all_jobs_and_instances_are_those_of_bayplan_and_not_whatever_prometheus_scrapes():
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert "allValue" not in variables["job"]
    assert "allValue" not in variables["instance"]
    # A Prometheus of one cluster gives its targets no such label.
    assert variables["cluster"]["allValue"] == variables["namespace"]["allValue"] == ".*"


def test_the_documentation_lists_every_metric_and_no_other():
    lines = generate_latest(observed().registry).decode().splitlines()
    types = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert documented_names() == types
