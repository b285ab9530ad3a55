"""The ClusterRole in the document has exactly the rights that a snapshot needs."""

import re
from pathlib import Path

import yaml

from bayplan.snapshot.snapshot import KINDS

DOCUMENT = Path(__file__).parents[2] / "docs" / "snapshot.md"


def documented_role():
    (block,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return yaml.safe_load(block)


def test_the_documented_role_lists_what_is_listed_and_nothing_else():
    rules = documented_role()["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}
    granted = [(group, plural) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]]
    assert sorted(granted) == sorted((each.group, each.plural) for each in KINDS)
