"""promtool finds the alerts correct, and each fires for what it says and for nothing near it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e.scenarios.alert_cases import CASES
from e2e.scenarios.alert_rules import rule, shipped_groups, write_groups
from e2e.scenarios.alert_series import Case


def promtool(*arguments: str | Path, folder: Path) -> str:
    """Runs promtool and returns what it printed; fails when it does."""
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def minutes(duration: str) -> int:
    """How many minutes a duration such as `5m` has."""
    number, unit = int(duration[:-1]), duration[-1]
    assert unit == "m"
    return number


def test_promtool_finds_the_rules_correct(prometheus_binaries: None, tmp_path: Path) -> None:
    path = write_groups(tmp_path, shipped_groups())
    count = sum(len(group["rules"]) for group in shipped_groups())
    assert f"SUCCESS: {count} rules found" in promtool("check", "rules", path, folder=tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.what}")
def test_an_alert_fires_for_what_it_says_and_for_nothing_near_it(
    prometheus_binaries: None, tmp_path: Path, case: Case
) -> None:
    shipped = rule(case.alert)
    expected: list[dict[str, Any]] = []
    if case.description:
        annotations = {**shipped["annotations"], "description": case.description}
        expected = [{"exp_labels": {**shipped["labels"], **case.labels}, "exp_annotations": annotations}]
    looks = [{"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": expected}]
    if "for" in shipped:
        # The series begin at minute 0: what ends its wait a minute early is not the shipped duration.
        looks.append({"eval_time": f"{minutes(shipped['for']) - 1}m", "alertname": case.alert, "exp_alerts": []})
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": looks,
    }
    rules = write_groups(tmp_path, [{"name": "one", "rules": [shipped]}])
    document = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "case.yaml").write_text(json.dumps(document))  # JSON is YAML
    promtool("test", "rules", "case.yaml", folder=tmp_path)


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    alerts = [each["alert"] for group in shipped_groups() for each in group["rules"]]
    assert {case.alert for case in CASES if case.description} == set(alerts)
