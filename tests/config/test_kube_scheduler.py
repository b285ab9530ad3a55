"""bayplan reads what kube-scheduler writes, and knows its gates; `python -m tests.config.record` records both anew."""

from dataclasses import replace

import yaml
from tests.config.record import DATA, GATES, WRITTEN

from bayplan.config.connections import LeaderElection
from bayplan.config.feature_gates import KNOWN_FEATURE_GATES, Stage
from bayplan.config.load import load_configuration
from bayplan.config.plugin_sets import UPSTREAM_DEFAULT_PLUGINS
from bayplan.config.types import EXTENSION_POINTS, PLUGIN_SET_KEYS
from bayplan.plugins.registry import in_tree_extends

LINES = [line.split() for line in (DATA / GATES).read_text().splitlines()]


def test_the_file_that_kube_scheduler_writes_is_its_defaults(tmp_path):
    written = load_configuration(DATA / WRITTEN)
    path = tmp_path / "defaults.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "percentageOfNodesToScore: 0\n"
        "profiles: [{schedulerName: default-scheduler}]\n"
    )
    defaults = load_configuration(path)
    assert written.profiles == defaults.profiles
    assert written.leader_election == LeaderElection(leader_elect=True, resource_name="kube-scheduler")
    assert written.client_connection == replace(defaults.client_connection, kubeconfig="kubeconfig")
    others = {"leader_election": defaults.leader_election, "client_connection": defaults.client_connection}
    assert replace(written, **others) == defaults


def test_the_default_plugins_are_those_it_writes_in_its_order_with_its_weights():
    (profile,) = yaml.safe_load((DATA / WRITTEN).read_text())["profiles"]
    listed = [(entry["name"], entry["weight"]) for entry in profile["plugins"]["multiPoint"]["enabled"]]
    assert listed == [(entry.name, entry.weight) for entry in UPSTREAM_DEFAULT_PLUGINS]


def test_every_default_plugin_extends_something():
    names = [entry.name for entry in UPSTREAM_DEFAULT_PLUGINS]
    assert [name for name in names if not any(in_tree_extends(name, point) for point in EXTENSION_POINTS)] == []


def test_all_its_extension_points_are_known_but_those_for_groups_of_pods():
    (profile,) = yaml.safe_load((DATA / WRITTEN).read_text())["profiles"]
    groups = {"placementGenerate", "placementScore", "podGroupPostFilter"}
    assert profile["plugins"].keys() == {*PLUGIN_SET_KEYS.values(), *groups}


def test_gates_that_are_not_stable_have_its_stages_and_defaults():
    known = [
        [name, str(spec.stage), str(spec.default).lower()]
        for name, spec in KNOWN_FEATURE_GATES.items()
        if spec.stage in {Stage.ALPHA, Stage.BETA}
    ]
    listed = [line for line in LINES if line[1] != "LOCKED"]
    assert sorted([*known, ["AllAlpha", "ALPHA", "false"], ["AllBeta", "BETA", "false"]]) == listed


def test_gates_that_it_locks_are_locked_to_the_same():
    locked = [[name, "LOCKED", str(spec.default).lower()] for name, spec in KNOWN_FEATURE_GATES.items() if spec.locked]
    assert sorted(locked) == [line for line in LINES if line[1] == "LOCKED"]
