"""docs/configuration.md says what is so, and samples of other pages load."""

import re
from pathlib import Path

import pytest
import yaml
from tests.config.configurations import load

from bayplan.config.convert import to_effective_yaml
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, KNOWN_FEATURE_GATES, SWITCHED
from bayplan.config.load import default_configuration
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, UPSTREAM_DEFAULT_PLUGINS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "configuration.md").read_text()


@pytest.mark.parametrize("page", ["configuration.md", "autoscalers.md", "preemption.md", "../README.md"])
def test_sample_configurations_load(tmp_path, page):
    samples = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert samples
    for sample in samples:
        load(tmp_path, sample)


def test_it_names_the_default_plugins_in_order():
    listed = " ".join(TEXT.split("The default set, in order, with its weights: ")[1].split(".")[0].split())
    assert listed == ", ".join(
        f"{entry.name} ({entry.weight})" if entry.weight else entry.name
        for entry in UPSTREAM_DEFAULT_PLUGINS
        if entry.name in IMPLEMENTED_PLUGINS
    )


def test_it_names_every_field_of_the_top_level():
    for name in yaml.safe_load(to_effective_yaml(default_configuration())).keys() - {"apiVersion", "kind"}:
        assert f"| `{name}` |" in TEXT, name


def test_it_names_every_gate_that_changes_something_with_its_default():
    table = TEXT.split("These gates change what bayplan does:")[1].split("All other gates")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (on|off) \|", table, re.MULTILINE))
    assert listed == {name: "on" if DEFAULT_FEATURE_GATES.enabled(name) else "off" for name in SWITCHED}


def test_the_gates_it_names_are_kube_schedulers():
    section = TEXT.split("\n## Feature gates\n")[1].split("\n## ")[0]
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert named <= KNOWN_FEATURE_GATES.keys()
