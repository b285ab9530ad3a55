import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.simulate_inputs import NODE, lists, pod

from bayplan.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/cluster"
CLUSTER = str(EXAMPLES / "worked-example.yaml")
CONFIG = str(EXAMPLES / "worked-example-config.yaml")


@pytest.fixture
def simulate(capsys):
    def simulate(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return ended.value.code or 0, captured.out, captured.err

    return simulate


def test_the_worked_example_is_explained_as_json(simulate):
    code, out, err = simulate("--config", CONFIG, "--cluster", CLUSTER, "--explain", "-o", "json")
    (attempt,) = json.loads(out)["pods"][0]["attempts"]
    assert (code, err, attempt["node"]) == (0, "", "node-2")
    assert {name: node["scores"]["NodeResourcesFit"] for name, node in attempt["nodes"].items()} == {
        "node-1": 60,
        "node-2": 69,
    }


@pytest.mark.parametrize("config", ["worked-example.yaml", "policy-worked-example.json"])
def test_the_worked_example_shows_the_documents_points_of_ten(simulate, config):
    arguments = ("--config", str(EXAMPLES.parent / config), "--cluster", CLUSTER, "--explain")
    _, out, _ = simulate(*arguments, "-o", "json")
    nodes = json.loads(out)["pods"][0]["attempts"][0]["nodes"]
    assert {name: (node["score"], node["ofTen"]) for name, node in nodes.items()} == {
        "node-1": (60, {"NodeResourcesFit": 5}),
        "node-2": (69, {"NodeResourcesFit": 7}),
    }
    _, out, _ = simulate(*arguments)
    assert "  node-1: 60 = NodeResourcesFit 60 (5 of 10)\n" in out
    assert "  node-2: 69 = NodeResourcesFit 69 (7 of 10)\n" in out


def test_a_summary_is_the_end_of_the_table_alone(simulate):
    _, table, _ = simulate("--cluster", CLUSTER)
    code, summary, err = simulate("--cluster", CLUSTER, "-o", "summary")
    assert (code, err) == (0, "")
    assert "default/pending" not in summary
    assert summary.split("in ")[0] in table
    assert "Nodes: 2 of 2 in use" in summary
    assert summary.startswith("RESOURCE")


def test_a_summary_is_not_explained(simulate):
    code, out, err = simulate("--cluster", CLUSTER, "--explain", "-o", "summary")
    assert (code, out) == (2, "")
    assert "--explain explains each pod, of which -o summary tells nothing: give one of them." in err


def test_a_claim_whose_storage_class_is_missing_is_explained_by_the_names_of_both(simulate, tmp_path):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": "fsat",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    file = tmp_path / "cluster.json"
    file.write_text(lists(NODE, claim, pod(volumes=[volume])))
    _, out, _ = simulate("--cluster", str(file), "--explain")
    assert 'VolumeBinding: claim "data" asks for StorageClass "fsat", which does not exist (n1)' in out


def test_without_a_shape_there_are_no_points_of_ten(simulate):
    _, out, _ = simulate("--cluster", CLUSTER, "--explain", "-o", "json")
    nodes = json.loads(out)["pods"][0]["attempts"][0]["nodes"]
    assert all("ofTen" not in node for node in nodes.values())


def test_what_an_old_format_says_and_nobody_does_is_told(simulate, tmp_path):
    config = tmp_path / "policy.yaml"
    config.write_text("{kind: Policy, apiVersion: v1, alwaysCheckAllPredicates: true}")
    code, _, err = simulate("--config", str(config), "--cluster", CLUSTER)
    assert (code, err.splitlines()) == (
        0,
        [f"{config}: alwaysCheckAllPredicates: has no effect: the first filter that rejects is named"],
    )


def test_a_table_without_pods_has_no_heading(simulate, tmp_path):
    node = tmp_path / "node.yaml"
    node.write_text("{kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 1}}}")
    assert simulate("--cluster", str(node))[1].startswith("RESOURCE")


def test_the_table_shows_node_scores_and_summary(simulate):
    code, out, _ = simulate("--config", CONFIG, "--cluster", CLUSTER)
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["default/pending", "node-2"]
    assert "NodeResourcesFit 69" in out
    assert "Nodes: 2 of 2 in use" in out
    _, out, _ = simulate("--config", CONFIG, "--cluster", CLUSTER, "--explain")
    assert "NodeResourcesFit 60" in out
    assert out.startswith("default/pending: node-2 with ")


def test_standard_input_is_a_cluster_file(simulate, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(CLUSTER).read_bytes())))
    code, out, _ = simulate("--cluster", "-", "-o", "json")
    assert (code, json.loads(out)["summary"]["nodes"]) == (0, 2)


