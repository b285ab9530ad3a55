"""The shipped PrometheusRule as files that Prometheus and promtool read, and with shorter durations for tests."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from e2e.scenarios.monitoring import COMPONENT

MANIFEST = COMPONENT / "prometheus-rule.yaml"
RANGE_SECONDS, FOR_SECONDS = 10, 3
"""What tests that wait for alerts make of every range and every `for`; targets are scraped every second."""
AGE_SECONDS = 10
"""What they make of an hour for which a pod or a gang waits."""

_AN_HOUR = re.compile(r"> 3600$", re.MULTILINE)
_RANGE = re.compile(r"\[\d+[smhd]\]")


def shipped_groups() -> list[dict[str, Any]]:
    """The groups of the manifest."""
    groups: list[dict[str, Any]] = yaml.safe_load(MANIFEST.read_text())["spec"]["groups"]
    return groups


def rule(alert: str) -> dict[str, Any]:
    """The rule of an alert."""
    found: dict[str, Any]
    (found,) = [each for group in shipped_groups() for each in group["rules"] if each["alert"] == alert]
    return found


def shortened(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same rules with RANGE_SECONDS as ranges, FOR_SECONDS as `for`, and AGE_SECONDS for an hour."""
    groups = deepcopy(groups)
    for each in (rule for group in groups for rule in group["rules"]):
        expression = _AN_HOUR.sub(f"> {AGE_SECONDS}", each["expr"])
        each["expr"] = _RANGE.sub(f"[{RANGE_SECONDS}s]", expression)
        if "for" in each:
            each["for"] = f"{FOR_SECONDS}s"
    return groups


def write_groups(folder: Path, groups: list[dict[str, Any]]) -> Path:
    """Writes a rule file and returns it."""
    path = folder / "bayplan-rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    return path
