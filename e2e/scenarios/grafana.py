"""What Grafana does with a dashboard before Prometheus is asked: it fills in the variables."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.scenarios.prometheus_server import PrometheusServer

DASHBOARD = REPOSITORY / "manifests" / "components" / "dashboards" / "bayplan.json"
RATE_INTERVAL = "10s"
_LABEL_VALUES = re.compile(r"label_values\((.*), *(\w+)\)")
_SELECTOR = re.compile(r"\b[a-zA-Z_:][a-zA-Z0-9_:]*\{[^}]*\}")
_SPECIAL = re.compile(r"[$^*{}\[\]'+?.()|\\]")


@cache
def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def dashboard_queries(path: Path = DASHBOARD) -> Iterator[tuple[str, str]]:
    """The queries of a dashboard with the titles of their panels, as they stand in the file."""
    for panel in _document(path)["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def query_of(title: str) -> str:
    """The query of the only panel of that title that has but one."""
    (query,) = [expression for panel, expression in dashboard_queries() if panel == title]
    return query


def selectors_of(query: str) -> list[str]:
    """Every selector of a query, without its range."""
    return _SELECTOR.findall(query)


def fill_in(query: str, variables: Mapping[str, str]) -> str:
    """Returns a query as Prometheus gets it."""
    for name, value in {**variables, "__rate_interval": RATE_INTERVAL}.items():
        query = query.replace(f"${name}", value)
    assert "$" not in re.sub(r"\\\\\$", "", query), query
    return query


def resolve_variables(prometheus: PrometheusServer, **chosen: str) -> dict[str, str]:
    """Returns the value of each variable: the chosen one, else that of `All`.

    `All` stands for the variable's `allValue`, or for all values it found, joined to one regular expression.
    """
    values: dict[str, str] = {}
    for variable in _document(DASHBOARD)["templating"]["list"]:
        name = variable["name"]
        if variable["type"] == "datasource":
            continue
        match = _LABEL_VALUES.fullmatch(variable["query"])
        assert match, variable["query"]
        found = prometheus.label_values(fill_in(match[1], values), match[2])
        if name in chosen:
            assert chosen[name] in found
            values[name] = _SPECIAL.sub(r"\\\\\g<0>", chosen[name])
        else:
            joined = "|".join(_SPECIAL.sub(r"\\\\\g<0>", value) for value in found)
            values[name] = variable.get("allValue") or f"({joined})"
    return values