def test_several_cluster_files_add_up(simulate, tmp_path):
    more = tmp_path / "more.json"
    more.write_text(
        '{"kind": "Node", "metadata": {"name": "node-3"}, "status": {"allocatable": {"cpu": 1, "pods": 1}}}'
    )
    _, out, _ = simulate("--cluster", CLUSTER, "--cluster", str(more), "-o", "json")
    assert json.loads(out)["summary"]["nodes"] == 3


def test_the_only_profile_can_be_renamed(simulate):
    _, out, _ = simulate("--cluster", CLUSTER, "--scheduler-name", "other", "-o", "json")
    assert json.loads(out)["summary"]["otherSchedulers"] == 1


def test_a_pod_that_cannot_be_read_is_named_and_the_others_go_on(simulate, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\nmetadata: {name: bad}\nspec:\n  containers: [{resources: {requests: {cpu: lots}}}]\n")
    code, out, err = simulate("--cluster", CLUSTER, "--cluster", str(bad), "-o", "json", "--validate", "ignore")
    summary = json.loads(out)["summary"]
    assert (code, summary["scheduled"]) == (0, 1)
    assert [(s["namespace"], s["name"]) for s in summary["skipped"]] == [("default", "bad")]
    assert err.startswith(f"{bad}: document 1: pod default/bad skipped: spec.containers[0].resources.requests[cpu]: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "kind: Node\nmetadata: {name: x}\nspec: {taints: [{key: 5, effect: NoSchedule}]}\n",
            "spec.taints[0].key: Invalid value: 5: must be a string",
        ),
        ("a: [", "is not valid YAML"),
        ("", "is empty"),
    ],
)
def test_a_malformed_cluster_file_is_one_line_and_exit_code_2(simulate, tmp_path, content, message):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    code, out, err = simulate("--cluster", str(file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(str(file))
    assert message in err


def test_a_malformed_configuration_is_an_error_with_the_path_to_the_field(simulate, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    code, out, err = simulate("--config", str(config), "--cluster", CLUSTER)
    assert (code, out) == (2, "")
    assert err.startswith(f"{config}:3:1: parallelism: ")


def test_a_simulation_says_that_it_calls_no_extender(simulate, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: x}]\n"
    )
    code, _, err = simulate("--config", str(config), "--cluster", CLUSTER)
    assert (code, err.count("extenders are not called: decisions are those of the plugins alone")) == (0, 1)


def test_an_explanation_too_large_to_hold_is_refused(simulate, monkeypatch):
    monkeypatch.setattr("bayplan.cli.simulation.MAX_VERDICTS", 1)
    code, _, err = simulate("--cluster", CLUSTER, "--explain", "-o", "json")
    assert code == 2
    assert "give fewer pods" in err
    assert simulate("--cluster", CLUSTER, "--explain")[0] == 0


CROWDED = {"kind": "Pod", "metadata": {"name": "crowd"}, "spec": {"schedulerName": "bayplan"}}


@pytest.fixture
def picky(tmp_path):
    """A pod that asks for a thousand resources no node has, on a file of its own."""
    requests = {f"example.com/r{number}": "1" for number in range(1000)}
    pod = {
        **CROWDED,
        "spec": {
            **CROWDED["spec"],
            "containers": [{"name": "c", "resources": {"requests": requests, "limits": requests}}],
        },
    }
    file = tmp_path / "picky.json"
    file.write_text(json.dumps(pod))
    return str(file)


def test_json_of_one_pod_with_too_many_reasons_is_refused_and_a_table_groups_them(simulate, monkeypatch, picky):
    monkeypatch.setattr("bayplan.explain.trace.MAX_REASONS_BYTES", 50_000)
    code, _, err = simulate("--cluster", CLUSTER, "--cluster", picky, "--explain", "-o", "json")
    assert code == 2
    assert err.startswith("--explain: the reasons why nodes reject pod default/crowd take more than")
    assert err.count("\n") == 1
    assert simulate("--cluster", CLUSTER, "--cluster", picky, "-o", "json")[0] == 0
    code, out, _ = simulate("--cluster", CLUSTER, "--cluster", picky, "--explain")
    assert code == 0
    assert "NodeResourcesFit: example.com/r0, asked 1, of which these nodes have none; " in out


def test_a_report_holds_no_more_explanations_than_fit_in_memory_and_a_table_holds_none(simulate, monkeypatch, picky):
    monkeypatch.setattr("bayplan.cli.simulation.MAX_EXPLAINED_BYTES", 2000)
    files = ("--cluster", CLUSTER, "--cluster", picky, "--explain")
    code, out, err = simulate(*files, "-o", "json")
    assert (code, out) == (2, "")
    assert err.startswith("--explain: the explanations up to pod default/crowd take more than")
    code, out, _ = simulate(*files)
    assert code == 0
    assert "Insufficient example.com/r999" in out


def test_text_the_terminal_cannot_show_is_escaped(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: example.com/v1\nkind: Käse\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "bayplan", "simulate", "--cluster", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert r"Ignored: 1 K\xe4se" in ran.stdout


def test_feature_gates_are_read_and_those_without_effect_are_named(simulate):
    code, _, err = simulate("--cluster", CLUSTER, "--feature-gates", "OpenAPIEnums=true,StorageCapacityScoring=false")
    assert (code, err) == (0, "--feature-gates: OpenAPIEnums changes nothing in bayplan\n")
    code, out, err = simulate("--cluster", CLUSTER, "--feature-gates", "Nonsense=true")
    assert (code, out, err) == (2, "", "--feature-gates: unrecognized feature gate: Nonsense\n")


LEAST = str(ROOT / "examples/worked-example-least-requested.yaml")


def test_several_configurations_are_shown_side_by_side(simulate):
    code, out, err = simulate("--config", CONFIG, "--config", LEAST, "--cluster", CLUSTER)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [f"A: {CONFIG}", f"B: {LEAST}"]
    assert "nodes in use" in out


def test_the_summary_of_several_configurations_names_no_pods(simulate):
    two = ("--config", CONFIG, "--config", LEAST, "--cluster", CLUSTER)
    table, summary = simulate(*two)[1], simulate(*two, "-o", "summary")[1]
    assert table.startswith(summary)
    assert "on the same node" in table
    assert "on the same node" not in summary


def test_several_configurations_give_a_report_each_as_json(simulate):
    alone = [json.loads(simulate("--config", each, "--cluster", CLUSTER, "-o", "json")[1]) for each in (CONFIG, LEAST)]
    code, out, _ = simulate("--config", CONFIG, "--config", LEAST, "--cluster", CLUSTER, "-o", "json")
    together = json.loads(out)["configurations"]
    assert (code, [each["config"] for each in together]) == (0, [CONFIG, LEAST])
    for report in (*alone, *(each["report"] for each in together)):
        del report["summary"]["seconds"], report["summary"]["decisionsPerSecond"]
    assert [each["report"] for each in together] == alone


def test_how_many_more_fit_is_told_for_each_configuration(simulate, tmp_path):
    pod = tmp_path / "pod.yaml"
    spec = "{schedulerName: bayplan, containers: [{name: c, resources: {requests: {cpu: 1}}}]}"
    pod.write_text(f"{{kind: Pod, metadata: {{name: more}}, spec: {spec}}}")
    arguments = ("--config", CONFIG, "--config", LEAST, "--cluster", CLUSTER, "--add", str(pod), "--count", "max")
    assert "more of the counted pod fit" in simulate(*arguments)[1]
    counts = [
        each["report"]["count"]["fits"] for each in json.loads(simulate(*arguments, "-o", "json")[1])["configurations"]
    ]
    assert min(counts) > 0


def test_several_configurations_are_not_explained(simulate):
    code, out, err = simulate("--config", CONFIG, "--config", LEAST, "--cluster", CLUSTER, "--explain")
    assert (code, out) == (2, "")
    assert "give one --config" in err


def test_one_configuration_under_which_a_pod_finds_no_node_fails_the_comparison(simulate, tmp_path):
    config = tmp_path / "strict.yaml"
    affinity = "{nodeSelectorTerms: [{matchExpressions: [{key: none, operator: Exists}]}]}"
    config.write_text(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: "
        "bayplan, pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
        f"{{requiredDuringSchedulingIgnoredDuringExecution: {affinity}}}}}}}]}}]}}"
    )
    arguments = ("--config", CONFIG, "--config", str(config), "--cluster", CLUSTER)
    assert simulate(*arguments)[0] == 0
    assert simulate(*arguments, "--fail-on-unschedulable")[0] == 3


def test_what_is_wrong_with_a_second_configuration_is_told(simulate, tmp_path):
    config = tmp_path / "wrong.yaml"
    config.write_text("{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profils: []}")
    code, out, err = simulate("--config", CONFIG, "--config", str(config), "--cluster", CLUSTER)
    assert (code, out) == (2, "")
    assert "profils" in err
