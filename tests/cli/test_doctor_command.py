"""`bayplan doctor`: what it prints, what it reads, and how it ends."""

import io
import json
import sys

import pytest
from tests.cli.simulate_inputs import lists

from bayplan.cli import main

SPREAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: bayplan
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated}}
"""
POOL = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {}}


def node(name, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}},
    }


def pod(name, on):
    spec = {"schedulerName": "bayplan", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}]
    metadata = {"name": name, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": on}}


GOOD = lists(node("n1"), node("n2"), pod("web", "n1"), pod("api", "n2"))


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    """Run the command with these files beside it."""

    def doctor(*arguments, stdin="", **files):
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return doctor


def test_a_good_cluster_has_nothing_and_exit_code_0(doctor):
    assert doctor("--cluster", "in", **{"in": GOOD}) == (0, "Nothing found.\n", "")


def test_what_is_found_is_told_with_effect_and_fix_and_exit_code_1(doctor):
    code, out, err = doctor("--cluster", "in", "--config", "config", **{"in": GOOD, "config": SPREAD})
    assert (code, err) == (1, "")
    assert out.startswith(
        "strategy: bayplan: LeastAllocated spreads pods\n"
        "  effect: all pods placed anew take 2 nodes as it is, 1 with the fix\n"
        "  fix: apiVersion: kubescheduler.config.k8s.io/v1\n"
        "       kind: KubeSchedulerConfiguration\n"
    )
    assert out.endswith("\n\n1 found.\n")


def test_the_fix_of_a_configuration_is_one_that_has_nothing(doctor):
    _, out, _ = doctor("--cluster", "in", "--config", "config", "-o", "json", **{"in": GOOD, "config": SPREAD})
    (finding,) = json.loads(out)["findings"]
    assert doctor("--cluster", "in", "--config", "fixed", fixed=finding["fix"]) == (0, "Nothing found.\n", "")


@pytest.mark.parametrize("file", ["in", "-"])
def test_objects_of_autoscalers_and_annotations_are_read_of_files_and_of_standard_input(doctor, file):
    kept = node("n3", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})
    cluster = lists(*json.loads(GOOD)["items"], kept, pod("more", "n3"), POOL)
    code, out, _ = doctor("--cluster", file, "-o", "json", stdin=cluster, **{"in": cluster})
    assert code == 1
    assert [each["check"] for each in json.loads(out)["findings"]] == ["consolidation", "kept-nodes"]


def test_a_policy_of_the_descheduler_is_read_as_the_file_that_it_is(doctor):
    policy = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig: [{name: LowNodeUtilization, args: {targetThresholds: {cpu: %s}}}]
  plugins: {balance: {enabled: [LowNodeUtilization]}}
"""
    for limit, above in (("40", 1), ("60", 0), ("1" + "0" * 40, 0), ("none", 0)):
        code, out, err = doctor("--cluster", "in", "--cluster", "policy", **{"in": GOOD, "policy": policy % limit})
        assert (code, err.count("\n")) == (1, 1)
        assert out.startswith("descheduling: DeschedulerPolicy: LowNodeUtilization evicts pods from full nodes")
        assert f"of which {above} are above" in out


def test_a_cluster_without_nodes_is_wrong_input_and_not_a_good_one(doctor):
    for cluster in (lists(pod("web", "n1")), lists({"kind": "Foo"}), lists(POOL)):
        code, out, err = doctor("--cluster", "in", **{"in": cluster})
        assert (code, out) == (2, "")
        assert err.endswith("there is no Node that can be read, so nothing can be looked for\n")


@pytest.mark.parametrize("plugins", [7, "x", [3], {"balance": 7}, {"balance": {"enabled": 7}}])
def test_a_policy_of_another_shape_has_nothing(doctor, plugins):
    policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [{"plugins": plugins}]}
    code, out, _ = doctor("--cluster", "in", "--cluster", "policy", **{"in": GOOD, "policy": json.dumps(policy)})
    assert (code, out) == (0, "Nothing found.\n")


def test_names_of_strangers_are_one_line(doctor):
    pool = {**POOL, "metadata": {"name": "a\nb\x1b[31m"}}
    _, out, _ = doctor("--cluster", "in", **{"in": lists(*json.loads(GOOD)["items"], pool)})
    assert "\x1b" not in out
    assert "consolidation: NodePool a\\nb" in out


def test_a_cluster_that_cannot_be_reached_is_one_line(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    code, out, err = doctor("--kubeconfig", "none")
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("flag", ["--master", "--kubeconfig", "--context"])
def test_a_cluster_of_files_is_not_looked_for_anywhere_else(doctor, flag):
    code, out, err = doctor("--cluster", "in", flag, "here", **{"in": GOOD})
    assert (code, out) == (2, "")
    assert "--kubeconfig, --context and --master are about the cluster itself, not --cluster." in err


def test_that_no_pod_that_waits_is_tried_is_no_matter_of_the_doctor(doctor):
    waiting = {**pod("waits", ""), "metadata": {"name": "waits"}}
    waiting["spec"]["schedulerName"] = "another"
    _, _, err = doctor("--cluster", "in", **{"in": lists(*json.loads(GOOD)["items"], waiting)})
    assert err == ""
