"""`bayplan plan`: what it prints, what it refuses, and how it ends."""

import io
import json
import sys

import pytest
from tests.cli.simulate_inputs import lists

from bayplan.cli import main


def node(name):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}


def pod(name, on=None, cpu="1", scheduler="bayplan"):
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}]
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": spec | ({"nodeName": on} if on else {}),
    }


CLUSTER = lists(node("n1"), node("n2"), pod("web", "n1"), pod("api", "n2", "2"), pod("big", cpu="4"))
MORE = json.dumps({**pod("more", cpu="3"), "apiVersion": "v1"})


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """Run the command on the cluster; `arguments` follow."""
    (tmp_path / "in").write_text(CLUSTER)
    (tmp_path / "more.json").write_text(MORE)
    monkeypatch.chdir(tmp_path)

    def plan(*arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLUSTER.encode())))
        with pytest.raises(SystemExit) as ended:
            main(["plan", "--cluster", "in", *arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return plan


def test_it_prints_the_steps_in_their_order_and_what_they_bring_about(plan):
    code, out, err = plan("--free", "n1")
    assert (code, err) == (0, "")
    assert out == (
        "Cordon: n1\n"
        "Evict in this order, each once the one before runs elsewhere:\n"
        "POD          FROM  TO  NOTE\n"
        "default/web  n1    n2\n"
        "Goal: free n1: reached by 1 move; 2 nodes in use, 1 afterwards\n"
    )


def test_a_node_is_opened_again_once_there_is_room_for_a_pod(plan):
    code, out, _ = plan("--fit", "default/big")
    assert code == 0
    assert "Cordon: n1\n" in out
    assert "Uncordon: n1\nGoal: fit default/big: reached, on n1 by 1 move; 2 nodes in use, 2 afterwards\n" in out


def test_a_pod_of_a_file_is_made_room_for(plan):
    code, out, _ = plan("--fit", "more.json", "-o", "json")
    assert code == 0
    assert json.loads(out)["goal"] == "fit default/more"


def test_json_has_moves_for_a_descheduler(plan):
    code, out, _ = plan("--nodes", "1", "-o", "json")
    assert code == 0
    assert json.loads(out) == {
        "goal": "1 node in use",
        "reached": True,
        "cordon": ["n1"],
        "moves": [
            {
                "namespace": "default",
                "name": "web",
                "uid": "file:default/web",
                "from": "n1",
                "to": "n2",
                "waitsFor": None,
            }
        ],
        "uncordon": [],
        "nodesInUseBefore": 2,
        "nodesInUse": 1,
        "fitsOn": None,
        "obstacles": [],
    }


def test_a_goal_that_is_not_reached_is_exit_code_3_with_what_is_in_the_way(plan):
    code, out, _ = plan("--nodes", "0")
    assert code == 3
    assert "In the way: n1: default/web: 0/2 nodes are available" in out
    assert out.endswith("Goal: 0 nodes in use: not reached by 1 move; 2 nodes in use, 1 afterwards\n")


def test_of_very_many_obstacles_some_are_told():
    from bayplan.plan.goals import Plan, print_plan
    from bayplan.plan.rehearsal import Obstacle
    from bayplan.simulate.tables import Printer

    obstacles = [Obstacle("n", "default", f"p{number}", "u", "stays") for number in range(25)]
    stream = io.StringIO()
    print_plan(Printer(stream), Plan("free n", False, 1, 1, obstacles=obstacles))
    assert stream.getvalue().count("In the way: n: default/p") == 20
    assert "In the way: 5 more, which -o json has\n" in stream.getvalue()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "Give one of --free, --fit and --nodes."),
        (["--free", "n1", "--nodes", "1"], "Give one of --free, --fit and --nodes."),
        (["--free", "n9"], "--free: there is no Node 'n9'"),
        (["--fit", "default/none"], '--fit: "default/none": there is no such file, and no such pod that can be read'),
        (["--fit", "none.yaml"], '--fit: "none.yaml": there is no such file, and no such pod that can be read'),
        (["--fit", "web"], "--fit: pod default/web does not wait for a node"),
        (["--nodes", "-1"], "-1 is not in the range x>=0"),
        (
            ["--fit", "big", "--scheduler-name", "other"],
            '--fit: pod default/big is for the scheduler "bayplan": give --scheduler-name or --config',
        ),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(plan, arguments, error):
    code, out, err = plan(*arguments)
    assert (code, out) == (2, "")
    assert error in err


def test_a_cluster_that_cannot_be_reached_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--nodes", "1", "--kubeconfig", "none"])
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (2, 1)


def test_a_name_that_is_a_file_and_a_pod_is_refused_until_it_says_which(plan, tmp_path):
    (tmp_path / "big").write_text(MORE)
    assert plan("--fit", "big") == (2, "", '--fit: "big" is a file and a pod: give ./big or pod/default/big\n')
    assert "fit default/more" in plan("--fit", "./big")[1]
    assert "fit default/big" in plan("--fit", "pod/default/big")[1]


def test_a_workload_whose_pods_are_all_there_is_told_from_a_pod_that_does_not_wait(plan, tmp_path):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    there = pod("j-x7k")
    there["metadata"]["ownerReferences"] = [owner]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "j"},
        "spec": {"template": {"spec": {**there["spec"], "restartPolicy": "Never"}}},
    }
    (tmp_path / "in").write_text(lists(node("n1"), there, job))
    (tmp_path / "job").write_text(json.dumps(job))
    code, _, err = plan("--fit", "job")
    assert code == 2
    assert '--fit: the workload of "job" makes no more pods: name the one that waits, as NAMESPACE/NAME\n' in err


def test_pods_that_wait_for_another_scheduler_are_no_matter_of_a_plan(plan, tmp_path):
    (tmp_path / "in").write_text(lists(node("n1"), node("n2"), pod("web", "n1"), pod("other", scheduler="other")))
    assert (plan("--free", "n1")[0], plan("--free", "n1")[2]) == (0, "")


def test_a_configuration_of_standard_input_is_not_read_beside_a_cluster_of_it(plan):
    code, out, err = plan("--free", "n1", "--cluster", "-", "--config", "-")
    assert (code, out, err) == (2, "", "--config: Forbidden: standard input is what --cluster reads\n")


def test_extenders_that_a_plan_does_not_ask_are_told_of_without_a_simulation(plan, tmp_path):
    kind = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    (tmp_path / "config").write_text(kind + "extenders: [{urlPrefix: x}]\n")
    told = "extenders are not called: decisions are those of the plugins alone\n"
    assert plan("--free", "n1", "--config", "config")[2] == told
